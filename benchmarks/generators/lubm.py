"""LUBM-like facts as columns of ids: the profile of the benchmark's generator, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint32]
NS = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"


@dataclass
class Columns:
    """Facts by predicate name; individuals are numbers from 0 to `individuals`."""

    unary: dict[str, list[Ids]] = field(default_factory=dict)
    binary: dict[str, list[tuple[Ids, Ids]]] = field(default_factory=dict)
    individuals: int = 0

    def new(self, count: int) -> Ids:
        start = self.individuals
        self.individuals += count
        return np.arange(start, self.individuals, dtype=np.uint32)

    def cls(self, name: str, members: Ids) -> Ids:
        self.unary.setdefault(name, []).append(members)
        return members

    def prop(self, name: str, subjects: Ids, objects: Ids) -> None:
        self.binary.setdefault(name, []).append((subjects, objects))

    def facts(self) -> int:
        return sum(len(a) for parts in self.unary.values() for a in parts) + sum(
            len(a) for parts in self.binary.values() for a, _ in parts
        )


def generate(universities: int, seed: int = 1) -> Columns:
    """About 103,000 facts a university."""
    chance = np.random.default_rng(seed)
    out = Columns()
    pool = out.cls("University", out.new(max(1000, universities)))
    areas = out.new(30)

    def several(owners: Ids, low: int, high: int) -> Ids:
        return np.repeat(owners, chance.integers(low, high + 1, len(owners)))

    def pick(options: Ids, size: int) -> Ids:
        return options[chance.integers(0, len(options), size)]

    homes = np.repeat(pool[:universities], chance.integers(15, 26, universities))
    departments = out.cls("Department", out.new(len(homes)))
    out.prop("subOrganizationOf", departments, homes)
    groups_home = several(departments, 10, 20)
    groups = out.cls("ResearchGroup", out.new(len(groups_home)))
    out.prop("subOrganizationOf", groups, groups_home)

    staff, staff_home, professors, professors_home = _lists(4)
    courses, courses_home, graduate_courses, graduate_home = _lists(4)
    authors: list[tuple[Ids, int, int]] = []
    ranks = (
        ("FullProfessor", 7, 10, 15, 20),
        ("AssociateProfessor", 10, 14, 10, 18),
        ("AssistantProfessor", 8, 11, 5, 10),
        ("Lecturer", 5, 7, 0, 5),
    )
    for rank, low, high, few, many in ranks:
        home = several(departments, low, high)
        people = out.cls(rank, out.new(len(home)))
        out.prop("worksFor", people, home)
        staff.append(people)
        staff_home.append(home)
        authors.append((people, few, many))
        if rank != "Lecturer":
            professors.append(people)
            professors_home.append(home)
        if rank == "FullProfessor":
            first = np.flatnonzero(np.concatenate([[True], home[1:] != home[:-1]]))
            out.prop("headOf", people[first], home[first])
        for degree in ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
            out.prop(degree, people, pick(pool, len(people)))
        out.prop("researchInterest", people, pick(areas, len(people)))
        for name, kept, kept_home in (
            ("Course", courses, courses_home),
            ("GraduateCourse", graduate_courses, graduate_home),
        ):
            teacher = several(people, 1, 2)
            taught = out.cls(name, out.new(len(teacher)))
            out.prop("teacherOf", teacher, taught)
            kept.append(taught)
            kept_home.append(np.repeat(home, np.bincount(teacher - people[0], minlength=len(people))))
    faculty, faculty_home = np.concatenate(staff), np.concatenate(staff_home)
    by_department = _Groups(np.concatenate(professors), np.concatenate(professors_home), chance)
    plain = _Groups(np.concatenate(courses), np.concatenate(courses_home), chance)
    advanced = _Groups(np.concatenate(graduate_courses), np.concatenate(graduate_home), chance)

    for kind, low, high, takes in (
        ("UndergraduateStudent", 8, 14, (2, 4)),
        ("GraduateStudent", 3, 4, (1, 3)),
    ):
        sizes = chance.integers(low, high + 1, len(faculty))
        home = np.repeat(faculty_home, sizes)
        students = out.cls(kind, out.new(len(home)))
        out.prop("memberOf", students, home)
        each = chance.integers(takes[0], takes[1] + 1, len(students))
        taken = (plain if kind == "UndergraduateStudent" else advanced).pick(np.repeat(home, each))
        out.prop("takesCourse", np.repeat(students, each), taken)
        if kind == "GraduateStudent":
            out.prop("advisor", students, by_department.pick(home))
            out.prop("undergraduateDegreeFrom", students, pick(pool, len(students)))
            assistants = chance.random(len(students)) < 0.22
            out.prop("teachingAssistantOf", students[assistants], plain.pick(home[assistants]))
            researchers = chance.random(len(students)) < 0.28
            out.cls("ResearchAssistant", students[researchers])
            authors.append((students, 0, 5))
        else:
            advised = chance.random(len(students)) < 0.2
            out.prop("advisor", students[advised], by_department.pick(home[advised]))
        staff.append(students)

    for people, few, many in authors:
        writer = several(people, few, many)
        papers = out.cls("Publication", out.new(len(writer)))
        out.prop("publicationAuthor", papers, writer)
    everybody = np.concatenate(staff)
    for name in ("name", "emailAddress", "telephone"):
        out.prop(name, everybody, out.new(len(everybody)))
    out.prop("name", departments, out.new(len(departments)))
    return out


class _Groups:
    """Members by home, to draw one of the same home from."""

    def __init__(self, members: Ids, homes: Ids, chance: np.random.Generator) -> None:
        order = np.argsort(homes, kind="stable")
        self.members, self.homes, self.chance = members[order], homes[order], chance

    def pick(self, homes: Ids) -> Ids:
        low = np.searchsorted(self.homes, homes, "left")
        high = np.searchsorted(self.homes, homes, "right")
        return self.members[low + (self.chance.random(len(homes)) * (high - low)).astype(np.int64)]


def _lists(count: int) -> list[list[Ids]]:
    return [[] for _ in range(count)]
