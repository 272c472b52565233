"""The algebra with multiplicities that every engine implements, and that maintenance is written in.

A `Relation` is a bag of rows over named columns, a `FactSet` a set of facts of one predicate with a multiplicity
each, a `Table` the maintained facts of a predicate. An engine never sees a rule; maintenance never sees an id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from hdlog.program.model import AggregateCall, Expression
from hdlog.program.terms import Term

Relation = Any
FactSet = Any
Table = Any
Item = TypeVar("Item")
Result = TypeVar("Result")
Support = Literal["asserted", "nonrecursive", "recursive"]


@dataclass(frozen=True)
class Version:
    """The facts of a predicate at some moment: a table, plus and minus some facts."""

    table: Table
    plus: tuple[FactSet, ...] = ()
    minus: tuple[FactSet, ...] = ()


class Engine(Protocol):
    def table(self, arity: int) -> Table:
        """A new table, empty."""

    # Relations.

    def scan(self, facts: FactSet, terms: Sequence[Term]) -> Relation:
        """Rows over the variables of an atom; constants and repeated variables select."""

    def join(self, left: Relation, version: Version, terms: Sequence[Term]) -> Relation:
        """Rows of `left` with each matching fact; multiplicities multiply."""

    def antijoin(self, left: Relation, version: Version, terms: Sequence[Term]) -> Relation:
        """Rows of `left` whose atom, all variables bound, is not a fact."""

    def filter(self, relation: Relation, condition: Expression) -> Relation: ...

    def extend(self, relation: Relation, expression: Expression, name: str) -> Relation: ...

    def keep_columns(self, relation: Relation, names: Sequence[str]) -> Relation: ...

    def project(self, relation: Relation, terms: Sequence[Term]) -> FactSet:
        """The facts the rows stand for; multiplicities add up."""

    def is_empty(self, relation: Relation | FactSet) -> bool: ...

    def count(self, relation: Relation | FactSet) -> int: ...

    def unit(self) -> Relation:
        """One row, no columns."""

    # Fact sets.

    def no_facts(self, arity: int) -> FactSet: ...

    def plus(self, parts: Iterable[FactSet], arity: int) -> FactSet:
        """Multiplicities added."""

    def minus(self, a: FactSet, b: FactSet) -> FactSet:
        """The facts of `a` that are not in `b`."""

    def union(self, a: FactSet, b: FactSet) -> FactSet: ...

    def opposite(self, facts: FactSet) -> FactSet:
        """With all multiplicities negated."""

    def distinct(self, facts: FactSet) -> FactSet: ...

    def aggregate(
        self, version: Version, groups: FactSet, width: int, call: AggregateCall, column: int
    ) -> FactSet:
        """(group, value) for each of the groups, `width` columns wide, that has facts."""

    def heads_of(self, facts: FactSet, width: int) -> FactSet:
        """The first `width` columns of facts, each once."""

    # Tables.

    def size(self, table: Table) -> int: ...

    def fan_out(self, version: Version, bound: Sequence[int]) -> float:
        """How many facts a row meets, on average, that fixes the bound columns; an estimate."""

    def facts(self, table: Table) -> FactSet: ...

    def adjust(self, table: Table, facts: FactSet, support: Support) -> None:
        """Add the multiplicities to a support; facts not stored are stored, not live."""

    def insert(self, table: Table, facts: FactSet) -> None: ...

    def delete(self, table: Table, facts: FactSet) -> None: ...

    def live(self, table: Table, facts: FactSet, wanted: bool = True) -> FactSet: ...

    def founded(self, table: Table, facts: FactSet, wanted: bool = True) -> FactSet:
        """The facts that are asserted or have non-recursive support."""

    def supported(self, table: Table, facts: FactSet) -> FactSet:
        """The facts with any support."""

    def grow(self, table: Table, facts: FactSet, support: Support) -> FactSet:
        """Add positive multiplicities to a support; all the facts become live. Those that were not before."""

    def shrink(self, table: Table, facts: FactSet, support: Support) -> FactSet:
        """Take multiplicities from a support; live facts that are left unfounded die. Those that did."""

    def together(self, parts: Sequence[FactSet], arity: int) -> FactSet:
        """The union of disjoint sets of facts."""

    def settle(self, table: Table, asserted: FactSet, signed: FactSet) -> tuple[FactSet, FactSet]:
        """Change assertions and non-recursive supports, and make live and dead what they say.

        Returns the facts that came and the facts that went.
        """

    def asserted(self, table: Table, facts: FactSet) -> FactSet:
        """The facts that are asserted."""

    def each(self, apply: Callable[[Item], Result], items: Sequence[Item], size: int) -> list[Result]:
        """`apply` to each item, at once if `size`, the facts to look at, makes that worth while."""

    # Updates.

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def roll_back(self) -> None: ...
