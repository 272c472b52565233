"""A component without recursion: exact counting, no overdeletion."""

from __future__ import annotations

from hdlog.engines.protocol import Engine, FactSet
from hdlog.maintenance.state import NetChange, State, Step
from hdlog.program.model import Predicate


def count(state: State, step: Step, asserted: dict[Predicate, FactSet]) -> None:
    """Bring the component up to date; `asserted` are assertions made (+1) and withdrawn (-1).

    The support of a fact changes by the signed difference of the bodies that derive it; it appears when its
    support becomes positive and disappears when it returns to zero.
    """
    derived = state.difference(step, recursive=False)
    for predicate in step.predicates:
        nothing = state.engine.no_facts(predicate.arity)
        given, signed = asserted.get(predicate, nothing), derived.get(predicate, nothing)
        state.net[predicate] = settle(state.engine, state, predicate, given, signed)


def settle(
    engine: Engine, state: State, predicate: Predicate, asserted: FactSet, signed: FactSet
) -> NetChange:
    """Change supports, and make live and dead what they say."""
    table = state.table(predicate)
    engine.adjust(table, asserted, "asserted")
    engine.adjust(table, signed, "nonrecursive")
    touched = engine.union(engine.distinct(asserted), engine.distinct(signed))
    holding = engine.founded(table, touched)
    added = engine.live(table, holding, wanted=False)
    removed = engine.live(table, engine.minus(touched, holding))
    engine.insert(table, added)
    engine.delete(table, removed)
    return NetChange(added, removed)
