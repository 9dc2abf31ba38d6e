"""The rules of the workloads, and just enough of their syntax to write them in the languages of other engines.

Rules here are positive, over variables and `_` alone, and every column is a number: the subset that Soufflé, SQL and
egglog can all express. This file needs the standard library alone, for it also runs where Upheld is not installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

CLOSURE = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

SAME_GENERATION = """
same(x, y) :- parent(x, p), parent(y, p).
same(x, y) :- parent(x, p), same(p, q), parent(y, q).
"""

JOIN = """
found(x, w) :- first(x, y), second(y, z), third(z, w).
"""

TRIANGLES = """
triangle(x, y, z) :- edge(x, y), edge(y, z), edge(z, x).
"""

FOUR_CYCLES = """
cycle(x, y, z, w) :- edge(x, y), edge(y, z), edge(z, w), edge(w, x).
"""

CLIQUES = """
same(x, y) :- link(x, y).
same(y, x) :- same(x, y).
same(x, z) :- same(x, y), same(y, z).
"""

#: An ontology of universities as rules: hierarchies of classes and of properties, domains, ranges, inverses,
#: transitivity, definitions by a property, and some joins.
CAMPUS = """
Person(x) :- Staff(x).
Person(x) :- Student(x).
Person(x) :- Alumnus(x).
Staff(x) :- Academic(x).
Staff(x) :- Office(x).
Office(x) :- Secretary(x).
Office(x) :- Technician(x).
Academic(x) :- Professor(x).
Academic(x) :- Lecturer(x).
Academic(x) :- Postdoc(x).
Professor(x) :- FullProfessor(x).
Professor(x) :- AssociateProfessor(x).
Professor(x) :- AssistantProfessor(x).
Professor(x) :- Visitor(x).
Professor(x) :- Chair(x).
Professor(x) :- Dean(x).
Student(x) :- Bachelor(x).
Student(x) :- Graduate(x).
Graduate(x) :- Doctorand(x).
Body(x) :- University(x).
Body(x) :- Department(x).
Body(x) :- Team(x).
Body(x) :- College(x).
Body(x) :- Programme(x).
Activity(x) :- Teaching(x).
Activity(x) :- Research(x).
Teaching(x) :- Course(x).
Teaching(x) :- Exercise(x).
Course(x) :- Seminar(x).
Writing(x) :- Paper(x).
Writing(x) :- Book(x).
Writing(x) :- Report(x).
Writing(x) :- Program(x).
Paper(x) :- JournalPaper(x).
Paper(x) :- ConferencePaper(x).
Book(x) :- Textbook(x).

belongsTo(x, y) :- worksFor(x, y).
belongsTo(x, y) :- enrolledAt(x, y).
worksFor(x, y) :- heads(x, y).
degreeFrom(x, y) :- bachelorFrom(x, y).
degreeFrom(x, y) :- masterFrom(x, y).
degreeFrom(x, y) :- doctorateFrom(x, y).
teaches(x, y) :- lectures(x, y).
teaches(x, y) :- assists(x, y).
wrote(x, y) :- wroteFirst(x, y).
knows(x, y) :- advisedBy(x, y).

hasMember(y, x) :- belongsTo(x, y).
belongsTo(x, y) :- hasMember(y, x).
hasAlumnus(y, x) :- degreeFrom(x, y).
degreeFrom(x, y) :- hasAlumnus(y, x).
taughtBy(y, x) :- teaches(x, y).
teaches(x, y) :- taughtBy(y, x).
writtenBy(y, x) :- wrote(x, y).
wrote(x, y) :- writtenBy(y, x).
advises(y, x) :- advisedBy(x, y).
advisedBy(y, x) :- advises(x, y).
hasPart(y, x) :- partOf(x, y).
headedBy(y, x) :- heads(x, y).

partOf(x, z) :- partOf(x, y), partOf(y, z).

