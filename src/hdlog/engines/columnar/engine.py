"""The embedded engine: the algebra over sorted columns in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import current_thread
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from hdlog import interrupts
from hdlog.engines.columnar import builtins
from hdlog.engines.columnar.aggregates import Aggregator
from hdlog.engines.columnar.budget import Budget
from hdlog.engines.columnar.cores import core
from hdlog.engines.columnar.dictionary import Dictionary
from hdlog.engines.columnar.facts import (
    Counts,
    Facts,
    Order,
    check_sums,
    empty_facts,
    gather,
    keys_of,
    largest,
    multiply,
    primary,
    sum_facts,
    union,
)
from hdlog.engines.columnar.kernels import (
    Flags,
    Ids,
    Keys,
    Rows,
    agreeing_pairs,
    expand,
    first_live,
    locate,
    meet_groups,
    meet_lists,
    meet_sizes,
    offsets,
    ranges,
)
from hdlog.engines.columnar.keys import PairTable, part, part_columns
from hdlog.engines.columnar.relation import Relation, stack
from hdlog.engines.columnar.table import SupportedRun, Table
from hdlog.engines.columnar.tidying import tidy
from hdlog.engines.decode import FactTable
from hdlog.engines.encoding import encode_chunks
from hdlog.engines.protocol import Core, Hints, Kept, Support, Version
from hdlog.journal import Journal
from hdlog.program.model import AggregateCall, Expression, Predicate
from hdlog.program.terms import Constant, Term, Variable
from hdlog.reading.chunks import Chunk
from hdlog.tuning import Numbers

Source = Table | Facts
ColumnarVersion = Version[Facts, Table]
_List = tuple[Any, Any, Rows, Rows]
"""Sorted keys or their lower halves, their counts, and per row where its keys begin and end."""
_NONE = np.empty(0, np.uint8)
_NO_COUNTS = np.empty(0, np.int64)
_LOW = np.uint64(0xFFFFFFFF)
_PROBED, _COLUMN, _PROJECTED = 16, 4, 40
"""Bytes that a row takes where probes are spelt out, for each of its columns, and where it becomes a fact."""
_POOL = "hdlog-pool"
Item = TypeVar("Item")
Result = TypeVar("Result")


class ColumnarHints(Hints[Facts, Table]):
    def __init__(self, engine: ColumnarEngine) -> None:
        self.engine = engine

    def in_one_piece(self, version: ColumnarVersion) -> ColumnarVersion:
        if not version.plus and not version.minus and not version.table.dead:
            return version
        return Version(self.engine.table(version.table.arity), (self.engine.sum_of(version),))

    def was_empty(self, table: Table, added: Facts, removed: Facts) -> bool:
        return len(table) + len(removed) == len(added)

    def core(self, atoms: Sequence[tuple[ColumnarVersion, Sequence[Term]]]) -> Core:
        sides = []
        for version, terms in atoms:
            largest = _largest(version)
            sides.append((largest if isinstance(largest, Facts) else largest.facts(), terms))
        return core(sides, len(self.engine.dictionary), self.engine.scan)

    def workers(self, changed: Iterable[Facts]) -> int:
        engine = self.engine
        return engine.threads if sum(map(len, changed)) >= engine.numbers.worth_threads else 1


class ColumnarEngine:
    def __init__(
        self, budget: Budget | None = None, threads: int | None = None, numbers: Numbers | None = None
    ) -> None:
        self.numbers = numbers or Numbers()
        self.hints = ColumnarHints(self)
        self.threads = threads or os.cpu_count() or 1
        self._pool: ThreadPoolExecutor | None = None
        self.dictionary = Dictionary(self.numbers.dense_integers)
        self.pairs = PairTable()
        self.journal = Journal()
        self.budget = budget or Budget()
        self._tidied = 0  # terms and pairs when they were last looked through
        self._aggregators: WeakSet[Aggregator] = WeakSet()

    def table(self, arity: int) -> Table:
        return Table(self.pairs, arity, self.journal, self.budget, self.numbers)

    def encode(self, term: Constant) -> np.uint32:
        return self.dictionary.constant(term)

    # Relations.

    def unit(self) -> Relation:
        return Relation({}, 1)

    def scan(self, facts: Facts, terms: Sequence[Term]) -> Relation:
        return self._selected(facts.columns(), len(facts), facts.counts, terms)

    def _selected(
        self, columns: Sequence[Ids], rows: int, counts: Counts | None, terms: Sequence[Term]
    ) -> Relation:
        """Rows that agree with the constants and repeated variables of an atom, by variable."""
        kept: NDArray[np.bool_] | None = None
        found: dict[str, Ids] = {}
        for column, term in zip(columns, terms, strict=True):
            if isinstance(term, Variable):
                same = column == found[term.name] if term.name in found else None
                found.setdefault(term.name, column)
            else:
                same = column == self.encode(term)
            if same is not None:
                kept = same if kept is None else kept & same
        relation = Relation(found, rows, counts)
        return relation if kept is None else relation.take(kept)

    def join(self, left: Relation, version: ColumnarVersion, terms: Sequence[Term]) -> Relation:
        interrupts.check()
        sources: list[tuple[Source, int]] = [(version.table, 1)] if len(version.table) else []
        sources += [(f, 1) for f in version.plus if len(f)] + [(f, -1) for f in version.minus if len(f)]
        parts = [self._join(left, source, terms).scaled(sign) for source, sign in sources if len(left)]
        if not parts:
            names = [*left.columns, *(t.name for t in terms if isinstance(t, Variable))]
            return Relation({n: np.empty(0, np.uint32) for n in names}, 0)
        if len(parts) > 1:
            self.budget.check(sum(map(len, parts)), _COLUMN * (len(parts[0].columns) + 2))
        return stack(parts)

    def _join(self, left: Relation, source: Source, terms: Sequence[Term]) -> Relation:
        bound = tuple(i for i, t in enumerate(terms) if not isinstance(t, Variable) or t.name in left.columns)
        free = tuple(i for i in range(len(terms)) if i not in bound)
        if not free:
            return self._lookup(left, source, terms)
        if not any(isinstance(terms[i], Variable) for i in bound):
            return self._cross(left, self._scan_source(source, terms, bound))
        width = len(left.columns) + len(free) + 2 * (left.counts is not None)
        probe, rights, weights = self._probe(
            source, (bound, free), [self._column(left, terms[i]) for i in bound], width
        )
        columns = {n: c[probe] for n, c in left.columns.items()}
        kept: NDArray[np.bool_] | None = None
        for i, column in zip(free, part_columns(self.pairs, rights, len(free)), strict=True):
            name = terms[i].name  # type: ignore[union-attr]
            if name in columns:
                kept = (column == columns[name]) if kept is None else kept & (column == columns[name])
            else:
                columns[name] = column
        counts = multiply(left.counts[probe] if left.counts is not None else None, weights)
        relation = Relation(columns, len(probe), counts)
        return relation if kept is None else relation.take(kept)

    def _column(self, relation: Relation, term: Term) -> Ids:
        if isinstance(term, Variable):
            return relation.columns[term.name]
        return np.full(len(relation), self.encode(term), np.uint32)

    def _probe(
        self, source: Source, order: Order, bound: list[Ids], width: int
    ) -> tuple[Rows, Ids, Counts | None]:
        """For each row of bound columns the right ids it meets: number of the row, right id, multiplicity.

        `width` is that of the rows that will be made of them, in columns.
        """
        runs = _runs(source, order)  # before the look-up: making an index makes pairs known
        lefts = part(self.pairs, bound, len(bound[0]), grow=False)
        if len(bound) == 1 and len(self.dictionary) < 2 * len(lefts):
            return self._probe_directly(runs, lefts, width)
        ordered = bool((lefts[1:] >= lefts[:-1]).all())
        rank = None if ordered else np.argsort(lefts, kind="stable")
        probes = lefts if rank is None else lefts[rank]
        found = [self._spelt_out(*run, *ranges(run[0], probes), width) for run in runs]
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.uint32), None
        probe = np.concatenate([f[0] for f in found]) if len(found) > 1 else found[0][0]
        rights = np.concatenate([f[1] for f in found]) if len(found) > 1 else found[0][1]
        weights = found[0][2]  # only facts have them, and facts are one run
        return (probe if rank is None else rank[probe]), rights, weights

    def _probe_directly(
        self, runs: list[tuple[Keys, Flags, Counts | None]], lefts: Ids, width: int
    ) -> tuple[Rows, Ids, Counts | None]:
        """Many probes: an array of where each id begins saves sorting them."""
        found = []
        for keys, dead, counts in runs:
            starts = offsets(keys, len(self.dictionary))
            bounds = starts[lefts], starts[lefts + np.uint32(1)]
            found.append(self._spelt_out(keys, dead, counts, *bounds, width))
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.uint32), None
        if len(found) == 1:
            return found[0]
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found]), None

    def _spelt_out(
        self, keys: Keys, dead: Flags, counts: Counts | None, low: Rows, high: Rows, width: int
    ) -> tuple[Rows, Ids, Counts | None]:
        self.budget.check(int((high - low).sum()), _PROBED + _COLUMN * width)
        probe, rights = expand(keys, dead, low, high)
        if counts is None:
            return probe, rights, None
        lengths = high - low
        starts = np.cumsum(lengths) - lengths
        at = np.arange(len(probe)) - np.repeat(starts - low, lengths)
        return probe, rights, counts[at]

    def _lookup(self, left: Relation, source: Source, terms: Sequence[Term]) -> Relation:
        """Rows whose atom, fully bound, is a fact."""
        if (
            isinstance(source, Table)
            and len(terms) == 1
            and 4 * len(left) > len(source) > self.numbers.worth_flags
        ):
            column = self._column(left, terms[0])  # first: it may make a constant known
            return left.take(self._members(source)[column])
        rank, keys = self._sorted_keys(left, terms)
        if isinstance(source, Table):
            found = source.contains(keys)
            kept = np.sort(rank[found]) if rank is not None else np.flatnonzero(found)
            return left if len(kept) == len(left) else left.take(kept)
        at = locate(source.keys, keys)
        hits = np.flatnonzero(at >= 0)
        relation = left.take(hits if rank is None else rank[hits])
        if source.counts is None:
            return relation
        counts = multiply(relation.counts, source.counts[at[hits]])
        return Relation(relation.columns, len(relation), counts)

    def _members(self, table: Table) -> NDArray[np.bool_]:
        """For each id whether it is in a table of one column."""
        flags = np.zeros(len(self.dictionary), np.bool_)
        flags[table.facts().keys >> np.uint64(32)] = True
        return flags

    def _sorted_keys(self, left: Relation, terms: Sequence[Term]) -> tuple[Rows | None, Keys]:
        columns = [self._column(left, t) for t in terms]
        keys = keys_of(self.pairs, columns, primary(len(terms)), len(left), grow=False)
        if (keys[1:] >= keys[:-1]).all():
            return None, keys
        rank = np.argsort(keys)
        return rank, keys[rank]

    def _scan_source(self, source: Source, terms: Sequence[Term], bound: tuple[int, ...]) -> Relation:
        if not bound:
            facts = source.facts() if isinstance(source, Table) else source
            return self.scan(facts, terms)
        # Constants only: one probe of the index on them.
        single = Relation({}, 1)
        free = tuple(i for i in range(len(terms)) if i not in bound)
        _, rights, weights = self._probe(
            source, (bound, free), [self._column(single, terms[i]) for i in bound], len(free)
        )
        columns = part_columns(self.pairs, rights, len(free))
        return self._selected(columns, len(rights), weights, [terms[i] for i in free])

    def _cross(self, left: Relation, right: Relation) -> Relation:
        if not left.columns and len(left) == 1:
            factor = 1 if left.counts is None else int(left.counts[0])
            return right.scaled(factor)
        self.budget.check(
            len(left) * len(right), _PROBED + _COLUMN * (len(left.columns) + len(right.columns))
        )
        a = np.repeat(np.arange(len(left)), len(right))
        b = np.tile(np.arange(len(right)), len(left))
        columns = {n: c[a] for n, c in left.columns.items()} | {n: c[b] for n, c in right.columns.items()}
        counts = None
        if left.counts is not None or right.counts is not None:
            counts = multiply(left.weights()[a], right.weights()[b])
        return Relation(columns, len(a), counts)

    def meet(
        self,
        left: Relation,
        name: str,
        factors: Sequence[tuple[ColumnarVersion, Sequence[Term]]],
        needed: Sequence[str],
    ) -> Relation:
        interrupts.check()
        if not len(left):
            return Relation({n: np.empty(0, np.uint32) for n in needed if n in left.columns or n == name}, 0)
        if len(factors) == 1 and (
            name not in needed or len(set(needed) & set(left.columns)) == len(left.columns)
        ):
            return self.join(left, *factors[0]).keep(needed)
        factors = sorted(factors, key=lambda f: self.fan_out(f[0], _others(f[1], name)))
        first = factors[:2]
        # The other factors may ask for any column.
        keep = [*left.columns, name] if len(factors) > 2 else needed
        found = self._lists(left, name, first)
        relation = self._met(left, name, found, keep) if found else None
        if relation is None:
            relation = self._shortest_first(left, name, first)
        for version, terms in factors[2:]:
            relation = self.join(relation, version, terms)
        return relation.keep(needed)

    def _lists(
        self, left: Relation, name: str, factors: Sequence[tuple[ColumnarVersion, Sequence[Term]]]
    ) -> list[_List] | None:
        """The candidates of each row by each factor, the longest first; None where looking them up is better."""
        lists = []
        for version, terms in factors:
            found = self._list(left, version, terms, name)
            if found is None:
                return None
            lists.append(found)
        if all(4 * len(left) > len(keys) for keys, *_ in lists) and all(
            not len(c) or (int(c.max()) < 2**31 and int(c.min()) > -(2**31)) for _, c, *_ in lists
        ):
            # Worth a pass over everything: half the bytes to read for each candidate.
            lists = [
                ((keys & _LOW).astype(np.uint32), counts.astype(np.int32), low, high)
                for keys, counts, low, high in lists
            ]
        else:
            lists = [
                (keys, counts.astype(np.int64, copy=False), low, high) for keys, counts, low, high in lists
            ]
        return sorted(lists, key=lambda found: -int((found[3] - found[2]).sum()))

    def _list(
        self, left: Relation, version: ColumnarVersion, terms: Sequence[Term], name: str
    ) -> _List | None:
        """The candidates of each row in one sorted array, if there is one or making it pays."""
        bound = _others(terms, name)
        (free,) = (i for i in range(len(terms)) if i not in bound)
        order = (bound, (free,))
        sources: list[Source] = [version.table] if len(version.table) else []
        sources += [f for f in (*version.plus, *version.minus) if len(f)]
        if len(sources) == 1 and not any(map(len, version.minus)):
            runs = _runs(sources[0], order)
        else:
            runs = []
        if len(runs) != 1 or len(runs[0][1]):
            if 4 * len(left) < sum(map(len, sources)):
                return None
            runs = _runs(self.sum_of(version), order)
        keys, _, counts = runs[0]
        lefts = part(self.pairs, [self._column(left, terms[i]) for i in bound], len(left), grow=False)
        return keys, _NO_COUNTS if counts is None else counts, *self._ranges(keys, lefts, len(bound) == 1)

    def _ranges(self, keys: Keys, lefts: Ids, single: bool) -> tuple[Rows, Rows]:
        """Where the keys of each left id begin and end."""
        if single and len(self.dictionary) < 2 * len(lefts):
            starts = offsets(keys, len(self.dictionary))
            return starts[lefts], starts[lefts + np.uint32(1)]
        if (lefts[1:] >= lefts[:-1]).all():
            return ranges(keys, lefts)
        unique, inverse = np.unique(lefts, return_inverse=True)
        low, high = ranges(keys, unique)
        return low[inverse], high[inverse]

    def _met(
        self, left: Relation, name: str, lists: Sequence[_List], needed: Sequence[str]
    ) -> Relation | None:
        """None where a plain join does as well."""
        # The longer lists are spread out, the shorter ones read.
        a, b = lists[0], lists[-1]
        single = len(lists) == 1
        lengths = np.minimum(a[3] - a[2], b[3] - b[2])
        product = largest(a[1]) * (1.0 if single else largest(b[1]))
        columns = {n: c for n, c in left.columns.items() if n in needed}
        factors = _NO_COUNTS if left.counts is None else left.counts
        if name not in needed and not single:
            check_sums(product * float(lengths.max()))
            found = np.empty(len(left), np.int64)
            order = _ascending(a[2])
            self._halved(lambda part: meet_sizes(*a, *b, part, self._places(), found), order)
            counts = multiply(found, left.counts)
            return Relation(columns, len(left), counts).take(found != 0)
        check_sums(product * largest(left.counts) * float(lengths.sum()))
        groups = self._groups(left, columns, int(lengths.sum()))
        if groups is None:
            return self._met_rows(left, name, (a, b)) if not single else None
        order = _ascending((groups << 32) + a[2])
        parts = self._halved(
            lambda part: meet_groups(*a, *b, part, self._places(), groups, factors, self._places(), single),
            order,
            groups,
        )
        member, values, counts = (np.concatenate([p[i] for p in parts]) for i in range(3))
        found_columns = {n: c[member] for n, c in columns.items()}
        return Relation({**found_columns, name: values}, len(member), None if (counts == 1).all() else counts)

    def _groups(self, left: Relation, columns: dict[str, Ids], candidates: int) -> Rows | None:
        """A number for each combination of some columns, if rows share them and have candidates to add up."""
        if len(columns) == len(left.columns) or candidates <= 2 * len(left):
            return None
        groups = part(self.pairs, list(columns.values()), len(left)).astype(np.int64)
        ordered = groups if (groups[1:] >= groups[:-1]).all() else np.sort(groups)
        return groups if (ordered[1:] == ordered[:-1]).any() else None

    def _met_rows(self, left: Relation, name: str, lists: tuple[_List, _List]) -> Relation:
        """Each row with each candidate; nothing to add up."""
        a, b = lists
        rows = int(np.minimum(a[3] - a[2], b[3] - b[2]).sum())
        self.budget.check(rows, 2 * _PROBED + _COLUMN * len(left.columns))
        counted = bool(len(a[1]) or len(b[1]))
        probe, values, weights = meet_lists(*a, *b, _ascending(a[2]), self._places(), counted)
        columns = {n: c[probe] for n, c in left.columns.items()}
        product = multiply(weights if counted else None, None if left.counts is None else left.counts[probe])
        return Relation({**columns, name: values}, len(probe), product)

    def _places(self) -> Rows:
        """A zero for each id."""
        return np.zeros(len(self.dictionary) + 1, np.int64)

    def _halved(self, work: Callable[[Rows], Result], rows: Rows, groups: Rows | None = None) -> list[Result]:
        """Work on rows, on both cores if there are many; no group is cut in two."""
        # Not from within the pool: waiting for others there, all could wait for each other.
        if (
            self.threads < 2
            or len(rows) < self.numbers.worth_halves
            or current_thread().name.startswith(_POOL)
        ):
            return [work(rows)]
        middle = len(rows) // 2
        if groups is not None:
            ordered = groups[rows]
            middle = int(np.searchsorted(ordered, ordered[middle]))
        return self._at_once(work, [rows[:middle], rows[middle:]])

    def _shortest_first(
        self, left: Relation, name: str, factors: Sequence[tuple[ColumnarVersion, Sequence[Term]]]
    ) -> Relation:
        """Each row by the factor with its shortest list, then the others."""
        if len(factors) == 1:
            return self.join(left, *factors[0])
        sizes = np.stack([self._sizes(left, version, terms, name) for version, terms in factors])
        best = sizes.argmin(axis=0)
        parts = []
        for number in range(len(factors)):
            chosen = left.take(best == number)
            if len(chosen):
                for version, terms in (factors[number], *(f for i, f in enumerate(factors) if i != number)):
                    chosen = self.join(chosen, version, terms)
                parts.append(chosen)
        return stack(parts)

    def _sizes(self, left: Relation, version: ColumnarVersion, terms: Sequence[Term], name: str) -> Rows:
        bound = _others(terms, name)
        (free,) = (i for i in range(len(terms)) if i not in bound)
        total = np.zeros(len(left), np.int64)
        for source in _all_of(version.table, *version.plus, *version.minus):
            for keys, _, _ in _runs(source, (bound, (free,))):
                lefts = part(self.pairs, [self._column(left, terms[i]) for i in bound], len(left), grow=False)
                low, high = self._ranges(keys, lefts, len(bound) == 1)
                total += high - low
        return total

    def stack(self, parts: Sequence[Relation]) -> Relation:
        return stack(parts)

    def collapse(self, relation: Relation) -> Relation:
        variables = [Variable(n) for n in relation.columns]
        return self.scan(self.project(relation, variables), variables)

    def antijoin(self, left: Relation, version: ColumnarVersion, terms: Sequence[Term]) -> Relation:
        rank, keys = self._sorted_keys(left, terms)
        present = version.table.contains(keys).astype(np.int8)
        for facts in version.plus:
            present += facts.contains(keys)
        for facts in version.minus:
            present -= facts.contains(keys)
        absent = np.flatnonzero(present == 0)
        if len(absent) == len(left):
            return left
        return left.take(absent if rank is None else np.sort(rank[absent]))

    def filter(self, relation: Relation, condition: Expression) -> Relation:
        return builtins.select(self.dictionary, self.pairs, relation, condition)

    def extend(self, relation: Relation, expression: Expression, name: str) -> Relation:
        return builtins.extend(self.dictionary, self.pairs, relation, expression, name)

    def keep_columns(self, relation: Relation, names: Sequence[str]) -> Relation:
        return relation.keep(names)

    def project(self, relation: Relation, terms: Sequence[Term]) -> Facts:
        interrupts.check()
        self.budget.check(len(relation), _PROJECTED, "sorting a result")
        columns = [self._column(relation, t) for t in terms]
        keys = keys_of(self.pairs, columns, primary(len(terms)), len(relation))
        return gather(self.pairs, len(terms), keys, relation.counts)

    def is_empty(self, relation: Relation | Facts) -> bool:
        return len(relation) == 0

    def count(self, relation: Relation | Facts) -> int:
        return len(relation)

    def keep(self, found: Kept) -> Kept:
        return found

    # Fact sets.

    def no_facts(self, arity: int) -> Facts:
        return empty_facts(self.pairs, arity)

    def facts_from_columns(self, columns: Sequence[Ids], rows: int) -> Facts:
        """Each row once."""
        keys = keys_of(self.pairs, columns, primary(len(columns)), rows)
        return gather(self.pairs, len(columns), keys, None).once()

    def plus(self, parts: Iterable[Facts], arity: int) -> Facts:
        return sum_facts(list(parts), self.pairs, arity)

    def minus(self, a: Facts, b: Facts) -> Facts:
        return a.minus(b)

    def union(self, a: Facts, b: Facts) -> Facts:
        return union(a, b)

    def positive(self, facts: Facts) -> Facts:
        return facts if facts.counts is None else facts.take(facts.counts > 0)

    def negate(self, facts: Facts) -> Facts:
        return facts.negated()

    def distinct(self, facts: Facts) -> Facts:
        return facts.once()

    def first_columns(self, facts: Facts, width: int) -> Facts:
        return self.facts_from_columns(facts.columns()[:width], len(facts))

    def aggregator(self, width: int, call: AggregateCall, column: int) -> Aggregator:
        found = Aggregator(self, width, call, column)
        self._aggregators.add(found)
        return found

    def have_members(self, version: ColumnarVersion, columns: Sequence[Ids]) -> NDArray[np.bool_]:
        """For each row of some first columns whether there is a fact that begins with it."""
        assert not any(map(len, version.minus)), "what is there now has nothing taken from it"
        rows = len(columns[0]) if columns else 1
        bound = tuple(range(len(columns)))
        order = (bound, tuple(range(len(columns), version.table.arity)))
        found = np.zeros(rows, np.bool_)
        for source in _all_of(version.table, *version.plus):
            runs = _runs(source, order)
            lefts = part(self.pairs, columns, rows, grow=False)
            for keys, dead, _ in runs:
                found |= first_live(dead, *self._ranges(keys, lefts, single=False))
        return found

    # Tables.

    def size(self, table: Table) -> int:
        return len(table)

    def bytes(self, kept: Table | Facts) -> int:
        return kept.nbytes

    def fan_out(self, version: ColumnarVersion, bound: Sequence[int]) -> float:
        size = len(version.table) + sum(map(len, version.plus))
        if not size or not bound:
            return float(size)
        if len(bound) == version.table.arity:
            return 1.0 / (1 + size)
        largest = _largest(version)
        return float(len(largest) / max(1, largest.distinct(tuple(bound))))

    def agreeing_pairs(self, a: ColumnarVersion, i: int, b: ColumnarVersion, j: int) -> float:
        return float(agreeing_pairs(self._by_column(a, i), self._by_column(b, j)))

    def _by_column(self, version: ColumnarVersion, column: int) -> Keys:
        """The keys of the largest part of a version, a column first."""
        free = tuple(c for c in range(version.table.arity) if c != column)
        runs = _runs(_largest(version), ((column,), free))
        return max((keys for keys, *_ in runs), key=len, default=np.empty(0, np.uint64))

    def sum_of(self, version: ColumnarVersion) -> Facts:
        parts = [version.table.facts(), *version.plus, *(f.negated() for f in version.minus)]
        return sum_facts(parts, self.pairs, version.table.arity)

    def facts(self, table: Table) -> Facts:
        return table.facts()

    def adjust(self, table: Table, facts: Facts, support: Support) -> None:
        if len(facts):
            table.adjust(facts, support)

    def insert(self, table: Table, facts: Facts) -> None:
        table.insert(facts)

    def delete(self, table: Table, facts: Facts) -> None:
        table.delete(facts)

    def live(self, table: Table, facts: Facts, wanted: bool = True) -> Facts:
        return facts.take(table.contains(facts.keys) == wanted).once()

    def founded(self, table: Table, facts: Facts, wanted: bool = True) -> Facts:
        def test(run: SupportedRun, at: Rows) -> NDArray[np.bool_]:
            return np.asarray(((run.asserted[at] != 0) | (run.nonrecursive[at] != 0)) == wanted)

        return table.select(facts, test).once()

    def grow(self, table: Table, facts: Facts, support: Support) -> Facts:
        return table.grow(facts, support) if len(facts) else facts

    def shrink(self, table: Table, facts: Facts, support: Support) -> Facts:
        return table.shrink(facts, support) if len(facts) else facts

    def disjoint_union(self, parts: Sequence[Facts], arity: int) -> Facts:
        parts = [p for p in parts if len(p)]
        if len(parts) < 2:
            return parts[0].once() if parts else self.no_facts(arity)
        return Facts(self.pairs, arity, np.sort(np.concatenate([p.keys for p in parts])))

    def recount(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        nothing = self.no_facts(table.arity)
        if not table.runs and not (len(asserted) and len(signed)):
            facts = asserted if len(asserted) else signed
            table.load(facts, "asserted" if len(asserted) else "nonrecursive")
            return facts.once(), nothing
        if not len(asserted) or not len(signed):
            if len(asserted):
                return table.change(asserted, "asserted")
            return table.change(signed, "nonrecursive") if len(signed) else (nothing, nothing)
        self.adjust(table, asserted, "asserted")
        self.adjust(table, signed, "nonrecursive")
        touched = union(asserted.once(), signed.once())
        holding = self.founded(table, touched)
        added = self.live(table, holding, wanted=False)
        removed = self.live(table, touched.minus(holding))
        table.insert(added)
        table.delete(removed)
        return added, removed

    def change_foundations(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        self.adjust(table, asserted, "asserted")
        self.adjust(table, signed, "nonrecursive")
        touched = union(asserted.once(), signed.once())
        gained = self.live(table, self.founded(table, touched), wanted=False)
        return self.live(table, self.founded(table, touched, wanted=False)), gained

    def asserted(self, table: Table, facts: Facts) -> Facts:
        return table.select(facts, lambda run, at: run.asserted[at] != 0).once()

    def supported(self, table: Table, facts: Facts) -> Facts:
        def test(run: SupportedRun, at: Rows) -> NDArray[np.bool_]:
            return np.asarray(
                (run.asserted[at] != 0) | (run.nonrecursive[at] != 0) | (run.recursive[at] != 0)
            )

        return table.select(facts, test).once()

    def _at_once(self, apply: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """`apply` to each item on all cores; waits for all, whatever happens."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, _POOL)
        futures = [self._pool.submit(apply, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
            wait(futures)

    # Facts in and out.

    def encode_chunks(self, chunks: Iterable[Chunk]) -> dict[Predicate, Facts]:
        return encode_chunks(self, chunks)

    def owns(self, table: object) -> bool:
        return False

    def encode_table(self, table: object, types: Sequence[str]) -> Facts:
        raise AssertionError("no table is in a form of the engine's own")

    def decode(self, facts: Facts) -> FactTable:
        return FactTable(self.dictionary, facts.arity, len(facts), facts.columns)

    def show(self, facts: Facts, names: Sequence[str]) -> FactTable:
        return self.decode(facts).named(names)

    def supports(self, table: Table) -> list[tuple[tuple[Constant, ...], bool, int]]:
        facts = table.facts()
        asserted = table.values(facts, "asserted").tolist()
        supports = (table.values(facts, "nonrecursive") + table.values(facts, "recursive")).tolist()
        rows = self.decode(facts).rows()
        return [(row, bool(a), n) for row, a, n in zip(rows, asserted, supports, strict=True)]

    def weights(self, facts: Facts) -> dict[tuple[Constant, ...], int]:
        return dict(zip(self.decode(facts).rows(), facts.weights().tolist(), strict=True))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    # Updates.

    def tidy(self, tables: Sequence[Table], facts: Sequence[Facts]) -> None:
        size = len(self.dictionary) + self.pairs.size
        if size < 2 * self._tidied + self.numbers.worth_tidying or self.dictionary.leans:
            return
        found = tidy(self.dictionary, self.pairs, tables, facts)
        if found is not None:
            self.dictionary, self.pairs = found.dictionary, found.pairs
            for aggregator in self._aggregators:
                aggregator.forget()
        self._tidied = len(self.dictionary) + self.pairs.size

    def begin(self) -> None:
        self.journal.begin()

    def note(self, restore: Callable[[], None]) -> None:
        self.journal.note(restore)

    def commit(self) -> None:
        self.journal.commit()

    def roll_back(self) -> None:
        self.journal.roll_back()


def _ascending(numbers: Rows) -> Rows:
    """The order in which numbers rise."""
    if (numbers[1:] >= numbers[:-1]).all():
        return np.arange(len(numbers))
    return np.argsort(numbers, kind="stable")


def _others(terms: Sequence[Term], name: str) -> tuple[int, ...]:
    """The columns of an atom other than the one of a variable."""
    return tuple(i for i, t in enumerate(terms) if not (isinstance(t, Variable) and t.name == name))


def _largest(version: ColumnarVersion) -> Source:
    return max(_all_of(version.table, *version.plus), key=len)


def _all_of(*sources: Source) -> tuple[Source, ...]:
    return sources


def _runs(source: Source, order: Order) -> list[tuple[Keys, Flags, Counts | None]]:
    if isinstance(source, Table):
        return [(run.keys, run.dead, None) for run in source.index(order)]
    keys, counts = source.index(order)
    return [(keys, _NONE, counts)]
