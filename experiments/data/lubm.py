"""Universities in the vocabulary of LUBM, with the numbers of its published generator.

Values are numbers; names, addresses and other strings are values like any other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from experiments.data.facts import Facts, Numbers, distinct

#: Ranges of the published generator, for a department: people of each class, their courses and their publications.
FACULTY = {
    "FullProfessor": ((7, 10), (15, 20)),
    "AssociateProfessor": ((10, 14), (10, 18)),
    "AssistantProfessor": ((8, 11), (5, 10)),
    "Lecturer": ((5, 7), (0, 5)),
}
DEPARTMENTS, GROUPS = (15, 25), (10, 20)
UNDERGRADUATES, GRADUATES = (8, 14), (3, 4)
#: Universities that degrees are from.
UNIVERSITIES = 1_000


class _Maker:
    """Facts by relation, and the number of the next thing."""

    def __init__(self, seed: int):
        self.r = np.random.default_rng(seed)
        self.made: dict[str, list[Numbers]] = {}
        self.next = UNIVERSITIES

    def between(self, bounds: tuple[int, int]) -> int:
        return int(self.r.integers(bounds[0], bounds[1] + 1))

    def new(self, count: int, of: str) -> Numbers:
        things = np.arange(self.next, self.next + count)
        self.next += count
        self.made.setdefault(of, []).append(things[:, None])
        return things

    def say(self, relation: str, left: npt.ArrayLike, right: npt.ArrayLike) -> None:
        rows = np.stack(np.broadcast_arrays(left, right), 1).astype(np.int64)
        self.made.setdefault(relation, []).append(rows)

    def some(self, of: Numbers, count: int) -> Numbers:
        return self.r.choice(of, count)

    def named(self, things: Numbers, *relations: str) -> None:
        """Give each thing a value of its own in each of some relations."""
        for relation in relations:
            self.say(relation, things, np.arange(self.next, self.next + len(things)))
            self.next += len(things)


def lubm(universities: int, seed: int = 0, *, departments: int | None = None) -> Facts:
    """Return the facts of some universities; about 100,000 each, or of the first `departments` of them each."""
    make = _Maker(seed)
    for university in range(universities):
        make.made.setdefault("University", []).append(np.array([[university]]))
        make.named(np.array([university]), "name")
        for _ in range(departments or make.between(DEPARTMENTS)):
            _department(make, university)
    return {relation: distinct(np.concatenate(rows)) for relation, rows in make.made.items()}


def _department(make: _Maker, university: int) -> None:
    r = make.r
    department = make.new(1, "Department")
    make.named(department, "name")
    make.say("subOrganizationOf", department, university)
    make.say("subOrganizationOf", make.new(make.between(GROUPS), "ResearchGroup"), department)
    faculty: list[Numbers] = []
    professors: list[Numbers] = []
    courses: list[Numbers] = []
    graduate_courses: list[Numbers] = []
    for name, (people, publications) in FACULTY.items():
        some = make.new(make.between(people), name)
        faculty.append(some)
        if name != "Lecturer":
            professors.append(some)
        make.named(some, "name", "emailAddress", "telephone", "researchInterest")
        make.say("worksFor", some, department)
        for degree in ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
            make.say(degree, some, r.integers(0, UNIVERSITIES, len(some)))
        for kind, into in (("Course", courses), ("GraduateCourse", graduate_courses)):
            taught = np.repeat(some, r.integers(1, 3, len(some)))
            into.append(make.new(len(taught), kind))
            make.named(into[-1], "name")
            make.say("teacherOf", taught, into[-1])
        written = np.repeat(some, r.integers(publications[0], publications[1] + 1, len(some)))
        papers = make.new(len(written), "Publication")
        make.named(papers, "name")
        make.say("publicationAuthor", papers, written)
    make.say("headOf", faculty[0][:1], department)
    everybody, advisers = np.concatenate(faculty), np.concatenate(professors)
    undergraduates = make.new(len(everybody) * make.between(UNDERGRADUATES), "UndergraduateStudent")
    graduates = make.new(len(everybody) * make.between(GRADUATES), "GraduateStudent")
    for students, offered, most in (
        (undergraduates, np.concatenate(courses), (2, 4)),
        (graduates, np.concatenate(graduate_courses), (1, 3)),
    ):
        make.named(students, "name", "emailAddress", "telephone")
        make.say("memberOf", students, department)
        taken = np.repeat(students, r.integers(most[0], most[1] + 1, len(students)))
        make.say("takesCourse", taken, make.some(offered, len(taken)))
    make.say("undergraduateDegreeFrom", graduates, r.integers(0, UNIVERSITIES, len(graduates)))
    make.say("advisor", graduates, make.some(advisers, len(graduates)))
    advised = undergraduates[r.random(len(undergraduates)) < 0.2]
    make.say("advisor", advised, make.some(advisers, len(advised)))
    assistants = graduates[r.random(len(graduates)) < 0.22]
    make.say("teachingAssistantOf", assistants, make.some(np.concatenate(courses), len(assistants)))
