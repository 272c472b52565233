"""The hypertree module: a rule evaluated over the nodes of its decomposition, by the procedures of the paper.

`add_r`, `del_r` and `red_r` are its Algorithms for Add^r, Del^r and Red^r; `cross_node_evaluation`, `top_down_lsj`, `bottom_up_lsj` and
`cross_node_join` are what they call. A `Round` (maintenance/rounds.py) knows the Delta of a round, and what each node keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from hdlog.engines.protocol import Engine, F, R, T, Version
from hdlog.maintenance.changes import Changes, Heads, Versions, is_void
from hdlog.maintenance.meters import Meter
from hdlog.maintenance.nodes import Node, with_nodes
from hdlog.maintenance.rounds import Round
from hdlog.maintenance.standard import conclude
from hdlog.plan.bodies import Body
from hdlog.plan.nodes import item_variables
from hdlog.plan.planner import RulePlan, TreeNode
from hdlog.program.model import Bind, Filter
from hdlog.program.terms import Variable
from hdlog.tuning import Tuning


def add_r(r: HypertreeModule[R, F, T], round_: Round[R, F, T]) -> Heads[F]:
    """Add^r[I, Delta+]: derivations by r that use an added fact.

    Differs from the paper: inst_p^I has grown when a node is evaluated, and its version `without` the delta is what it was, so nothing is
    left to update in the end; what of Delta_A is in I is told by counts, not by a difference. Nodes that rules share are
    evaluated once in a round.
    """
    # in-node evaluation: inst_p^{I:Delta+} := Pi_p[I, Delta+] \ inst_p^I
    for p in r.nodes:
        round_.evaluate(p)
    # cross-node evaluation: Delta_A := CrossNodeEvaluation^r(L+)
    return cross_node_evaluation(r, round_)


def del_r(r: HypertreeModule[R, F, T], round_: Round[R, F, T]) -> Heads[F]:
    """Del^r[I, Delta-]: derivations by r that use a deleted fact.

    Differs from the paper: as in `add_r`.
    """
    # in-node: inst_p^{I:Delta-} := Pi_p[I, Delta-] & inst_p^I;  inst_p^re := inst_p^re + inst_p^{I:Delta-}
    for p in r.nodes:
        round_.evaluate(p)
    # cross-node: Delta_D := CrossNodeEvaluation^r(L-)
    return cross_node_evaluation(r, round_)


def red_r(r: HypertreeModule[R, F, T], round_: Round[R, F, T]) -> Heads[F]:
    """Red^r[I, Delta]: derivations by r that use a restored tuple of a node.

    Differs from the paper: what of Delta is rederived is told by its counts, in `rederive` of maintenance/dred.py.
    """
    # inst_p^{I:Delta+} := { f in inst_p^re | O[f] };  inst_p^I := inst_p^I + inst_p^{I:Delta+};  inst_p^re := {}
    for p in r.nodes:
        round_.evaluate(p)
    # Delta_R := CrossNodeEvaluation^r(L+) & Delta
    return cross_node_evaluation(r, round_)


class HypertreeModule(Generic[R, F, T]):
    """A rule with its hypertree decomposition <T, chi, lambda>."""

    def __init__(self, engine: Engine[R, F, T], plan: RulePlan, tuning: Tuning) -> None:
        self.engine = engine
        self.plan = plan
        self.rule = plan.rule
        self.tuning = tuning
        self.meter = Meter()
        self.nodes = tuple(Node(engine, rule, tuning) for rule in plan.nodes)
        (root,) = plan.roots
        self.tree: tuple[TreeNode, ...] = tuple(root.tree.nodes())
        self.bags = [frozenset(p.bag) for p in self.tree]
        number = {id(p): i for i, p in enumerate(self.tree)}
        self.neighbours: list[list[int]] = [[] for _ in self.tree]
        for i, p in enumerate(self.tree):
            for child in p.children:
                self.neighbours[i].append(number[id(child)])
                self.neighbours[number[id(child)]].append(i)
        self.reads = tuple((p.atom.predicate, True) for p in self.tree)
        self.sources = Body(plan.rule).reads
        self.last = tuple(i for i in plan.last if isinstance(i, Filter | Bind))
        self.outputs = self._outputs()

    def _outputs(self) -> list[tuple[int, frozenset[str], tuple[int, ...]]]:
        """Per group of heads: the root t, the variables that it has to give, the heads."""
        bag_names = frozenset().union(*self.bags)
        needed = frozenset().union(*map(item_variables, self.last)) & bag_names
        wanted = [frozenset(v.name for v in h.variables()) & bag_names | needed for h in self.rule.heads]
        numbers = tuple(range(len(wanted)))
        if self.last or not self.tuning.root_per_head:
            groups = [(frozenset().union(*wanted), numbers)]
        else:
            groups = [(names, (n,)) for n, names in zip(numbers, wanted, strict=True)]
        return [(self._root(names), names, heads) for names, heads in groups]

    def _root(self, names: frozenset[str]) -> int:
        """The node that covers most of the variables, the paper's root if several do."""
        if not self.tuning.root_per_head:
            return 0
        return max(range(len(self.bags)), key=lambda i: (len(self.bags[i] & names), -i))

    def derive(self, changes: Changes[F, T]) -> Heads[F]:
        # A round of DRed says which of the procedures it calls for; where changes are counted exactly, nodes are finished.
        return (
            changes.procedure(self, changes)
            if isinstance(changes, Round)
            else cross_node_evaluation(self, changes)
        )

    def derive_all(self, versions: Versions[F, T]) -> Heads[F]:
        known = versions
        if any(read not in known for read in self.reads):
            known = with_nodes(self.engine, self.nodes, versions)
        return join_nodes(self, [known[read] for read in self.reads])

    def walk_outwards(self, root: int) -> list[tuple[int, int]]:
        """The other nodes with their parents, seen from a root."""
        order: list[tuple[int, int]] = []
        waiting = [(root, -1)]
        while waiting:
            i, parent = waiting.pop()
            if parent >= 0:
                order.append((i, parent))
            waiting += [(child, i) for child in self.neighbours[i] if child != parent]
        return order

    def separator(self, i: int, j: int) -> list[str]:
        return sorted(self.bags[i] & self.bags[j])

    def list_sent(self, i: int, parent: int, names: frozenset[str]) -> list[str]:
        """What a node sends to its parent: the separator and the outputs; without sum-product, all it has."""
        below = self._collect_below(i, parent)
        if self.tuning.sum_product:
            return sorted((self.bags[i] & self.bags[parent]) | (below & names))
        return sorted(below)

    def _collect_below(self, i: int, parent: int) -> frozenset[str]:
        inner = [self._collect_below(child, i) for child in self.neighbours[i] if child != parent]
        return self.bags[i].union(*inner)


