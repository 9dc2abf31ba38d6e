"""Safety: every variable gets its values from a positive body atom, or is computed from variables that do.

Paper 1, section 3, with built-ins: `x = e` binds `x` once the variables of `e` are bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from upheld.base.errors import nearest, quote
from upheld.language.ast import Atom, Call, Clause, Negation, Term, Test, Variable, Wildcard, variables
from upheld.language.disjunction import literals
from upheld.language.draft import Draft


def check_safety(draft: Draft) -> None:
    """Report each variable without a source of values, and each wildcard where a value is needed."""
    draft.rules = [clause for clause in draft.rules if _is_safe(draft, clause)]
    draft.facts = [fact for fact in draft.facts if _is_constant(draft, fact)]


def bound_variables(clause: Clause) -> set[str]:
    """Return the variables that positive atoms and the equations on top of them give values to."""
    body = literals(clause)
    bound = {term.name for atom in body if isinstance(atom, Atom) for term in atom.terms if isinstance(term, Variable)}
    equations = [test.terms for test in body if isinstance(test, Test) and test.operator == "="]
    equations += [(right, left) for left, right in equations]
    while True:
        found = {
            left.name
            for left, right in equations
            if isinstance(left, Variable) and left.name not in bound and {v.name for v in variables(right)} <= bound
            if not any(_wildcards(right))
        }
        if not found:
            return bound
        bound |= found


def _is_safe(draft: Draft, clause: Clause) -> bool:
    known = len(draft.problems)
    bound = bound_variables(clause)

    def report(term: Term | Atom | Test, slug: str, where: str, note: str, hint: str | None = None) -> None:
        for variable in variables(term):
            if variable.name not in bound:
                draft.problem(
                    slug,
                    f"unsafe variable {quote(variable.name)} {where}",
                    variable.span,
                    note=note,
                    hint=nearest(variable.name, bound) or (hint.format(variable.name) if hint else _lone(bound)),
                )

    head = clause.heads[0]
    report(head, "unsafe-head", "in rule head", "each head variable must occur in a positive body atom")
    for wildcard in _wildcards(head):
        draft.problem("wildcard-in-head", "`_` in rule head", wildcard.span, note="a head needs a value in each column")
    for literal in literals(clause):
        match literal:
            case Negation(formula=Atom() as atom):
                report(
                    atom,
                    "unsafe-negation",
                    "under negation",
                    "each variable of a negated atom must occur in a positive body atom",
                    "`NOT EXISTS ?{} IN (...)` negates that there is such a term"
                    if draft.program.dialect == "dlog"
                    else None,
                )
            case Test():
                report(
                    literal,
                    "unsafe-comparison",
                    "in a comparison",
                    "a comparison tests values; some positive body atom must bind them",
                )
                for wildcard in _wildcards(literal):
                    draft.problem(
                        "wildcard-in-comparison", "`_` in a comparison", wildcard.span, note="it has no value"
                    )
            case Atom():
                report(
                    literal,
                    "unsafe-expression",
                    "in an expression",
                    "the variables of an expression must be bound by a positive body atom",
                )
        for inner in _wildcards_in_calls(literal):
            draft.problem("wildcard-in-expression", "`_` in an expression", inner.span, note="it has no value")
    return len(draft.problems) == known


def _is_constant(draft: Draft, fact: Clause) -> bool:
    for term in fact.heads[0].terms:
        culprits: list[Variable | Wildcard] = [*variables(term), *_wildcards(term)]
        for culprit in culprits:
            name = culprit.name if isinstance(culprit, Variable) else "_"
            draft.problem(
                "unsafe-head",
                f"unsafe variable {quote(name)} in a fact",
                culprit.span,
                note="a fact has constants only",
                hint="give the clause a body that binds the variable, or quote the name to make it a symbol",
            )
            return False
    return True


def _lone(bound: set[str]) -> str | None:
    """The one variable that could have been meant, if there is just one."""
    return f"did you mean {quote(next(iter(bound)))}?" if len(bound) == 1 else None


def _wildcards(thing: Atom | Test | Term) -> Iterator[Wildcard]:
    match thing:
        case Wildcard():
            yield thing
        case Atom(terms=parts) | Test(terms=parts) | Call(arguments=parts):
            for part in parts:
                yield from _wildcards(part)
        case _:
            return


def _wildcards_in_calls(literal: Atom | Negation | Test) -> Iterator[Wildcard]:
    atom = literal.formula if isinstance(literal, Negation) else literal
    assert isinstance(atom, Atom | Test), "negation of something else than an atom"
    if isinstance(atom, Atom):
        for term in atom.terms:
            if isinstance(term, Call):
                yield from _wildcards(term)
