"""The seam: what every engine can do, and what maintenance is written in.

Maintenance knows rules, and no ids; an engine knows ids, and no rules. In between are three kinds of values, which only their engine looks
into: a *relation* is a bag of rows over named columns, a *fact set* a set of facts of one predicate with a multiplicity each,
a *table* the maintained facts of a predicate. An `Engine` is generic in the three, so that whatever passes through maintenance
comes back to the engine it is from.

What an engine can do falls into five groups, and one of hints:

| group | what |
|---|---|
| `Relations` | the algebra: scan, join, meet, antijoin, filter, extend, project |
| `FactSets` | sums, differences and unions of facts with multiplicities |
| `Tables` | facts with their supports, as they come and go |
| `Statistics` | what plans are made from |
| `Updates` | begin, commit, take back |
| `InAndOut` | facts in the forms that people have them in |
| `Hints` | what is worth while on one engine and not on another; each has a default |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from hdlog.program.model import AggregateCall, Expression, Predicate
from hdlog.program.terms import Constant, Term, Variable

if TYPE_CHECKING:
    from hdlog.engines.decode import FactTable
    from hdlog.engines.encoding import Dictionary, Ids
    from hdlog.reading.chunks import Chunk
    from hdlog.reading.shared_terms import SharedTerms

R = TypeVar("R")
"""a relation of the engine"""
F = TypeVar("F")
"""a fact set of the engine"""
T = TypeVar("T")
"""a table of the engine"""
R_contra = TypeVar("R_contra", contravariant=True)
F_contra = TypeVar("F_contra", contravariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
Kept = TypeVar("Kept")
Support = Literal["asserted", "nonrecursive", "recursive"]


Allow = Callable[[int], None]
"""Is told how many rows are about to be made, before they are, and raises an exception if that is too many."""


class RunAgain(Exception):
    """An engine has taken too much for granted in an update, and will not when it is run again."""


@dataclass(frozen=True)
class Version(Generic[F, T]):
    """The facts of a predicate at some moment: a table, plus and minus some facts."""

    table: T
    plus: tuple[F, ...] = ()
    minus: tuple[F, ...] = ()


Column = tuple[Version[F, T], int]
"""One column of some facts."""


class Aggregator(Protocol[F, T]):
    """One aggregate. A fact of its values is a group and its value; a group without a value has none.

    What is aggregated are facts with multiplicities: each counts so many times.
    """

    def values(self, version: Version[F, T]) -> F:
        """The values of all groups."""

    def change(self, delta: F, after: Version[F, T], present: Version[F, T]) -> F:
        """How values change, with signs, by a change of the facts: `after` are all facts with it, `present` the values before."""


class Relations(Protocol[R, F, T]):
    """The algebra with multiplicities: joins multiply them, projections add them up."""

    def unit(self) -> R:
        """One row, no columns."""

    def scan(self, facts: F, terms: Sequence[Term]) -> R:
        """Rows over the variables of an atom; constants and repeated variables select."""

    def join(self, left: R, version: Version[F, T], terms: Sequence[Term], allow: Allow | None = None) -> R:
        """Rows of `left` with each matching fact; multiplicities multiply. `allow` is asked by engines that count rows beforehand."""

    def meet(
        self,
        left: R,
        name: str,
        factors: Sequence[tuple[Version[F, T], Sequence[Term]]],
        needed: Sequence[str],
        allow: Allow | None = None,
    ) -> R:
        """Rows of `left` with each value of the variable `name` that all factors allow; multiplicities multiply.

        All other variables of the factors are bound in `left`: a step of a worst-case optimal join, in which each row
        looks at its shortest list of candidates. Only the `needed` columns are kept; rows may be added up over the others,
        and values that are not needed are only counted.
        """

    def antijoin(self, left: R, version: Version[F, T], terms: Sequence[Term]) -> R:
        """Rows of `left` whose atom, all variables bound, is not a fact."""

    def filter(self, relation: R, condition: Expression) -> R: ...

    def extend(self, relation: R, expression: Expression, name: str) -> R:
        """Each row with the value of an expression; rows for which it has none go."""

    def keep_columns(self, relation: R, names: Sequence[str]) -> R:
        """Without the other columns; rows that became equal stay apart."""

    def stack(self, parts: Sequence[R]) -> R:
        """All rows of relations with the same columns."""

    def collapse(self, relation: R) -> R:
        """Equal rows as one; multiplicities add up."""

    def project(self, relation: R, terms: Sequence[Term]) -> F:
        """The facts the rows stand for; multiplicities add up."""

    def is_empty(self, result: R | F) -> bool:
        """Whether it is known to have nothing; exact for what is kept."""

    def count(self, result: R | F) -> int:
        """How many facts, exactly; how many rows, about."""

    def keep(self, result: Kept) -> Kept:
        """The same relation or facts, computed once whatever use is made of them."""


class FactSets(Protocol[F, T]):
    """Facts of one predicate, each with a multiplicity other than zero."""

    def no_facts(self, arity: int) -> F: ...

    def plus(self, parts: Iterable[F], arity: int) -> F:
        """Multiplicities added."""

    def minus(self, a: F, b: F) -> F:
        """The facts of `a` that are not in `b`."""

    def union(self, a: F, b: F) -> F:
        """The facts of either, each once."""

    def disjoint_union(self, parts: Sequence[F], arity: int) -> F:
        """The union of sets that have nothing in common."""

    def distinct(self, facts: F) -> F:
        """Each fact once."""

    def positive(self, facts: F) -> F:
        """The facts with positive multiplicities."""

    def negate(self, facts: F) -> F:
        """With all multiplicities negated."""

    def aggregator(
        self, call: AggregateCall, group: Sequence[Variable], terms: Sequence[Term]
    ) -> Aggregator[F, T]:
        """What finds aggregated values of facts, as an atom with these terms matches them."""


class Tables(Protocol[F, T]):
    """Maintained facts. *Stored* is a fact with any support, *live* one that belongs to the materialisation, *founded* one that
    is asserted or has non-recursive support."""

    def table(self, arity: int, name: str = "") -> T:
        """A new table, empty."""

    def size(self, table: T) -> int:
        """How many facts are live."""

    def facts(self, table: T) -> F:
        """The live facts."""

    def select_supported(self, table: T, facts: F) -> F:
        """The facts with any support."""

    def select_asserted(self, table: T, facts: F) -> F:
        """The facts that are asserted."""

    def insert(self, table: T, facts: F) -> None:
        """Stored facts become live."""

    def delete(self, table: T, facts: F) -> None:
        """Live facts are so no more; their supports stay."""

    def adjust(self, table: T, facts: F, support: Support) -> None:
        """Add the multiplicities to a support; facts not stored are stored, not live."""

    def grow(self, table: T, facts: F, support: Support) -> F:
        """Add positive multiplicities to a support; all the facts become live. Those that were not before."""

    def shrink(self, table: T, facts: F, support: Support) -> F:
        """Take multiplicities from a support; live facts that are left unfounded die. Those that did."""

    def recount(self, table: T, asserted: F, signed: F) -> tuple[F, F]:
        """Change assertions and non-recursive supports, and make live and dead what they say.

        Returns the facts that came and the facts that went.
        """

    def change_foundations(self, table: T, asserted: F, signed: F) -> tuple[F, F]:
        """Change assertions and non-recursive supports, and nothing else.

        Returns the live facts among those touched that are left unfounded, and the founded ones that are not live.
        """

    def bytes(self, kept: T | F) -> int:
        """How much memory a table or a set of facts takes, indexes included."""


class Statistics(Protocol[F, T]):
    """What plans are made from; estimates."""

    def fan_out(self, version: Version[F, T], bound: Sequence[int]) -> float:
        """How many facts a row meets, on average, that fixes the bound columns."""

    def agreeing_pairs(self, asked: Sequence[tuple[Column[F, T], Column[F, T]]]) -> list[float]:
        """For each two columns how many pairs of facts agree in them."""


class Updates(Protocol[F_contra, T_contra]):
    """An update is whole: all of what it changes, or nothing."""

    def begin(self) -> None: ...

    def note(self, restore: Callable[[], None]) -> None:
        """Have this done, too, if the update is taken back."""

    def commit(self) -> None:
        """The changes since `begin` stay. If that fails, nothing has happened yet, and they can still be taken back."""

    def roll_back(self) -> None: ...

    def tidy(self, tables: Sequence[T_contra], facts: Sequence[F_contra]) -> None:
        """Give back terms that only facts of the past have, if there are many: these tables and facts are all that is kept."""

    def close(self) -> None:
        """Give back what the engine holds."""


class InAndOut(Protocol[R_contra, F, T_contra]):
    @property
    def dictionary(self) -> Dictionary: ...

    def facts_from_columns(self, columns: Sequence[Ids], rows: int) -> F:
        """Facts from columns of ids, each row once."""

    def share_terms(self) -> SharedTerms | None:
        """A table of terms for all who read at once, if the engine gives their numbers ids faster than those of chunks."""

    def encode_chunks(self, chunks: Iterable[Chunk]) -> dict[Predicate, F]:
        """Facts that have been read, each once."""

    def owns(self, table: object) -> bool:
        """Whether a table is in a form that this engine alone reads, where it is."""

    def encode_table(self, table: Any, types: Sequence[str]) -> F:
        """The facts of a table that the engine owns; the declared types of its columns, empty ones if there are none."""

    def decode(self, facts: F) -> FactTable:
        """Facts as terms."""

    def collect(self, relation: R_contra, names: Sequence[str]) -> tuple[list[Ids], Ids]:
        """Some columns of all rows, as ids, and the multiplicity of each row."""

    def show(self, facts: F, names: Sequence[str]) -> Any:
        """Facts in the form that users of this engine expect, with names for the columns if there are any."""

    def supports(self, table: T_contra) -> list[tuple[tuple[Constant, ...], bool, int]]:
        """Live facts with whether they are asserted, and their derivations; for tests and reports."""

    def weights(self, facts: F) -> dict[tuple[Constant, ...], int]:
        """Facts with their multiplicities; for tests and reports."""


Core = list[tuple[float, dict[str, float]]]
"""For each atom of a join how many of its facts can match, and how many values of each variable these have."""


class Hints(Generic[R_contra, F, T]):
    """What is worth while on one engine and not on another. None of it changes what comes out."""

    def in_one_piece(self, version: Version[F, T]) -> Version[F, T]:
        """The same facts in one piece, if the engine matches that faster than a table plus and minus some facts."""
        return version

    def merge_parts(self, parts: list[F], arity: int) -> list[F]:
        """The same disjoint sets of facts, or fewer with the same facts, where an engine does well to put them together."""
        return parts

    def was_empty(self, table: T, added: F, removed: F) -> bool:
        """Whether a table is known, without computing anything, to have had no facts before a change."""
        return False

    def core(self, atoms: Sequence[tuple[Version[F, T], Sequence[Term]]]) -> Core | None:
        """For each atom of a join, about how many of its facts have only values that all atoms of their variables have; None if that
        is not cheap to tell."""
        return None

    @property
    def counts_rows(self) -> bool:
        """Whether the engine knows how many rows it makes, so that a rule can be evaluated in another way where they become too many."""
        return False

    def is_counted(self, relation: R_contra) -> bool:
        """Whether it is known how many rows a relation has, not just about how many."""
        return False

    def known_rows(self, facts: F) -> int:
        """How many facts there are, as far as that is known without computing anything; 0 otherwise."""
        return 0

    def look_ahead(self, wanted: Sequence[tuple[T, F]]) -> None:
        """These facts are about to be looked up in these tables, or added or taken."""

    def side_of(self, table: T) -> str:
        """Where a table is, on an engine with more than one place for it."""
        return ""

    def announce(self, work: str) -> None:
        """What goes on from now on, for whoever looks at the engine."""

    def take_care(self) -> None:
        """Take nothing for granted in the update that follows: it cannot be run again."""

    def workers(self, changed: Iterable[F]) -> int:
        """How many rules are best evaluated at once, where so much has changed."""
        return 1


class Engine(
    Relations[R, F, T],
    FactSets[F, T],
    Tables[F, T],
    Statistics[F, T],
    Updates[F, T],
    InAndOut[R, F, T],
    Protocol[R, F, T],
):
    @property
    def hints(self) -> Hints[R, F, T]: ...
