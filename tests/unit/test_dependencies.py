"""Components, recursion and strata."""

from __future__ import annotations

from hdlog.program.dependencies import DependencyGraph, strong_components
from hdlog.text import parse


def components(text: str) -> list[tuple[set[str], bool, int]]:
    return [
        ({p.name for p in c.predicates}, c.recursive, c.stratum)
        for c in DependencyGraph(parse(text)).components
    ]


def test_components_come_after_what_they_depend_on() -> None:
    found = components("a[?x] :- b[?x] . b[?x] :- c[?x], b[?x] . d[?x] :- a[?x], NOT c[?x] .")
    assert found == [({"c"}, False, 0), ({"b"}, True, 0), ({"a"}, False, 0), ({"d"}, False, 1)]


def test_mutual_recursion_is_one_component() -> None:
    assert components("a[?x] :- b[?x] . b[?x] :- a[?x] .") == [({"a", "b"}, True, 0)]


def test_a_rule_with_several_heads_belongs_to_the_component_of_each() -> None:
    graph = DependencyGraph(parse("a[?x], b[?x] :- c[?x] . c[?x] :- a[?x] ."))
    assert [({p.name for p in c.predicates}, c.rules) for c in graph.components] == [
        ({"a", "c"}, (0, 1)),
        ({"b"}, (0,)),
    ]


def test_aggregation_starts_a_stratum() -> None:
    found = components(
        "n[?x, ?c] :- AGGREGATE(e[?x, ?y] ON ?x BIND COUNT(?y) AS ?c) . m[?x] :- n[?x, _], NOT e[?x, ?x] ."
    )
    assert [stratum for _, _, stratum in found] == [0, 1, 1]


def test_a_triple_with_a_variable_predicate_reads_every_class_and_property() -> None:
    found = components("<u:a>[?x] :- [?x, ?p, ?y] . <u:b>[?x, ?y] :- <u:a>[?x], <u:c>[?y] .")
    names, recursive, _ = found[-1]
    assert recursive
    assert names >= {"u:a", "u:b"}


def test_a_triple_with_a_variable_class_reads_only_classes() -> None:
    found = components("<u:n>[?x, ?c] :- [?x, a, ?c] . <u:m>[?x] :- <u:e>[?x, _] .")
    assert not any(recursive for _, recursive, _ in found)


def test_a_long_chain_needs_no_deep_recursion() -> None:
    graph = {i: [i + 1] for i in range(50_000)} | {50_000: [0]}
    assert [len(c) for c in strong_components(graph)] == [50_001]