Person(x) :- belongsTo(x, _).
Body(y) :- belongsTo(_, y).
Staff(x) :- worksFor(x, _).
Student(x) :- enrolledAt(x, _).
Body(x) :- partOf(x, _).
Body(y) :- partOf(_, y).
Person(x) :- degreeFrom(x, _).
University(y) :- degreeFrom(_, y).
Person(x) :- teaches(x, _).
Teaching(y) :- teaches(_, y).
Academic(x) :- lectures(x, _).
Student(x) :- attends(x, _).
Course(y) :- attends(_, y).
Person(x) :- wrote(x, _).
Writing(y) :- wrote(_, y).
Student(x) :- advisedBy(x, _).
Professor(y) :- advisedBy(_, y).
Research(y) :- worksOn(_, y).
Team(x) :- carriesOut(x, _).
Research(y) :- carriesOut(_, y).

Assistant(x) :- assists(x, y), Course(y).
Head(x) :- heads(x, y), Department(y).
Alumnus(x) :- degreeFrom(x, y), University(y).
Chair(x) :- heads(x, y), Department(y), Professor(x).
Dean(x) :- heads(x, y), College(y).

belongsTo(x, z) :- worksFor(x, y), partOf(y, z).
taughtByAdvisor(x, p) :- advisedBy(x, p), attends(x, c), taughtBy(c, p).
ownGraduate(x, u) :- Graduate(x), enrolledAt(x, d), partOf(d, u), bachelorFrom(x, u).
wroteWith(x, y) :- wroteFirst(x, p), wrote(y, p).
publishes(d, p) :- Department(d), worksFor(x, d), wroteFirst(x, p).
worksOn(x, r) :- belongsTo(x, g), carriesOut(g, r).
"""


@dataclass(frozen=True)
class Atom:
    relation: str
    terms: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    head: Atom
    body: tuple[Atom, ...]


@dataclass(frozen=True)
class Ruleset:
    """The rules of a program, the arities of its relations, and the relations that are read from files."""

    rules: tuple[Rule, ...]
    arities: dict[str, int]
    inputs: tuple[str, ...]

    @property
    def derived(self) -> tuple[str, ...]:
        """The relations that rules derive, each once, in the order of the rules."""
        return tuple(dict.fromkeys(rule.head.relation for rule in self.rules))

    def components(self) -> Iterator[tuple[str, ...]]:
        """Yield the derived relations, those together that depend on each other, after all that they depend on."""
        reach = {d: self._below(d) for d in self.derived}
        left = list(self.derived)
        while left:
            ready = next(d for d in left if all(d in reach[o] for o in reach[d] if o in left))
            component = tuple(o for o in left if o == ready or (o in reach[ready] and ready in reach[o]))
            left = [o for o in left if o not in component]
            yield component

    def _below(self, relation: str) -> set[str]:
        found: set[str] = set()
        todo = [relation]
        while todo:
            head = todo.pop()
            for rule in self.rules:
                if rule.head.relation == head:
                    new = {a.relation for a in rule.body} - found
                    found |= new
                    todo.extend(new)
        return found


_ATOM = re.compile(r"(\w+)\(([^)]*)\)")


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of a text, one on each line that has `:-`."""
    rules = []
    for line in text.splitlines():
        if ":-" in line:
            head, *body = (Atom(name, tuple(re.split(r",\s*", terms))) for name, terms in _ATOM.findall(line))
            rules.append(Rule(head, tuple(body)))
    return tuple(rules)


def read_program(text: str) -> Ruleset:
    """Return what a program that `write_program` wrote says."""
    arities = {name: terms.count(":") for name, terms in re.findall(r"^\.decl (\w+)\(([^)]*)\)", text, re.M)}
    inputs = tuple(re.findall(r"^\.input (\w+)", text, re.M))
    return Ruleset(parse_rules(text), arities, inputs)


def write_program(rules: str, inputs: Iterable[str]) -> str:
    """Return a program in Soufflé's dialect that reads the inputs and tells the size of all that it derives."""
    parsed = parse_rules(rules)
    arities: dict[str, int] = {}
    for rule in parsed:
        for atom in (rule.head, *rule.body):
            assert arities.setdefault(atom.relation, len(atom.terms)) == len(atom.terms), f"arities of {atom.relation}"
    lines = []
    for name, arity in arities.items():
        lines.append(f".decl {name}({', '.join(f'c{i}:number' for i in range(arity))})")
    lines += [f".input {name}" for name in inputs]
    lines += [f".printsize {name}" for name in dict.fromkeys(rule.head.relation for rule in parsed)]
    return "\n".join(lines) + "\n" + rules
