"""A graph with the trouble of YAGO: labels of very different sizes, hubs, and communities in which cycles close.

Most edges are background: each label has subjects and objects of its own, objects in degrees that follow a power law, so
that joins of neighbouring edges are large and hardly any pattern closes. The others are in communities: small sets of
vertices that many labels connect densely. There a pattern of six edges has millions of matches for a few thousand facts
that follow, which is what a join plan cannot stand.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hdlog.benchmarks.data.dataset import Dataset, enumerate_texts
from hdlog.benchmarks.data.rule_sets import rule_text
from hdlog.program.model import Predicate

Numbers = NDArray[np.int64]
LABELS = 91
MEMBERS = 40
"""Vertices of a community."""
DENSITY = 0.5
"""Of the pairs of a community, how many a label connects on average."""
EDGES_A_COMMUNITY = 6_000_000
LABEL_EXPONENT = 0.9
OBJECT_EXPONENT = 0.3


def edge(label: int) -> Predicate:
    return Predicate(f"http://edge{label}", 2)


def generate(
    edges: int = 1_000_000,
    labels: int = LABELS,
    communities: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> Dataset:
    """Exactly `edges` edges, none twice in a label."""
    groups = communities if communities is not None else max(2, edges // EDGES_A_COMMUNITY)
    parameters = {"edges": edges, "labels": labels, "communities": groups, "seed": seed}
    sizes = _sizes(edges, labels)
    inside = int(groups * MEMBERS**2 * DENSITY)
    if sizes.min() < 1.25 * inside:
        raise ValueError(
            f"{edges:,} edges of {labels} labels are too few for {groups} communities: the rarest label has "
            f"{sizes.min():,}, and communities need {inside:,} of each"
        )
    data = Dataset("yago", rule_text("yago"), parameters)
    members = data.add_terms(groups * MEMBERS, enumerate_texts("<http://yago/member", ">")).ids.astype(
        np.int64
    )
    subjects = data.add_terms(edges // 5, enumerate_texts("<http://yago/subject", ">"))
    objects = data.add_terms(edges // 10, enumerate_texts("<http://yago/object", ">"))

    def draw_edges(label: int) -> list[NDArray[np.uint32]]:
        chance = np.random.default_rng([seed, label])
        close = _community_edges(chance, members.reshape(groups, MEMBERS))
        drawn = _background(chance, int(sizes[label]) - len(close), subjects.size, objects.size)
        far = (drawn[0] + subjects.first, drawn[1] + objects.first)
        return [np.concatenate([close[:, i], far[i]]).astype(np.uint32) for i in (0, 1)]

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        for label, columns in enumerate(pool.map(draw_edges, range(labels))):
            data.tables[edge(label)] = columns
            tell((label + 1) / labels)
    return data


def _sizes(edges: int, labels: int) -> Numbers:
    """Edges by label, the largest first; they add up."""
    shares = np.cumsum(np.arange(1, labels + 1) ** -LABEL_EXPONENT)
    bounds = np.rint(edges * shares / shares[-1]).astype(np.int64)
    return np.asarray(np.diff(bounds, prepend=0))


def _community_edges(chance: np.random.Generator, members: Numbers) -> Numbers:
    """Pairs inside communities; some members are more active than others."""
    active = np.arange(1, MEMBERS + 1) ** -0.3
    weights = np.outer(active, active)
    chances = np.minimum(1, weights * DENSITY / weights.mean())
    connected = chance.random((len(members), MEMBERS, MEMBERS)) < chances
    group, subject, object_ = np.nonzero(connected)
    return np.stack([members[group, subject], members[group, object_]], axis=1)


def _background(
    chance: np.random.Generator, size: int, subjects: int, objects: int
) -> tuple[Numbers, Numbers]:
    """So many different pairs; a label has subjects and objects of its own, a window into all of them."""
    first_subject, first_object = chance.integers(0, subjects), chance.integers(0, objects)
    several, few = max(2, min(subjects, size // 2)), max(2, min(objects, size // 3))
    assert several * few > 2 * size, "there are pairs enough"
    keys = np.empty(0, np.int64)
    while len(keys) < size:
        wanted = size - len(keys) + size // 50 + 10
        places = (few * chance.random(wanted) ** (1 / (1 - OBJECT_EXPONENT))).astype(np.int64)
        drawn = chance.integers(0, several, wanted) * few + places
        keys = np.unique(np.concatenate([keys, drawn]))
    if len(keys) > size:
        keys = np.sort(chance.choice(keys, size, replace=False))
    return (first_subject + keys // few) % subjects, (first_object + keys % few) % objects
