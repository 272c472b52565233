"""The hypertree module: a rule evaluated over the nodes of its decomposition (Algorithm 3 of the paper).

`DRed` has evaluated the nodes (lines 2 to 4 of Algorithms 2, 4 and 5) before it calls this, and each node's change is like that
of any predicate: its delta, and its tuples on either side of it, which are the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hdlog.engines.protocol import Engine, FactSet, Relation, Version
from hdlog.maintenance.module import Changes, is_void
from hdlog.maintenance.nodes import Node, with_nodes
from hdlog.maintenance.standard import StandardModule
from hdlog.plan.parts import item_variables
from hdlog.plan.planner import RulePlan, TreeNode
from hdlog.plan.tuning import Tuning
from hdlog.program.model import Predicate, Rule
from hdlog.program.terms import Variable

_SMALLER = 3
"""The delta node first reduces the others if it is so many times smaller than the largest."""


class HypertreeModule:
    def __init__(self, engine: Engine, plan: RulePlan, tuning: Tuning) -> None:
        self.engine = engine
        self.plan = plan
        self.rule = plan.rule
        self.tuning = tuning
        self.nodes = tuple(Node(engine, part, tuning) for part in plan.parts)
        (root,) = plan.roots
        self.tree: tuple[TreeNode, ...] = tuple(root.tree.nodes())
        self.bags = [frozenset(p.bag) for p in self.tree]
        number = {id(p): i for i, p in enumerate(self.tree)}
        self.neighbours: list[list[int]] = [[] for _ in self.tree]
        for i, p in enumerate(self.tree):
            for child in p.children:
                self.neighbours[i].append(number[id(child)])
                self.neighbours[number[id(child)]].append(i)
        self.labelled = tuple((p.atom.predicate, True) for p in self.tree)
        standard = StandardModule(engine, plan.rule)
        self.sources = standard.reads
        self.conclusion = StandardModule(engine, Rule(self.rule.heads, plan.last))
        self.reads = self.labelled
        self.outputs = self._outputs()

    def _outputs(self) -> list[tuple[int, frozenset[str], tuple[int, ...]]]:
        """Per group of heads: the root, the variables that it has to give, the heads."""
        given = frozenset().union(*self.bags)
        needed = frozenset().union(*map(item_variables, self.plan.last)) & given
        wanted = [frozenset(v.name for v in h.variables()) & given | needed for h in self.rule.heads]
        numbers = tuple(range(len(wanted)))
        if self.plan.last or not self.tuning.root_per_head:
            groups = [(frozenset().union(*wanted), numbers)]
        else:
            groups = [(names, (n,)) for n, names in zip(numbers, wanted, strict=True)]
        return [(self._root(names), names, heads) for names, heads in groups]

    def _root(self, names: frozenset[str]) -> int:
        """The node that covers most of the variables, the paper's root if several do."""
        if not self.tuning.root_per_head:
            return 0
        return max(range(len(self.bags)), key=lambda i: (len(self.bags[i] & names), -i))

    def derive(self, changes: Changes) -> Mapping[int, FactSet]:
        return self.cross_node_evaluation(changes)

    def cross_node_evaluation(self, changes: Changes) -> Mapping[int, FactSet]:
        """Each node in turn has the delta; those before it are labelled `first`, those after it `second`."""
        found: list[dict[int, FactSet]] = []
        for i, key in enumerate(self.labelled):
            delta = changes[key].delta
            if self.engine.is_empty(delta):
                continue
            labels = [changes[k].first if j < i else changes[k].second for j, k in enumerate(self.labelled)]
            if any(is_void(self.engine, label) for j, label in enumerate(labels) if j != i):
                continue
            # Gains and losses apart: in a sum of both, tuples that reach a neighbour would vanish.
            for part, lost in (
                (self.engine.rising(delta), False),
                (self.engine.rising(self.engine.opposite(delta)), True),
            ):
                if not self.engine.is_empty(part):
                    heads = self._evaluate(labels, i, part)
                    found.append({n: self.engine.opposite(f) if lost else f for n, f in heads.items()})
        return self._sum(found)

    def derive_all(self, versions: Mapping[tuple[Predicate, bool], Version]) -> Mapping[int, FactSet]:
        known = versions
        if any(key not in known for key in self.reads):
            known = with_nodes(self.engine, self.nodes, versions)
        return self._evaluate([known[key] for key in self.labelled])

    def _evaluate(
        self, labels: Sequence[Version], i: int | None = None, delta: FactSet | None = None
    ) -> dict[int, FactSet]:
        active: list[Relation | None] = [None] * len(self.tree)
        if i is not None and delta is not None:
            active[i] = self.engine.scan(delta, self.tree[i].atom.terms)
            largest = max(self.engine.size(v.table) + sum(map(self.engine.count, v.plus)) for v in labels)
            if _SMALLER * self.engine.count(delta) < largest:
                self.top_down_lsj(i, active, labels)
        for j, label in enumerate(labels):
            if active[j] is None:
                active[j] = self.engine.join(self.engine.unit(), label, self.tree[j].atom.terms)
        if any(self.engine.is_empty(relation) for relation in active):
            return {}
        if not self._is_answered_by_messages():
            self.bottom_up_lsj(0, active)
            self.top_down_lsj(0, active, None)
        heads: dict[int, FactSet] = {}
        for root, names, numbers in self.outputs:
            relation = self.cross_node_join(root, -1, names, active)
            heads |= self.conclusion.conclude(relation, names, numbers)
        return heads

    def _is_answered_by_messages(self) -> bool:
        """Whether each root covers its outputs, so that nothing but counts goes up the tree."""
        return self.tuning.sum_product and all(names <= self.bags[root] for root, names, _ in self.outputs)

    def top_down_lsj(
        self, root: int, active: list[Relation | None], labels: Sequence[Version] | None
    ) -> None:
        """Left semi-joins from a node outwards; a node not active yet is looked up in its index."""
        for i, parent in self._outwards(root):
            names = sorted(self.bags[i] & self.bags[parent])
            if active[i] is None and labels is not None:
                keys = self._keys(active[parent], names)
                start = self.engine.scan(keys, [Variable(n) for n in names])
                active[i] = self.engine.join(start, labels[i], self.tree[i].atom.terms)
            else:
                active[i] = self._semijoin(active[i], active[parent], names)

    def bottom_up_lsj(self, root: int, active: list[Relation | None]) -> None:
        for i, parent in reversed(self._outwards(root)):
            active[parent] = self._semijoin(
                active[parent], active[i], sorted(self.bags[i] & self.bags[parent])
            )

    def cross_node_join(
        self, i: int, parent: int, names: frozenset[str], active: Sequence[Relation | None]
    ) -> Relation:
        """A node with all below it, seen from its parent, projected to what is asked for above."""
        relation: Relation = active[i]
        for child in self.neighbours[i]:
            if child != parent:
                message = self.cross_node_join(child, i, names, active)
                columns = [Variable(n) for n in self._columns(child, i, names)]
                facts = self.engine.project(message, columns)
                empty = self.engine.table(len(columns))
                relation = self.engine.join(relation, Version(empty, (facts,)), columns)
        if parent < 0 or not self.tuning.sum_product:
            return relation
        return self.engine.collapse(self.engine.keep_columns(relation, self._columns(i, parent, names)))

    def _columns(self, i: int, parent: int, names: frozenset[str]) -> list[str]:
        """What a node sends to its parent: the separator and the outputs; without sum-product, all it has."""
        below = self._below(i, parent)
        if self.tuning.sum_product:
            return sorted((self.bags[i] & self.bags[parent]) | (below & names))
        return sorted(below)

    def _below(self, i: int, parent: int) -> frozenset[str]:
        inner = [self._below(child, i) for child in self.neighbours[i] if child != parent]
        return self.bags[i].union(*inner)

    def _outwards(self, root: int) -> list[tuple[int, int]]:
        """The other nodes with their parents, seen from a root."""
        found: list[tuple[int, int]] = []
        waiting = [(root, -1)]
        while waiting:
            i, parent = waiting.pop()
            if parent >= 0:
                found.append((i, parent))
            waiting += [(child, i) for child in self.neighbours[i] if child != parent]
        return found

    def _keys(self, relation: Relation, names: Sequence[str]) -> FactSet:
        return self.engine.distinct(self.engine.project(relation, [Variable(n) for n in names]))

    def _semijoin(self, left: Relation, right: Relation, names: Sequence[str]) -> Relation:
        if not names:
            return left
        keys = Version(self.engine.table(len(names)), (self._keys(right, names),))
        return self.engine.join(left, keys, [Variable(n) for n in names])

    def _sum(self, found: Sequence[Mapping[int, FactSet]]) -> dict[int, FactSet]:
        return {
            n: self.engine.plus([f[n] for f in found if n in f], len(head.terms))
            for n, head in enumerate(self.rule.heads)
            if any(n in f for f in found)
        }
