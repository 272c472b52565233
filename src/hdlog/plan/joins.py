"""Join plans: in which order a body is matched, as a value that is made once, costed, run, printed and compared.

A plan begins with the rows of one literal, or with a single row without columns, and goes on step by step. Each join says which columns are
kept: those that a later step or the heads ask for. The order is greedy (`estimates.greedy_order`): the connected literal with the
smallest fan-out comes next, built-ins and negated literals as soon as their variables are bound. Greedy orders are not optimal. They
were measured to be within a few per cent of the best on the bodies of the benchmarks; where they are not, the body multiplies, and gets
a tree.

**The worst-case optimal step.** Two binary joins around a cycle, such as a triangle, list all paths of two edges before the third edge
throws most of them away. Where several literals have just one and the same new variable, a `Meet` joins all of them at once: each row
looks at the shortest of its lists of candidates and keeps those that are in all the others. So no more candidates are looked at than the
smallest literal offers, row by row, which bounds the work by that of the worst possible result (Ngo, Porat, Ré, Rudra 2012). A variable
that nothing asks for afterwards is not even listed, only counted. Such steps are taken inside the nodes of trees. Plans of the standard
method do without them, as the paper's do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from hdlog.plan.bodies import Body, names_used, repeated_names
from hdlog.plan.estimates import Taken, greedy_order
from hdlog.program.model import Atom, Bind, Call, Expression, Filter
from hdlog.program.terms import Variable
from hdlog.tuning import Numbers

Columns = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Rows with each matching fact of a literal."""

    literal: int
    keep: Columns
    drops: bool
    """whether columns go, so that rows may have become equal"""
    estimate: float
    """rows"""


@dataclass(frozen=True, slots=True)
class Meet:
    """Rows with each value of a variable that all of some literals allow."""

    variable: str
    literals: tuple[int, ...]
    keep: Columns
    drops: bool
    estimate: float


@dataclass(frozen=True, slots=True)
class Antijoin:
    """Rows whose negated literal is no fact."""

    literal: int


