"""`_` in a positive atom becomes a variable of its own; in a negated atom it says *for no value at all*.

`p(x) :- q(x), !r(x, _).` becomes `p(x) :- q(x), !h(x).` with a hidden relation `h(x) :- r(x, _).` The hidden rule keeps
the constants of the atom, so that it asks no more of the stratification than the atom itself did.
"""

from __future__ import annotations

from dataclasses import replace

from upheld.language.ast import Atom, Clause, Conjunction, Constant, Negation, Term, Variable, Wildcard
from upheld.language.disjunction import Literal, literals
from upheld.language.draft import Draft

#: No dialect lets a user write such a name; it is shown as `_`.
PREFIX = "_$"


def name_wildcards(draft: Draft) -> None:
    """Leave only variables and constants in atoms."""
    projections: dict[str, Clause] = {}
    draft.rules = [_name(draft, clause, projections) for clause in draft.rules]
    draft.rules += projections.values()
    draft.hidden |= projections.keys()
    draft.arities |= {name: len(clause.heads[0].terms) for name, clause in projections.items()}


def _name(draft: Draft, clause: Clause, projections: dict[str, Clause]) -> Clause:
    count = 0

    def named(term: Term) -> Term:
        nonlocal count
        if not isinstance(term, Wildcard):
            return term
        count += 1
        return Variable(f"{PREFIX}{count}", term.span)

    body: list[Literal] = []
    for literal in literals(clause):
        match literal:
            case Atom():
                body.append(replace(literal, terms=tuple(map(named, literal.terms))))
            case Negation(formula=Atom() as atom) if any(isinstance(t, Wildcard) for t in atom.terms):
                body.append(replace(literal, formula=_project(atom, projections)))
            case _:
                body.append(literal)
    return replace(clause, body=Conjunction(tuple(body)))


def _project(atom: Atom, projections: dict[str, Clause]) -> Atom:
    """Return the atom of the hidden relation that holds where `atom` does for some values of its wildcards."""
    kept: dict[str, Variable] = {}
    inner: list[Term] = []
    shape: list[str] = []
    for position, term in enumerate(atom.terms):
        match term:
            case Variable(name=name):
                kept.setdefault(name, term)
                canonical = f"x{list(kept).index(name)}"
                inner.append(Variable(canonical, term.span))
                shape.append(canonical)
            case Wildcard():
                inner.append(Variable(f"{PREFIX}{position}", term.span))
                shape.append("_")
            case Constant():
                inner.append(term)
                shape.append(repr(term.value))
    name = f"{atom.predicate}[{','.join(shape)}]"
    head = Atom(name, tuple(Variable(f"x{i}") for i in range(len(kept))), atom.span)
    body = Conjunction((Atom(atom.predicate, tuple(inner), atom.span),))
    projections.setdefault(name, Clause((head,), body, atom.span))
    return Atom(name, tuple(kept.values()), atom.span)
