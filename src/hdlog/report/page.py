"""An explanation as one self-contained HTML page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from hdlog.report.drawing import (
    HUES,
    Markup,
    bytes_text,
    hypergraph,
    join_markup,
    seconds_text,
    shorten,
    tag,
    tree,
)
from hdlog.report.explain import join_lines

Rule = Mapping[str, Any]
Node = Mapping[str, Any]
Event = Mapping[str, Any]

_BARS = 240
"""more rounds than this are drawn several to a bar"""
_NODES = 40


def page(explanation: Mapping[str, Any], files: Sequence[str]) -> str:
    """The page for an explanation of some files."""
    rules = list(enumerate(_rules(explanation), 1))
    drawn = [(i, rule) for i, rule in rules if rule["trees"]]
    parts = [
        _header(explanation, files, len(rules)),
        _summary(rules),
        _rounds(explanation["rounds"]),
        _memory(drawn),
        *(_section(i, rule) for i, rule in drawn),
        _other_plans([(i, rule) for i, rule in rules if not rule["trees"]]),
    ]
    head = [
        Markup(
            '<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'
        ),
        tag("title", f"{', '.join(files) or 'no files'}: how the rules are evaluated"),
        tag("style", Markup(_STYLE)),
    ]
    document = tag("html", tag("head", *head), tag("body", tag("main", *parts)), lang="en")
    return f"<!DOCTYPE html>\n{document}\n"


def _rules(explanation: Mapping[str, Any]) -> list[Rule]:
    """Each rule once, though one with several heads belongs to several components; without facts no time counts."""
    rules: dict[object, Rule] = {}
    for rule in (rule for component in explanation["components"] for rule in component["rules"]):
        several = len(rule["heads"]) > 1
        key = (rule["text"], rule["where"], rule["seconds"]) if several else len(rules)
        rules[key] = {
            **rule,
            "recursive": rule["recursive"] or rules.get(key, rule)["recursive"],
            "seconds": rule["seconds"] if explanation["facts"] else 0.0,
        }
    return list(rules.values())


def _header(explanation: Mapping[str, Any], files: Sequence[str], rules: int) -> Markup:
    facts, rounds = explanation["facts"], explanation["rounds"]
    tiles = [("method", explanation["method"]), ("rules", f"{rules:,}")]
    if facts:
        tiles += [("facts", f"{sum(facts.values()):,}"), ("memory", bytes_text(explanation["bytes"]))]
    if rounds:
        tiles += [("rounds", f"{len(rounds):,}"), ("time", seconds_text(rounds[-1]["seconds"]))]
    return tag(
        "header",
        tag("h1", "How the rules are evaluated"),
        tag("p", tag("code", ", ".join(files)), class_="note"),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in tiles)),
        "" if facts else tag("p", "There are no facts. Sizes and costs are estimates.", class_="note"),
    )


# All rules.


def _summary(rules: Sequence[tuple[int, Rule]]) -> Markup:
    if not rules:
        return tag("p", "The program has no rules.", class_="note")
    most = max(rule["seconds"] + _node_seconds(rule) for _, rule in rules)
    names = ("", "rule", "kind", "recursive", "width", "method", "why", "seconds")
    note = "Seconds add up over all updates; the second part of a bar is what the nodes of the tree took."
    return tag(
        "section",
        tag("h2", "Rules"),
        _table(names, (_row(i, rule, most) for i, rule in rules), "rules"),
        tag("p", note, class_="note") if most else "",
    )


def _row(number: int, rule: Rule, most: float) -> Markup:
    cells = [
        ("number", f"{number}"),
        ("text", _rule_cell(number, rule)),
        ("kind", rule["kind"]),
        ("recursive", "recursive" if rule["recursive"] else ""),
        ("width number", "" if rule["width"] is None else f"{rule['width']}"),
        ("method", tag("b", rule["method"]) if rule["trees"] else rule["method"]),
        ("why", rule["why"]),
        ("seconds", _seconds_cell(rule["seconds"], _node_seconds(rule), most) if most else ""),
    ]
    return tag("tr", *(tag("td", text, class_=name) for name, text in cells), id=f"row-{number}")


def _seconds_cell(own: float, nodes: float, most: float) -> Markup:
    return join_markup([tag("span", seconds_text(own + nodes)), _bar(own / most, nodes / most)])


def _bar(*shares: float) -> Markup:
    return tag("div", *(tag("i", style=f"width:{100 * share:.1f}%") for share in shares), class_="bar")


def _rule_cell(number: int, rule: Rule) -> Markup:
    text = rule["text"]
    if rule["trees"]:
        return tag("a", tag("code", shorten(text, 110)), href=f"#rule-{number}", title=text)
    if len(text) <= 160:
        return tag("code", text)
    return tag("details", tag("summary", tag("code", shorten(text, 110))), tag("code", text))


def _node_seconds(rule: Rule) -> float:
    return sum(node["seconds"] or 0.0 for node in _nodes(rule))


def _nodes(rule: Rule) -> list[Node]:
    """The nodes of a rule's trees, each once."""
    nodes: list[Node] = []
    waiting = [t["root"] for t in rule["trees"]]
    while waiting:
        node = waiting.pop(0)
        if node not in nodes:
            nodes.append(node)
        waiting += node["children"]
    return nodes


