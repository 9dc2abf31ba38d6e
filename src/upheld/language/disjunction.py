"""A body with `;` becomes one clause for each of its alternatives, each a flat conjunction of literals."""

from __future__ import annotations

from dataclasses import replace

from upheld.language.ast import (
    Atom,
    Clause,
    Conjunction,
    Disjunction,
    Exists,
    Formula,
    Grouping,
    Negation,
    Test,
    Truth,
    Values,
)
from upheld.language.draft import Draft

Literal = Atom | Negation | Test

#: Alternatives multiply: `(a; b), (c; d), ...` doubles with each pair. Past this the program should name its parts.
MOST_ALTERNATIVES = 4096

#: Far beyond what people write; engines may treat a body as something they can hold at once.
LONGEST_BODY = 256


class _TooMany(Exception):
    pass


def split_disjunctions(draft: Draft) -> None:
    """Leave bodies that are conjunctions of atoms, negated atoms and tests; `false` alternatives are gone."""
    split: list[Clause] = []
    for clause in draft.rules:
        assert clause.body is not None, "a rule without a body"
        try:
            for literals in _alternatives(clause.body):
                if len(literals) > LONGEST_BODY:
                    draft.problem(
                        "body-too-long",
                        f"a body of {len(literals)} literals; the maximum is {LONGEST_BODY}",
                        clause.span,
                        hint="move a part of the body into a rule of its own",
                    )
                    break
                split.append(replace(clause, body=Conjunction(literals, clause.body.span)))
        except _TooMany:
            draft.problem(
                "too-many-alternatives",
                f"the disjunctions of this rule multiply to more than {MOST_ALTERNATIVES} alternatives",
                clause.span,
                note="each alternative of a body becomes a rule of its own",
                hint="move some of the disjunctions into rules of their own",
            )
    draft.rules = split


def literals(clause: Clause) -> tuple[Literal, ...]:
    """Return the literals of a clause whose disjunctions have been split."""
    assert isinstance(clause.body, Conjunction), "a body that was not split"
    return clause.body.formulas  # type: ignore[return-value]


def _alternatives(formula: Formula) -> list[tuple[Literal, ...]]:
    match formula:
        case Atom() | Test() | Negation():
            return [(formula,)]
        case Truth(value=value):
            return [()] if value else []
        case Disjunction(formulas=parts):
            found = [alternative for part in parts for alternative in _alternatives(part)]
            if len(found) > MOST_ALTERNATIVES:
                raise _TooMany
            return found
        case Conjunction(formulas=parts):
            joined: list[tuple[Literal, ...]] = [()]
            for part in parts:
                options = _alternatives(part)
                if len(joined) * len(options) > MOST_ALTERNATIVES:
                    raise _TooMany
                joined = [left + right for left in joined for right in options]
            return joined
        case Exists() | Grouping() | Values():
            raise AssertionError("a body with variables of its own")
