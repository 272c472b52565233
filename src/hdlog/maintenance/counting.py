"""A component without recursion: exact counting, no overdeletion."""

from __future__ import annotations

from hdlog.engines.protocol import FactSet
from hdlog.maintenance.nodes import Node
from hdlog.maintenance.state import State, Step, net_change
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
        state.net[predicate] = net_change(
            state.engine, *state.engine.settle(state.table(predicate), given, signed)
        )


def count_view(state: State, node: Node) -> None:
    """Bring a view over finished predicates up to date."""
    view = state.views[node.predicate]
    if state.touches(node):
        view.add(state.node_change(node, state.counted(node.reads)))
    view.finished = True
