"""Rules in the manner of UOBM, of our own: LUBM with interests, friends, home towns and subjects.

UOBM's ontology is not used, since its licence is not stated. The lower bound has the published number of rules, 210.
The upper bound, 279, adds what disjunctions and existential restrictions become there: all sides of a disjunction hold,
and one constant stands for everything that must exist.
"""

from __future__ import annotations

from experiments.programs import lubm

SUBCLASSES = {
    "Sports": "Baseball Basketball Football Hockey Skiing Soccer Swimming TableTennis Tennis Volleyball",
    "Music": "ClassicalMusic FolkMusic JazzMusic PopMusic RockMusic",
    "Interest": "Arts Music Sports",
    "AcademicSubject": "Engineering FineArts HumanitiesAndSocial Science",
    "Engineering": "ChemicalEngineering CivilEngineering ComputerEngineering ElectricalEngineering "
    "MaterialEngineering MechanicalEngineering",
    "Science": "Astronomy Biology Chemistry ComputerScience Geosciences Mathematics Physics Statistics",
    "FineArts": "Architecture AsianArts Drama LatinArts MediaArts Performance",
    "HumanitiesAndSocial": "Anthropology Economics English History Languages Linguistics Philosophy "
    "Psychology Religion",
    "Arts": "Painting Photography Sculpture",
}
#: A class, and the properties whose first values are in it; then those whose second values are.
DOMAINS = {"Person": "hasSameHomeTownWith isFriendOf like isCrazyAbout", "Student": "hasMajor isStudentOf enrollIn"}
RANGES = {"Interest": "like isCrazyAbout", "AcademicSubject": "hasMajor", "Organization": "enrollIn isStudentOf"}
#: People by what they like: a class, the property and the class of its second values. Some are said to be people.
LOVERS = {
    "SportsLover": ("like", "Sports"),
    "SportsFan": ("isCrazyAbout", "Sports"),
    "MusicLover": ("like", "Music"),
    "MusicFan": ("isCrazyAbout", "Music"),
    "BaseballLover": ("like", "Baseball"),
    "BaseballFan": ("isCrazyAbout", "Baseball"),
    "BasketballLover": ("like", "Basketball"),
    "BasketballFan": ("isCrazyAbout", "Basketball"),
    "TennisFan": ("isCrazyAbout", "Tennis"),
    "SwimmingFan": ("isCrazyAbout", "Swimming"),
    "PeopleWithHobby": ("like", "Interest"),
}
#: Their definitions say so already.
WITHOUT_NEED = ("MusicFan", "TennisFan", "SwimmingFan", "PeopleWithHobby")
OTHERS = """
hasSameHomeTownWith(x, y) :- hasSameHomeTownWith(y, x).
hasSameHomeTownWith(x, z) :- hasSameHomeTownWith(x, y), hasSameHomeTownWith(y, z).
isFriendOf(x, y) :- isFriendOf(y, x).
like(x, y) :- love(x, y).
love(x, y) :- like(x, y).
like(x, y) :- isCrazyAbout(x, y).
hasHead(x, y) :- headOf(y, x).
headOf(x, y) :- hasHead(y, x).
isTaughtBy(x, y) :- teacherOf(y, x).
teacherOf(x, y) :- isTaughtBy(y, x).
hasStudent(x, y) :- isStudentOf(y, x).
isStudentOf(x, y) :- hasStudent(y, x).
isStudentOf(x, y) :- enrollIn(x, y).
memberOf(x, y) :- isStudentOf(x, y).
Person(x) :- Man(x).
Person(x) :- Woman(x).
Man(x) :- hasBrother(y, x).
Woman(x) :- hasSister(y, x).
ScienceStudent(x) :- Student(x), hasMajor(x, y), Science(y).
EngineeringStudent(x) :- Student(x), hasMajor(x, y), Engineering(y).
ArtsStudent(x) :- Student(x), hasMajor(x, y), FineArts(y).
HumanitiesStudent(x) :- Student(x), hasMajor(x, y), HumanitiesAndSocial(y).
Student(x) :- ScienceStudent(x).
Student(x) :- EngineeringStudent(x).
Student(x) :- ArtsStudent(x).
Student(x) :- HumanitiesStudent(x).
LeisureStudent(x) :- UndergraduateStudent(x), isCrazyAbout(x, y), Interest(y).
FriendlyPerson(x) :- Person(x), isFriendOf(x, y), Person(y).
"""


def _lower() -> str:
    lines = [f"{up}(x) :- {down}(x)." for up, downs in SUBCLASSES.items() for down in downs.split()]
    lines += [f"{name}(x) :- {p}(x, y)." for name, properties in DOMAINS.items() for p in properties.split()]
    lines += [f"{name}(y) :- {p}(x, y)." for name, properties in RANGES.items() for p in properties.split()]
    for name, (likes, what) in LOVERS.items():
        lines += [f"{name}(x) :- Person(x), {likes}(x, y), {what}(y)."]
        lines += [f"Person(x) :- {name}(x)."] if name not in WITHOUT_NEED else []
    return lubm.SIMPLE + "\n".join(lines) + OTHERS


LOWER = _lower()

#: Number of the first constant that stands for what must exist.
SOMETHING = 2_000_000_000
#: Classes whose members each have a value of a property in a class: that value is one constant for all of them.
EXISTENCE = {
    "Person": (("isFriendOf", "Person"), ("like", "Interest")),
    "Student": (("takesCourse", "Course"), ("isStudentOf", "College"), ("hasMajor", "AcademicSubject")),
    "Faculty": (("teacherOf", "Course"), ("worksFor", "Department")),
    "Professor": (("doctoralDegreeFrom", "University"), ("mastersDegreeFrom", "University")),
    "GraduateStudent": (("advisor", "Professor"), ("undergraduateDegreeFrom", "University")),
    "Chair": (("headOf", "Department"),),
    "Dean": (("headOf", "College"),),
    "Course": (("isTaughtBy", "Faculty"),),
    "Publication": (("publicationAuthor", "Person"),),
    "Organization": (("hasHead", "Person"), ("subOrganizationOf", "University")),
    "ScienceStudent": (("hasMajor", "Science"),),
    "EngineeringStudent": (("hasMajor", "Engineering"),),
    "TeachingAssistant": (("teachingAssistantOf", "Course"),),
}
#: Disjunctions: members of the first class are in one of the others, so in all of them.
DISJUNCTIONS = {
    "Person": "Man Woman",
    "Interest": "Arts Music Sports",
    "AcademicSubject": "Engineering FineArts HumanitiesAndSocial Science",
    "Course": "GraduateCourse",
    "Student": "GraduateStudent UndergraduateStudent",
    "Faculty": "Lecturer PostDoc Professor",
    "Professor": "AssistantProfessor AssociateProfessor FullProfessor",
}


def _upper() -> str:
    lines: list[str] = []
    number = SOMETHING
    for name, some in EXISTENCE.items():
        for likes, what in some:
            number += 1
            lines += [f"{likes}(x, {number}) :- {name}(x).", f"{what}({number}) :- {name}(x)."]
    lines += [f"{part}(x) :- {name}(x)." for name, parts in DISJUNCTIONS.items() for part in parts.split()]
    lines += [f"{name}(x) :- Person(x)." for name in LOVERS]
    return LOWER + "\n".join(lines) + "\n"


UPPER = _upper()
