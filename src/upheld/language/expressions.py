"""Expressions leave the atoms: `p(x + 1) :- q(x).` becomes `p(v) :- q(x), v = x + 1.`

A functor that generates values (`range`) always gets a variable of its own, so that it only ever stands alone on one
side of an equation.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from upheld.language.ast import Atom, Call, Clause, Conjunction, Negation, Term, Test, Variable, nodes
from upheld.language.disjunction import Literal, literals
from upheld.language.draft import Draft
from upheld.language.types.functors import SIGNATURES

#: No dialect lets a user write such a name.
PREFIX = "$"


def lift_expressions(draft: Draft) -> None:
    """Leave only variables, wildcards and constants in atoms; facts that generate values become rules."""
    generating = [fact for fact in draft.facts if any(_generators(t) for t in fact.heads[0].terms)]
    if generating:
        generated = {id(fact) for fact in generating}
        draft.facts = [fact for fact in draft.facts if id(fact) not in generated]
        draft.rules += [replace(fact, body=Conjunction(())) for fact in generating]
    draft.rules = [_lift(clause) if _has_expressions(clause) else clause for clause in draft.rules]


def _has_expressions(clause: Clause) -> bool:
    return any(isinstance(node, Call) for node in nodes(clause.heads[0], *literals(clause)))


def _generators(term: Term) -> bool:
    if not isinstance(term, Call):
        return False
    signatures = SIGNATURES.get(term.functor, ())
    return any(s.generates for s in signatures) or any(_generators(a) for a in term.arguments)


def _lift(clause: Clause) -> Clause:
    equations: list[Literal] = []
    numbers = count()

    def fresh(call: Call) -> Variable:
        variable = Variable(f"{PREFIX}{next(numbers)}", call.span)
        equations.append(Test("=", (variable, without_generators(call, alone=True)), call.span))
        return variable

    def without_generators(term: Term, *, alone: bool) -> Term:
        """Move generators out of a term that is not itself one, `alone` on its side of an equation."""
        if not isinstance(term, Call) or not _generators(term):
            return term
        lifted = replace(term, arguments=tuple(without_generators(a, alone=False) for a in term.arguments))
        generates = any(s.generates for s in SIGNATURES.get(term.functor, ()))
        return fresh(lifted) if generates and not alone else lifted

    def flat(atom: Atom) -> Atom:
        return replace(atom, terms=tuple(fresh(t) if isinstance(t, Call) else t for t in atom.terms))

    body: list[Literal] = []
    for literal in literals(clause):
        match literal:
            case Atom():
                body.append(flat(literal))
            case Negation(formula=Atom() as atom):
                body.append(replace(literal, formula=flat(atom)))
            case Test(operator=operator, terms=terms):
                variables = sum(isinstance(t, Variable) for t in terms)
                alone = operator == "=" and variables == 1
                body.append(replace(literal, terms=tuple(without_generators(t, alone=alone) for t in terms)))
    head = flat(clause.heads[0])
    return replace(clause, heads=(head,), body=Conjunction((*body, *equations)))
