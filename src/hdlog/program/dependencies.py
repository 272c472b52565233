"""The dependency graph of a program, its components in topological order, and its strata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from hdlog.program.model import TRIPLE, Atom, Predicate, Program, Sign, body_atoms
from hdlog.program.terms import RDF_TYPE, Iri


@dataclass(frozen=True, slots=True)
class Dependency:
    """`head` depends on `body` through rule number `rule` of the program."""

    head: Predicate
    body: Predicate
    sign: Sign
    rule: int


@dataclass(frozen=True, slots=True)
class Component:
    """Predicates that depend on each other, and the rules with one of them in a head.

    Negation and aggregation reach only into components of a lower stratum.
    """

    predicates: tuple[Predicate, ...]
    rules: tuple[int, ...]
    recursive: bool
    stratum: int


@dataclass(frozen=True)
class Hubs:
    """Stand for every predicate that an atom with a variable in its place reads, or adds to."""

    read_types: Predicate
    read_triples: Predicate
    write_types: Predicate
    write_triples: Predicate

    @property
    def readers(self) -> tuple[Predicate, Predicate]:
        return self.read_types, self.read_triples

    @property
    def writers(self) -> tuple[Predicate, Predicate]:
        return self.write_types, self.write_triples


_TRIPLES = Hubs(
    Predicate("[?s, a, ?c]", 2),
    Predicate("[?s, ?p, ?o]", 3),
    Predicate("head [?s, a, ?c]", 2),
    Predicate("head [?s, ?p, ?o]", 3),
)
_QUADS = Hubs(
    Predicate("[?s, a, ?c] ?g", 3),
    Predicate("[?s, ?p, ?o] ?g", 4),
    Predicate("head [?s, a, ?c] ?g", 3),
    Predicate("head [?s, ?p, ?o] ?g", 4),
)
HUBS = frozenset(p for hubs in (_TRIPLES, _QUADS) for p in (*hubs.readers, *hubs.writers))
NO_RULE = -1


def reader(atom: Atom) -> Predicate:
    return _hub(atom, _hubs(atom.predicate).readers)


def writer(head: Atom) -> Predicate:
    return _hub(head, _hubs(head.predicate).writers)


def _hubs(predicate: Predicate) -> Hubs:
    return _QUADS if predicate.has_graph else _TRIPLES


def _hub(atom: Atom, hubs: tuple[Predicate, Predicate]) -> Predicate:
    if not atom.is_triple:
        return atom.predicate
    types, triples = hubs
    return types if atom.terms[1] == Iri(RDF_TYPE) else triples


class DependencyGraph:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.predicates = program.predicates
        self._sorts: dict[tuple[bool, int], list[Predicate]] = {}
        """predicates that triples are facts of, by whether they are in named graphs, and their arity without these"""
        for p in self.predicates:
            self._sorts.setdefault((p.has_graph, p.without_graph().arity), []).append(p)

    def find_reached(self, atom: Atom) -> tuple[Predicate, ...]:
        """The predicates whose facts an atom can match, or that a head atom can add to."""
        if not atom.is_triple:
            return (atom.predicate,)
        has_graph = atom.predicate.has_graph
        classes, properties = (self._sorts.get((has_graph, arity), []) for arity in (1, 2))
        if atom.terms[1] == Iri(RDF_TYPE):
            return (atom.predicate, *classes)
        return (atom.predicate, *classes, *properties)

    @cached_property
    def dependencies(self) -> tuple[Dependency, ...]:
        """Rules over triples depend, and are depended on, through the hubs, not predicate by predicate."""
        dependencies: dict[Dependency, None] = {}
        for number, rule in enumerate(self.program.rules):
            for atom, sign in body_atoms(rule.body):
                for head in rule.heads:
                    dependencies.setdefault(Dependency(writer(head), reader(atom), sign, number))
        dependencies |= dict.fromkeys(
            self._hub_dependencies({n for d in dependencies for n in (d.head, d.body)})
        )
        return tuple(dependencies)

    def _hub_dependencies(self, used: set[Predicate]) -> Iterator[Dependency]:
        for (has_graph, arity), predicates in self._sorts.items():
            hubs = _QUADS if has_graph else _TRIPLES
            for predicate in predicates if arity in (1, 2) else ():
                first = 0 if arity == 1 or predicate.without_graph().name == RDF_TYPE else 1
                for hub in hubs.readers[first:]:
                    if hub in used:
                        yield Dependency(hub, predicate, "positive", NO_RULE)
                for hub in hubs.writers[first:]:
                    if hub in used:
                        yield Dependency(predicate, hub, "positive", NO_RULE)
        for hubs in (_TRIPLES, _QUADS):
            for read in hubs.readers:
                for write in hubs.writers:
                    if read in used and write in used:
                        yield Dependency(read, write, "positive", NO_RULE)

    @cached_property
    def _nodes(self) -> tuple[Predicate, ...]:
        nodes = dict.fromkeys(p for p in self.predicates if not p.name.startswith(TRIPLE))
        for d in self.dependencies:
            nodes |= dict.fromkeys((d.head, d.body))
        nodes |= dict.fromkeys(writer(h) for r in self.program.rules for h in r.heads)
        return tuple(nodes)

    @cached_property
    def by_head(self) -> Mapping[Predicate, Sequence[Dependency]]:
        grouped: dict[Predicate, list[Dependency]] = defaultdict(list)
        for dependency in self.dependencies:
            grouped[dependency.head].append(dependency)
        return grouped

    @cached_property
    def component_of(self) -> Mapping[Predicate, int]:
        """Number of the component of each predicate; dependencies come first."""
        graph = {p: [d.body for d in self.by_head.get(p, ())] for p in self._nodes}
        return {
            predicate: number
            for number, members in enumerate(strong_components(graph))
            for predicate in members
        }

    @cached_property
    def components(self) -> tuple[Component, ...]:
        members: dict[int, list[Predicate]] = defaultdict(list)
        for predicate in self._nodes:
            members[self.component_of[predicate]].append(predicate)
        rules: dict[int, dict[int, None]] = defaultdict(dict)
        for number, rule in enumerate(self.program.rules):
            for head in rule.heads:
                rules[self.component_of[writer(head)]].setdefault(number)
        strata: dict[int, int] = {}
        components = []
        for number in sorted(members):
            recursive = False
            stratum = 0
            for predicate in members[number]:
                for d in self.by_head.get(predicate, ()):
                    inner = self.component_of[d.body] == number
                    recursive |= inner
                    if not inner:
                        stratum = max(stratum, strata[self.component_of[d.body]] + (d.sign != "positive"))
            strata[number] = stratum
            visible = tuple(p for p in members[number] if p not in HUBS)
            if visible or rules[number]:
                components.append(Component(visible, tuple(rules[number]), recursive, stratum))
        return tuple(components)

    def find_unstratified_cycles(self) -> Iterator[tuple[Dependency, ...]]:
        """For each component with negation or aggregation inside: a cycle through it."""
        seen = set()
        for d in self.dependencies:
            number = self.component_of[d.head]
            if d.sign != "positive" and self.component_of[d.body] == number and number not in seen:
                seen.add(number)
                yield (d, *self._path(d.body, d.head))

    def _path(self, start: Predicate, goal: Predicate) -> tuple[Dependency, ...]:
        """The shortest chain of dependencies from `start` down to `goal` within their component."""
        number = self.component_of[goal]
        reached: dict[Predicate, tuple[Dependency, ...]] = {start: ()}
        frontier = [start]
        while goal not in reached:
            following = []
            for predicate in frontier:
                for d in self.by_head[predicate]:
                    if d.body not in reached and self.component_of[d.body] == number:
                        reached[d.body] = (*reached[predicate], d)
                        following.append(d.body)
            frontier = following
        return reached[goal]


Node = TypeVar("Node", bound=Hashable)


def strong_components(graph: Mapping[Node, Iterable[Node]]) -> Iterator[list[Node]]:
    """Tarjan's algorithm without recursion; a component comes after those its edges lead to."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    for root in graph:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(graph[root]))]
        while work:
            node, edges = work[-1]
            for target in edges:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    yield component
