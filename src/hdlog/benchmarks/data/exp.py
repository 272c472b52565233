"""Exp: random expression trees, and a number for each of their leaves in each instance.

With the default parameters, the counts are those of the paper to the fact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hdlog.benchmarks.data.dataset import Dataset, enumerate_texts, list_texts
from hdlog.benchmarks.data.rule_sets import rule_text
from hdlog.program.model import Predicate
from hdlog.reading.identifiers import INTEGERS

NS = "http://example#"
DEPTH = 5
KINDS = ("Leaf", "Minus", "Plus", "Times")
NUMBERS = (-3, -2, -1, 1, 2, 3)
"""What leaves are worth: no zero, so that products keep their factors apart."""
assert max(NUMBERS) ** 2**DEPTH < 2**61, "the largest value is the product of all leaves"

KIND, LEFT, RIGHT, EVALUATION, INSTANCE, VALUE = (
    Predicate(NS + name, 2) for name in ("hasType", "hasLhs", "hasRhs", "eval", "instance", "value")
)
ROOT = Predicate(f"{NS}Root", 1)


def generate(
    expressions: int = 300,
    instances: int = 300,
    inner: int | None = None,
    seed: int = 1,
    tell: Callable[[float], None] = lambda _: None,
) -> Dataset:
    """`inner` inner nodes in all, so `inner + expressions` leaves; `count_given` counts the facts.

    The first ids are those of the kinds; values are integers.
    """
    many = inner_nodes(expressions) if inner is None else inner
    most = expressions * (2**DEPTH - 1)
    if expressions < 1 or instances < 1 or not expressions <= many <= most:
        raise ValueError(
            f"{expressions} expressions with {many} inner nodes and {instances} instances: at least one of each is "
            f"needed, and an expression has at most {2**DEPTH - 1} inner nodes"
        )
    chance = np.random.default_rng(seed)
    trees = _Trees(chance)
    roots = [trees.grow(size, DEPTH) for size in _sizes(expressions, many, chance)]
    parameters = {"expressions": expressions, "instances": instances, "inner": many, "seed": seed}
    data = Dataset("exp", rule_text("exp"), parameters)
    names = data.add_terms(len(KINDS), list_texts([f"<{NS}{kind}>" for kind in KINDS])).ids
    kinds = np.array(trees.kinds, np.uint32)
    nodes = data.add_terms(len(kinds), enumerate_texts(f"<{NS}node", ">")).ids
    cases = data.add_terms(instances, enumerate_texts(f"<{NS}case", ">")).ids
    leaves, inside = nodes[kinds == 0], nodes[kinds != 0]
    evaluations = data.add_terms(len(leaves) * instances, enumerate_texts(f"<{NS}leaf", ">")).ids
    drawn = INTEGERS + np.array(NUMBERS)[chance.integers(0, len(NUMBERS), len(evaluations))]
    left, right = (np.array(side, np.uint32)[kinds != 0] + nodes[0] for side in (trees.left, trees.right))
    data.tables = {
        KIND: [nodes, names[kinds]],
        LEFT: [inside, left],
        RIGHT: [inside, right],
        ROOT: [nodes[roots]],
        EVALUATION: [np.repeat(leaves, instances), evaluations],
        INSTANCE: [evaluations, np.tile(cases, len(leaves))],
        VALUE: [evaluations, drawn],
    }
    tell(1.0)
    return data


def inner_nodes(expressions: int) -> int:
    """3,420 for 300 expressions, as in the paper; in proportion for others."""
    return expressions * 57 // 5


def count_given(expressions: int = 300, instances: int = 300, inner: int = 3_420) -> int:
    leaves = inner + expressions
    return 3 * leaves * instances + 3 * inner + leaves + expressions


def count_derived(instances: int = 300, inner: int = 3_420) -> int:
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
