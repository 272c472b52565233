"""The benchmark generators: exact counts, facts that differ, and rules of the right shape."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.generators import collaborators, expressions, graph
from benchmarks.peers import duck_collaborators, duck_cyclic, duck_expressions
from numpy.typing import NDArray

from hdlog.api import Reasoner
from hdlog.engines.columnar.facts import Facts
from hdlog.program.model import Predicate
from hdlog.program.ntriples import term_text
from hdlog.program.terms import XSD_INTEGER, Literal
from hdlog.text import parse
from tests import oracle

Tables = dict[Predicate, list[NDArray[np.uint32]]]


def size(tables: Tables) -> int:
    return sum(len(columns[0]) for columns in tables.values())


def distinct(tables: Tables) -> int:
    return sum(len(np.unique(np.stack(columns), axis=1).T) for columns in tables.values())


def materialised(rules: str, tables: Tables, names: list[str]) -> tuple[Reasoner, dict[str, int]]:
    reasoner = Reasoner(parse(rules))
    ids = reasoner.engine.dictionary.encode(names)
    facts: dict[Predicate, Facts] = {
        p: reasoner.engine.facts_from_columns([ids[c] for c in columns], len(columns[0]))
        for p, columns in tables.items()
    }
    reasoner.materialise_encoded(facts)
    return reasoner, {p.name: count for p, count in reasoner.counts().items()}


def test_running_example_has_the_facts_of_the_paper() -> None:
    tables = collaborators.generate(5, 3)
    names = collaborators.names(5, 3)
    named = {
        p: {(names[x], names[y]) for x, y in zip(*columns, strict=True)} for p, columns in tables.items()
    }
    assert {p: len(facts) for p, facts in named.items()} == {
        collaborators.COWORKER: 16,
        collaborators.COAUTHOR: 16,
        collaborators.POSSIBLE: 30,
    }
    assert {("<a4>", "<b13>"), ("<a4>", "<b15>"), ("<a5>", "<a2>")} <= named[collaborators.COWORKER]
    assert {("<a0>", "<c1>"), ("<a1>", "<c4>"), ("<a5>", "<a3>")} <= named[collaborators.COAUTHOR]
    assert {("<b1>", "<d1>"), ("<c6>", "<d3>"), ("<c15>", "<d3>")} <= named[collaborators.POSSIBLE]


def test_running_example_derives_a_collaborator_for_each_pair() -> None:
    tables = collaborators.generate(5, 3)
    _, counts = materialised(collaborators.RULES, tables, collaborators.names(5, 3))
    assert counts["PC"] == 30 + collaborators.derived(5, 3) == 48
    assert duck_collaborators(tables)[0] == counts


def test_expressions_have_the_counts_of_the_paper() -> None:
    made = expressions.generate()
    counts = {p.name: len(columns[0]) for p, columns in made.tables.items()}
    assert counts == {
        "kind": 7_140,
        "left": 3_420,
        "right": 3_420,
        "root": 300,
        "evaluation": 1_116_000,
        "instance": 1_116_000,
        "value": 1_116_000,
    }
    assert size(made.tables) == expressions.given() == 3_362_280
    assert expressions.given() + expressions.derived() == 6_440_280


@pytest.mark.parametrize("inner", [7, 40, 7 * 31])
def test_expressions_are_trees_of_the_wanted_size_and_depth(inner: int) -> None:
    made = expressions.generate(7, 3, inner, seed=inner)
    assert size(made.tables) == distinct(made.tables) == expressions.given(7, 3, inner)
    children = np.concatenate([made.tables[side][1] for side in (expressions.LEFT, expressions.RIGHT)])
    (roots,) = made.tables[expressions.ROOT]
    assert sorted([*children, *roots]) == list(made.tables[expressions.KIND][0])
    assert max(depth(made, int(root)) for root in roots) <= expressions.DEPTH


def operands(made: expressions.Expressions) -> dict[int, tuple[int, int]]:
    nodes, left = made.tables[expressions.LEFT]
    _, right = made.tables[expressions.RIGHT]
    return {int(n): (int(x), int(y)) for n, x, y in zip(nodes, left, right, strict=True)}


def depth(made: expressions.Expressions, node: int) -> int:
    sides = operands(made).get(node)
    return 1 + max(depth(made, side) for side in sides) if sides else 0


def evaluated(made: expressions.Expressions) -> list[int]:
    """The value of each node in each instance, by recursion over the trees."""
    sides = operands(made)
    kinds = dict(zip(*(c.tolist() for c in made.tables[expressions.KIND]), strict=True))
    case = dict(zip(*(c.tolist() for c in made.tables[expressions.INSTANCE]), strict=True))
    worth = dict(zip(*(c.tolist() for c in made.numbers()), strict=True))
    pairs = zip(*(c.tolist() for c in made.tables[expressions.EVALUATION]), strict=True)
    leaves: dict[tuple[int, int], int] = {(node, case[e]): worth[e] for node, e in pairs}

    def value(node: int, instance: int) -> int:
        if node not in sides:
            return leaves[node, instance]
        x, y = (value(side, instance) for side in sides[node])
        results = {"Minus": x - y, "Plus": x + y, "Times": x * y}
        return results[expressions.KINDS[kinds[node]]]

    return [value(node, instance) for node in kinds for instance in set(case.values())]


def test_every_node_has_its_value_in_every_instance() -> None:
    made = expressions.generate(4, 3, 30)
    reasoner, counts = materialised(expressions.RULES, made.tables, made.names())
    assert sum(counts.values()) == expressions.given(4, 3, 30) + expressions.derived(3, 30)
    values = reasoner.stored_tables()[expressions.VALUE].facts().columns()[1]
    found = reasoner.engine.dictionary.integer_values(values)
    assert found is not None
    assert sorted(found) == sorted(evaluated(made))
    assert duck_expressions(made)[0] == counts


def test_graph_has_its_edges_once_and_its_largest_label_first() -> None:
    tables = graph.generate(10_000, 8, 500)
    sizes = [len(tables[graph.edge(label)][0]) for label in range(8)]
    assert size(tables) == distinct(tables) == 10_000
    assert sizes == sorted(sizes, reverse=True)
    assert max(int(column.max()) for columns in tables.values() for column in columns) < 500


def test_the_same_vertices_are_hubs_at_both_ends() -> None:
    tables = graph.generate(10_000, 8, 500)
    first, second = (np.concatenate([columns[end] for columns in tables.values()]) for end in (0, 1))
    most = [set(np.argsort(np.bincount(ends, minlength=500))[-50:].tolist()) for ends in (first, second)]
    assert len(most[0] & most[1]) > 25


def test_the_same_seed_gives_the_same_graph() -> None:
    one, same, other = (graph.generate(2_000, 3, 100, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(one[p], same[p]) for p in one)
    assert not all(np.array_equal(one[p], other[p]) for p in one)


@pytest.mark.parametrize("shape", graph.SHAPES, ids=lambda shape: shape.name)
def test_cyclic_facts_are_those_of_the_naive_evaluator(shape: graph.Shape) -> None:
    tables = graph.generate(280, 7, 20)
    program = parse(str(shape))
    numbers = [Literal(str(n), XSD_INTEGER) for n in range(20)]
    given = [(p, (numbers[s], numbers[o])) for p, ends in tables.items() for s, o in zip(*ends, strict=True)]
    truth = oracle.materialise(program, given)
    wanted = {name: len(truth[Predicate(name, 2)]) for name in shape.head_names()}
    assert all(wanted.values())
    assert duck_cyclic(tables, (shape,))[0] == wanted
    _, counts = materialised(str(shape), tables, list(map(term_text, numbers)))
    assert {name: counts[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("text", "heads", "atoms"),
    [
        (collaborators.RULES, [1], 4),
        (expressions.RULES, [3, 3, 3], 9),
        (graph.rules(), [3, 3, 3, 3, 2], 6),
    ],
)
def test_rules_have_the_heads_and_atoms_of_the_benchmark(text: str, heads: list[int], atoms: int) -> None:
    rules = parse(text).rules
    assert [len(rule.heads) for rule in rules] == heads
    assert {len(rule.atoms()) for rule in rules} == {atoms}
