"""The order in which a body is joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hdlog.program.model import Atom, Bind, Filter, expression_variables
from hdlog.program.terms import Variable

FanOut = Callable[[int, Sequence[int]], float]
"""How many facts of atom number i a row meets that fixes the given columns."""


def next_atom(atoms: Sequence[Atom], waiting: Sequence[int], bound: set[str], fan_out: FanOut) -> int:
    """The connected atom with the smallest estimated fan-out; an unconnected one only if all are."""
    if len(waiting) == 1:
        return waiting[0]

    def cost(number: int) -> tuple[bool, float]:
        columns = bound_columns(atoms[number], bound)
        linked = not atoms[number].terms or any(isinstance(atoms[number].terms[c], Variable) for c in columns)
        return (not linked, fan_out(number, columns))

    return min(waiting, key=cost)


def bound_columns(atom: Atom, bound: set[str]) -> list[int]:
    return [i for i, t in enumerate(atom.terms) if not isinstance(t, Variable) or t.name in bound]


def ready(item: Filter | Bind, bound: set[str]) -> bool:
    expression = item.condition if isinstance(item, Filter) else item.expression
    return all(v.name in bound for v in expression_variables(expression))
