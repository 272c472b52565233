"""The rules of LUBM L, from a compact table of the axioms of univ-bench."""

from __future__ import annotations

from hdlog.program.model import Atom, Program, Rule
from hdlog.program.terms import Variable

NS = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"

SUBCLASSES = """
Person: Chair Director Employee GraduateStudent ResearchAssistant Student TeachingAssistant
Employee: AdministrativeStaff Faculty
Faculty: Lecturer PostDoc Professor
Professor: AssistantProfessor AssociateProfessor Chair Dean FullProfessor VisitingProfessor
AdministrativeStaff: ClericalStaff SystemsStaff
Student: UndergraduateStudent
Organization: College Department Institute Program ResearchGroup University
Publication: Article Book Manual Software Specification UnofficialPublication
Article: ConferencePaper JournalArticle TechnicalReport
Work: Course Research
Course: GraduateCourse
"""
DOMAINS = """
Person: advisor age degreeFrom doctoralDegreeFrom emailAddress mastersDegreeFrom telephone title undergraduateDegreeFrom
Faculty: teacherOf
Professor: tenured
TeachingAssistant: teachingAssistantOf
Organization: affiliateOf affiliatedOrganizationOf member orgPublication subOrganizationOf
University: hasAlumnus
ResearchGroup: researchProject
Publication: publicationAuthor publicationDate publicationResearch
Schedule: listedCourse
Software: softwareDocumentation softwareVersion
"""
RANGES = """
Person: affiliateOf hasAlumnus member publicationAuthor
Professor: advisor
University: degreeFrom doctoralDegreeFrom mastersDegreeFrom undergraduateDegreeFrom
Course: listedCourse teacherOf teachingAssistantOf
Organization: affiliatedOrganizationOf subOrganizationOf
Publication: orgPublication softwareDocumentation
Research: publicationResearch researchProject
"""
SUBPROPERTIES = """
degreeFrom: doctoralDegreeFrom mastersDegreeFrom undergraduateDegreeFrom
memberOf: worksFor
worksFor: headOf
"""
INVERSES = (("degreeFrom", "hasAlumnus"), ("member", "memberOf"))
TRANSITIVE = ("subOrganizationOf",)
# class, property of a Person (or of anybody) whose value is of a class
DEFINITIONS = (
    ("Chair", "Person", "headOf", "Department"),
    ("Director", "Person", "headOf", "Program"),
    ("Employee", "Person", "worksFor", "Organization"),
    ("Student", "Person", "takesCourse", "Course"),
    ("TeachingAssistant", "Person", "teachingAssistantOf", "Course"),
    ("Dean", None, "headOf", "College"),
)
X, Y, Z = Variable("x"), Variable("y"), Variable("z")


def atom(name: str, *terms: Variable) -> Atom:
    return Atom(NS + name, terms)


def pairs(table: str) -> list[tuple[str, str]]:
    """(heading, item) for each item of each line."""
    lines = (line.split(":") for line in table.strip().splitlines())
    return [(heading, item) for heading, items in lines for item in items.split()]


def rules() -> Program:
    """98 rules: subclasses, subproperties, domains, ranges, inverses, transitivity, intersections."""
    rule_list = [Rule((atom(c, X),), (atom(sub, X),)) for c, sub in pairs(SUBCLASSES)]
    rule_list += [Rule((atom(p, X, Y),), (atom(sub, X, Y),)) for p, sub in pairs(SUBPROPERTIES)]
    rule_list += [Rule((atom(c, X),), (atom(p, X, Y),)) for c, p in pairs(DOMAINS)]
    rule_list += [Rule((atom(c, Y),), (atom(p, X, Y),)) for c, p in pairs(RANGES)]
    for p, q in INVERSES:
        rule_list += [Rule((atom(p, X, Y),), (atom(q, Y, X),)), Rule((atom(q, X, Y),), (atom(p, Y, X),))]
    rule_list += [Rule((atom(p, X, Z),), (atom(p, X, Y), atom(p, Y, Z))) for p in TRANSITIVE]
    for c, of, p, value in DEFINITIONS:
        body = (atom(p, X, Y), atom(value, Y))
        rule_list.append(Rule((atom(c, X),), (atom(of, X), *body) if of else body))
    return Program(tuple(rule_list))
