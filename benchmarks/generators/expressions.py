"""Exp as columns of ids: random expression trees, and a number for each of their leaves in each instance.

With the default parameters, the counts are those of the paper to the fact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdlog.program.model import Predicate
from hdlog.program.ntriples import term_text
from hdlog.program.terms import XSD_INTEGER, Literal

Ids = NDArray[np.uint32]
DEPTH = 5
KINDS = ("Leaf", "Minus", "Plus", "Times")
NUMBERS = (-3, -2, -1, 1, 2, 3)
"""What leaves are worth: no zero, so that products keep their factors apart."""
assert max(NUMBERS) ** 2**DEPTH < 2**62, "the largest value is the product of all leaves"

OPERATORS = {"Minus": "-", "Plus": "+", "Times": "*"}
RULES = "\n".join(
    f"""
<evaluation>[?node, ?here], <instance>[?here, ?case], <value>[?here, ?result] :-
    <kind>[?node, <{kind}>], <left>[?node, ?first], <right>[?node, ?second],
    <evaluation>[?first, ?one], <instance>[?one, ?case], <value>[?one, ?x],
    <evaluation>[?second, ?other], <instance>[?other, ?case], <value>[?other, ?y],
    BIND(?x {operator} ?y AS ?result),
    BIND(SKOLEM("Eval", ?node, ?case) AS ?here) .
"""
    for kind, operator in OPERATORS.items()
)
KIND, LEFT, RIGHT = (Predicate(name, 2) for name in ("kind", "left", "right"))
EVALUATION, INSTANCE, VALUE = (Predicate(name, 2) for name in ("evaluation", "instance", "value"))
ROOT = Predicate("root", 1)


@dataclass(frozen=True, slots=True)
class Expressions:
    """Facts; ids count kinds, numbers, nodes, instances, and evaluations of leaves, in this order."""

    tables: dict[Predicate, list[Ids]]
    nodes: int
    instances: int
    evaluations: int

    @property
    def first_node(self) -> int:
        return len(KINDS) + len(NUMBERS)

    @property
    def terms(self) -> int:
        return self.first_node + self.nodes + self.instances + self.evaluations

    def numbers(self) -> list[NDArray[np.int64]]:
        """The table of values with numbers for the ids of numbers."""
        owners, ids = self.tables[VALUE]
        return [owners.astype(np.int64), np.array(NUMBERS)[ids.astype(np.int64) - len(KINDS)]]

    def names(self) -> list[str]:
        """The term of each id, as text of N-Triples."""
        out = [f"<{kind}>" for kind in KINDS]
        out += [term_text(Literal(str(number), XSD_INTEGER)) for number in NUMBERS]
        for letter, count in (("node", self.nodes), ("instance", self.instances), ("leaf", self.evaluations)):
            out += [f"<{letter}{n}>" for n in range(count)]
        return out


def generate(expressions: int = 300, instances: int = 300, inner: int = 3_420, seed: int = 1) -> Expressions:
    """`inner` inner nodes in all, so `inner + expressions` leaves; `given` counts the facts."""
    chance = np.random.default_rng(seed)
    trees = _Trees(chance)
    roots = [trees.grow(size, DEPTH) for size in _sizes(expressions, inner, chance)]
    kinds = np.array(trees.kinds, np.uint32)
    start = len(KINDS) + len(NUMBERS)
    nodes = np.arange(start, start + len(kinds), dtype=np.uint32)
    start += len(nodes)
    cases = np.arange(start, start + instances, dtype=np.uint32)
    start += instances
    leaves, inside = nodes[kinds == 0], nodes[kinds != 0]
    evaluations = np.arange(start, start + len(leaves) * instances, dtype=np.uint32)
    drawn = chance.integers(len(KINDS), len(KINDS) + len(NUMBERS), len(evaluations), dtype=np.uint32)
    left, right = (np.array(side, np.uint32)[kinds != 0] + nodes[0] for side in (trees.left, trees.right))
    tables = {
        KIND: [nodes, kinds],
        LEFT: [inside, left],
        RIGHT: [inside, right],
        ROOT: [nodes[roots]],
        EVALUATION: [np.repeat(leaves, instances), evaluations],
        INSTANCE: [evaluations, np.tile(cases, len(leaves))],
        VALUE: [evaluations, drawn],
    }
    return Expressions(tables, len(nodes), instances, len(evaluations))


def given(expressions: int = 300, instances: int = 300, inner: int = 3_420) -> int:
    leaves = inner + expressions
    return 3 * leaves * instances + 3 * inner + leaves + expressions


def derived(instances: int = 300, inner: int = 3_420) -> int:
    """How many facts follow: an evaluation, its instance and its value for each inner node and instance."""
    return 3 * inner * instances


class _Trees:
    """Nodes as lists of kind and children; a leaf has kind 0 and no children to speak of."""

    def __init__(self, chance: np.random.Generator) -> None:
        self.kinds: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.chance = chance

    def grow(self, inner: int, depth: int) -> int:
        """A new tree of random shape with `inner` inner nodes, at most `depth` of them above each other."""
        node = len(self.kinds)
        self.kinds.append(int(self.chance.integers(1, len(KINDS))) if inner else 0)
        self.left.append(0)
        self.right.append(0)
        if inner:
            most = 2 ** (depth - 1) - 1
            left = int(self.chance.integers(max(0, inner - 1 - most), min(inner - 1, most) + 1))
            self.left[node] = self.grow(left, depth - 1)
            self.right[node] = self.grow(inner - 1 - left, depth - 1)
        return node


def _sizes(trees: int, inner: int, chance: np.random.Generator) -> list[int]:
    """Inner nodes of each tree: at least one, at most a full tree's, `inner` in all."""
    free = 2**DEPTH - 2
    assert trees <= inner <= trees * (free + 1), f"{trees} trees cannot have {inner} inner nodes"
    places = chance.permutation(trees * free)[: inner - trees] // free
    return [int(size) for size in 1 + np.bincount(places, minlength=trees)]
