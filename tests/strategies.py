"""Random programs, facts and updates. A new feature of the language joins them here.

One generator serves Hypothesis, which shrinks what fails, and plain seeds, which are quick and can be replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

Row = tuple[int, ...]
FactsGiven = dict[str, list[Row]]

#: Few values, so that joins meet.
DOMAIN = range(5)


@dataclass
class Update:
    deletions: FactsGiven
    insertions: FactsGiven


@dataclass
class Case:
    """A program as text, the facts it starts from, and updates to go through one after the other."""

    program: str
    facts: FactsGiven
    updates: list[Update] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.program}\nfacts: {self.facts}\nupdates: {self.updates}"


@dataclass(frozen=True)
class _Relation:
    name: str
    arity: int
    #: Negation only looks at lower levels, so every program can be stratified.
    level: int


def random_case(r: Random, updates: int = 0) -> Case:
    """Return a stratified program over numbers, with facts of any of its relations."""
    relations = [_Relation(f"r{i}", r.choice((0, 1, 1, 2, 2, 2, 3)), r.randint(0, 3)) for i in range(r.randint(2, 6))]
    lines = [f".decl {p.name}({', '.join(f'a{i}:number' for i in range(p.arity))})" for p in relations]
    lines += [_rule(r, relations) for _ in range(r.randint(1, 7))]
    facts = _facts(r, relations, 0.6)
    return Case("\n".join(lines), facts, [_update(r, relations) for _ in range(updates)])


def _update(r: Random, relations: Sequence[_Relation]) -> Update:
    return Update(_facts(r, relations, 0.4), _facts(r, relations, 0.3))


def _facts(r: Random, relations: Sequence[_Relation], density: float) -> FactsGiven:
    chosen = [p for p in relations if r.random() < density]
    return {
        p.name: sorted({tuple(r.choice(DOMAIN) for _ in range(p.arity)) for _ in range(r.randint(1, 6))})
        for p in chosen
    }


def _rule(r: Random, relations: Sequence[_Relation]) -> str:
    head = r.choice(relations)
    variables = ["x", "y", "z", "u"][: r.randint(1, 4)]

    def term(wildcard: float = 0.0) -> str:
        if r.random() < wildcard:
            return "_"
        return str(r.choice(DOMAIN)) if r.random() < 0.12 else r.choice(variables)

    def atom(p: _Relation, wildcard: float = 0.0) -> str:
        return f"{p.name}({', '.join(term(wildcard) for _ in range(p.arity))})"

    lower = [p for p in relations if p.level <= head.level]
    body = [atom(r.choice(lower), 0.08) for _ in range(r.randint(1, 3))]
    text = ", ".join(body)
    bound = [v for v in variables if v in text.replace("r", "")]
    literals = list(body)
    below = [p for p in relations if p.level < head.level]
    if below and r.random() < 0.4:
        negated = r.choice(below)
        literals.append(f"!{negated.name}({', '.join(_bound(r, bound, 0.15) for _ in range(negated.arity))})")
    if bound and r.random() < 0.25:
        literals.append(f"{r.choice(bound)} {r.choice(('<', '!=', '<=', '='))} {_bound(r, bound)}")
    computed = None
    if bound and r.random() < 0.2:
        computed = "w"
        literals.append(f"w = {r.choice(bound)} {r.choice(('+', '*', '-'))} {_bound(r, bound)}")
        literals.append("w < 6, w > -3")  # recursion through arithmetic ends
    r.shuffle(literals)
    values = [computed if computed and r.random() < 0.5 else _bound(r, bound) for _ in range(head.arity)]
    return f"{head.name}({', '.join(values)}) :- {', '.join(literals)}."


def _bound(r: Random, bound: Sequence[str], wildcard: float = 0.0) -> str:
    if r.random() < wildcard:
        return "_"
    return r.choice(bound) if bound and r.random() < 0.85 else str(r.choice(DOMAIN))


def cases(updates: int = 0) -> st.SearchStrategy[Case]:
    """Random cases that Hypothesis can shrink."""
    return st.randoms(use_true_random=False).map(lambda r: random_case(r, updates))