def cross_node_evaluation(r: HypertreeModule[R, F, T], labels: Changes[F, T]) -> Heads[F]:
    """CrossNodeEvaluation^r(L): each node in turn has the delta; those before it are matched without theirs, those after it
    including theirs.

    Differs from the paper: L+ and L- are one labelling, which is right in additions and deletions alike; the paper's are its mirror
    image.
    """
    engine = r.engine
    derived: list[Heads[F]] = []
    # for p_i in N^r: the Delta node
    for i, read in enumerate(r.reads):
        delta = labels[read].delta
        if engine.is_empty(delta):
            continue
        # for p_j in N^r: label p_j with L(p_i, p_j), and set inst_{p_j}^ac
        versions = [
            labels[other].without if j < i else labels[other].including for j, other in enumerate(r.reads)
        ]
        if any(is_void(engine, version) for j, version in enumerate(versions) if j != i):
            continue
        # Gains and losses apart: in a sum of both, tuples that reach a neighbour would vanish.
        for part, lost in ((engine.positive(delta), False), (engine.positive(engine.negate(delta)), True)):
            if not engine.is_empty(part):
                heads = join_nodes(r, versions, i, part)
                derived.append({n: engine.negate(f) if lost else f for n, f in heads.items()})
    return _sum_heads(r, derived)


