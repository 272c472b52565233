"""How a query is evaluated, as text: its operations, and how each conjunction of atoms was matched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hdlog.maintenance.components import nodes_of
from hdlog.maintenance.matching import Matcher
from hdlog.maintenance.standard import StandardModule
from hdlog.maintenance.views import ViewModule
from hdlog.plan.planner import RulePlan, TreeNode
from hdlog.program.model import Predicate
from hdlog.query.algebra import (
    Alternative,
    AnyStep,
    Condition,
    Extend,
    Given,
    Group,
    Join,
    LeftJoin,
    Match,
    Minus,
    Node,
    Path,
    PathExpression,
    Repeat,
    Select,
    Selection,
    Sequence,
    Step,
    Union,
    Values,
)
from hdlog.query.bodies import Planned
from hdlog.report.explain import (
    describe_joins,
    expression_text,
    item_text,
    join_lines,
    rule_text,
    shorten_name,
    tree_lines,
)

AnyPlanned = Planned[Any, Any]
AnyMatcher = Matcher[Any, Any, Any]


def explain_query(query: Selection, planned: Iterable[AnyPlanned]) -> str:
    """Its operations, outermost first, and below them the conjunctions that were matched for it."""
    lines = list(_node_lines(query, ""))
    for each in planned:
        lines += ["", *_planned_lines(each)]
    return "\n".join(lines)


def _node_lines(node: Node, indent: str) -> Iterator[str]:
    inner: tuple[Node, ...] = ()
    match node:
        case Selection():
            line, inner = _selection_text(node), (node.node,)
        case Match(atoms):
            line = "match " + (", ".join(map(item_text, atoms)) or "nothing")
        case Values(names, rows):
            line = f"{len(rows):,} rows of {', '.join(names) or 'nothing'}"
        case Given(names):
            line = f"given values of {', '.join(names)}"
        case Join(left, right):
            line, inner = "join", (left, right)
        case LeftJoin(left, right, condition):
            line, inner = f"left join{_where(condition)}", (left, right)
        case Union(parts):
            line, inner = "union", parts
        case Minus(left, right):
            line, inner = "minus", (left, right)
        case Select(below, condition):
            line, inner = f"filter {_condition_text(condition)}", (below, *(n for _, n in condition.exists))
        case Extend(below, name, value):
            line, inner = f"{name} = {_condition_text(value)}", (below,)
        case Group(below, keys, aggregates):
            calls = ", ".join(f"{a.name.removeprefix('#')} = {a.function}" for a in aggregates)
            line, inner = f"group by {', '.join(keys) or 'nothing'}: {calls}", (below,)
        case Path(subject, path, value, graph):
            where = "" if graph is None else f" in {expression_text(graph)}"
            line = f"path {expression_text(subject)} {path_text(path)} {expression_text(value)}{where}"
    yield indent + line
    for below in inner:
        yield from _node_lines(below, indent + "  ")


def _selection_text(node: Selection) -> str:
    words = ["select", "distinct" if node.distinct else "", ", ".join(node.names) or "nothing"]
    if node.order:
        keys = (("-" if falls else "") + _condition_text(key) for key, falls in node.order)
        words.append(f"in the order of {', '.join(keys)}")
    if node.is_cut:
        words.append(f"from {node.start} on" + ("" if node.length is None else f", {node.length} at most"))
    return " ".join(word for word in words if word)


def _where(condition: Condition | None) -> str:
    return "" if condition is None else f" where {_condition_text(condition)}"


def _condition_text(condition: Condition) -> str:
    return expression_text(condition.expression)


def path_text(path: PathExpression) -> str:
    match path:
        case Step(predicate, backwards):
            return ("^" if backwards else "") + shorten_name(predicate)
        case AnyStep(but, backwards):
            return ("^" if backwards else "") + f"!({'|'.join(map(shorten_name, sorted(but)))})"
        case Sequence(parts):
            return f"({'/'.join(map(path_text, parts))})"
        case Alternative(parts):
            return f"({'|'.join(map(path_text, parts))})"
        case Repeat(inner, least, most):
            mark = "?" if most == 1 else "*" if least == 0 else "+"
            return path_text(inner) + mark


def _planned_lines(planned: AnyPlanned) -> Iterator[str]:
    plan, module = planned.plan, planned.module
    yield rule_text(plan.rule)
    width = f", width {plan.width}" if plan.width else ""
    yield f"  {plan.method}{width}: {plan.why}"
    if isinstance(module, StandardModule):
        yield from (f"  {line}" for line in join_lines(describe_joins(module.matcher)))
    matchers = {node.predicate: node.module.matcher for node in nodes_of(module)}
    for root in plan.roots:
        own = None
        if isinstance(module, ViewModule):
            own = next((m.matcher for heads, m in module.roots if heads == root.heads), None)
        yield from tree_lines(_tree(plan, root.tree, matchers, own), "  ", "", times=False)


def _tree(
    plan: RulePlan, node: TreeNode, matchers: Mapping[Predicate, AnyMatcher], own: AnyMatcher | None
) -> dict[str, Any]:
    matcher = matchers.get(node.kept) if node.kept is not None else own
    cover = [item_text(item) for item in node.items]
    cover += [f"view of {', '.join(child.bag)}" for child in node.children if child.kept is not None]
    return {
        "bag": list(node.bag),
        "cover": cover,
        "keeps": [v.name for v in node.atom.variables()] if node.kept else None,
        "estimate": node.estimate,
        "rows": None,
        "stored": False,
        "seconds": None,
        "joins": describe_joins(matcher) if matcher is not None else [],
        "children": [_tree(plan, child, matchers, None) for child in node.children],
    }
