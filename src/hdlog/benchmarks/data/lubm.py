"""LUBM made anew: the published profile of its generator, drawn at random for all universities at once.

Counts are dealt, not drawn: each value of a range comes equally often, in random order. So the number of facts hardly
depends on the seed. The first university has 15 departments, as that of the original generator has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.benchmarks.data.dataset import Dataset, Terms, join_texts, list_texts, number_texts
from hdlog.benchmarks.data.rule_sets import rule_text
from hdlog.benchmarks.data.univ_bench import NS
from hdlog.program.model import Predicate

Numbers = NDArray[np.int64]
POOL = 1_000
"""Universities that degrees come from, at least."""
AREAS = 30
PIECE = 400
"""Departments whose facts are drawn together; the same for every number of threads."""
DEPARTMENTS = (15, 25)
GROUPS = (10, 20)
FACULTY = {
    "FullProfessor": (7, 10),
    "AssociateProfessor": (10, 14),
    "AssistantProfessor": (8, 11),
    "Lecturer": (5, 7),
}
PUBLICATIONS = {
    "FullProfessor": (15, 20),
    "AssociateProfessor": (10, 18),
    "AssistantProfessor": (5, 10),
    "Lecturer": (0, 5),
}
COURSES = {"Course": (1, 2), "GraduateCourse": (1, 2)}
"""Of a member of the faculty."""
STUDENTS = {"UndergraduateStudent": (8, 14), "GraduateStudent": (3, 4)}
"""For each member of the faculty."""
TAKES = {"UndergraduateStudent": ("Course", 2, 4), "GraduateStudent": ("GraduateCourse", 1, 3)}
TEACHING_ASSISTANTS = (4, 5)
RESEARCH_ASSISTANTS = (3, 4)
"""Graduates for one of them."""
CO_AUTHORED = (0, 5)
"""Publications of the faculty of a department that a graduate has a part in."""
DEGREES = ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom")
TELEPHONE = '"xxx-xxx-xxxx"'


def generate(
    universities: int = 1,
    seed: int = 1,
    threads: int | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> Dataset:
    """About 133,000 facts a university; 101,000 for the first."""
    if universities < 1:
        raise ValueError(f"{universities} universities: at least 1 is needed")
    data = Dataset("lubm", rule_text("lubm-l"), {"universities": universities, "seed": seed})
    campus = Campus(universities, seed, data)
    pieces = [(low, min(low + PIECE, campus.departments)) for low in range(0, campus.departments, PIECE)]
    piece_facts: list[dict[Predicate, list[NDArray[np.uint32]]]] = []
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        for part in pool.map(lambda piece: _Piece(campus, *piece).facts(), pieces):
            piece_facts.append(part)
            tell(len(piece_facts) / len(pieces))
    pool_facts = {_class("University"): [campus.pool.ids]}
    pool_facts[_property("name")] = [campus.pool.ids[:universities], campus.names["University"].ids]
    for predicate in dict.fromkeys(p for part in (pool_facts, *piece_facts) for p in part):
        parts = [part[predicate] for part in (pool_facts, *piece_facts) if predicate in part]
        data.tables[predicate] = [np.concatenate(c) for c in zip(*parts, strict=True)]
    return data


def _class(name: str) -> Predicate:
    return Predicate(NS + name, 1)


def _property(name: str) -> Predicate:
    return Predicate(NS + name, 2)


@dataclass(frozen=True)
class Kind:
    """All individuals of one kind, owner by owner."""

    terms: Terms
    starts: Numbers
    """the first of each owner, and the end"""

    def of(self, low: int, high: int) -> slice:
        """Those of owners from and up to."""
        return slice(int(self.starts[low]), int(self.starts[high]))

    def sizes(self, low: int, high: int) -> Numbers:
        return np.diff(self.starts[low : high + 1])


class Campus:
    """How many there are of everything, and which ids they have."""

    def __init__(self, universities: int, seed: int, data: Dataset) -> None:
        chance = np.random.default_rng(seed)
        self.seed = seed
        self.data = data
        self.pool = data.add_terms(max(POOL, universities), _university_texts)
        of_universities = deal(chance, *DEPARTMENTS, universities)
        of_universities[0] = DEPARTMENTS[0]
        self.home = np.repeat(np.arange(universities), of_universities)
        self.departments = departments = len(self.home)
        ordinals = _ordinals(of_universities)
        hosts = join_texts(
            "Department", number_texts(ordinals), ".University", number_texts(self.home), ".edu"
        )
        self.hosts = hosts
        self.department = data.add_terms(
            departments, lambda a, b: join_texts("<http://www.", hosts.slice(a, b - a), ">")
        )
        self.areas = data.add_terms(
            AREAS, lambda a, b: join_texts('"Research', number_texts(np.arange(a, b)), '"')
        )
        self.telephone = data.add_terms(1, list_texts([TELEPHONE]))

        self.kinds: dict[str, Kind] = {}
        self.names: dict[str, Terms] = {}
        self.emails: dict[str, Terms] = {}
        self.names["University"] = self._names("University", universities)
        self.names["Department"] = self._names("Department", DEPARTMENTS[1])
        self._add("ResearchGroup", deal(chance, *GROUPS, departments))
        faculty = np.zeros(departments, np.int64)
        for rank, bounds in FACULTY.items():
            sizes = deal(chance, *bounds, departments)
            self._add(rank, sizes, mailed=True)
            faculty += sizes
        self.courses: dict[tuple[str, str], Numbers] = {}
        for course, bounds in COURSES.items():
            total = np.zeros(departments, np.int64)
            for rank in FACULTY:
                taught = deal(chance, *bounds, self.kinds[rank].terms.size)
                self.courses[course, rank] = taught
                total += _sums(taught, self.kinds[rank].starts)
            self._add(course, total)
        for kind, bounds in STUDENTS.items():
            attracted = deal(chance, *bounds, int(faculty.sum()))
            self._add(kind, _sums(attracted, np.concatenate([[0], np.cumsum(faculty)])), mailed=True)
        self.publications: dict[str, Kind] = {}
        self.names["Publication"] = self._names("Publication", 1 + max(h for _, h in PUBLICATIONS.values()))
        for rank, bounds in PUBLICATIONS.items():
            sizes = deal(chance, *bounds, self.kinds[rank].terms.size)
            starts = np.concatenate([[0], np.cumsum(sizes)])
            texts = _publication_texts(self.kinds[rank].terms, sizes)
            self.publications[rank] = Kind(data.add_terms(int(starts[-1]), texts), starts)
        graduates = self.kinds["GraduateStudent"].sizes(0, departments)
        self.teaching = graduates // deal(chance, *TEACHING_ASSISTANTS, departments)
        self.research = graduates // deal(chance, *RESEARCH_ASSISTANTS, departments)
        self.chosen_head = chance.random(departments)

    def _names(self, kind: str, size: int) -> Terms:
        return self.data.add_terms(
            size, lambda a, b: join_texts(f'"{kind}', number_texts(np.arange(a, b)), '"')
        )

    def _add(self, kind: str, sizes: Numbers, mailed: bool = False) -> None:
        starts = np.concatenate([[0], np.cumsum(sizes)])
        size = int(starts[-1])
        texts = _member_texts(kind, sizes, self.hosts)
        self.kinds[kind] = Kind(
            self.data.add_terms(size, lambda a, b: join_texts("<http://www.", *texts(a, b, True), ">")),
            starts,
        )
        if kind != "ResearchGroup":
            self.names[kind] = self._names(kind, int(sizes.max()))
        if mailed:
            self.emails[kind] = self.data.add_terms(
                size, lambda a, b: join_texts('"', *texts(a, b, False), '"')
            )


def deal(chance: np.random.Generator, low: int, high: int, count: int) -> Numbers:
    """So many numbers of a range, each equally often, in random order."""
    values = low + (chance.integers(high - low + 1) + np.arange(count)) % (high - low + 1)
    return np.asarray(chance.permutation(values))


def _ordinals(sizes: Numbers) -> Numbers:
    """0, 1, ... for each size."""
    return np.asarray(np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes))


def _sums(values: Numbers, starts: Numbers) -> Numbers:
    """The sum of the values of each owner."""
    sums = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(sums[starts[1:]] - sums[starts[:-1]])


# Texts.


def _university_texts(low: int, high: int) -> pa.Array:
    return join_texts("<http://www.University", number_texts(np.arange(low, high)), ".edu>")


def _owners(sizes: Numbers) -> Callable[[int, int], tuple[Numbers, Numbers]]:
    """Owner and ordinal of members from and up to."""
    starts = np.concatenate([[0], np.cumsum(sizes)])

    def find(low: int, high: int) -> tuple[Numbers, Numbers]:
        members = np.arange(low, high)
        owners = np.searchsorted(starts, members, "right") - 1
        return owners, members - starts[owners]

    return find


def _member_texts(kind: str, sizes: Numbers, hosts: pa.Array) -> Callable[[int, int, bool], tuple[Any, ...]]:
    """Parts of the texts of members of departments: of an address, or of a mail address."""
    find = _owners(sizes)

    def texts(low: int, high: int, address: bool) -> tuple[Any, ...]:
        owners, ordinals = find(low, high)
        host, own = hosts.take(pa.array(owners)), (kind, number_texts(ordinals))
        return (host, "/", *own) if address else (*own, "@", host)

    return texts


def _publication_texts(authors: Terms, sizes: Numbers) -> Callable[[int, int], pa.Array]:
    find = _owners(sizes)

    def texts(low: int, high: int) -> pa.Array:
        owners, ordinals = find(low, high)
        first, last = int(owners[0]), int(owners[-1])
        written = pc.replace_substring(authors.texts(first, last + 1), ">", "")
        return join_texts(written.take(pa.array(owners - first)), "/Publication", number_texts(ordinals), ">")

    return texts


# Facts.


class _Piece:
    """The facts of the departments from `low` up to `high`."""

    def __init__(self, campus: Campus, low: int, high: int) -> None:
        self.campus = campus
        self.low, self.high = low, high
        self.chance = np.random.default_rng([campus.seed, low // PIECE])
        self.tables: dict[Predicate, list[list[NDArray[np.uint32]]]] = {}

    def facts(self) -> dict[Predicate, list[NDArray[np.uint32]]]:
        self._add_departments()
        for rank in FACULTY:
            self._add_faculty(rank)
        for course in COURSES:
            self._add_courses(course)
        for kind in STUDENTS:
            self._add_students(kind)
        self._add_assistants()
        self._add_co_authors()
        return {p: [np.concatenate(c) for c in zip(*parts, strict=True)] for p, parts in self.tables.items()}

    def cls(self, name: str, members: NDArray[Any]) -> None:
        self.tables.setdefault(_class(name), []).append([members.astype(np.uint32)])

    def prop(self, name: str, subjects: NDArray[Any], objects: NDArray[Any]) -> None:
        assert len(subjects) == len(objects), "a fact has both"
        columns = [subjects.astype(np.uint32), objects.astype(np.uint32)]
        self.tables.setdefault(_property(name), []).append(columns)

    def add_names(self, kind: str, members: NDArray[Any], ordinals: Numbers) -> None:
        self.prop("name", members, self.campus.names[kind].ids[ordinals])

    def members(self, kind: str) -> tuple[NDArray[np.uint32], Numbers, Numbers]:
        """Ids of the members of these departments, how many of each, and the department of each, from 0."""
        individuals = self.campus.kinds[kind]
        sizes = individuals.sizes(self.low, self.high)
        return (
            individuals.terms.ids[individuals.of(self.low, self.high)],
            sizes,
            np.repeat(np.arange(len(sizes)), sizes),
        )

    def pool(self, size: int) -> NDArray[np.uint32]:
        return self.campus.pool.ids[self.chance.integers(0, self.campus.pool.size, size)]

    def _add_departments(self) -> None:
        campus = self.campus
        self.homes = campus.department.ids[self.low : self.high]
        universities = campus.home[self.low : self.high]
        self.cls("Department", self.homes)
        self.prop("subOrganizationOf", self.homes, campus.pool.ids[universities])
        starts = np.searchsorted(campus.home, universities)
        self.add_names("Department", self.homes, np.arange(self.low, self.high) - starts)
        groups, _, home = self.members("ResearchGroup")
        self.cls("ResearchGroup", groups)
        self.prop("subOrganizationOf", groups, self.homes[home])

    def _add_people(self, kind: str) -> tuple[NDArray[np.uint32], Numbers, Numbers]:
        people, sizes, home = self.members(kind)
        campus = self.campus
        self.cls(kind, people)
        self.add_names(kind, people, _ordinals(sizes))
        self.prop("emailAddress", people, campus.emails[kind].ids[campus.kinds[kind].of(self.low, self.high)])
        self.prop("telephone", people, np.full(len(people), campus.telephone.first))
        return people, sizes, home

    def _add_faculty(self, rank: str) -> None:
        people, sizes, home = self._add_people(rank)
        campus = self.campus
        self.prop("worksFor", people, self.homes[home])
        for degree in DEGREES:
            self.prop(degree, people, self.pool(len(people)))
        if rank != "Lecturer":
            self.prop(
                "researchInterest", people, campus.areas.ids[self.chance.integers(0, AREAS, len(people))]
            )
        if rank == "FullProfessor":
            first = np.cumsum(sizes) - sizes
            heads = first + (campus.chosen_head[self.low : self.high] * sizes).astype(np.int64)
            self.prop("headOf", people[heads], self.homes)
        papers = campus.publications[rank]
        written = campus.kinds[rank].of(self.low, self.high)
        counts = papers.sizes(written.start, written.stop)
        ids = papers.terms.ids[papers.of(written.start, written.stop)]
        self.cls("Publication", ids)
        self.add_names("Publication", ids, _ordinals(counts))
        self.prop("publicationAuthor", ids, np.repeat(people, counts))

    def _add_courses(self, course: str) -> None:
        """Courses of a department belong to its faculty, rank by rank."""
        courses, sizes, _ = self.members(course)
        self.cls(course, courses)
        self.add_names(course, courses, _ordinals(sizes))
        teachers, homes = [], []
        for rank in FACULTY:
            people, _, home = self.members(rank)
            counts = self.campus.courses[course, rank][self.campus.kinds[rank].of(self.low, self.high)]
            teachers.append(np.repeat(people, counts))
            homes.append(np.repeat(home, counts))
        order = np.argsort(np.concatenate(homes), kind="stable")
        self.prop("teacherOf", np.concatenate(teachers)[order], courses)

    def _add_students(self, kind: str) -> None:
        people, _, home = self._add_people(kind)
        self.prop("memberOf", people, self.homes[home])
        course, few, many = TAKES[kind]
        courses, sizes, _ = self.members(course)
        counts = self.chance.integers(few, many + 1, len(people))
        owners, chosen = self._draw_several(counts, sizes[home])
        starts = np.cumsum(sizes) - sizes
        self.prop("takesCourse", people[owners], courses[starts[home[owners]] + chosen])
        graduate = kind == "GraduateStudent"
        if graduate:
            self.prop("undergraduateDegreeFrom", people, self.pool(len(people)))
        advised = (
            np.arange(len(people)) if graduate else np.flatnonzero(deal(self.chance, 0, 4, len(people)) == 0)
        )
        self.prop("advisor", people[advised], self._draw_professors(home[advised]))

    def _draw_professors(self, home: Numbers) -> NDArray[np.uint32]:
        """A professor of each department."""
        ranks = [self.members(rank) for rank in FACULTY if rank != "Lecturer"]
        homes = np.concatenate([h for _, _, h in ranks])
        order = np.argsort(homes, kind="stable")
        sizes = np.sum([s for _, s, _ in ranks], axis=0)
        starts = np.cumsum(sizes) - sizes
        chosen = starts[home] + (self.chance.random(len(home)) * sizes[home]).astype(np.int64)
        return np.asarray(np.concatenate([p for p, _, _ in ranks])[order][chosen])

    def _add_assistants(self) -> None:
        """Different graduates, and each teaching assistant of another course."""
        graduates, sizes, home = self.members("GraduateStudent")
        courses, course_sizes, course_home = self.members("Course")
        starts = np.cumsum(sizes) - sizes
        mixed = self._shuffle(home)
        teaching = self.campus.teaching[self.low : self.high]
        research = self.campus.research[self.low : self.high]
        places = np.repeat(starts, teaching) + _ordinals(teaching)
        assistants = graduates[mixed[places]]
        self.cls("TeachingAssistant", assistants)
        course_starts = np.cumsum(course_sizes) - course_sizes
        assisted = np.repeat(course_starts, teaching) + _ordinals(teaching)
        self.prop("teachingAssistantOf", assistants, courses[self._shuffle(course_home)[assisted]])
        places = np.repeat(starts + teaching, research) + _ordinals(research)
        self.cls("ResearchAssistant", graduates[mixed[places]])

    def _add_co_authors(self) -> None:
        graduates, _, home = self.members("GraduateStudent")
        papers, homes = [], []
        for rank in FACULTY:
            members = self.campus.kinds[rank].of(self.low, self.high)
            written = self.campus.publications[rank]
            papers.append(written.terms.ids[written.of(members.start, members.stop)])
            homes.append(np.repeat(self.members(rank)[2], written.sizes(members.start, members.stop)))
        order = np.argsort(np.concatenate(homes), kind="stable")
        sizes = np.bincount(np.concatenate(homes), minlength=self.high - self.low)
        starts = np.cumsum(sizes) - sizes
        counts = self.chance.integers(CO_AUTHORED[0], CO_AUTHORED[1] + 1, len(graduates))
        owners, chosen = self._draw_several(counts, sizes[home])
        own = np.concatenate(papers)[order][starts[home[owners]] + chosen]
        self.prop("publicationAuthor", own, graduates[owners])

    def _shuffle(self, home: Numbers) -> Numbers:
        """Places in random order inside each department; those of a department stay together."""
        return np.lexsort((self.chance.random(len(home)), home))

    def _draw_several(self, counts: Numbers, options: Numbers) -> tuple[Numbers, Numbers]:
        """For each row, `counts` different numbers below `options`: the rows, and the numbers."""
        most = int(counts.max(initial=0))
        drawn = np.full((len(counts), most), np.iinfo(np.int64).max)
        for n in range(most):
            number = (self.chance.random(len(counts)) * (options - n)).astype(np.int64)
            for before in np.sort(drawn[:, :n], axis=1).T:
                number += number >= before
            drawn[:, n] = number
        wanted = np.arange(most) < counts[:, None]
        return np.nonzero(wanted)[0], drawn[wanted]