# Rounds.


def _rounds(events: Sequence[Event]) -> Markup:
    if not events:
        return Markup()
    ends = [0.0, *(e["seconds"] for e in events)]
    took = [{**e, "seconds": max(0.0, b - a)} for e, (a, b) in zip(events, pairwise(ends), strict=True)]
    size = math.ceil(len(took) / _BARS)
    components = [list(group) for _, group in groupby(took, key=lambda e: e["component"])]
    groups = [[_merge(c[i : i + size]) for i in range(0, len(c), size)] for c in components]
    crowded = any(len(", ".join(g[0]["predicates"])) > 4 * len(g) for g in groups)
    names = [tag("div", tag("span", ", ".join(g[0]["predicates"])), style=_share(g)) for g in groups]
    return tag(
        "section",
        tag("h2", "Rounds"),
        *_plot(groups, "facts", lambda n: f"{n:,}"),
        *_plot(groups, "seconds", seconds_text),
        tag("div", *names, class_="plot names upright" if crowded else "plot names"),
        _KEY if any(e["phase"] == "overdelete" for e in events) else "",
        tag("details", tag("summary", "All rounds as a table"), _rounds_table(took)),
    )


_KEY = tag("p", tag("i", class_="overdelete"), " overdelete, ", tag("i"), " other phases", class_="note key")


def _merge(events: Sequence[Event]) -> Event:
    first, last = events[0], events[-1]
    rounds = f"round {first['round']}" if len(events) == 1 else f"rounds {first['round']} to {last['round']}"
    return {
        **last,
        "name": f"{', '.join(first['predicates'])}, {last['phase']}, {rounds}",
        "facts": sum(e["facts"] for e in events),
        "seconds": sum(e["seconds"] for e in events),
    }


def _plot(groups: Sequence[Sequence[Event]], what: str, text: Callable[[Any], str]) -> list[Markup]:
    """One bar for each round, side by side, those of a component together."""
    most = max(e[what] for group in groups for e in group)

    def bar(event: Event) -> Markup:
        height = f"height:{100 * event[what] / (most or 1):.1f}%"
        filled = tag("i", style=height, class_=event["phase"]) if event[what] else ""
        return tag("b", filled, title=f"{event['name']}: {text(event[what])}")

    return [
        tag("h3", f"{what.capitalize()} in each round", tag("small", f"up to {text(most)}")),
        tag("div", *(tag("div", *map(bar, g), style=_share(g)) for g in groups), class_="plot"),
    ]


def _share(group: Sequence[Event]) -> str:
    return f"flex-grow:{len(group)};max-width:{2 * len(group)}rem"


def _rounds_table(events: Sequence[Event]) -> Markup:
    names = ("component", "phase", "round", "facts", "time")
    rows = (
        [
            ", ".join(e["predicates"]),
            e["phase"],
            f"{e['round']}",
            f"{e['facts']:,}",
            seconds_text(e["seconds"]),
        ]
        for e in events
    )
    return _table(names, (tag("tr", *(tag("td", cell) for cell in row)) for row in rows), "rounds")


def _table(names: Sequence[str], rows: Iterable[Markup], class_: str) -> Markup:
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in names)))
    return tag("table", head, tag("tbody", *rows), class_=class_)


# Nodes.


def _memory(rules: Sequence[tuple[int, Rule]]) -> Markup:
    nodes = [(i, n) for i, rule in rules for n in _nodes(rule) if n["bytes"] is not None]
    if not nodes:
        return Markup()
    nodes.sort(key=lambda entry: -entry[1]["bytes"])
    shown, most = nodes[:_NODES], nodes[0][1]["bytes"] or 1
    rest = f" The {_NODES} largest of {len(nodes)}." if len(nodes) > _NODES else ""
    return tag(
        "section",
        tag("h2", "Memory of the nodes"),
        tag("p", "Nodes that rules share stand under each of them." + rest, class_="note"),
        tag("table", tag("tbody", *(_memory_row(i, node, most) for i, node in shown)), class_="memory"),
    )


