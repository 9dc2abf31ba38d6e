"""R3: programs written in other ways that mean the same give the same facts and report the same changes.

A case is one random program after one or more of the rewritings below, with its updates. The program as it is says
what must come out, in the names and constants of the rewritten one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

import upheld
from tests.helpers.programs.strategies import (
    Case,
    FactsGiven,
    Update,
    random_case,
    random_graph_case,
    random_typed_case,
)
from tests.helpers.streams.streams import NAMES, some_stratification
from tests.reliability.programme import Run, goal
from upheld.base.errors import EvaluationError
from upheld.language.ast import (
    Atom,
    Attribute,
    Call,
    Clause,
    Conjunction,
    Constant,
    Declaration,
    Disjunction,
    Formula,
    Negation,
    Program,
    Term,
    Test,
    Variable,
    Wildcard,
    variables,
)
from upheld.language.syntax.printer import to_text
from upheld.language.values import Value

Row = tuple[Value, ...]
Facts = set[tuple[str, Row]]
#: What an update inserted and deleted, and the facts after it; None where it must fail.
Step = tuple[Facts, Facts, Facts] | None

#: Rewritten programs for each random program.
WAYS = 25
UPDATES = 2


@dataclass
class Told:
    """A program with facts and updates, and what of it corresponds to the program that it was made from."""

    program: Program
    facts: FactsGiven
    updates: list[Update]
    #: New names of relations and new constants, by the old ones.
    names: dict[str, str] = field(default_factory=dict)
    constants: dict[Value, Value] = field(default_factory=dict)
    #: Whether rules may have no result, and on the way to an update that succeeds too.
    may_fail: bool = False
    #: Each update is made as many, of one fact each.
    in_parts: bool = False

    def steps(self, algorithm: str, **options: object) -> list[Step]:
        """Return what the program says of its facts and updates, in the names and constants of the original."""
        try:
            m = upheld.materialise(self.program, self.facts, algorithm=algorithm, **options)
        except EvaluationError:
            return [None]
        steps: list[Step] = [(set(), set(), self._original(m.facts()))]
        for u in self.updates:
            try:
                inserted, deleted = self._update(m, u)
                steps.append((self._original(inserted), self._original(deleted), self._original(m.facts())))
            except EvaluationError:
                steps.append(None)
        return steps

    def _update(self, m: upheld.Materialisation, u: Update) -> tuple[Facts, Facts]:
        if not self.in_parts:
            change = m.update(delete=u.deletions, insert=u.insertions)
            return told(change.inserted), told(change.deleted)
        before = m.facts()
        deleted = [("delete", name, row) for name, rows in u.deletions.items() for row in rows]
        for way, name, row in deleted + [("insert", name, row) for name, rows in u.insertions.items() for row in rows]:
            m.update(**{way: {name: [row]}})
        after = m.facts()
        return after - before, before - after

    def _original(self, facts: Facts) -> Facts:
        names = {new: old for old, new in self.names.items()}
        constants = {new: old for old, new in self.constants.items()}
        return {
            (names.get(name, name), tuple([constants.get(value, value) for value in row]))
            for name, row in facts
            if not name.startswith("part")
        }


def told(part: upheld.facts.change.ByRelation) -> Facts:
    return {(name, row) for name, relation in part.items() for row in relation.to_set()}


# -- the ways to rewrite a program ------------------------------------------------------------------------------------


def reorder_rules(t: Told, r: Random) -> Told:
    clauses, declarations = list(t.program.clauses), list(t.program.declarations)
    r.shuffle(clauses)
    r.shuffle(declarations)
    return replace(t, program=replace(t.program, clauses=tuple(clauses), declarations=tuple(declarations)))


def reorder_bodies(t: Told, r: Random) -> Told:
    return each_rule(t, lambda clause: with_body(clause, r.sample(literals := body_of(clause), len(literals))))


def reorder_facts(t: Told, r: Random) -> Told:
    """Facts in another order, some of them twice."""

    def shuffled(given: FactsGiven) -> FactsGiven:
        mixed = {}
        for name in r.sample(list(given), len(given)):
            rows = given[name] + r.sample(given[name], len(given[name]) // 2)
            mixed[name] = r.sample(rows, len(rows))
        return mixed

    updates = [Update(shuffled(u.deletions), shuffled(u.insertions)) for u in t.updates]
    return replace(t, facts=shuffled(t.facts), updates=updates)


def rename_variables(t: Told, r: Random) -> Told:
    def renamed(clause: Clause) -> Clause:
        parts: list[Term | Formula] = [*clause.heads, *body_of(clause)]
        old = sorted({v.name for part in parts for v in variables(part)})
        new = dict(zip(old, r.sample(sorted({*old, "x", "new", "q_", "long_name", "A"}), len(old))))
        return replaced(clause, lambda term: Variable(new[term.name]) if isinstance(term, Variable) else term)

    return each_rule(t, renamed)


def rename_relations(t: Told, r: Random) -> Told:
    old = [d.name for d in t.program.declarations if not d.name.startswith("part")]
    known = {new: first for first, new in t.names.items()}
    new = dict(zip(old, r.sample(sorted({*old, "other", "r", "x", "B", "zz"}), len(old))))

    def atom(a: Atom) -> Atom:
        return replace(a, predicate=new.get(a.predicate, a.predicate))

    def clause(c: Clause) -> Clause:
        heads = tuple(map(atom, c.heads))
        return Clause(heads, None if c.body is None else each_atom(c.body, atom))

    def given(facts: FactsGiven) -> FactsGiven:
        return {new[name]: rows for name, rows in facts.items()}

    program = replace(
        t.program,
        declarations=tuple(replace(d, name=new.get(d.name, d.name)) for d in t.program.declarations),
        clauses=tuple(map(clause, t.program.clauses)),
    )
    updates = [Update(given(u.deletions), given(u.insertions)) for u in t.updates]
    names = {known.get(name, name): new[name] for name in old}
    return replace(t, program=program, facts=given(t.facts), updates=updates, names=names)


def split_a_rule(t: Told, r: Random) -> Told:
    """Some atoms of a body in a relation of their own."""
    candidates = [c for c in t.program.clauses if len([f for f in body_of(c) if isinstance(f, Atom)]) > 1]
    if not candidates or any(d.name == "part" for d in t.program.declarations):
        return t
    clause = r.choice(candidates)
    atoms = [f for f in body_of(clause) if isinstance(f, Atom)]
    apart = r.sample(atoms, r.randint(1, len(atoms)))
    types = {d.name: [a.type for a in d.attributes] for d in t.program.declarations}
    typed = {
        term.name: type
        for atom in apart
        for term, type in zip(atom.terms, types[atom.predicate])
        if isinstance(term, Variable)
    }
    part = Atom("part", tuple(map(Variable, typed)))
    whole = with_body(clause, [part, *(f for f in body_of(clause) if not any(f is a for a in apart))])
    declared = Declaration("part", tuple(Attribute(f"c{i}", type) for i, type in enumerate(typed.values())))
    rest = [c for c in t.program.clauses if c is not clause]
    program = replace(
        t.program,
        clauses=(*rest, whole, Clause((part,), Conjunction(tuple(apart)))),
        declarations=(*t.program.declarations, declared),
    )
    return replace(t, program=program)


def duplicate_a_rule(t: Told, r: Random) -> Told:
    """A rule again, or its body as two alternatives."""
    rules = [c for c in t.program.clauses if c.body is not None]
    if not rules:
        return t
    clause = r.choice(rules)
    assert clause.body is not None
    if r.random() < 0.5:
        return replace(t, program=replace(t.program, clauses=(*t.program.clauses, clause)))
    either = replace(clause, body=Disjunction((clause.body, clause.body)))
    rest = tuple(either if c is clause else c for c in t.program.clauses)
    return replace(t, program=replace(t.program, clauses=rest))


def add_redundant_atoms(t: Told, r: Random) -> Told:
    """Atoms again, with new variables in some places: they hold wherever those that they come from do."""

    def more(clause: Clause) -> Clause:
        atoms = [f for f in body_of(clause) if isinstance(f, Atom)]
        if not atoms or r.random() < 0.5:
            return clause
        atom = r.choice(atoms)
        terms = tuple(Wildcard() if r.random() < 0.4 else term for term in atom.terms)
        return with_body(clause, [*body_of(clause), replace(atom, terms=terms)])

    return each_rule(t, more)


def state_facts(t: Told, r: Random) -> Told:
    """Facts in the program instead of beside it."""
    if any(isinstance(v, float) for rows in t.facts.values() for row in rows for v in row):
        return t  # the language has no text for NaN
    types = {d.name: [a.type for a in d.attributes] for d in t.program.declarations}
    clauses, given = list(t.program.clauses), {}
    for name, rows in t.facts.items():
        if r.random() < 0.5:
            given[name] = rows
            continue
        clauses += [Clause((Atom(name, tuple(map(Constant, row, types[name]))),)) for row in rows]
    return replace(t, program=replace(t.program, clauses=tuple(clauses)), facts=given)


def permute_constants(t: Told, r: Random) -> Told:
    """Other constants, where no comparison or computation looks at them."""
    parts = [part for clause in t.program.clauses for part in [*clause.heads, *body_of(clause)]]
    typed = {a.type for d in t.program.declarations for a in d.attributes}
    if typed - {"number"} or any(isinstance(part, Test | Disjunction) for part in parts) or t.constants:
        return t
    constants: dict[Value, Value] = dict(zip(range(-9, 10), r.sample(range(-900, 900), 19)))

    def term(term: Term) -> Term:
        return replace(term, value=constants[term.value]) if isinstance(term, Constant) else term

    def given(facts: FactsGiven) -> FactsGiven:
        return {name: [tuple([constants[v] for v in row]) for row in rows] for name, rows in facts.items()}

    updates = [Update(given(u.deletions), given(u.insertions)) for u in t.updates]
    clauses = tuple(replaced(clause, term) for clause in t.program.clauses)
    return replace(
        t, program=replace(t.program, clauses=clauses), facts=given(t.facts), updates=updates, constants=constants
    )


def print_and_parse(t: Told, r: Random) -> Told:
    return replace(t, program=upheld.parse(to_text(t.program)))


def update_in_parts(t: Told, r: Random) -> Told:
    """Each update as many, of one fact each."""
    return t if t.may_fail else replace(t, in_parts=True)


WAYS_TO_REWRITE = (
    reorder_rules,
    reorder_bodies,
    reorder_facts,
    rename_variables,
    rename_relations,
    split_a_rule,
    duplicate_a_rule,
    add_redundant_atoms,
    state_facts,
    permute_constants,
    print_and_parse,
    update_in_parts,
)


# -- parts of clauses -------------------------------------------------------------------------------------------------


def body_of(clause: Clause) -> list[Formula]:
    if clause.body is None:
        return []
    return list(clause.body.formulas) if isinstance(clause.body, Conjunction) else [clause.body]


def with_body(clause: Clause, literals: list[Formula]) -> Clause:
    return replace(clause, body=Conjunction(tuple(literals)) if literals else clause.body)


def each_rule(t: Told, change: Callable[[Clause], Clause]) -> Told:
    clauses = tuple(clause if clause.body is None else change(clause) for clause in t.program.clauses)
    return replace(t, program=replace(t.program, clauses=clauses))


def each_atom(formula: Formula, change: Callable[[Atom], Formula]) -> Formula:
    match formula:
        case Atom():
            return change(formula)
        case Negation(formula=inner):
            return Negation(each_atom(inner, change))
        case Conjunction(formulas=inner):
            return Conjunction(tuple(each_atom(f, change) for f in inner))
        case Disjunction(formulas=inner):
            return Disjunction(tuple(each_atom(f, change) for f in inner))
        case _:
            return formula


def replaced(clause: Clause, change: Callable[[Term], Term]) -> Clause:
    """Return a clause with its terms changed."""

    def term(t: Term) -> Term:
        return Call(t.functor, tuple(map(term, t.arguments))) if isinstance(t, Call) else change(t)

    def formula(f: Formula) -> Formula:
        match f:
            case Atom(predicate=name, terms=terms):
                return Atom(name, tuple(map(term, terms)))
            case Test(operator=operator, terms=terms):
                return Test(operator, tuple(map(term, terms)))
            case Negation(formula=inner):
                return Negation(formula(inner))
            case Conjunction(formulas=inner):
                return Conjunction(tuple(map(formula, inner)))
            case Disjunction(formulas=inner):
                return Disjunction(tuple(map(formula, inner)))
            case _:
                return f

    heads = tuple(Atom(a.predicate, tuple(map(term, a.terms))) for a in clause.heads)
    return Clause(heads, None if clause.body is None else formula(clause.body))


# -- the goal ---------------------------------------------------------------------------------------------------------


def original(seed: int) -> Told:
    r = Random(seed)
    kind = r.choices((random_case, random_graph_case, random_typed_case), (6, 3, 1))[0]
    case: Case = kind(r, UPDATES)
    return Told(upheld.parse(case.program), case.facts, case.updates, may_fail=kind is random_typed_case)


def undone(t: Told, algorithm: str) -> None:
    """Assert that an update and then its contrary leave the facts as they were."""
    m = upheld.materialise(t.program, t.facts, algorithm=algorithm)
    before = m.facts()
    for u in t.updates:
        change = m.update(delete=u.deletions, insert=u.insertions)
        m.update(delete=by_name(told(change.asserted)), insert=by_name(told(change.retracted)))
        assert m.facts() == before


def by_name(facts: Facts) -> FactsGiven:
    given: FactsGiven = {}
    for name, row in facts:
        given.setdefault(name, []).append(row)
    return given


@goal("R3", "programs written in other ways", sample=100, full=100_000)
def metamorphic(run: Run) -> None:
    used = dict.fromkeys((way.__name__ for way in WAYS_TO_REWRITE), 0)
    cases = _cases(run, used)
    for _ in run.cases():
        next(cases)()
    run.figures |= {name.replace("_", " "): count for name, count in used.items()}


def _cases(run: Run, used: dict[str, int]) -> Iterator[Callable[[], None]]:
    """Yield the cases of the run one after the other, each program with all its rewritings."""
    number = 0
    while True:
        seed = run.seed * 10_000_000 + number
        number += 1
        expected: list[list[Step]] = []

        def steps(seed: int = seed, expected: list[list[Step]] = expected) -> list[Step]:
            if not expected:
                expected.append(original(seed).steps("adaptive"))
            return expected[0]

        for way in range(WAYS):
            yield partial(run.case, f"program {seed}, way {way}", partial(rewritten, seed, way, steps, used))


def rewritten(seed: int, way: int, expected: Callable[[], list[Step]], used: dict[str, int]) -> None:
    """Assert that a program, rewritten, says what it says as it is."""
    r = Random(f"{seed} {way}")
    t, algorithm = original(seed), r.choice(NAMES)
    if way == 0:
        if None not in expected():
            undone(t, algorithm)
        return
    for rewrite in [WAYS_TO_REWRITE[way % len(WAYS_TO_REWRITE)], *r.sample(WAYS_TO_REWRITE, r.randint(0, 2))]:
        after = rewrite(t, r)
        used[rewrite.__name__] += after is not t
        t = after
    options = {"stratification": some_stratification(r), "decompose": r.choice(("auto", "auto", "always", "all"))}
    assert t.steps(algorithm, **options) == expected()
