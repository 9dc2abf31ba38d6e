"""The bindings of a body within a rule, as facts of a hidden relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import TypeGuard

from upheld.base.source import Span
from upheld.compiler.passes.negation import push_negation
from upheld.language.ast import Atom, Clause, Conjunction, Formula, Program, Term, Variable, Wildcard
from upheld.language.disjunction import split_disjunctions
from upheld.language.draft import Draft
from upheld.language.wildcards import PREFIX as WILDCARD

#: The prefix of columns for each `_` in a body. No dialect lets a user write such names.
ANYTHING = f"{WILDCARD}any "


def enter_bindings(draft: Draft, name: str, columns: Sequence[Term], body: Formula, span: Span | None) -> list[Clause]:
    """Enter a hidden relation into the draft, and return the rule that derives it; none if it is there already."""
    if name in draft.hidden:
        return []
    draft.hidden.add(name)
    draft.arities[name] = len(columns)
    return [Clause((Atom(name, tuple(columns), span),), body, span)]


def alternatives(body: Formula) -> list[Clause]:
    """Return a body as rules without heads, one for each of its alternatives."""
    draft = Draft(Program("dl"), rules=[Clause((), body)])
    push_negation(draft)
    split_disjunctions(draft)
    return draft.rules


def with_variables(body: Formula) -> Formula:
    """Return a body with a variable for each `_` of its atoms."""
    number = count()

    def named(formula: Formula) -> Formula:
        match formula:
            case Atom(terms=terms):
                fresh = (Variable(f"{ANYTHING}{next(number)}") if isinstance(t, Wildcard) else t for t in terms)
                return replace(formula, terms=tuple(fresh))
            case Conjunction(formulas=parts):
                return replace(formula, formulas=tuple(map(named, parts)))
            case _:
                return formula

    return named(body)


def is_relation(body: Formula, draft: Draft) -> TypeGuard[Atom]:
    """Return whether a body is an atom that all facts of a relation are instances of."""
    if not isinstance(body, Atom) or not all(isinstance(term, Variable) for term in body.terms):
        return False
    # The facts of an equivalence are not its pairs.
    by_pairs = all(d.name != body.predicate for d in draft.program.declarations if d.equivalence)
    return by_pairs and len(set(body.terms)) == len(body.terms)