def _memory_row(number: int, node: Node, most: int) -> Markup:
    return tag(
        "tr",
        tag("td", tag("a", f"rule {number}", href=f"#rule-{number}"), class_="number"),
        tag("td", tag("code", f"{{{', '.join(node['bag'])}}}")),
        tag("td", f"{node['rows']:,} rows", class_="number"),
        tag("td", bytes_text(node["bytes"]), class_="number"),
        tag("td", _bar(node["bytes"] / most), class_="wide"),
    )


# One rule.


def _section(number: int, rule: Rule) -> Markup:
    head, arrow, body = rule["text"].partition(" :- ")
    width = "" if rule["width"] is None else f", width {rule['width']}"
    recursive = ", recursive" if rule["recursive"] else ""
    facts = f"{rule['kind']}{width}{recursive}: {rule['method']}, {rule['why']}"
    if rule["seconds"]:
        facts += f"; {seconds_text(rule['seconds'])}"
    if nodes := _node_seconds(rule):
        facts += f" and {seconds_text(nodes)} in its nodes"
    if costs := rule["costs"]:
        facts += f". Estimated rows: join plan {costs['standard']:,.0f}, tree "
        facts += "more than is worth it" if costs["tree"] is None else f"{costs['tree']:,.0f}"
    if rule["assumed"]:
        facts += ", as if each predicate had 10,000 facts"
    where = tag("p", tag("code", rule["where"]), class_="note") if rule["where"] else ""
    return tag(
        "section",
        tag("h2", f"Rule {number} ", tag("a", "back to the table", href=f"#row-{number}", class_="back")),
        tag("pre", tag("b", head), f"{arrow}{body}"),
        where,
        tag("p", f"{facts}."),
        tag("div", _hypergraph(rule), *map(_tree, rule["trees"]), *_hypertree(rule), class_="pictures"),
        _join_plans(rule),
        id=f"rule-{number}",
    )


def _join_plans(rule: Rule) -> Markup:
    """The join plans of the nodes of a rule's trees."""
    plans = [(f"{{{', '.join(n['bag'])}}}: ", n["joins"]) for n in _nodes(rule)]
    return _plan_list([f"{place}{line}" for place, joins in plans for line in join_lines(joins)])


def _other_plans(rules: Sequence[tuple[int, Rule]]) -> Markup:
    """The join plans of rules without trees."""
    lines = [f"rule {i}, {line}" for i, rule in rules for line in join_lines(rule["joins"])]
    return tag("section", tag("h2", "Rules without trees"), _plan_list(lines)) if lines else Markup()


def _plan_list(lines: Sequence[str]) -> Markup:
    if not lines:
        return Markup()
    summary = tag("summary", f"Join plans ({len(lines)}), with estimated and actual rows")
    return tag("details", summary, tag("ul", *(tag("li", tag("code", line)) for line in lines)))


def _hypergraph(rule: Rule) -> Markup:
    caption = tag("figcaption", "Hypergraph; filled dots are variables of the head")
    return tag("figure", caption, hypergraph(rule))


def _hypertree(rule: Rule) -> list[Markup]:
    if not rule["hypertree"]:
        return []
    caption = tag("figcaption", f"Hypertree of width {rule['width']}, as --method paper would have it")
    return [tag("figure", caption, tag("div", tree(rule["hypertree"]), class_="scroll", tabindex="0"))]


def _tree(data: Mapping[str, Any]) -> Markup:
    caption = tag("figcaption", "Tree for ", tag("code", ", ".join(data["heads"])))
    return tag("figure", caption, tag("div", tree(data["root"]), class_="scroll", tabindex="0"))


_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2128; --quiet: #5b6470; --line: #d8dde4; --soft: #f4f6f9;
  --accent: #1f62a8; --light: #9cc3ea; --warn: #c2630a;
  --hue0: #0f766e; --hue1: #a21caf; --hue2: #a24a06; --hue3: #3a7420; --hue4: #b91c1c; --hue5: #4f46e5 }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e5e8ec; --quiet: #9ca6b3;
  --line: #363d47; --soft: #1d2229; --accent: #6cb0f5; --light: #2f5f91; --warn: #f0a055;
  --hue0: #5eead4; --hue1: #e879f9; --hue2: #fbbf24; --hue3: #a3e635; --hue4: #fca5a5; --hue5: #a5b4fc } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  print-color-adjust: exact; -webkit-print-color-adjust: exact }
