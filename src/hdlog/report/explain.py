"""How a program is evaluated, as plain data and as text: components, rules, methods, trees, what each took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hdlog.maintenance.changes import Module
from hdlog.maintenance.components import Step
from hdlog.maintenance.driver import Driver
from hdlog.maintenance.matching import Matcher, Start
from hdlog.maintenance.standard import StandardModule
from hdlog.maintenance.views import ViewModule
from hdlog.plan.bodies import Body
from hdlog.plan.estimates import Statistics
from hdlog.plan.joins import Antijoin, Extend, Join, JoinPlan, Meet, Select
from hdlog.plan.joins import Step as JoinStep
from hdlog.plan.nodes import is_view
from hdlog.plan.planner import RulePlan, TreeNode, plan_rule
from hdlog.program.model import (
    GRAPH,
    Aggregate,
    AggregateCall,
    Atom,
    Bind,
    BodyItem,
    Call,
    Expression,
    Filter,
    Negation,
    Predicate,
    Rule,
)
from hdlog.program.normalise import WILDCARD, is_auxiliary
from hdlog.program.terms import Iri, Literal, Variable, last_part

_SHOWN = 0.0005
_DIGITS = 4
_ASSUMED_ROWS, _ASSUMED_VALUES = 10_000.0, 1_000.0


class AssumedStatistics:
    """For a program without facts: every predicate has as many."""

    def rows(self, atom: Atom) -> float:
        fixed = sum(not isinstance(t, Variable) for t in atom.terms)
        return max(1.0, _ASSUMED_ROWS / _ASSUMED_VALUES**fixed) if atom.terms else 1.0

    def distinct(self, atom: Atom, variable: str) -> float:
        return min(_ASSUMED_VALUES, self.rows(atom))

    def agreeing_pairs(self, a: Atom, b: Atom, variable: str) -> float | None:
        return None

    def look_ahead(self, atoms: Sequence[Atom]) -> None:
        """There is nothing to be found out."""

    def core(self, atoms: Sequence[Atom]) -> None:
        """Nothing is known of values."""


AnyDriver = Driver[Any, Any, Any]
AnyMatcher = Matcher[Any, Any, Any]


def describe(driver: AnyDriver) -> dict[str, Any]:
    """Everything about the state of a driver that a report shows; plain data, fit for JSON."""
    sizes = driver.kept.sizes()
    return {
        "method": driver.tuning.method,
        "components": [_component(driver, step) for step in driver.schedule.steps if step.rules],
        "rounds": [
            {
                "component": event.component,
                "predicates": [shorten_name(name) for name in event.predicates],
                "phase": event.phase,
                "round": event.round,
                "facts": event.facts,
                "seconds": event.seconds,
            }
            for event in driver.trace.events
        ],
        "sides": {
            str(p): side
            for p, table in driver.kept.tables.items()
            if not is_auxiliary(p.name) and (side := driver.engine.hints.side_of(table))
        },
        "facts": {str(p): n for p, n in sizes.items() if n and not is_auxiliary(p.name)},
        "bytes": driver.kept.bytes(),
    }


def _component(driver: AnyDriver, step: Step) -> dict[str, Any]:
    return {
        "predicates": [p.name for p in step.predicates],
        "recursive": any(map(step.is_recursive, step.rules)),
        "rules": [_rule(driver, step, rule) for rule in step.rules],
    }


def _rule(driver: AnyDriver, step: Step, rule: Rule) -> dict[str, Any]:
    planned = driver.planning.rules[rule]
    recursive = step.is_recursive(rule)
    plan = planned.plan or plan_rule(rule, AssumedStatistics(), driver.tuning, recursive)
    return {
        "text": rule_text(rule),
        "where": str(rule.span) if rule.span else None,
        "heads": [h.name for h in rule.heads],
        "head_variables": sorted({v.name for h in rule.heads for v in h.variables()}),
        "atoms": [
            {"text": item_text(a), "variables": list(dict.fromkeys(v.name for v in a.variables()))}
            for a in rule.atoms()
        ],
        "kind": "complex" if (plan.width or 0) > 1 else "simple",
        "recursive": recursive,
        "width": plan.width,
        "method": plan.method,
        "why": plan.why,
        "assumed": planned.plan is None,
        "costs": dict(zip(("standard", "tree"), plan.costs, strict=True)) if plan.costs else None,
        "seconds": driver.evaluation.spent.get(rule, 0.0),
        "joins": describe_joins(planned.module.matcher) if isinstance(planned.module, StandardModule) else [],
        "trees": [
            _tree(driver, plan, root.heads, root.tree, _root_matcher(planned.module, root.heads))
            for root in plan.roots
        ],
        "hypertree": _hypertree(driver, rule, plan, planned.plan is None),
    }


def _hypertree(driver: AnyDriver, rule: Rule, plan: RulePlan, assumed: bool) -> dict[str, Any] | None:
    """For a complex rule over a view tree, the decomposition that the paper would use."""
    if not plan.covers_are_views or (plan.width or 0) < 2:
        return None
    statistics: Statistics = AssumedStatistics() if assumed else driver.planning.statistics({})
    paper = plan_rule(rule, statistics, replace(driver.tuning, method="hd", views=False))
    return _node(driver, paper.roots[0].tree) if paper.roots else None


def _root_matcher(module: Module[Any, Any], heads: Sequence[int]) -> AnyMatcher | None:
    """What matches the root for some heads, in a view tree."""
    roots = module.roots if isinstance(module, ViewModule) else ()
    return next((root.matcher for own, root in roots if own == heads), None)


def _tree(
    driver: AnyDriver, plan: RulePlan, heads: Sequence[int], tree: TreeNode, matcher: AnyMatcher | None
) -> dict[str, Any]:
    return {
        "heads": [item_text(plan.rule.heads[h]) for h in heads],
        "root": _node(driver, tree, matcher),
    }


def _node(driver: AnyDriver, node: TreeNode, matcher: AnyMatcher | None = None) -> dict[str, Any]:
    if node.kept is not None and node.kept in driver.planning.nodes:
        matcher = driver.planning.nodes[node.kept].module.matcher
    cover = [item_text(item) for item in node.items]
    cover += [f"view of {', '.join(child.bag)}" for child in node.children if _is_view(child)]
    description: dict[str, Any] = {
        "bag": list(node.bag),
        "part": node.kept.name if node.kept else None,
        "cover": cover,
        "keeps": [v.name for v in node.atom.variables()] if node.kept else None,
        "estimate": node.estimate,
        "rows": None,
        "bytes": None,
        "stored": node.kept is not None and _is_stored(driver, node.kept),
        "seconds": None,
        "joins": describe_joins(matcher) if matcher is not None else [],
        "children": [_node(driver, child) for child in node.children],
    }
    if node.kept is not None and node.kept in driver.planning.nodes:
        description["rows"], description["bytes"] = _size(driver, node.kept)
        rule = driver.planning.nodes[node.kept].rule
        description["seconds"] = driver.evaluation.spent.get(rule, 0.0)
    return description


def _is_view(node: TreeNode) -> bool:
    return node.kept is not None and is_view(node.kept.name)


def _is_stored(driver: AnyDriver, predicate: Predicate) -> bool:
    """Whether a store has what a node keeps, so that it is not made again when the store is opened."""
    source = driver.kept.source
    return source is not None and source.holds(predicate)


def _size(driver: AnyDriver, predicate: Predicate) -> tuple[int, int]:
    if predicate in driver.kept.views:
        runs = driver.kept.views[predicate].runs
        return sum(driver.engine.count(r) for r in runs), sum(driver.engine.bytes(r) for r in runs)
    table = driver.kept.table(predicate)
    return driver.engine.size(table), driver.engine.bytes(table)


def describe_joins(matcher: AnyMatcher) -> list[dict[str, Any]]:
    """The join plans that were run, each with what its steps made at most."""
    return [
        {"from": _start(matcher.body, start), "steps": _join_steps(matcher.body, plan, matcher.rows[start])}
        for start, (plan, _) in matcher.plans.items()
    ]


def _start(body: Body, start: Start) -> str:
    """What a join plan begins with: the facts of a literal, or its delta."""
    first, changed = start
    if first is None:
        return "nothing"
    if first == changed:
        return f"the delta of {_literal(body, first)}"
    return _literal(body, first) + (
        f", for the delta of {_literal(body, changed)}" if changed is not None else ""
    )


def _literal(body: Body, number: int) -> str:
    literal = body.literals[number]
    return item_text(literal.atom if literal.positive else Negation((literal.atom,)))


def _join_steps(body: Body, plan: JoinPlan, rows: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {
            "text": step_text(body, step),
            "estimate": step.estimate if isinstance(step, Join | Meet) else None,
            "rows": made,
        }
        for step, made in zip(plan.steps, rows, strict=True)
    ]


def step_text(body: Body, step: JoinStep) -> str:
    match step:
        case Join(literal):
            return f"join {item_text(body.literals[literal].atom)}"
        case Meet(variable, literals):
            return f"meet in {variable}: {', '.join(item_text(body.literals[i].atom) for i in literals)}"
        case Antijoin(literal):
            return item_text(Negation((body.literals[literal].atom,)))
        case Select(condition):
            return f"filter {expression_text(condition)}"
        case Extend(expression, variable):
            return f"{variable} = {expression_text(expression)}"


# Text.


def as_text(explanation: Mapping[str, Any], times: bool = True) -> str:
    """The explanation to read, with or without the seconds that rules took."""
    return "\n".join(_lines(explanation, times))


def _lines(explanation: Mapping[str, Any], times: bool) -> Iterator[str]:
    for component in explanation["components"]:
        kind = "recursive" if component["recursive"] else "not recursive"
        yield f"component {', '.join(shorten_name(p) for p in component['predicates'])} ({kind})"
        for rule in component["rules"]:
            yield f"  {rule['text']}"
            width = f", width {rule['width']}" if rule["width"] else ""
            took = f", {rule['seconds']:.3f} s" if times and rule["seconds"] >= _SHOWN else ""
            yield f"    {rule['kind']}{width}: {rule['method']}, {rule['why']}{took}"
            if rule["costs"] and rule["method"] == "hd":
                yield (
                    f"    estimated rows: join plan {rule['costs']['standard']:,.0f}, "
                    f"tree {rule['costs']['tree']:,.0f}"
                    + (" (assuming 10,000 facts of each predicate)" if rule["assumed"] else "")
                )
            if rule["hypertree"]:
                yield f"    hypertree of width {rule['width']}, as --method paper would have it"
                yield from tree_lines(rule["hypertree"], "      ", "", times)
            yield from (f"    {line}" for line in join_lines(rule["joins"]))
            for tree in rule["trees"]:
                yield f"    tree for {', '.join(tree['heads'])}"
                yield from tree_lines(tree["root"], "      ", "", times)
        yield ""
    sides = explanation["sides"]
    for side in sorted(set(sides.values())):
        yield f"{side}: {', '.join(p for p, own in sides.items() if own == side)}"


def join_lines(joins: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each join plan; those without steps go without saying."""
    return [
        f"from {join['from']}: " + "; ".join(map(_step_line, join["steps"]))
        for join in joins
        if join["steps"]
    ]