def join_nodes(
    r: HypertreeModule[R, F, T],
    versions: Sequence[Version[F, T]],
    i: int | None = None,
    delta: F | None = None,
) -> Heads[F]:
    """The heads of all matches of the tree; node i, if any, is matched by a delta."""
    engine = r.engine
    active: list[R | None] = [None] * len(r.tree)
    if i is not None and delta is not None:
        active[i] = engine.scan(delta, r.tree[i].atom.terms)
        # TopDownLSJ(p_i), if the Delta node is so much smaller than the largest
        largest = max(engine.size(v.table) + sum(map(engine.count, v.plus)) for v in versions)
        if r.tuning.numbers.much_smaller * engine.count(delta) < largest:
            top_down_lsj(r, i, active, versions)
    for j, version in enumerate(versions):
        if active[j] is None:
            active[j] = engine.join(engine.unit(), version, r.tree[j].atom.terms)
    inst = [rows for rows in active if rows is not None]
    if any(map(engine.is_empty, inst)):
        return {}
    if not _is_answered_by_messages(r):
        # BottomUpLSJ(t); TopDownLSJ(t)
        bottom_up_lsj(r, 0, active)
        top_down_lsj(r, 0, active, versions)
        inst = [rows for rows in active if rows is not None]
    heads: dict[int, F] = {}
    for root, names, numbers in r.outputs:
        # Delta := Delta + pi_var(h(r)) (CrossNodeJoin(t))
        rows = cross_node_join(r, root, -1, names, inst)
        heads |= conclude(engine, r.rule, r.last, rows, names, numbers)
    return heads


def _is_answered_by_messages(r: HypertreeModule[R, F, T]) -> bool:
    """Whether each root covers its outputs, so that nothing but counts goes up the tree.

    Differs from the paper: then the second and third pass would reduce what is not listed anyway.
    """
    return r.tuning.sum_product and all(names <= r.bags[root] for root, names, _ in r.outputs)


def top_down_lsj(
    r: HypertreeModule[R, F, T], root: int, active: list[R | None], versions: Sequence[Version[F, T]]
) -> None:
    """TopDownLSJ(p): left semi-joins from a node outwards. One that is not active yet is looked up in its index, never scanned."""
    for i, parent in r.walk_outwards(root):
        names, above, own = r.separator(i, parent), active[parent], active[i]
        assert above is not None, "parents come first"
        if own is not None:
            active[i] = _semijoin(r, own, above, names)
        else:
            start = r.engine.scan(_keys(r, above, names), [Variable(n) for n in names])
            active[i] = r.engine.join(start, versions[i], r.tree[i].atom.terms)


def bottom_up_lsj(r: HypertreeModule[R, F, T], root: int, active: list[R | None]) -> None:
    """BottomUpLSJ(t): left semi-joins from the leaves to the root; all nodes are active."""
    for i, parent in reversed(r.walk_outwards(root)):
        own, below = active[parent], active[i]
        assert own is not None
        assert below is not None
        active[parent] = _semijoin(r, own, below, r.separator(i, parent))


def cross_node_join(
    r: HypertreeModule[R, F, T], i: int, parent: int, names: frozenset[str], inst: Sequence[R]
) -> R:
    """CrossNodeJoin(p): a node with all below it, seen from its parent, projected to what is asked for above."""
    engine = r.engine
    rows = inst[i]
    for child in r.neighbours[i]:
        if child != parent:
            below = cross_node_join(r, child, i, names, inst)
            columns = [Variable(n) for n in r.list_sent(child, i, names)]
            message = Version[F, T](engine.table(len(columns)), (engine.project(below, columns),))
            rows = engine.join(rows, message, columns)
    if parent < 0 or not r.tuning.sum_product:
        return rows
    return engine.collapse(engine.keep_columns(rows, r.list_sent(i, parent, names)))


def _semijoin(r: HypertreeModule[R, F, T], left: R, right: R, names: Sequence[str]) -> R:
    if not names:
        return left
    keys = Version[F, T](r.engine.table(len(names)), (_keys(r, right, names),))
    return r.engine.join(left, keys, [Variable(n) for n in names])


def _keys(r: HypertreeModule[R, F, T], rows: R, names: Sequence[str]) -> F:
    return r.engine.distinct(r.engine.project(rows, [Variable(n) for n in names]))


def _sum_heads(r: HypertreeModule[R, F, T], derived: Sequence[Heads[F]]) -> Heads[F]:
    return {
        n: r.engine.plus([heads[n] for heads in derived if n in heads], len(head.terms))
        for n, head in enumerate(r.rule.heads)
        if any(n in heads for heads in derived)
    }
