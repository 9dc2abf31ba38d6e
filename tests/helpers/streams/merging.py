"""Many databases in one run: each predicate and rule gets a column for the case, so that a job serves all of them.

A rule only joins facts of one case, so what follows in a case is what would follow there by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.helpers.programs.strategies import (
    Case,
    FactsGiven,
    Update,
    random_case,
    random_cyclic_case,
    random_graph_case,
)
from upheld.compiler.compile import compile_program
from upheld.language.ast import Variable
from upheld.language.core import Atom, Core, Fact, Predicate, Rule
from upheld.language.syntax.files import read_text

#: Holds every case; rules without a positive body atom take their case from it.
CASE = Predicate("case", ("case",), ("number",))
_VARIABLE = Variable("case")


def with_cases(core: Core, count: int) -> Core:
    """Return a program whose predicates have the number of a case as their first column."""
    predicates = {
        p.name: replace(p, columns=("case", *p.columns), types=("number", *p.types)) for p in core.predicates.values()
    }
    facts = {(p, (i, *row)) for p, row in core.facts for i in range(count)} | {(CASE.name, (i,)) for i in range(count)}
    return replace(
        core,
        predicates={CASE.name: CASE, **predicates},
        rules=tuple(map(_with_case, core.rules)),
        facts=frozenset(facts),
    )


def _with_case(rule: Rule) -> Rule:
    positive = tuple(map(_atom, rule.positive)) or (Atom(CASE.name, (_VARIABLE,)),)
    return replace(rule, head=_atom(rule.head), positive=positive, negative=tuple(map(_atom, rule.negative)))


def _atom(atom: Atom) -> Atom:
    return Atom(atom.predicate, (_VARIABLE, *atom.terms))


@dataclass
class Merged:
    """A program with its cases: the facts they start from, and updates of all of them at once."""

    core: Core
    facts: FactsGiven
    updates: list[Update]
    count: int

    def explicit(self) -> set[Fact]:
        return {(p, row) for p, rows in self.facts.items() for row in rows} | self.core.facts


def merged(cases: Sequence[Case]) -> Merged:
    """Return cases of one program, that of the first, as one."""
    core = with_cases(compile_program(read_text(cases[0].program)).core, len(cases))
    case = together(cases)
    return Merged(core, case.facts, case.updates, len(cases))


def together(cases: Sequence[Case]) -> Case:
    """Return the facts and updates of all cases, with the number of the case first; a single case as it is."""
    if len(cases) == 1:
        return cases[0]
    updates = [
        Update(_together([c.updates[i].deletions for c in cases]), _together([c.updates[i].insertions for c in cases]))
        for i in range(len(cases[0].updates))
    ]
    return Case(cases[0].program, _together([c.facts for c in cases]), updates)


def _together(given: Sequence[FactsGiven]) -> FactsGiven:
    rows: FactsGiven = {}
    for i, facts in enumerate(given):
        for name, mine in facts.items():
            rows.setdefault(name, []).extend((i, *row) for row in mine)
    return rows


def random_merged(seed: int, count: int, updates: int) -> Merged:
    """Return so many databases of one random program: walks on graphs, or any other program over numbers."""
    if seed % 2:
        cases = [random_graph_case(Random(f"{seed} {i}"), updates) for i in range(count)]
        return merged(cases)
    return merged(_alike(random_case(Random(seed), updates), seed, count, updates))


def random_cyclic_merged(seed: int, count: int, updates: int) -> Merged:
    """Return so many databases of one random program with cyclic rules, none of which divides: that might fail."""
    programs = (random_cyclic_case(Random(f"{seed} {i}"), updates) for i in itertools.count())
    first = next(case for case in programs if not set("/%") & set(case.program))
    return merged(_alike(first, seed, count, updates))


def _alike(first: Case, seed: int, count: int, updates: int) -> list[Case]:
    """Return cases of one program, with rows that occur in it somewhere, each thrown into some case."""
    r = Random(seed)
    pool: FactsGiven = {}
    for given in (first.facts, *(side for u in first.updates for side in (u.deletions, u.insertions))):
        for name, rows in given.items():
            pool.setdefault(name, []).extend(rows)

    def some(density: float) -> FactsGiven:
        chosen = {name: [row for row in rows if r.random() < density] for name, rows in pool.items()}
        return {name: rows for name, rows in chosen.items() if rows}

    steps = lambda: [Update(some(0.3), some(0.3)) for _ in range(updates)]  # noqa: E731
    return [first, *(Case(first.program, some(0.6), steps()) for _ in range(count - 1))]
