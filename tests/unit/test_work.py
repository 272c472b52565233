"""What joins cost, compiled, is what the order that join plans are made by costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isclose, prod, sqrt

from hypothesis import given
from hypothesis import strategies as st

from hdlog.plan.estimates import greedy_order
from hdlog.plan.work import Book

VARIABLES = 5
ATOMS = 3
MET, SEARCHED = 0.03, 1.0


@dataclass
class Side:
    """A factor, as both see it."""

    rows: float
    values: Mapping[int, float]
    """by the bit of a variable"""
    repeated: int
    skews: Mapping[int, float]
    number: int = 0

    @property
    def mask(self) -> int:
        return sum(self.values)

    def fan_out(self, bound: int) -> float:
        return self.narrow(self.rows, bound, bound)

    def narrow(self, fan: float, bound: int, more: int) -> float:
        for bit, values in self.values.items():
            fan /= values if bit & more else 1.0
        return fan


@st.composite
def sides(draw: st.DrawFn) -> Side:
    numbers = draw(st.sets(st.integers(0, VARIABLES - 1), min_size=1, max_size=3))
    figures = st.sampled_from([1.0, 2.0, 7.0, 30.0, 400.0, 5000.0])
    values = {1 << n: draw(figures) for n in numbers}
    repeated = sum(bit for bit in values if draw(st.integers(0, 5)) == 0)
    skews = {bit: draw(st.sampled_from([0.5, 1.0, 3.0, 50.0])) for bit in values}
    return Side(draw(figures), values, repeated, skews)


def book_of(all_sides: Sequence[Side], pairs: Mapping[tuple[int, int, int], float]) -> Book:
    book = Book(ATOMS, VARIABLES)
    for side in all_sides:
        by_number = {bit.bit_length() - 1: v for bit, v in side.values.items()}
        skews = {bit.bit_length() - 1: v for bit, v in side.skews.items()}
        side.number = book.add(side.rows, by_number, side.repeated, skews)
    for (a, b, n), skew in pairs.items():
        book.pairs[a, b, n] = skew
    return book


@given(st.lists(sides(), min_size=1, max_size=6), st.integers(0, 31), st.booleans(), st.data())
def test_without_skew_it_is_the_order_of_join_plans(
    several: list[Side], wanted: int, meets: bool, data: st.DataObject
) -> None:
    for side in several:
        side.skews = {}
    book = book_of(several, {})
    start = data.draw(st.integers(0, len(several) - 1))
    total, candidates = several[start].rows, 0.0
    for taken in greedy_order(several, start, wanted, meets):
        candidates += taken.looked_at if len(taken.factors) > 1 else 0.0
        total += 0.0 if taken.counted else taken.made
    members = [side.number for side in several]
    shortest, average = book.evaluate(members, [start], wanted, meets, inf, False, MET, SEARCHED)
    assert isclose(shortest, total + MET * candidates, rel_tol=1e-9)
    assert isclose(average, total + SEARCHED * candidates, rel_tol=1e-9)


@given(st.lists(sides(), min_size=3, max_size=6), st.integers(0, 31), st.booleans(), st.booleans(), st.data())
def test_skew_and_dense_cores_count(
    several: list[Side], wanted: int, meets: bool, dense: bool, data: st.DataObject
) -> None:
    pairs = {
        (a, b, n): data.draw(st.sampled_from([0.1, 1.0, 20.0]))
        for a in range(ATOMS)
        for b in range(ATOMS)
        for n in range(VARIABLES)
    }
    book = book_of(several, pairs)
    starts = data.draw(st.lists(st.integers(0, len(several) - 1), min_size=1, max_size=4))
    most = data.draw(st.sampled_from([inf, 1e4]))
    figures = [work_from(several, start, wanted, meets, dense, pairs) for start in starts]
    found = book.evaluate([s.number for s in several], starts, wanted, meets, most, dense, MET, SEARCHED)
    average = sum(rows + SEARCHED * seen for rows, seen in figures) / len(starts)
    if average > most:
        assert found == (inf, inf)
        return
    costs = [rows + MET * seen for rows, seen in figures]
    assert isclose(found[0], sum(costs) / len(costs) if dense else min(costs), rel_tol=1e-9)
    assert isclose(found[1], average, rel_tol=1e-9)


def work_from(
    several: Sequence[Side],
    start: int,
    wanted: int,
    meets: bool,
    dense: bool,
    pairs: Mapping[tuple[int, int, int], float],
) -> tuple[float, float]:
    """Word for word: rows made, and candidates looked at."""
    total, seen = several[start].rows, 0.0
    rows, chosen, waiting = total, [several[start]], [s for n, s in enumerate(several) if n != start]
    while waiting:
        bound = _union(chosen)
        best = min(waiting, key=lambda s: (not s.mask & bound, s.fan_out(bound)))
        free = best.mask & ~bound
        together = [best]
        if meets and free.bit_count() == 1 and not best.repeated & free:
            together = [s for s in waiting if s.mask & ~bound == free and not s.repeated & free]
        lists = sorted(
            s.fan_out(bound) * max(_skews(chosen, s, s.mask & bound, pairs), default=1.0) for s in together
        )
        if dense and not free:
            lists = [sqrt(n) if n < 1 else n for n in lists]
        made = rows * lists[0]
        seen += made if len(together) > 1 else 0.0
        for length in lists[1:]:
            chance = min(1.0, length / max(s.values[free] for s in together))
            made *= sqrt(chance) if dense else chance
        chosen += together
        waiting = [s for s in waiting if not any(s is t for t in together)]
        needed = wanted | _union(waiting)
        if len(together) > 1 and not free & needed:
            continue
        total += made
        rows = made
        if meets and _union(chosen) & ~needed:
            bits = [1 << n for n in range(VARIABLES) if needed & 1 << n]
            least = [[s.values[b] for s in chosen if b in s.values] for b in bits]
            rows = min(made, prod(min(v) for v in least if v))
    return total, seen


def _union(several: Sequence[Side]) -> int:
    mask = 0
    for side in several:
        mask |= side.mask
    return mask


def _skews(
    chosen: Sequence[Side], side: Side, shared: int, pairs: Mapping[tuple[int, int, int], float]
) -> Iterator[float]:
    if shared.bit_count() == 1:
        for other in chosen:
            if other.mask & shared:
                if max(other.number, side.number) < ATOMS:
                    yield pairs[other.number, side.number, shared.bit_length() - 1]
                else:
                    yield sqrt(other.skews[shared] * side.skews[shared])
