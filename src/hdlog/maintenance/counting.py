"""A component without recursion: exact counting, no overdeletion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from hdlog.engines.protocol import F, R, T
from hdlog.maintenance.components import Component, literals_of
from hdlog.maintenance.evaluation import Evaluation, Timed, plus_by_predicate
from hdlog.maintenance.moments import Moments, net_change
from hdlog.maintenance.nodes import Node
from hdlog.program.model import Predicate

if TYPE_CHECKING:
    from hdlog.maintenance.revision import Revision


def count(
    component: Component[R, F, T],
    moments: Moments[R, F, T],
    evaluation: Evaluation[R, F, T],
    asserted: Mapping[Predicate, F],
    revision: Revision[R, F, T],
) -> None:
    """Bring the component up to date; `asserted` are assertions made (+1) and withdrawn (-1).

    The support of a fact changes by the signed difference of the bodies that derive it; it appears when its
    support becomes positive and disappears when it returns to zero.
    """
    engine = moments.engine
    has_rules = component.kept or component.fresh or component.gone
    derived = difference(component, moments, evaluation, revision) if has_rules else {}
    if len(derived) > 1:
        engine.hints.look_ahead([(moments.kept.table(p), facts) for p, facts in derived.items()])
    for predicate in component.predicates:
        nothing = engine.no_facts(predicate.arity)
        assertions, signed = asserted.get(predicate, nothing), derived.get(predicate, nothing)
        came, went = engine.recount(moments.kept.table(predicate), assertions, signed)
        moments.net[predicate] = net_change(engine, came, went)


def difference(
    component: Component[R, F, T],
    moments: Moments[R, F, T],
    evaluation: Evaluation[R, F, T],
    revision: Revision[R, F, T],
) -> dict[Predicate, F]:
    """The signed difference of the bodies of the rules without recursion, old to new."""
    engine = moments.engine
    kept = [m for m in component.select(component.kept, recursive=False) if moments.touches(m)]
    changes = moments.find_signed_changes(literals_of(kept))
    otherwise = partial(revision.derive_otherwise, component, moments, changes)
    deltas = (c.delta for c in changes.values())
    changed = evaluation.derive_changes(component, kept, changes, deltas, otherwise)
    if not component.fresh and not component.gone:
        return changed
    fresh = component.select(component.fresh, recursive=False)
    gone = component.select(component.gone, recursive=False)
    came = evaluation.derive_all(component, fresh, "new", moments.find_new)
    went = evaluation.derive_all(component, gone, "old", moments.find_old, of_sources=True)
    negated = {p: engine.negate(facts) for p, facts in went.items()}
    return plus_by_predicate(engine, [changed, came, negated], component.predicates)


def count_view(node: Node[R, F, T], moments: Moments[R, F, T], evaluation: Evaluation[R, F, T]) -> None:
    """Bring a view over finished predicates up to date."""
    if moments.touches(node):
        with Timed(evaluation.spent, node.rule):
            rows = node.changed_rows(moments.find_signed_changes(node.reads))
        moments.add_to_view(node.predicate, rows)
    moments.finish_view(node.predicate)