def _step_line(step: Mapping[str, Any]) -> str:
    if step["estimate"] is None:
        return str(step["text"])
    about = f"about {step['estimate']:,.0f}, " if step["estimate"] else ""
    return f"{step['text']} ({about}{step['rows']:,} rows)"


def tree_lines(node: Mapping[str, Any], indent: str, mark: str, times: bool) -> Iterator[str]:
    kept = "" if node["keeps"] is None else f" keeps ({', '.join(node['keeps'])})"
    rows = "" if node["rows"] is None else f", has {node['rows']:,}"
    rows += " in the store" if node["stored"] else ""
    took = "" if not times or (node["seconds"] or 0.0) < _SHOWN else f", {node['seconds']:.3f} s"
    yield (
        f"{indent}{mark}{{{', '.join(node['bag'])}}} by {', '.join(node['cover']) or 'nothing'};"
        f"{kept} about {node['estimate']:,.0f} rows{rows}{took}"
    )
    deeper = indent + {"": "", "├─ ": "│  ", "└─ ": "   "}[mark]
    bar = "│ " if node["children"] else "  "
    yield from (f"{deeper}{bar}{line}" for line in join_lines(node["joins"]))
    for i, child in enumerate(node["children"]):
        last = i == len(node["children"]) - 1
        yield from tree_lines(child, deeper, "└─ " if last else "├─ ", times)


