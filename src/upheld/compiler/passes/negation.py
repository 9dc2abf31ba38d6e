"""Negation moves inwards until it stands before atoms only."""

from __future__ import annotations

from dataclasses import replace

from upheld.language.ast import Atom, Conjunction, Disjunction, Exists, Formula, Grouping, Negation, Test, Truth, Values
from upheld.language.draft import Draft
from upheld.language.types.functors import NEGATED


def push_negation(draft: Draft) -> None:
    """Leave no negation but that of an atom."""
    draft.rules = [replace(clause, body=_push(clause.body, False)) for clause in draft.rules if clause.body is not None]


def _push(formula: Formula, negated: bool) -> Formula:
    match formula:
        case Negation(formula=inner):
            return _push(inner, not negated)
        case Conjunction(formulas=parts):
            pushed = tuple(_push(p, negated) for p in parts)
            return Disjunction(pushed, formula.span) if negated else Conjunction(pushed, formula.span)
        case Disjunction(formulas=parts):
            pushed = tuple(_push(p, negated) for p in parts)
            return Conjunction(pushed, formula.span) if negated else Disjunction(pushed, formula.span)
        case Atom():
            return Negation(formula, formula.span) if negated else formula
        case Test():
            return replace(formula, operator=NEGATED[formula.operator]) if negated else formula
        case Truth():
            return replace(formula, value=formula.value != negated)
        case Exists() | Grouping() | Values():
            raise AssertionError("a body with variables of its own")
