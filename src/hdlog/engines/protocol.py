"""The algebra with multiplicities that every engine implements, and that maintenance is written in.

A `Relation` is a bag of rows over named columns, a `FactSet` a set of facts of one predicate with a multiplicity
each, a `Table` the maintained facts of a predicate. An engine never sees a rule; maintenance never sees an id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from hdlog.engines.decode import FactTable
from hdlog.engines.encoding import Encoder
from hdlog.errors import HdlogError
from hdlog.program.model import AggregateCall, Expression, Predicate, Program
from hdlog.program.terms import Constant, Term

Relation = Any
FactSet = Any
Table = Any
Item = TypeVar("Item")
Result = TypeVar("Result")
Kept = TypeVar("Kept")
Support = Literal["asserted", "nonrecursive", "recursive"]


class RunAgain(Exception):
    """An engine has taken too much for granted in an update, and will not when it is run again."""


class TooManyDerivations(HdlogError):
    """More derivations of one fact than 64 bits can count."""

    exit_code = 5

    def __init__(self) -> None:
        super().__init__(
            "a fact has more derivations than can be counted (2^62); a body that multiplies so much is best cut into "
            "rules of its own, each with the variables that matter"
        )


@dataclass(frozen=True)
class Version:
    """The facts of a predicate at some moment: a table, plus and minus some facts."""

    table: Table
    plus: tuple[FactSet, ...] = ()
    minus: tuple[FactSet, ...] = ()


class Engine(Encoder, Protocol):
    def table(self, arity: int) -> Table:
        """A new table, empty."""

    # Relations.

    def scan(self, facts: FactSet, terms: Sequence[Term]) -> Relation:
        """Rows over the variables of an atom; constants and repeated variables select."""

    def join(self, left: Relation, version: Version, terms: Sequence[Term]) -> Relation:
        """Rows of `left` with each matching fact; multiplicities multiply."""

    def antijoin(self, left: Relation, version: Version, terms: Sequence[Term]) -> Relation:
        """Rows of `left` whose atom, all variables bound, is not a fact."""

    def meet(
        self,
        left: Relation,
        name: str,
        factors: Sequence[tuple[Version, Sequence[Term]]],
        needed: Sequence[str],
    ) -> Relation:
        """Rows of `left` with each value of the variable `name` that all factors allow; multiplicities multiply.

        All other variables of the factors are bound in `left`: a step of a worst-case optimal join, in which each row
        looks at its shortest list of candidates. Only the `needed` columns are kept; rows may be added up over the others,
        and values that are not needed are only counted.
        """

    def stack(self, parts: Sequence[Relation]) -> Relation:
        """All rows of relations with the same columns."""

    def collapse(self, relation: Relation) -> Relation:
        """Equal rows as one; multiplicities add up."""

    def filter(self, relation: Relation, condition: Expression) -> Relation: ...

    def extend(self, relation: Relation, expression: Expression, name: str) -> Relation: ...

    def keep_columns(self, relation: Relation, names: Sequence[str]) -> Relation: ...

    def width(self, relation: Relation) -> int:
        """How many columns."""

    def project(self, relation: Relation, terms: Sequence[Term]) -> FactSet:
        """The facts the rows stand for; multiplicities add up."""

    def is_empty(self, relation: Relation | FactSet) -> bool:
        """Whether it is known to have nothing; exact for what is kept."""

    def keep(self, found: Kept) -> Kept:
        """The same relation or facts, computed once whatever use is made of them."""

    def count(self, relation: Relation | FactSet) -> int:
        """How many facts, exactly; how many rows, about."""

    def unit(self) -> Relation:
        """One row, no columns."""

    # Fact sets.

    def no_facts(self, arity: int) -> FactSet: ...

    def plus(self, parts: Iterable[FactSet], arity: int) -> FactSet:
        """Multiplicities added."""

    def minus(self, a: FactSet, b: FactSet) -> FactSet:
        """The facts of `a` that are not in `b`."""

    def union(self, a: FactSet, b: FactSet) -> FactSet: ...

    def rising(self, facts: FactSet) -> FactSet:
        """The facts with positive multiplicities."""

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

    def bytes(self, kept: Table | FactSet) -> int:
        """How much memory a table or a set of facts takes, indexes included."""

    def fan_out(self, version: Version, bound: Sequence[int]) -> float:
        """How many facts a row meets, on average, that fixes the bound columns; an estimate."""

    def meeting(self, a: Version, i: int, b: Version, j: int) -> float:
        """How many pairs of facts agree in column i of the one and j of the other; about."""

    def core(
        self, atoms: Sequence[tuple[Version, Sequence[Term]]]
    ) -> list[tuple[float, dict[str, float]]] | None:
        """For each atom of a join, about how many of its facts have only values that all atoms of their variables have,
        and how many values of each variable these have; None if that is not cheap to tell."""

    def flat(self, version: Version) -> Version:
        """The same facts in one piece, if the engine matches that faster than a table plus and minus some facts."""

    def was_empty(self, table: Table, added: FactSet, removed: FactSet) -> bool:
        """Whether a table is known, without computing anything, to have had no facts before a change."""

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

    def fewer(self, parts: list[FactSet], arity: int) -> list[FactSet]:
        """The same disjoint sets of facts, or fewer with the same facts, where an engine does well to put them together."""

    def settle(self, table: Table, asserted: FactSet, signed: FactSet) -> tuple[FactSet, FactSet]:
        """Change assertions and non-recursive supports, and make live and dead what they say.

        Returns the facts that came and the facts that went.
        """

    def refound(self, table: Table, asserted: FactSet, signed: FactSet) -> tuple[FactSet, FactSet]:
        """Change assertions and non-recursive supports, and nothing else.

        Returns the live facts among those touched that are left unfounded, and the founded ones that are not live.
        """

    def asserted(self, table: Table, facts: FactSet) -> FactSet:
        """The facts that are asserted."""

    def each(
        self, apply: Callable[[Item], Result], items: Sequence[Item], facts: Iterable[FactSet]
    ) -> list[Result]:
        """`apply` to each item, at once if the facts they look at are so many that it is worth while."""

    # Updates.

    def begin(self) -> None: ...

    # Facts in and out.

    def read(self, given: Any, program: Program) -> dict[Predicate, FactSet]:
        """Facts in any form a user may have them in."""

    def decode(self, facts: FactSet) -> FactTable:
        """Facts as terms."""

    def show(self, facts: FactSet) -> Any:
        """Facts in the form that users of this engine expect."""

    def supports(self, table: Table) -> list[tuple[tuple[Constant, ...], bool, int]]:
        """Live facts with whether they are asserted, and their derivations; for tests and reports."""

    def weights(self, facts: FactSet) -> dict[tuple[Constant, ...], int]:
        """Facts with their multiplicities; for tests and reports."""

    def close(self) -> None:
        """Give back what the engine holds."""

    def commit(self) -> None: ...

    def roll_back(self) -> None: ...
