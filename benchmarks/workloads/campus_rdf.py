"""Universities as RDF, in the manner of LUBM: an ontology, and as many triples as are asked for.

python -m benchmarks.workloads.campus_rdf FOLDER TRIPLES   # ontology.ttl, and the same data as data.nt and data.ttl
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

ONTOLOGY = """
@prefix : <http://campus.example/vocabulary#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .

:Professor rdfs:subClassOf :Faculty . :FullProfessor rdfs:subClassOf :Professor . :Lecturer rdfs:subClassOf :Faculty .
:AssistantProfessor rdfs:subClassOf :Professor . :Faculty rdfs:subClassOf :Employee .
:Employee rdfs:subClassOf :Person . :Student rdfs:subClassOf :Person .
:GraduateStudent rdfs:subClassOf :Person . :UndergraduateStudent rdfs:subClassOf :Student .
:GraduateCourse rdfs:subClassOf :Course . :Course rdfs:subClassOf :Work . :Article rdfs:subClassOf :Publication .
:Department rdfs:subClassOf :Organization . :University rdfs:subClassOf :Organization .
:ResearchGroup rdfs:subClassOf :Organization .
:Student owl:equivalentClass [ owl:intersectionOf ( :Person [ owl:onProperty :takes ; owl:someValuesFrom :Course ] ) ] .
:Chair owl:equivalentClass [ owl:intersectionOf ( :Person :Head ) ] .
:Head owl:equivalentClass [ owl:onProperty :headOf ; owl:someValuesFrom :Department ] .
:headOf rdfs:subPropertyOf :worksFor . :worksFor rdfs:subPropertyOf :memberOf . :memberOf owl:inverseOf :member .
:doctorFrom rdfs:subPropertyOf :degreeFrom . :degreeFrom owl:inverseOf :hasAlumnus .
:partOf a owl:TransitiveProperty .
:takes rdfs:range :Course . :teaches rdfs:domain :Faculty ; rdfs:range :Course . :advisor rdfs:range :Professor .
:author rdfs:domain :Publication ; rdfs:range :Person . :degreeFrom rdfs:range :University .
:memberOf rdfs:range :Organization . :partOf rdfs:domain :Organization ; rdfs:range :Organization .
:Person owl:disjointWith :Organization .
"""

V = "http://campus.example/vocabulary#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def triples(seed: int = 1) -> Iterator[str]:
    """Yield lines of N-Triples, university after university, without an end."""
    chance = random.Random(seed)
    number = 0
    while True:
        university = f"http://u{number}.example"
        yield of_type(university, "University")
        for d in range(chance.randint(12, 18)):
            yield from department(f"{university}/d{d}", university, number, chance)
        number += 1


def department(name: str, university: str, number: int, chance: random.Random) -> Iterator[str]:
    yield of_type(name, "Department")
    yield link(name, "partOf", university)
    for g in range(chance.randint(8, 12)):
        yield of_type(f"{name}/g{g}", "ResearchGroup")
        yield link(f"{name}/g{g}", "partOf", name)
    courses, teachers = [], []
    for t in range(chance.randint(25, 40)):
        teacher = f"{name}/t{t}"
        teachers.append(teacher)
        yield of_type(teacher, ("FullProfessor", "AssistantProfessor", "Lecturer")[t % 3])
        yield link(teacher, "headOf" if t == 0 else "worksFor", name)
        yield link(teacher, "doctorFrom", f"http://u{chance.randint(0, number + 20)}.example")
        yield f'<{teacher}> <{V}name> "Teacher {t}" .\n'
        for c in range(2):
            courses.append(f"{name}/c{t}-{c}")
            yield of_type(courses[-1], "GraduateCourse" if c else "Course")
            yield link(teacher, "teaches", courses[-1])
        for a in range(chance.randint(2, 8)):
            yield of_type(f"{teacher}/a{a}", "Article")
            yield link(f"{teacher}/a{a}", "author", teacher)
    for s in range(chance.randint(250, 400)):
        student = f"{name}/s{s}"
        graduate = s % 5 == 0
        yield of_type(student, "GraduateStudent" if graduate else "UndergraduateStudent")
        yield link(student, "memberOf", name)
        yield f'<{student}> <{V}name> "Student {s}" .\n'
        for course in chance.sample(courses, 3):
            yield link(student, "takes", course)
        if graduate:
            yield link(student, "advisor", chance.choice(teachers))
            yield link(student, "degreeFrom", f"http://u{chance.randint(0, number + 20)}.example")


def of_type(subject: str, name: str) -> str:
    return f"<{subject}> {TYPE} <{V}{name}> .\n"


def link(subject: str, name: str, value: str) -> str:
    return f"<{subject}> <{V}{name}> <{value}> .\n"


def make(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ontology.ttl").write_text(ONTOLOGY, encoding="utf-8")
    with (folder / "data.nt").open("w", encoding="utf-8") as file:
        file.writelines(line for line, _ in zip(triples(), range(count)))
    # Some reasoners read Turtle alone, which N-Triples are as well.
    (folder / "data.ttl").unlink(missing_ok=True)
    (folder / "data.ttl").hardlink_to(folder / "data.nt")


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
