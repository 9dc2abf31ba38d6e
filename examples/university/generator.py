"""Made-up universities of any number, for demonstrations and measurements: the same facts for the same scale and seed.

The shape is that of the Lehigh University Benchmark (departments, staff, students, courses, advice, papers); the
vocabulary and the rules are our own. A university has about 70,000 facts. Everything about a person or course follows
from hashes of its number, so Spark makes any part of it anywhere.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

NAMESPACE = "http://upheld.example/university#"

FACULTIES = 4
DEPARTMENTS = 6  # of a faculty
TEACHERS = 30  # of a department, and so on
COURSES = 60
STUDENTS = 500
ENROLMENTS = 4  # of a student

PROGRAM = """\
.decl part_of(unit:symbol, whole:symbol)
.decl employs(unit:symbol, person:symbol)
.decl leads(person:symbol, unit:symbol)
.decl teaches(person:symbol, course:symbol)
.decl requires(course:symbol, earlier:symbol)
.decl studies(person:symbol, unit:symbol)
.decl enrolled(person:symbol, course:symbol)
.decl advises(person:symbol, student:symbol)
.decl wrote(person:symbol, paper:symbol)

.decl within(unit:symbol, whole:symbol)
.decl member(person:symbol, unit:symbol)
.decl builds_on(course:symbol, earlier:symbol)
.decl taught_by(person:symbol, teacher:symbol)
.decl descends(person:symbol, ancestor:symbol)
.decl answers_to(person:symbol, leader:symbol)
.decl unprepared(person:symbol, course:symbol)
.decl unadvised(person:symbol)
.output within, member, builds_on, taught_by, descends, answers_to, unprepared, unadvised

within(x, y) :- part_of(x, y).
within(x, z) :- within(x, y), part_of(y, z).
member(p, u) :- employs(u, p).
member(p, u) :- studies(p, u).
member(p, v) :- member(p, u), part_of(u, v).
builds_on(x, y) :- requires(x, y).
builds_on(x, z) :- builds_on(x, y), requires(y, z).
taught_by(s, t) :- enrolled(s, c), teaches(t, c).
descends(s, t) :- advises(t, s).
descends(s, u) :- descends(s, t), advises(u, t).
answers_to(p, q) :- employs(u, p), leads(q, u), p != q.
answers_to(p, r) :- answers_to(p, q), leads(q, u), part_of(u, v), leads(r, v).
unprepared(s, c) :- enrolled(s, c), requires(c, d), !enrolled(s, d).
unadvised(s) :- studies(s, _), !advised(s).
.decl advised(person:symbol)
advised(s) :- advises(_, s).
"""


def university(spark: SparkSession, scale: int, seed: int = 1) -> dict[str, DataFrame]:
    """Return the explicit facts of that many universities, for each relation under the names of its columns."""
    faculties = scale * FACULTIES
    departments = faculties * DEPARTMENTS
    teachers, courses, students = departments * TEACHERS, departments * COURSES, departments * STUDENTS
    n = F.col("id")

    def facts(count: int, *columns: tuple[str, Column]) -> DataFrame:
        return spark.range(count).select(*(value.alias(name) for name, value in columns))

    def chance(name: str, one_in: int) -> Column:
        """Return a number below `one_in` that depends on what it is for, and on the row."""
        return F.pmod(F.xxhash64(F.lit(f"{seed} {name}"), n), F.lit(one_in))

    def home(size: int) -> Column:
        """Return the department of the person or course of this number, where departments have that many."""
        return F.floor(n / size)

    def teacher_near(name: str, size: int) -> Column:
        """Return a teacher of the same department."""
        return _named("teacher", home(size) * TEACHERS + chance(name, TEACHERS))

    units = facts(
        departments, ("unit", _named("department", n)), ("whole", _named("faculty", F.floor(n / DEPARTMENTS)))
    )
    wholes = facts(faculties, ("unit", _named("faculty", n)), ("whole", _named("university", F.floor(n / FACULTIES))))
    heads = facts(departments, ("person", _named("teacher", n * TEACHERS)), ("unit", _named("department", n)))
    deans = facts(faculties, ("person", _named("teacher", n * DEPARTMENTS * TEACHERS)), ("unit", _named("faculty", n)))
    several = F.explode(F.sequence(F.lit(0), F.lit(ENROLMENTS - 1)))
    enrolled = spark.range(students).select("id", several.alias("k"))
    drawn = F.pmod(F.xxhash64(F.lit(f"{seed} enrolled"), n, F.col("k")), F.lit(COURSES))
    earlier = F.greatest(F.pmod(n, F.lit(COURSES)) - 1 - chance("requires", 8), F.lit(0))
    staff = spark.range(teachers).filter(F.pmod(n, F.lit(TEACHERS)) > 0)
    senior = F.floor(n / TEACHERS) * TEACHERS + F.floor(F.pmod(n, F.lit(TEACHERS)) / 3)
    return {
        "part_of": units.union(wholes),
        "employs": facts(teachers, ("unit", _named("department", home(TEACHERS))), ("person", _named("teacher", n))),
        "leads": heads.union(deans),
        "teaches": facts(courses, ("person", teacher_near("teaches", COURSES)), ("course", _named("course", n))),
        "requires": spark.range(courses)
        .filter(F.pmod(n, F.lit(COURSES)) > 0)
        .select(
            _named("course", n).alias("course"), _named("course", home(COURSES) * COURSES + earlier).alias("earlier")
        ),
        "studies": facts(students, ("person", _named("student", n)), ("unit", _named("department", home(STUDENTS)))),
        "enrolled": enrolled.select(
            _named("student", n).alias("person"), _named("course", home(STUDENTS) * COURSES + drawn).alias("course")
        ).distinct(),
        # Every third student has an adviser, and teachers were once advised by one who is senior to them.
        "advises": spark.range(students)
        .filter(chance("advised", 3) == 0)
        .select(teacher_near("advises", STUDENTS).alias("person"), _named("student", n).alias("student"))
        .union(staff.select(_named("teacher", senior).alias("person"), _named("teacher", n).alias("student"))),
        "wrote": facts(
            teachers * 5,
            ("person", _named("teacher", F.floor(n / 5))),
            ("paper", _named("paper", n - chance("wrote", 3))),
        ).distinct(),
    }


def triples(facts: dict[str, DataFrame]) -> DataFrame:
    """Return facts as lines of N-Triples, in `value`: the relation is the predicate."""
    lines = [
        frame.select(
            F.concat(
                F.lit(f"<{NAMESPACE}"), frame[0], F.lit(f"> <{NAMESPACE}{name}> <{NAMESPACE}"), frame[1], F.lit("> .")
            ).alias("value")
        )
        for name, frame in facts.items()
    ]
    return reduce(DataFrame.unionAll, lines)


def _named(kind: str, number: Column) -> Column:
    return F.concat(F.lit(kind), number.cast("bigint").cast("string"))