main { max-width: 76rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 }
h2 { font-size: 1.25rem; margin: 3rem 0 .75rem }
h3 { font-size: .875rem; font-weight: 600; margin: 1.25rem 0 .25rem }
h3 small { font-weight: 400; color: var(--quiet); margin-left: .75em }
code, pre, svg { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace }
code, pre { font-size: .8125rem; overflow-wrap: anywhere; white-space: pre-wrap }
pre { background: var(--soft); border-radius: 6px; padding: .75rem 1rem; margin: 0 0 .75rem }
a { color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
p { margin: .5rem 0; max-width: 48rem }
.note, figcaption { color: var(--quiet); font-size: .875rem }
.back { font-size: .8125rem; font-weight: 400; margin-left: .5em }
dl { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.25rem 0 0 }
dt { color: var(--quiet); font-size: .8125rem }
dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums }
th { text-align: left; font-weight: 600; color: var(--quiet); white-space: nowrap }
th, td { padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
tr:target { background: var(--soft) }
.number { text-align: right; white-space: nowrap }
.rules .text { min-width: 18rem; width: 40% }
.rules .text a { text-decoration: none }
.rules .text a:hover { text-decoration: underline }
.rules .why { color: var(--quiet); min-width: 9rem }
.seconds { white-space: nowrap; width: 11rem }
.seconds > span { display: inline-block; width: 4.5rem; text-align: right }
.seconds .bar { display: inline-flex; width: calc(100% - 5rem); margin-left: .5rem }
.memory .wide { width: 50% }
.bar { display: flex; height: .5rem; margin-top: .4rem }
.bar i { background: var(--accent) }
.bar i + i { background: var(--light) }
.plot { display: flex; gap: 6px }
.plot > div { display: flex; flex: 1 1 0; min-width: 0; height: 6.5rem; border-bottom: 1px solid var(--line) }
.plot b { flex: 1 1 0; min-width: 0; height: 100%; display: flex; align-items: flex-end; padding-right: 1px }
.plot b:hover { background: var(--soft) }
.plot i { flex: 1; background: var(--accent); min-height: 1px }
.names > div { height: auto; border: 0; margin-top: .25rem; overflow: hidden; font-size: .75rem; color: var(--quiet) }
.names span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.upright > div { writing-mode: vertical-lr; max-height: 9rem }
.key i { display: inline-block; width: .7em; height: .7em; background: var(--accent) }
.plot .overdelete, .key .overdelete { background: var(--warn) }
details { margin: .75rem 0 } td details { margin: 0 } summary { cursor: pointer }
.pictures { display: flex; flex-wrap: wrap; gap: 1.5rem 4rem; margin-top: 1.25rem }
figure { margin: 0; max-width: 100%; break-inside: avoid }
figcaption { margin-bottom: .5rem }
.scroll { overflow-x: auto }
svg { display: block; font-size: 12px; height: auto }
figure > svg { max-width: 100% }
text { fill: var(--ink) }
.bold { font-weight: 700 }
.quiet { fill: var(--quiet) }
.plate { fill: var(--paper); fill-opacity: .85 }
.edge { fill: none; stroke: var(--quiet); stroke-width: 1.3 }
.point { fill: var(--quiet) }
.dot { fill: var(--paper); stroke: var(--ink); stroke-width: 1.6 }
.dot.head { fill: var(--accent); stroke: var(--accent) }
.ring { fill: none; stroke: var(--quiet); stroke-width: 1.3; stroke-dasharray: 3 2 }
.hull { fill-opacity: .1; stroke-width: 1.5 }
.node { fill: var(--soft); stroke: var(--quiet) }
.node.unkept { fill: var(--paper); stroke-dasharray: 4 3 }
.divide { stroke: var(--line) }
HUES
@media (max-width: 58rem) {
  .rules thead { display: none }
  .rules tr { display: flex; flex-wrap: wrap; gap: 0 1rem; padding: .6rem 0; border-bottom: 1px solid var(--line) }
  .rules td { border: 0; padding: 0; text-align: left; min-width: 0 }
  .rules td:empty { display: none }
  .rules .text { flex: 1 1 calc(100% - 3rem); width: auto; min-width: 0 }
  .rules .why, .rules .seconds { flex-basis: 100% } .seconds > span { width: auto }
  .rules .width::before { content: "width " }
  .memory tr { display: flex; flex-wrap: wrap; gap: 0 .75rem; padding: .4rem 0 }
  .memory td { border: 0; padding: 0 } .memory .wide { flex-basis: 100% }
}
@media print {
  body { font-size: 11pt } main { max-width: none; padding: 0 } .back { display: none }
  h2 { break-after: avoid } tr { break-inside: avoid } .scroll { overflow: visible } .scroll svg { max-width: 100% }
}
""".replace(
    "HUES",
    "\n".join(
        f".hull.hue{i} {{ fill: var(--hue{i}); stroke: var(--hue{i}) }} text.hue{i} {{ fill: var(--hue{i}) }}"
        for i in range(HUES)
    ),
)
