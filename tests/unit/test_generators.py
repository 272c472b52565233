"""The benchmark generators: exact counts, facts that differ, the published profiles, and rules of the right shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyoxigraph as ox
import pytest
from numpy.typing import NDArray

from hdlog.benchmarks.data import collaborators, exp, graph, lubm, yago
from hdlog.benchmarks.data.dataset import Dataset, Ids, Terms, enumerate_texts
from hdlog.benchmarks.data.loading import DatasetTerms, load
from hdlog.benchmarks.data.rule_sets import rule_text, rules
from hdlog.benchmarks.data.univ_bench import NS
from hdlog.benchmarks.peers.duck import expressions
from hdlog.benchmarks.peers.rules_in_sql import duck_collaborators, duck_cyclic
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.program.model import Predicate
from hdlog.program.terms import XSD_INTEGER, Literal
from hdlog.reading.identifiers import INTEGERS
from hdlog.reading.values import value_text
from hdlog.reasoning import Reasoning, start_reasoning
from hdlog.text import parse
from tests import oracle

Tables = Mapping[Predicate, list[Ids]]


def size(tables: Tables) -> int:
    return sum(len(columns[0]) for columns in tables.values())


def distinct(tables: Tables) -> int:
    return sum(len(set(zip(*(c.tolist() for c in columns), strict=True))) for columns in tables.values())


def equal(one: Tables, other: Tables) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(a, b) for p in one for a, b in zip(one[p], other[p], strict=True)
    )


def materialised(data: Dataset) -> tuple[Reasoning[Any, Any, Any], dict[str, int]]:
    engine = ColumnarEngine()
    facts = load(engine, data)
    reasoner = start_reasoning(engine, data.rules)
    reasoner.materialise(facts)
    return reasoner, {p.name: count for p, count in reasoner.counts().items()}


# All of them.


@pytest.mark.parametrize(
    "data",
    [lubm.generate(), exp.generate(4, 3, 30), yago.generate(50_000, 5), collaborators.generate(5, 3)],
    ids=lambda data: str(data.name),
)
def test_every_term_has_a_text_of_its_own_that_rdf_allows(data: Dataset) -> None:
    texts = DatasetTerms(data).take().to_pylist()
    assert len(set(texts)) == len(texts) == data.terms
    lines = "".join(f"<http://a/s> <http://a/p> {text} .\n" for text in texts)
    assert [value_text(t.object) for t in ox.parse(lines, format=ox.RdfFormat.N_TRIPLES)] == texts
    some = np.random.default_rng(1).integers(0, data.terms, 50)
    assert DatasetTerms(data).take(some).to_pylist() == [texts[i] for i in some]
    assert DatasetTerms(data).find(pa.array([texts[i] for i in some])).tolist() == some.tolist()


@pytest.mark.parametrize(
    "generate",
    [
        lambda: lubm.generate(0),
        lambda: exp.generate(10, 3, 9),
        lambda: exp.generate(10, 3, 311),
        lambda: yago.generate(50_000),
        lambda: collaborators.generate(3),
    ],
)
def test_what_cannot_be_made_is_refused(generate: Callable[[], Dataset]) -> None:
    with pytest.raises(ValueError, match=r"at least|too few"):
        generate()


# The running example.


def test_running_example_has_the_facts_of_the_paper() -> None:
    data = collaborators.generate(5, 3)
    names = [
        t.removeprefix(f"<{collaborators.NS}").removesuffix(">")
        for t in DatasetTerms(data).take().to_pylist()
    ]
    named = {
        p: {(names[x], names[y]) for x, y in zip(*columns, strict=True)} for p, columns in data.tables.items()
    }
    assert {p: len(facts) for p, facts in named.items()} == {
        collaborators.COWORKER: 16,
        collaborators.COAUTHOR: 16,
        collaborators.POSSIBLE: 30,
    }
    assert {("a4", "b13"), ("a4", "b15"), ("a5", "a2")} <= named[collaborators.COWORKER]
    assert {("a0", "c1"), ("a1", "c4"), ("a5", "a3")} <= named[collaborators.COAUTHOR]
    assert {("b1", "d1"), ("c6", "d3"), ("c15", "d3")} <= named[collaborators.POSSIBLE]


def test_running_example_derives_a_collaborator_for_each_pair() -> None:
    data = collaborators.generate(5, 3)
    _, counts = materialised(data)
    assert counts[collaborators.POSSIBLE.name] == 30 + collaborators.count_derived(5, 3) == 48
    assert duck_collaborators(data)[0] == counts


# Exp.


def test_expressions_have_the_counts_of_the_paper() -> None:
    made = exp.generate()
    assert {p: len(columns[0]) for p, columns in made.tables.items()} == {
        exp.KIND: 7_140,
        exp.LEFT: 3_420,
        exp.RIGHT: 3_420,
        exp.ROOT: 300,
        exp.EVALUATION: 1_116_000,
        exp.INSTANCE: 1_116_000,
        exp.VALUE: 1_116_000,
    }
    assert made.facts == exp.count_given() == 3_362_280
    assert exp.count_given() + exp.count_derived() == 6_440_280


@pytest.mark.parametrize("inner", [7, 40, 7 * 31])
def test_expressions_are_trees_of_the_wanted_size_and_depth(inner: int) -> None:
    made = exp.generate(7, 3, inner, seed=inner)
    assert made.facts == distinct(made.tables) == exp.count_given(7, 3, inner)
    children = np.concatenate([made.tables[side][1] for side in (exp.LEFT, exp.RIGHT)])
    (roots,) = made.tables[exp.ROOT]
    assert sorted([*children, *roots]) == list(made.tables[exp.KIND][0])
    assert max(depth(made, int(root)) for root in roots) <= exp.DEPTH


def operands(made: Dataset) -> dict[int, tuple[int, int]]:
    nodes, left = made.tables[exp.LEFT]
    _, right = made.tables[exp.RIGHT]
    return {int(n): (int(x), int(y)) for n, x, y in zip(nodes, left, right, strict=True)}


def depth(made: Dataset, node: int) -> int:
    sides = operands(made).get(node)
    return 1 + max(depth(made, side) for side in sides) if sides else 0


def evaluated(made: Dataset) -> list[int]:
    """The value of each node in each instance, by recursion over the trees."""
    sides = operands(made)
    kinds, case, worth = (
        dict(zip(*(c.tolist() for c in made.tables[p]), strict=True))
        for p in (exp.KIND, exp.INSTANCE, exp.VALUE)
    )
    pairs = zip(*(c.tolist() for c in made.tables[exp.EVALUATION]), strict=True)
    leaves: dict[tuple[int, int], int] = {(node, case[e]): worth[e] - INTEGERS for node, e in pairs}

    def value(node: int, instance: int) -> int:
        if node not in sides:
            return leaves[node, instance]
        x, y = (value(side, instance) for side in sides[node])
        results = {"Minus": x - y, "Plus": x + y, "Times": x * y}
        return results[exp.KINDS[kinds[node]]]

    return [value(node, instance) for node in kinds for instance in set(case.values())]


def test_every_node_has_its_value_in_every_instance() -> None:
    made = exp.generate(4, 3, 30)
    reasoner, counts = materialised(made)
    assert sum(counts.values()) == exp.count_given(4, 3, 30) + exp.count_derived(3, 30)
    values = reasoner.stored_tables()[exp.VALUE].facts().columns()[1]
    found = reasoner.engine.dictionary.integer_values(values)
    assert found is not None
    assert sorted(found) == sorted(evaluated(made))
    assert expressions(made.tables)[0] == counts


# LUBM.

PIECES = 20
"""Departments that facts are made for at once, so that there are several pieces of a few universities."""
PROFESSORS = [rank for rank in lubm.FACULTY if rank != "Lecturer"]


class Seen:
    """Facts of LUBM by the local names of their predicates, and what everything belongs to."""

    def __init__(self, data: Dataset) -> None:
        self.tables = {p.name.removeprefix(NS): columns for p, columns in data.tables.items()}
        self.home = np.full(data.terms, -1)
        for name in ("subOrganizationOf", "worksFor", "memberOf"):
            members, places = self.tables[name]
            self.home[members] = places
        teachers, courses = self.tables["teacherOf"]
        self.home[courses] = self.home[teachers]
        papers, authors = self.tables["publicationAuthor"]
        self.home[papers] = self.home[authors]
        self.departments = self.of("Department")
        self.faculty = self.of(*lubm.FACULTY)
        self.graduates = self.of("GraduateStudent")

    def of(self, *classes: str) -> Ids:
        return np.concatenate([self.tables[name][0] for name in classes])

    def often(self, found: Ids, owners: Ids) -> NDArray[np.int64]:
        """How often each owner was found."""
        return np.bincount(found, minlength=len(self.home))[owners]

    def here(self, *classes: str) -> NDArray[np.int64]:
        """How many there are in each department."""
        return self.often(self.home[self.of(*classes)], self.departments)

    def values(self, name: str, owners: Ids) -> NDArray[np.int64]:
        """How many values of a property each owner has."""
        return self.often(self.tables[name][0], owners)


@pytest.fixture(scope="module")
def seen() -> Seen:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lubm, "PIECE", PIECES)
        return Seen(lubm.generate(4))


def span(numbers: NDArray[Any]) -> tuple[int, int]:
    return int(numbers.min()), int(numbers.max())


def within(numbers: NDArray[Any], bounds: tuple[int, int]) -> bool:
    return bool(bounds[0] <= numbers.min() and numbers.max() <= bounds[1])


def same(one: Ids, other: Ids) -> bool:
    """Whether they are the same members, none twice."""
    return np.array_equal(np.sort(one), np.sort(other)) and len(np.unique(one)) == len(one)


def test_universities_have_departments_with_groups_and_faculty(seen: Seen) -> None:
    of_universities = seen.often(seen.home[seen.departments], seen.of("University"))
    assert within(of_universities[:4], lubm.DEPARTMENTS)
    assert of_universities[0] == 15
    assert not of_universities[4:].any()
    assert span(seen.here("ResearchGroup")) == lubm.GROUPS
    for rank, bounds in lubm.FACULTY.items():
        assert span(seen.here(rank)) == bounds
    assert same(seen.tables["worksFor"][0], seen.faculty)


def test_departments_have_students_in_proportion_to_their_faculty(seen: Seen) -> None:
    for kind, bounds in lubm.STUDENTS.items():
        assert within(seen.here(kind) / seen.here(*lubm.FACULTY), bounds)
    assert same(seen.tables["memberOf"][0], seen.of(*lubm.STUDENTS))


def test_every_member_of_the_faculty_teaches_courses_of_its_own(seen: Seen) -> None:
    teachers, courses = seen.tables["teacherOf"]
    assert same(courses, seen.of(*lubm.COURSES))
    for course, bounds in lubm.COURSES.items():
        assert span(seen.often(teachers[np.isin(courses, seen.of(course))], seen.faculty)) == bounds


def test_students_take_different_courses_of_their_department(seen: Seen) -> None:
    students, courses = seen.tables["takesCourse"]
    assert (seen.home[students] == seen.home[courses]).all()
    for kind, (course, few, many) in lubm.TAKES.items():
        assert np.isin(courses[np.isin(students, seen.of(kind))], seen.of(course)).all()
        assert span(seen.values("takesCourse", seen.of(kind))) == (few, many)


def test_some_graduates_are_assistants_each_of_one_kind(seen: Seen) -> None:
    graduates = seen.here("GraduateStudent")
    for kind, (few, many) in (
        ("TeachingAssistant", lubm.TEACHING_ASSISTANTS),
        ("ResearchAssistant", lubm.RESEARCH_ASSISTANTS),
    ):
        assert (graduates // many <= seen.here(kind)).all()
        assert (seen.here(kind) <= graduates // few).all()
    assistants = seen.of("TeachingAssistant", "ResearchAssistant")
    assert len(np.unique(assistants)) == len(assistants)
    assert np.isin(assistants, seen.graduates).all()


def test_each_teaching_assistant_has_another_course_of_the_department(seen: Seen) -> None:
    assistants, courses = seen.tables["teachingAssistantOf"]
    assert same(assistants, seen.of("TeachingAssistant"))
    assert len(np.unique(courses)) == len(courses)
    assert np.isin(courses, seen.of("Course")).all()
    assert (seen.home[assistants] == seen.home[courses]).all()


def test_faculty_publishes_by_rank_and_graduates_take_part(seen: Seen) -> None:
    papers, authors = seen.tables["publicationAuthor"]
    own = np.isin(authors, seen.faculty)
    assert same(papers[own], seen.of("Publication"))
    for rank, bounds in lubm.PUBLICATIONS.items():
        assert span(seen.often(authors[own], seen.of(rank))) == bounds
    assert np.isin(authors[~own], seen.graduates).all()
    assert span(seen.often(authors, seen.graduates)) == lubm.CO_AUTHORED
    assert (seen.home[papers] == seen.home[authors]).all()


def test_graduates_and_a_fifth_of_undergraduates_have_a_professor_as_advisor(seen: Seen) -> None:
    pupils, advisors = seen.tables["advisor"]
    assert np.isin(advisors, seen.of(*PROFESSORS)).all()
    assert (seen.home[pupils] == seen.home[advisors]).all()
    assert (seen.values("advisor", seen.graduates) == 1).all()
    undergraduates = seen.of("UndergraduateStudent")
    advised = seen.values("advisor", undergraduates)
    assert advised.max() == 1
    assert abs(advised.sum() - len(undergraduates) / 5) < 1 + len(seen.departments) / PIECES
    assert advised.sum() + len(seen.graduates) == len(pupils)


def test_every_department_has_a_full_professor_of_its_own_as_head(seen: Seen) -> None:
    heads, places = seen.tables["headOf"]
    assert same(places, seen.departments)
    assert np.isin(heads, seen.of("FullProfessor")).all()
    assert (seen.home[heads] == places).all()


def test_people_have_degrees_and_addresses(seen: Seen) -> None:
    people = np.concatenate([seen.faculty, seen.of(*lubm.STUDENTS)])
    for name in ("emailAddress", "telephone"):
        assert same(seen.tables[name][0], people)
    addresses = seen.tables["emailAddress"][1]
    assert len(np.unique(addresses)) == len(addresses)
    assert same(seen.tables["researchInterest"][0], seen.of(*PROFESSORS))
    for degree in lubm.DEGREES:
        assert (seen.values(degree, seen.faculty) == 1).all()
        assert np.isin(seen.tables[degree][1], seen.of("University")).all()
    first = seen.tables["undergraduateDegreeFrom"][0]
    assert same(first, np.concatenate([seen.faculty, seen.graduates]))
    kinds = ("Department", *lubm.COURSES, "Publication")
    named = np.concatenate([people, seen.of(*kinds), seen.of("University")[:4]])
    assert same(seen.tables["name"][0], named)


@pytest.mark.parametrize("seed", range(1, 9))
def test_one_university_has_as_many_facts_as_that_of_the_original_generator(seed: int) -> None:
    data = lubm.generate(1, seed)
    assert 100_000 < data.facts < 105_000
    assert distinct(data.tables) == data.facts


def test_lubm_depends_on_the_seed_and_not_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lubm, "PIECE", PIECES)
    one, two, other = (lubm.generate(3, *given).tables for given in ((1, 1), (1, 2), (2, 1)))
    assert equal(one, two)
    assert not equal(one, other)
    assert distinct(one) == size(one)


def test_lubm_has_classes_and_properties_of_univ_bench() -> None:
    known = {*rules("lubm-l").predicates, *(Predicate(NS + n, 2) for n in ("name", "researchInterest"))}
    assert lubm.generate(1).tables.keys() <= known


# YAGO.


@pytest.mark.parametrize(("edges", "labels"), [(50_000, 5), (123_457, 20), (1_000_000, 91)])
def test_yago_has_its_edges_once_and_its_largest_label_first(edges: int, labels: int) -> None:
    tables = yago.generate(edges, labels).tables
    sizes = [len(tables[yago.edge(label)][0]) for label in range(labels)]
    assert size(tables) == distinct(tables) == edges
    assert sizes == sorted(sizes, reverse=True)


def test_yago_depends_on_the_seed_and_not_on_threads() -> None:
    one, two, other = (
        yago.generate(50_000, 5, seed=seed, threads=threads).tables
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    assert equal(one, two)
    assert not equal(one, other)


def test_every_rule_of_yago_derives_facts_for_each_of_its_heads() -> None:
    data = yago.generate()
    reasoner, _ = materialised(data)
    counts = reasoner.counts()
    for head in (head.predicate for rule in reasoner.program.rules for head in rule.heads):
        given = len(data.tables[head][0]) if head in data.tables else 0
        assert counts.get(head, 0) > given, head


# The graph of the micro-benchmarks.


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
    one, again, other = (graph.generate(2_000, 3, 100, seed=seed) for seed in (1, 1, 2))
    assert equal(one, again)
    assert not equal(one, other)


@pytest.mark.parametrize("shape", graph.SHAPES, ids=lambda shape: shape.name)
def test_cyclic_facts_are_those_of_the_naive_evaluator(shape: graph.Shape) -> None:
    tables = graph.generate(280, 7, 20)
    numbers = [Literal(str(n), XSD_INTEGER) for n in range(20)]
    given = [(p, (numbers[s], numbers[o])) for p, ends in tables.items() for s, o in zip(*ends, strict=True)]
    truth = oracle.materialise(parse(str(shape)), given)
    wanted = {name: len(truth[Predicate(name, 2)]) for name in shape.head_names()}
    assert all(wanted.values())
    assert duck_cyclic(tables, (shape,))[0] == wanted
    data = Dataset("graph", str(shape), {}, tables, [Terms(0, 20, enumerate_texts("<http://a/", ">"))])
    _, counts = materialised(data)
    assert {name: counts[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("text", "heads", "atoms"),
    [
        (rule_text("collaborators"), [1], 4),
        (rule_text("exp"), [3, 3, 3], 9),
        (graph.rules(), [3, 3, 3, 3, 2], 6),
    ],
)
def test_rules_have_the_heads_and_atoms_of_the_benchmark(text: str, heads: list[int], atoms: int) -> None:
    found = parse(text).rules
    assert [len(rule.heads) for rule in found] == heads
    assert {len(rule.atoms()) for rule in found} == {atoms}