@dataclass(frozen=True, slots=True)
class Select:
    """Rows for which a condition holds."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Extend:
    """Rows with the value of an expression."""

    expression: Expression
    variable: str


Step = Join | Meet | Antijoin | Select | Extend


@dataclass(frozen=True)
class JoinPlan:
    start: int | None
    """the literal whose rows it begins with"""
    steps: tuple[Step, ...]

    @property
    def estimate(self) -> float:
        """Rows that all joins make."""
        return sum(step.estimate for step in self.steps if isinstance(step, Join | Meet))


FanOut = Callable[[int, Sequence[int]], float]
"""How many facts of literal number i a row meets that fixes the given columns."""


def plan_join(
    body: Body, start: int | None, fan_out: FanOut, meets: bool = False, reorder: bool = True
) -> JoinPlan:
    """The plan from a literal on.

    It `meets` if worst-case optimal steps may be taken. Unless it may `reorder`, literals come in the order of the text, but for those that
    share no variable with what is bound: they wait.
    """
    return _Builder(body, start, fan_out, meets, reorder).plan()


@dataclass(eq=False)
class Measured:
    """A literal of which is known what is asked of its facts, and nothing more is worked out."""

    atom: Atom
    bits: Mapping[str, int]
    measure: Callable[[Sequence[int]], float]
    _known: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mask = sum({self.bits[v.name] for v in self.atom.variables()})
        self.repeated = sum(self.bits[name] for name in repeated_names(self.atom))

    @property
    def rows(self) -> float:
        return self.fan_out(0)

    @cached_property
    def values(self) -> dict[int, float]:
        bits = {self.bits[v.name] for v in self.atom.variables()}
        return {bit: max(1.0, min(self.rows, self.rows / max(self.fan_out(bit), 1e-9))) for bit in bits}

    def fan_out(self, bound: int) -> float:
        shared = self.mask & bound
        if shared not in self._known:
            columns = [
                i
                for i, t in enumerate(self.atom.terms)
                if not isinstance(t, Variable) or self.bits[t.name] & shared
            ]
            self._known[shared] = self.measure(columns)
        return self._known[shared]

    def narrow(self, fan: float, bound: int, more: int) -> float:
        return self.fan_out(bound) if self.mask & more else fan


def operands_of(body: Body, fan_out: FanOut) -> list[Measured]:
    """The positive literals of a body, in their order."""
    names = sorted({name for literal in body.literals for name in literal.names} | _values_made(body))
    bits = {name: 1 << number for number, name in enumerate(names)}
    return [Measured(body.literals[i].atom, bits, partial(fan_out, i)) for i in body.positive]


def _values_made(body: Body) -> set[str]:
    return {i.variable.name for i in body.built_ins if isinstance(i, Bind)}


def best_start(body: Body, preferred: int, fan_out: FanOut, numbers: Numbers) -> int:
    """The positive literal to begin with that leads to the least work; the preferred one unless that is half of its."""
    operands = operands_of(body, fan_out)
    wanted = sum(operands[0].bits.get(name, 0) for name in body.find_needed((), body.built_ins))
    work = {}
    for n, i in enumerate(body.positive):
        work[i] = operands[n].rows
        for taken in greedy_order(operands, n, wanted, meets=True):
            looked_at = taken.looked_at if len(taken.factors) > 1 else 0.0
            work[i] += numbers.met * looked_at + (0.0 if taken.counted else taken.made)
    best = min(work, key=lambda i: work[i])
    return best if work[best] < work[preferred] / 2 else preferred


class _Builder:
    def __init__(self, body: Body, start: int | None, fan_out: FanOut, meets: bool, reorder: bool) -> None:
        self.body, self.start, self.fan_out, self.meets, self.reorder = body, start, fan_out, meets, reorder
        self.steps: list[Step] = []
        self.bound = set(body.literals[start].names) if start is not None else set[str]()
        self.start_names = frozenset(self.bound)
        self.columns = set(self.bound)
        """those of the relation: what is bound, without what was dropped"""
        self.built_ins = list(body.early)
        self.waiting = [i for i in range(len(body.literals)) if i != start]

    def plan(self) -> JoinPlan:
        self._apply_built_ins()
        for taken in self._order():
            self._antijoin()
            self._join(taken)
            self._apply_built_ins()
        self._antijoin()
        # Negated literals that only a value made for the heads completes.
        self.steps += [Antijoin(i) for i in self.waiting]
        assert not self.built_ins, "every built-in has what it needs in the end"
        return JoinPlan(self.start, tuple(self.steps))

    def _order(self) -> Iterator[Taken]:
        positive = self.body.positive
        rest = [n for n, i in enumerate(positive) if i != self.start]
        if not self.reorder or (len(rest) == 1 and not self.meets):
            return self._in_order_of_text(rest)
        operands = operands_of(self.body, self.fan_out)
        bits = operands[0].bits if operands else {}
        wanted = sum(bits.get(name, 0) for name in self.body.find_needed((), self.body.built_ins))
        start = positive.index(self.start) if self.start in positive else None
        return greedy_order(operands, start, wanted, self.meets, bind=partial(self._bind, bits))

    def _in_order_of_text(self, waiting: list[int]) -> Iterator[Taken]:
        """Nothing is estimated; literals that meet are taken together all the same."""
        while waiting:
            first = next((n for n in waiting if self._is_connected(n)), waiting[0])
            free = self._find_free(first)
            meeting = [n for n in waiting if self._find_free(n) == free and self._can_meet(n, free)]
            taken = tuple(meeting) if first in meeting else (first,)
            waiting = [n for n in waiting if n not in taken]
            yield Taken(taken, 0.0, 0.0, False)

    def _find_free(self, number: int) -> frozenset[str]:
        return self.body.literals[self.body.positive[number]].names - self.bound

    def _is_connected(self, number: int) -> bool:
        return bool(self.body.literals[self.body.positive[number]].names & self.bound)

    def _can_meet(self, number: int, free: frozenset[str]) -> bool:
        atom = self.body.literals[self.body.positive[number]].atom
        return self.meets and len(free) == 1 and not free & repeated_names(atom)

    def _bind(self, bits: Mapping[str, int], mask: int) -> int:
        """What is bound if some variables are: those, what the start has bound, and the values that follow from them."""
        bound = {name for name, bit in bits.items() if bit & mask} | self.start_names
        for _ in self.body.early:
            for item in self.body.early:
                if isinstance(item, Bind) and names_used(item) <= bound:
                    bound.add(item.variable.name)
        return sum(bits[name] for name in bound if name in bits)

    def _join(self, taken: Taken) -> None:
        literals = tuple(self.body.positive[n] for n in taken.factors)
        self.waiting = [i for i in self.waiting if i not in literals]
        new = {name for i in literals for name in self.body.literals[i].names} - self.bound
        self.bound |= new
        needed = self.body.find_needed(self.waiting, self.built_ins)
        kept = (self.columns | new) & needed
        drops = bool((self.columns | new) - kept) and bool(self.waiting)
        self.columns = kept
        keep = tuple(sorted(kept))
        if self._can_meet(taken.factors[0], frozenset(new)):
            self.steps.append(Meet(next(iter(new)), literals, keep, drops, taken.made))
        else:
            assert len(literals) == 1, "literals are joined at once where they meet"
            self.steps.append(Join(literals[0], keep, drops, taken.made))

    def _antijoin(self) -> None:
        """Negated literals all of whose variables are bound."""
        ready = [
            i
            for i in self.waiting
            if not self.body.literals[i].positive and self.body.literals[i].names <= self.bound
        ]
        self.steps += [Antijoin(i) for i in ready]
        self.waiting = [i for i in self.waiting if i not in ready]

    def _apply_built_ins(self) -> None:
        self.steps += apply_built_ins(self.built_ins, self.bound)
        self.columns |= self.bound & {i.variable.name for i in self.body.early if isinstance(i, Bind)}


def apply_built_ins(waiting: list[Filter | Bind], bound: set[str]) -> list[Step]:
    """Steps for the built-ins whose variables are bound, which wait no more; what they give values to is bound then."""
    steps: list[Step] = []
    while True:
        item = next((i for i in waiting if names_used(i) <= bound), None)
        if item is None:
            return steps
        waiting[:] = [i for i in waiting if i is not item]
        if isinstance(item, Filter):
            steps.append(Select(item.condition))
        elif item.variable.name in bound:
            # A literal has given the variable a value already: the same term, or no match.
            steps.append(Select(Call("sameterm", (item.variable, item.expression))))
        else:
            steps.append(Extend(item.expression, item.variable.name))
            bound.add(item.variable.name)


def plan_conclusion(built_ins: Iterable[Filter | Bind], bound: Iterable[str]) -> tuple[Step, ...]:
    """What is left to do for matches of all literals: values for heads, and filters that waited for all."""
    waiting, known = list(built_ins), set(bound)
    steps = apply_built_ins(waiting, known)
    assert not waiting, "every built-in has what it needs in the end"
    return tuple(steps)
