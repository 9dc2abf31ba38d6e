"""The rules of LUBM L as paper 4 uses them (98 simple rules), and 16 cyclic ones of our own in their vocabulary."""

from __future__ import annotations

#: A class, and the classes that are part of it.
SUBCLASSES = {
    "AdministrativeStaff": "ClericalStaff SystemsStaff",
    "Article": "ConferencePaper JournalArticle TechnicalReport",
    "Course": "GraduateCourse",
    "Employee": "AdministrativeStaff Faculty",
    "Faculty": "Lecturer PostDoc Professor",
    "Organization": "College Department Institute Program ResearchGroup University",
    "Person": "Chair Director Employee GraduateStudent ResearchAssistant Student TeachingAssistant",
    "Professor": "AssistantProfessor AssociateProfessor Chair Dean FullProfessor VisitingProfessor",
    "Publication": "Article Book Manual Software Specification UnofficialPublication",
    "Student": "UndergraduateStudent",
    "Work": "Course Research",
}
#: A class, and the properties whose first values are in it; then those whose second values are.
DOMAINS = {
    "Faculty": "teacherOf",
    "Organization": "affiliateOf affiliatedOrganizationOf member orgPublication subOrganizationOf",
    "Person": "advisor age degreeFrom doctoralDegreeFrom emailAddress mastersDegreeFrom telephone title "
    "undergraduateDegreeFrom",
    "Professor": "tenured",
    "Publication": "publicationAuthor publicationDate publicationResearch",
    "ResearchGroup": "researchProject",
    "Schedule": "listedCourse",
    "Software": "softwareDocumentation softwareVersion",
    "TeachingAssistant": "teachingAssistantOf",
    "University": "hasAlumnus",
}
RANGES = {
    "Course": "listedCourse teacherOf teachingAssistantOf",
    "Organization": "affiliatedOrganizationOf subOrganizationOf",
    "Person": "affiliateOf hasAlumnus member publicationAuthor",
    "Professor": "advisor",
    "Publication": "orgPublication softwareDocumentation",
    "Research": "publicationResearch researchProject",
    "University": "degreeFrom doctoralDegreeFrom mastersDegreeFrom undergraduateDegreeFrom",
}
OTHERS = """
Chair(x) :- Person(x), headOf(x, y), Department(y).
Dean(x) :- headOf(x, y), College(y).
Director(x) :- Person(x), headOf(x, y), Program(y).
Employee(x) :- Person(x), worksFor(x, y), Organization(y).
Student(x) :- Person(x), takesCourse(x, y), Course(y).
TeachingAssistant(x) :- Person(x), teachingAssistantOf(x, y), Course(y).
degreeFrom(x, y) :- doctoralDegreeFrom(x, y).
degreeFrom(x, y) :- mastersDegreeFrom(x, y).
degreeFrom(x, y) :- undergraduateDegreeFrom(x, y).
degreeFrom(x, y) :- hasAlumnus(y, x).
hasAlumnus(x, y) :- degreeFrom(y, x).
member(x, y) :- memberOf(y, x).
memberOf(x, y) :- member(y, x).
memberOf(x, y) :- worksFor(x, y).
worksFor(x, y) :- headOf(x, y).
subOrganizationOf(x, z) :- subOrganizationOf(x, y), subOrganizationOf(y, z).
"""


def _rules() -> str:
    lines = [f"{up}(x) :- {down}(x)." for up, downs in SUBCLASSES.items() for down in downs.split()]
    lines += [f"{name}(x) :- {p}(x, y)." for name, properties in DOMAINS.items() for p in properties.split()]
    lines += [f"{name}(y) :- {p}(x, y)." for name, properties in RANGES.items() for p in properties.split()]
    return "\n".join(lines) + OTHERS


SIMPLE = _rules()

#: The first is the paper's example; the others join what the simple rules derive in cycles alike.
CYCLIC = """
haveSameAdvisor(x, y) :- hasAlumnus(u, x), advisor(x, p), hasAlumnus(u, y), advisor(y, p).
classmates(x, y) :- takesCourse(x, c), takesCourse(y, c), memberOf(x, d), memberOf(y, d), advisor(x, p), advisor(y, p).
coauthors(x, y) :- publicationAuthor(p, x), publicationAuthor(p, y), worksFor(x, d), worksFor(y, d).
taughtByAdvisor(x, p) :- takesCourse(x, c), teacherOf(p, c), advisor(x, p), worksFor(p, d), memberOf(x, d).
sameBackground(x, y) :- undergraduateDegreeFrom(x, u), undergraduateDegreeFrom(y, u), advisor(x, p), advisor(y, p).
inTouch(x, d) :- takesCourse(x, c), teacherOf(p, c), worksFor(p, d), advisor(x, q), worksFor(q, d).
meets(x, u) :- takesCourse(x, c), teacherOf(p, c), degreeFrom(p, u), advisor(x, q), degreeFrom(q, u).
reads(x, w) :- takesCourse(x, c), teacherOf(p, c), publicationAuthor(w, p), advisor(x, q), publicationAuthor(w, q).
heardOf(d, u) :- memberOf(x, d), advisor(x, p), degreeFrom(p, u), worksFor(q, d), degreeFrom(q, u).
circle(d, u) :- worksFor(p, d), teacherOf(p, c), takesCourse(x, c), degreeFrom(x, u), worksFor(q, d), degreeFrom(q, u).
assistsAdvisor(x, p) :- teachingAssistantOf(x, c), teacherOf(p, c), advisor(x, p), worksFor(p, d), memberOf(x, d).
reviewers(p, q) :- doctoralDegreeFrom(p, u), doctoralDegreeFrom(q, u), worksFor(p, d), worksFor(q, d).
peers(x, y) :- takesCourse(x, c), takesCourse(y, c), takesCourse(x, e), takesCourse(y, e), advisor(x, p), advisor(y, p).
siblings(x, y) :- advisor(x, p), advisor(y, p), undergraduateDegreeFrom(x, u), degreeFrom(y, u), memberOf(x, d),
                  memberOf(y, d).
influences(p, q) :- advisor(x, p), takesCourse(x, c), teacherOf(q, c), worksFor(p, d), worksFor(q, d).
alumni(d, u) :- memberOf(x, d), undergraduateDegreeFrom(x, u), advisor(x, p), mastersDegreeFrom(p, u), worksFor(p, d).
"""
