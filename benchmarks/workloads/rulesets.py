"""The rules of the workloads, and just enough of their syntax to write them in the languages of other engines.

Rules here have atoms, negated atoms and comparisons over variables, `_` and integers, and heads may add an integer to
a variable: the subset that Soufflé, SQL and, but for negation, egglog can express. The columns of a relation are all
numbers, or all texts. This file needs the standard library alone, for it also runs where Upheld is not installed.
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

#: A star: all atoms have the key, and the head has every variable.
STAR = """
star(k, a, b, c, d, e, f) :- one(k, a), two(k, b), three(k, c), four(k, d), five(k, e), six(k, f).
"""

WIDE = """
wide(x, y, z, w) :- first(x, y), second(y, z), third(z, w).
"""

#: The definitions that reach each block of a control-flow graph.
DATAFLOW = """
reaches(d, n) :- defines(d, n).
reaches(d, m) :- reaches(d, n), next(n, m), !kills(d, m).
"""

#: Connected components: labels go to greater nodes, so that the least one of a component reaches all of it.
LABELS = """
link(x, y) :- edge(x, y).
link(y, x) :- edge(x, y).
label(x, x) :- link(x, _).
label(y, l) :- label(x, l), link(x, y), l < y.
smaller(x) :- label(x, l), l < x.
component(x, l) :- label(x, l), !smaller(l).
"""

#: Instructions in blocks that no path from an entry leads to, and functions that nothing alive calls.
UNREACHABLE = """
live(n) :- entry(n).
live(m) :- live(n), next(n, m).
live(m) :- live(n), calls(n, f), starts(f, m).
dead(i) :- instruction(n, i), !live(n).
called(f) :- calls(n, f), live(n).
unused(f) :- starts(f, _), !called(f).
"""

HOPS = """
hop(x, y, 1) :- edge(x, y).
hop(x, z, n + 1) :- hop(x, y, n), edge(y, z), n < 5.
"""

#: A bill of materials: what each assembly contains, who makes it, and what lacks a maker.
MATERIALS = """
within(a, p) :- part(a, p).
within(a, p) :- within(a, b), part(b, p).
supplies(m, a) :- within(a, p), maker(p, m).
lacking(p) :- part(_, p), !part(p, _), !maker(p, _).
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
class Comparison:
    left: str
    operator: str
    right: str


@dataclass(frozen=True)
class Rule:
    head: Atom
    body: tuple[Atom, ...]
    negated: tuple[Atom, ...] = ()
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class Ruleset:
    """The rules of a program, the types of the columns of its relations, and the relations that are read from files."""

    rules: tuple[Rule, ...]
    types: dict[str, tuple[str, ...]]
    inputs: tuple[str, ...]

    @property
    def arities(self) -> dict[str, int]:
        return {name: len(types) for name, types in self.types.items()}

    @property
    def derived(self) -> tuple[str, ...]:
        """The relations that rules derive, each once, in the order of the rules."""
        return tuple(dict.fromkeys(rule.head.relation for rule in self.rules))

    def components(self) -> Iterator[tuple[str, ...]]:
        """Yield the derived relations, those together that depend on each other, after all that they depend on."""
        below: dict[str, set[str]] = {d: set() for d in self.derived}
        for rule in self.rules:
            below[rule.head.relation].update(a.relation for a in (*rule.body, *rule.negated) if a.relation in below)
        reach = {d: _reached(d, below) for d in below}
        left = dict.fromkeys(self.derived)
        while left:
            ready = next(d for d in left if all(d in reach[o] for o in reach[d] if o in left))
            component = tuple(o for o in left if o == ready or (o in reach[ready] and ready in reach[o]))
            for relation in component:
                del left[relation]
            yield component


def _reached(start: str, below: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        new = below[todo.pop()] - found
        found |= new
        todo.extend(new)
    return found


_ATOM = re.compile(r"(!?)(\w+)\(([^)]*)\)")
_COMPARISON = re.compile(r"(\w+) (<|<=|!=) (\w+)")
_SUM = re.compile(r"(\w+) \+ (\d+)")


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of a text, one on each line that has `:-`."""
    rules = []
    for line in text.splitlines():
        if ":-" in line:
            atoms = [(sign, Atom(name, tuple(re.split(r",\s*", terms)))) for sign, name, terms in _ATOM.findall(line)]
            (_, head), *body = atoms
            rules.append(
                Rule(
                    head,
                    tuple(atom for sign, atom in body if not sign),
                    tuple(atom for sign, atom in body if sign),
                    tuple(Comparison(*found) for found in _COMPARISON.findall(_ATOM.sub("", line))),
                )
            )
    return tuple(rules)


def read_sum(term: str) -> tuple[str, str] | None:
    """Return the variable and the integer of a term that adds them."""
    found = _SUM.fullmatch(term)
    return (found[1], found[2]) if found else None


def variables_of(atom: Atom) -> set[str]:
    """Return the variables of an atom, `_` among them."""
    terms = {summed[0] if (summed := read_sum(term)) else term for term in atom.terms}
    return {term for term in terms if not term.isdigit()}


def read_program(text: str) -> Ruleset:
    """Return what a program that `write_program` wrote says."""
    types = {
        name: tuple(re.findall(r":(\w+)", columns))
        for name, columns in re.findall(r"^\.decl (\w+)\(([^)]*)\)", text, re.M)
    }
    inputs = tuple(re.findall(r"^\.input (\w+)", text, re.M))
    return Ruleset(parse_rules(text), types, inputs)


def write_program(rules: str, inputs: Iterable[str], texts: Iterable[str] = ()) -> str:
    """Return a program in Soufflé's dialect that reads the inputs and prints the sizes of all that it derives.

    `texts` are the inputs whose columns are texts.
    """
    parsed = parse_rules(rules)
    arities: dict[str, int] = {}
    for rule in parsed:
        for atom in (rule.head, *rule.body, *rule.negated):
            assert arities.setdefault(atom.relation, len(atom.terms)) == len(atom.terms), f"arities of {atom.relation}"
    of_texts: set[str] = set()
    new = set(texts)
    while new:  # a rule hands texts on to its head
        of_texts |= new
        new = {r.head.relation for r in parsed if any(a.relation in of_texts for a in r.body)} - of_texts
    lines = []
    for name, arity in arities.items():
        type = "symbol" if name in of_texts else "number"
        lines.append(f".decl {name}({', '.join(f'c{i}:{type}' for i in range(arity))})")
    lines += [f".input {name}" for name in inputs]
    lines += [f".printsize {name}" for name in dict.fromkeys(rule.head.relation for rule in parsed)]
    return "\n".join(lines) + "\n" + rules