def rule_text(rule: Rule) -> str:
    heads = ", ".join(map(item_text, rule.heads))
    return f"{heads} :- {', '.join(map(item_text, rule.body))}" if rule.body else heads


def item_text(item: BodyItem) -> str:
    match item:
        case Atom():
            if item.predicate.has_graph:
                plain = Atom(item.name.removesuffix(GRAPH), item.terms[:-1])
                return f"{item_text(plain)} in {expression_text(item.terms[-1])}"
            return f"{shorten_name(item.name)}({', '.join(map(expression_text, item.terms))})"
        case Negation():
            return f"not {', '.join(map(item_text, item.body))}"
        case Filter():
            return f"filter {expression_text(item.condition)}"
        case Bind():
            return f"{item.variable.name} = {expression_text(item.expression)}"
        case Aggregate():
            return ", ".join(_aggregate_text(call, item) for call in item.calls)


def _aggregate_text(call: AggregateCall, item: Aggregate) -> str:
    argument = "" if call.argument is None else f" {expression_text(call.argument)}"
    inner = ", ".join(map(item_text, item.body))
    return f"{expression_text(call.result)} = {call.function}{argument} : {{{inner}}}"


def expression_text(expression: Expression) -> str:
    match expression:
        case Call():
            return f"{expression.function}({', '.join(map(expression_text, expression.arguments))})"
        case Variable():
            return "_" if expression.name.startswith(WILDCARD) else expression.name.removeprefix("#")
        case Iri():
            return shorten_name(expression.value)
        case Literal():
            return repr(expression.lexical)
    return str(expression)


def shorten_name(name: str) -> str:
    """The last part of an IRI; a few digits of what stands for a part of a rule."""
    if is_auxiliary(name):
        kind, dash, digits = name.rpartition("-")
        return f"{kind}{dash}{digits[:_DIGITS]}" if dash and "-" not in digits else name
    return last_part(name) if "://" in name else name
