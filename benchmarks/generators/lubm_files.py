"""LUBM-like facts as an N-Triples file, department by department, each subject's triples together."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.generators.lubm import NS, Columns, generate
from hdlog.program.terms import RDF_TYPE

Places = NDArray[np.int64]
_BATCH = 500_000
_SECOND_CLASSES = ("ResearchAssistant",)


def write(columns: Columns, path: Path) -> int:
    """Write the facts to a file; returns how many there are. Different individuals have different texts."""
    homes = _homes(columns)
    terms = pa.concat_arrays([_texts(columns, homes), *(pa.array([f"<{NS}{c}>"]) for c in columns.unary)])
    names = [f" <{RDF_TYPE}> ", *(f" <{NS}{p}> " for p in columns.binary)]
    subjects, predicates, objects = _triples(columns)
    order = np.lexsort((subjects, homes[subjects]))
    with path.open("wb") as out:
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            middle = pa.DictionaryArray.from_arrays(pa.array(predicates[rows]), pa.array(names))
            lines = _join(
                terms.take(subjects[rows]), middle.cast(pa.string()), terms.take(objects[rows]), " .\n"
            )
            out.write(lines.buffers()[2])
    return len(order)


def _triples(columns: Columns) -> tuple[Places, Places, Places]:
    """Subject, predicate (0 is rdf:type) and object of each fact; classes are numbered after the individuals."""
    parts: list[tuple[Any, int, Any]] = []
    for number, members in enumerate(columns.unary.values(), columns.individuals):
        parts += [(m, 0, np.full(len(m), number)) for m in members]
    for number, pairs in enumerate(columns.binary.values(), 1):
        parts += [(s, number, o) for s, o in pairs]
    return (
        np.concatenate([s for s, _, _ in parts]).astype(np.int64),
        np.concatenate([np.full(len(s), p) for s, p, _ in parts]),
        np.concatenate([o for _, _, o in parts]).astype(np.int64),
    )


def _homes(columns: Columns) -> Places:
    """The department each individual belongs to; universities, areas and literals belong to none: -1."""
    homes = np.full(columns.individuals, -1, np.int64)
    departments = columns.unary["Department"][0]
    homes[departments] = departments
    for members, places in (columns.binary["subOrganizationOf"][1], *_pairs(columns, "worksFor", "memberOf")):
        homes[members] = places
    for teachers, courses in _pairs(columns, "teacherOf"):
        homes[courses] = homes[teachers]
    for papers, authors in _pairs(columns, "publicationAuthor"):
        homes[papers] = homes[authors]
    return homes


def _pairs(columns: Columns, *names: str) -> chain[Any]:
    return chain.from_iterable(columns.binary[n] for n in names)


def _texts(columns: Columns, homes: Places) -> pa.Array:
    """The N-Triples text of each individual."""
    universities, departments = columns.unary["University"][0], columns.unary["Department"][0]
    schools = _numbered("University", universities - universities[0])
    of = np.full(columns.individuals, -1, np.int64)
    of[departments] = columns.binary["subOrganizationOf"][0][1]
    hosts = _join(
        _numbered("Department", _ordinals(of[departments])),
        ".",
        schools.take(of[departments] - universities[0]),
        ".edu",
    )
    people = _Texts(columns.individuals)
    people.add(universities, _join("<http://www.", schools, ".edu>"))
    people.add(departments, _join("<http://www.", hosts, ">"))
    labels = _Texts(columns.individuals)
    for name, parts in columns.unary.items():
        if name not in ("University", "Department", "Publication", *_SECOND_CLASSES):
            members = np.concatenate(parts)
            own = _numbered(name, _ordinals(homes[members]))
            host = hosts.take(homes[members] - departments[0])
            people.add(members, _join("<http://www.", host, "/", own, ">"))
            labels.add(members, _join(own, "@", host))
    labels.add(departments, hosts)
    papers, authors = (np.concatenate(c) for c in zip(*columns.binary["publicationAuthor"], strict=True))
    writers = pc.replace_substring(people.all().take(authors), ">", "")
    people.add(papers, _join(writers, _numbered("/Publication", _ordinals(authors)), ">"))
    _add_literals(columns, labels.all(), people)
    return people.all()


def _add_literals(columns: Columns, labels: pa.Array, texts: _Texts) -> None:
    for owners, values in _pairs(columns, "name"):
        texts.add(values, _join('"', pc.replace_substring(labels.take(owners), "@", " of "), '"'))
    for owners, values in _pairs(columns, "emailAddress"):
        texts.add(values, _join('"', labels.take(owners), '"'))
    for _, values in _pairs(columns, "telephone"):
        texts.add(values, _join(_numbered('"555-', values), '"'))
    areas = np.unique(np.concatenate([o for _, o in _pairs(columns, "researchInterest")]))
    texts.add(areas, _join(_numbered('"Research', areas - areas[0]), '"'))


class _Texts:
    """Texts of individuals as they come in; those that have none yet are empty."""

    def __init__(self, individuals: int) -> None:
        self._places = np.zeros(individuals, np.int64)
        self._parts = [pa.array([""])]
        self._size = 1

    def add(self, individuals: NDArray[Any], texts: pa.Array) -> None:
        self._places[individuals] = np.arange(self._size, self._size + len(texts))
        self._parts.append(texts)
        self._size += len(texts)

    def all(self) -> pa.Array:
        return pa.concat_arrays(self._parts).take(self._places)


def _join(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _numbered(name: str, numbers: NDArray[Any]) -> pa.Array:
    return _join(name, pa.array(numbers).cast(pa.string()))


def _ordinals(groups: NDArray[Any]) -> Places:
    """For each place, how many of the places before it are of the same group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(first)[np.cumsum(first) - 1]
    found = np.empty(len(groups), np.int64)
    found[order] = np.arange(len(groups)) - starts
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("universities", type=int)
    parser.add_argument("path", type=Path)
    options = parser.parse_args()
    print(f"{write(generate(options.universities), options.path)} triples")


if __name__ == "__main__":
    main()
