"""A body with `;` becomes one clause for each of its alternatives, each a flat conjunction of literals."""

from __future__ import annotations

from dataclasses import replace

from upheld.language import ast
from upheld.language.draft import Draft

Literal = ast.Atom | ast.Negation | ast.Test

#: Alternatives multiply: `(a; b), (c; d), ...` doubles with each pair. Past this the program should name its parts.
MOST_ALTERNATIVES = 4096

#: Far beyond what people write; engines may treat a body as something they can hold at once.
LONGEST_BODY = 256


class _TooMany(Exception):
    pass


def split_disjunctions(draft: Draft) -> None:
    """Leave bodies that are conjunctions of atoms, negated atoms and tests; `false` alternatives are gone."""
    split: list[ast.Clause] = []
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
                split.append(replace(clause, body=ast.Conjunction(literals, clause.body.span)))
        except _TooMany:
            draft.problem(
                "too-many-alternatives",
                f"the disjunctions of this rule multiply to more than {MOST_ALTERNATIVES} alternatives",
                clause.span,
                note="each alternative of a body becomes a rule of its own",
                hint="move some of the disjunctions into rules of their own",
            )
    draft.rules = split


def literals(clause: ast.Clause) -> tuple[Literal, ...]:
    """Return the literals of a clause whose disjunctions have been split."""
    assert isinstance(clause.body, ast.Conjunction), "a body that was not split"
    return clause.body.formulas  # type: ignore[return-value]


def _alternatives(formula: ast.Formula) -> list[tuple[Literal, ...]]:
    match formula:
        case ast.Atom() | ast.Test() | ast.Negation():
            return [(formula,)]
        case ast.Truth(value=value):
            return [()] if value else []
        case ast.Disjunction(formulas=parts):
            found = [alternative for part in parts for alternative in _alternatives(part)]
            if len(found) > MOST_ALTERNATIVES:
                raise _TooMany
            return found
        case ast.Conjunction(formulas=parts):
            joined: list[tuple[Literal, ...]] = [()]
            for part in parts:
                options = _alternatives(part)
                if len(joined) * len(options) > MOST_ALTERNATIVES:
                    raise _TooMany
                joined = [left + right for left in joined for right in options]
            return joined
        case ast.Exists() | ast.Grouping() | ast.Values():
            raise AssertionError("a body with variables of its own")
