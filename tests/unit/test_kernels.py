"""Each compiled kernel against a naive twin; run once more with the JIT off by `make test`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdlog.engines.columnar import kernels
from hdlog.engines.columnar.kernels import halves, hashing, meeting, merging, searching, sorting
from hdlog.engines.columnar.keys import UNKNOWN, KeyTable

SMALL = st.integers(0, 40)
KEYS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda p: p[0] << 32 | p[1]), max_size=20)


def array(values: object) -> kernels.Keys:
    return np.array(sorted(values), np.uint64)  # type: ignore[call-overload]


@given(st.sets(SMALL), st.lists(SMALL))
def test_locate_finds_each_probe_or_tells(keys: set[int], probes: list[int]) -> None:
    ordered = sorted(keys)
    expected = [ordered.index(p) if p in keys else -1 for p in sorted(probes)]
    assert searching.locate(array(keys), array(probes)).tolist() == expected


@given(KEYS.map(set), st.lists(st.integers(0, 7)))
def test_ranges_and_offsets_give_the_keys_of_each_left_id(keys: set[int], lefts: list[int]) -> None:
    ordered = array(keys)
    low, high = searching.ranges(ordered, np.array(sorted(lefts), np.uint32))
    starts = searching.offsets(ordered, 8)
    for left, a, b in zip(sorted(lefts), low.tolist(), high.tolist(), strict=True):
        expected = [k for k in ordered.tolist() if k >> 32 == left]
        assert ordered[a:b].tolist() == expected
        assert ordered[starts[left] : starts[left + 1]].tolist() == expected


def test_ranges_reach_the_largest_id() -> None:
    top = 0xFFFFFFFE << 32 | 0xFFFFFFFF
    low, high = searching.ranges(array([1, top]), np.array([0xFFFFFFFE], np.uint32))
    assert (low.tolist(), high.tolist()) == ([1], [2])


@given(KEYS.map(set), st.lists(st.integers(0, 7), max_size=5), st.data())
def test_expand_spells_out_ranges_without_the_dead(
    keys: set[int], lefts: list[int], data: st.DataObject
) -> None:
    ordered = array(keys)
    dead = data.draw(
        st.one_of(st.just([]), st.lists(st.integers(0, 1), min_size=len(keys), max_size=len(keys)))
    )
    low, high = searching.ranges(ordered, np.array(sorted(lefts), np.uint32))
    probe, right = searching.expand(ordered, np.array(dead, np.uint8), low, high)
    expected = [
        (i, k & 0xFFFFFFFF)
        for i, left in enumerate(sorted(lefts))
        for j, k in enumerate(ordered.tolist())
        if k >> 32 == left and not (dead and dead[j])
    ]
    assert list(zip(probe.tolist(), right.tolist(), strict=True)) == expected


@given(st.sets(SMALL), st.sets(SMALL))
def test_merge_order_sorts_two_sorted_arrays(a: set[int], b: set[int]) -> None:
    both = np.concatenate([array(a), array(b)])
    assert both[merging.merge_order(array(a), array(b))].tolist() == sorted([*a, *b])


@given(st.dictionaries(SMALL, st.integers(-2, 2)), st.dictionaries(SMALL, st.integers(-2, 2)))
def test_merge_add_adds_counts_and_drops_zeros(a: dict[int, int], b: dict[int, int]) -> None:
    counts = [np.array([d[k] for k in sorted(d)], np.int64) for d in (a, b)]
    keys, sums = merging.merge_add(array(a), counts[0], array(b), counts[1])
    expected = {k: a.get(k, 0) + b.get(k, 0) for k in sorted({*a, *b})}
    assert dict(zip(keys.tolist(), sums.tolist(), strict=True)) == {k: n for k, n in expected.items() if n}


@given(st.lists(SMALL))
def test_count_keys_counts_repetitions(values: list[int]) -> None:
    keys, counts = merging.count_keys(array(values))
    expected = Counter(values)
    assert keys.tolist() == sorted(expected)
    assert counts.tolist() == ([expected[k] for k in sorted(expected)] if len(expected) < len(values) else [])


@given(KEYS.map(set), KEYS.map(set))
def test_agreeing_pairs_counts_pairs_with_one_left_id(a: set[int], b: set[int]) -> None:
    expected = sum(x >> 32 == y >> 32 for x in a for y in b)
    assert searching.agreeing_pairs(array(a), array(b)) == expected


@given(KEYS.map(set), st.lists(st.integers(0, 2), min_size=7, max_size=7), st.data())
def test_reach_pairs_keeps_what_has_come_to_both_stages(
    keys: set[int], lefts: list[int], data: st.DataObject
) -> None:
    rights = data.draw(st.lists(st.integers(0, 2), min_size=7, max_size=7))
    marks = np.array(lefts, np.uint8), np.array(rights, np.uint8)
    found = searching.reach_pairs(array(keys), marks[0], 1, marks[1], 2)
    kept = [(k >> 32, k & 0xFFFFFFFF) for k in sorted(keys)]
    kept = [(a, b) for a, b in kept if lefts[a] >= 1 and rights[b] >= 2]
    assert found.tolist() == [a << 32 | b for a, b in kept]
    here, there = {a for a, _ in kept}, {b for _, b in kept}
    assert marks[0].tolist() == [2 if i in here else n for i, n in enumerate(lefts)]
    assert marks[1].tolist() == [3 if i in there else n for i, n in enumerate(rights)]


@given(st.sets(SMALL), st.dictionaries(SMALL, st.integers(1, 3)), st.data())
def test_grow_run_adds_support_and_wakes_the_dead(
    keys: set[int], given_: dict[int, int], data: st.DataObject
) -> None:
    dead = {k: data.draw(st.integers(0, 1)) for k in sorted(keys)}
    marks, support = np.array(list(dead.values()), np.uint8), np.zeros(len(keys), np.int64)
    counts = np.array([given_[k] for k in sorted(given_)], np.int64)
    missed, missed_counts, woken = merging.grow_run(array(keys), marks, support, array(given_), counts)
    assert dict(zip(missed.tolist(), missed_counts.tolist(), strict=True)) == {
        k: n for k, n in given_.items() if k not in keys
    }
    assert woken.tolist() == [k for k in sorted(given_) if dead.get(k)]
    assert support.tolist() == [given_.get(k, 0) for k in sorted(keys)]


@given(st.sets(SMALL), st.data())
def test_merge_runs_drops_what_is_dead_and_unsupported(keys: set[int], data: st.DataObject) -> None:
    rows = {k: tuple(data.draw(st.integers(0, 1)) for _ in range(5)) for k in sorted(keys)}

    def run(side: int) -> tuple[object, ...]:
        chosen = {k: r for k, r in rows.items() if r[4] == side}
        columns = [[r[i] for r in chosen.values()] for i in range(4)]
        kinds = (np.uint8, np.uint8, np.int64, np.int64)
        return (array(chosen), *(np.array(c, t) for c, t in zip(columns, kinds, strict=True)))

    found = merging.merge_runs(*run(0), *run(1))  # type: ignore[arg-type]
    expected = {k: r[:4] for k, r in rows.items() if not (r[0] and not any(r[1:4]))}
    assert found[0].tolist() == list(expected)
    dead = [r[0] for r in expected.values()]
    assert found[1].tolist() == (dead if any(dead) else [])
    for i in (1, 2, 3):
        assert found[i + 1].tolist() == [r[i] for r in expected.values()]


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=60), max_size=4))
def test_key_tables_number_keys_in_the_order_they_come(batches: list[list[int]]) -> None:
    table = KeyTable()
    expected: dict[int, int] = {}
    for batch in batches:
        keys = np.array(batch, np.uint64)
        assert table.positions(keys, grow=False).tolist() == [expected.get(k, int(UNKNOWN)) for k in batch]
        wanted = [expected.setdefault(k, len(expected)) for k in batch]
        assert table.positions(keys).tolist() == wanted
    assert table.keys(0).tolist() == list(expected)


LISTS = st.dictionaries(st.integers(0, 3), st.dictionaries(st.integers(0, 99), st.integers(1, 3)), max_size=4)
"""By left id, right ids with counts."""


@st.composite
def ranged(draw: st.DrawFn, rows: int, short: bool, counted: bool) -> tuple[Any, Any]:
    """Lists as the kernels take them, with one range for each row, and as Python has them."""
    lists = draw(LISTS)
    entries = sorted(
        (left << 32 | right, count) for left, found in lists.items() for right, count in found.items()
    )
    keys = np.array([k for k, _ in entries], np.uint64)
    counts = np.array([c for _, c in entries] if counted else [], np.int64)
    lefts = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    low = np.searchsorted(keys >> np.uint64(32), np.array(lefts)).astype(np.int64)
    high = np.searchsorted(keys >> np.uint64(32), np.array(lefts), "right").astype(np.int64)
    plain = [{r: c if counted else 1 for r, c in lists.get(left, {}).items()} for left in lefts]
    if short:
        halves = (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        return (halves, counts.astype(np.int32), low, high), plain
    return (keys, counts, low, high), plain


@given(st.data(), st.booleans(), st.booleans(), st.booleans())
def test_meetings_of_lists(data: st.DataObject, short: bool, first: bool, second: bool) -> None:
    meets: Any = meeting
    rows = data.draw(st.integers(0, 8))
    (a, x), (b, y) = (data.draw(ranged(rows, short, counted)) for counted in (first, second))
    order = np.argsort(a[2], kind="stable")
    places = np.zeros(100, np.int64)
    common = [{r: p[r] * q[r] for r in p.keys() & q.keys()} for p, q in zip(x, y, strict=True)]
    sums = np.empty(rows, np.int64)
    meets.meet_sizes(*a, *b, order, places, sums)
    assert sums.tolist() == [sum(found.values()) for found in common]
    probe, right, counts = meets.meet_lists(*a, *b, order, places, True)
    spelt = sorted(zip(probe.tolist(), right.tolist(), counts.tolist(), strict=True))
    assert spelt == sorted((i, r, c) for i, found in enumerate(common) for r, c in found.items())
    groups = np.array(data.draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows)), np.int64)
    factors = np.array(
        data.draw(st.lists(st.sampled_from([1, 2, -1]), min_size=rows, max_size=rows)), np.int64
    )
    for single, per_row in ((False, common), (True, x)):
        expected: Counter[tuple[int, int]] = Counter()
        for group, factor, found in zip(groups.tolist(), factors.tolist(), per_row, strict=True):
            for r, c in found.items():
                expected[(group, r)] += factor * c
        together = np.lexsort((a[2], groups))
        member, right, counts = meets.meet_groups(
            *a, *b, together, places, groups, factors, np.zeros(100, np.int64), single
        )
        summed = dict(
            zip(zip(groups[member].tolist(), right.tolist(), strict=True), counts.tolist(), strict=True)
        )
        assert summed == {key: n for key, n in expected.items() if n}
    assert not places.any()


@given(st.sets(SMALL), SMALL, st.integers(0, 8), st.integers(1, 9))
def test_lower_bound_is_where_a_key_would_stand(keys: set[int], key: int, start: int, step: int) -> None:
    ordered = np.array(sorted(keys), np.uint64)
    begin = min(start, len(ordered))
    expected = next((i for i in range(begin, len(ordered)) if ordered[i] >= key), len(ordered))
    assert searching.lower_bound(ordered, begin, np.uint64(key), step) == expected


@given(st.lists(st.booleans(), max_size=12), st.booleans(), st.data())
def test_have_live_looks_for_one_that_is_not_dead(
    dead: list[bool], marked: bool, data: st.DataObject
) -> None:
    bounds = data.draw(
        st.lists(st.tuples(st.integers(0, len(dead)), st.integers(0, len(dead))).map(sorted), max_size=6)
    )
    low, high = (np.array([b[side] for b in bounds], np.int64) for side in (0, 1))
    marks = np.array(dead if marked else [], np.uint8)
    expected = [any(not (marked and dead[j]) for j in range(a, b)) for a, b in bounds]
    assert searching.have_live(marks, low, high).tolist() == expected


@given(st.lists(st.lists(st.integers(0, 60), max_size=12), max_size=5))
def test_keys_get_ids_in_a_hash_table_and_keep_them_in_a_larger_one(batches: list[list[int]]) -> None:
    slots, stored, size = np.zeros(64, np.uint32), np.empty(64, np.uint64), 0
    known: dict[int, int] = {}
    for batch in batches:
        keys, ids = np.array(batch, np.uint64), np.empty(len(batch), np.uint32)
        if len(known) + len(batch) > 30:
            break
        size = hashing.intern(keys, slots, stored, size, ids, True)
        assert ids.tolist() == [known.setdefault(key, len(known)) for key in batch]
        assert size == len(known)
    larger = np.zeros(256, np.uint32)
    hashing.rehash(stored, size, larger)
    asked = np.arange(61, dtype=np.uint64)
    ids = np.empty(61, np.uint32)
    assert hashing.intern(asked, larger, stored, size, ids, False) == size
    assert ids.tolist() == [known.get(key, 0xFFFFFFFF) for key in range(61)]


WIDE = st.lists(
    st.one_of(SMALL, st.integers(0, 2**64 - 1), KEYS.map(lambda k: k[0] if k else 0)), max_size=30
)


@given(WIDE.filter(bool), st.data())
def test_digits_sort_keys_and_what_stands_beside_them(keys: list[int], data: st.DataObject) -> None:
    beside = data.draw(st.one_of(st.just([]), st.just(list(range(len(keys))))))
    arrays = np.array(keys, np.uint64), np.array(beside, np.int64)
    others = np.empty_like(arrays[0]), np.empty_like(arrays[1])
    is_moved = sorting.sort_digits(*arrays, *others, np.empty(256, np.int64))
    ordered, moved = others if is_moved else arrays
    expected = sorted(range(len(keys)), key=lambda i: keys[i])
    assert ordered.tolist() == sorted(keys)
    assert moved.tolist() == (expected if beside else [])


@pytest.mark.parametrize("size", [0, 1, 1000, 1025, 40_000, 60_000])
def test_sorting_agrees_with_numpy_at_every_size(size: int) -> None:
    chance = np.random.default_rng(size)
    keys = chance.integers(0, 2**63, size).astype(np.uint64) >> np.uint64(chance.integers(0, 60))
    signed = chance.integers(-50, 50, size)
    stable = np.argsort(keys, kind="stable")
    assert (sorting.sort(keys.copy()) == keys[stable]).all()
    assert (sorting.sort_places(stable.copy()) == np.arange(size)).all()
    ordered, carried = sorting.sort_with(keys.copy(), signed)
    assert (ordered == keys[stable]).all()
    assert (carried == signed[stable]).all()
    for numbers in (keys, signed, (keys >> np.uint64(33)).astype(np.uint32)):
        assert (sorting.order_of(numbers) == np.argsort(numbers, kind="stable")).all()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2**32 - 1))), st.sampled_from([32, 0]))
def test_halves_of_keys(pairs: list[tuple[int, int]], shift: int) -> None:
    left, right = (np.array([p[i] for p in pairs], np.uint32) for i in (0, 1))
    keys = halves.pack(left, right)
    assert keys.tolist() == [a << 32 | b for a, b in pairs]
    assert [half.tolist() for half in halves.unpack(keys)] == [left.tolist(), right.tolist()]
    small = np.array([(a << 32) | (b % 7) for a, b in pairs], np.uint64)
    column = [a if shift else b % 7 for a, b in pairs]
    counted = Counter(column)
    assert halves.largest_half(small, shift) == max(column, default=-1)
    assert halves.count_halves(small, shift, 10).tolist() == [counted[i] for i in range(10)]
    assert halves.count_distinct_halves(small, shift, 10) == len(counted)
    assert halves.count_uppers(np.sort(keys)) == len({a for a, _ in pairs})


def test_many_keys_are_packed_and_unpacked_by_loops() -> None:
    left = np.arange(10_000, dtype=np.uint32)
    keys = halves.pack(left[::-1], left)
    assert keys[:2].tolist() == [9999 << 32, 9998 << 32 | 1]
    assert all((a == b).all() for a, b in zip(halves.unpack(keys), (left[::-1], left), strict=True))
