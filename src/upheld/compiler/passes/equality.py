"""Equations between variables and constants are solved: `p(x) :- q(x, y), y = 3.` becomes `p(x) :- q(x, 3).`

RDF terms are compared by value (`5 = 5.0`), while atoms are matched by identity, so for them only such equations are
solved as mean identity: equations that bind a variable in no atom and in no other equation, and equations with a
constant that equals no other term.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from upheld.base.errors import quote
from upheld.language import ast
from upheld.language.disjunction import Literal, literals
from upheld.language.draft import Draft

Substitution = dict[str, ast.Term]


def solve_equalities(draft: Draft) -> None:
    """Substitute the variables that an equation gives a constant or another variable to."""
    by_value = draft.program.dialect == "dlog"
    draft.rules = [_solve(clause, by_value) for clause in draft.rules]


def substitute(thing: ast.Term, by: Substitution) -> ast.Term:
    match thing:
        case ast.Variable(name=name):
            return by.get(name, thing)
        case ast.Call(arguments=arguments):
            return replace(thing, arguments=tuple(substitute(a, by) for a in arguments))
        case _:
            return thing


def _substitute_in(literal: Literal, by: Substitution) -> Literal:
    if isinstance(literal, ast.Negation):
        assert isinstance(literal.formula, ast.Atom), "negation of something else than an atom"
        return replace(literal, formula=_substitute_in(literal.formula, by))
    return replace(literal, terms=tuple(substitute(t, by) for t in literal.terms))


def _solve(clause: ast.Clause, by_value: bool) -> ast.Clause:
    head, body = clause.heads[0], list(literals(clause))
    while (solved := _next_equation(body, by_value)) is not None:
        position, name, value = solved
        by = {name: value}
        del body[position]
        body = [_substitute_in(literal, by) for literal in body]
        head = replace(head, terms=tuple(substitute(t, by) for t in head.terms))
    return replace(clause, heads=(head,), body=ast.Conjunction(tuple(body)))


def _next_equation(body: list[Literal], by_value: bool) -> tuple[int, str, ast.Term] | None:
    in_atoms = {
        term.name
        for literal in body
        if isinstance(literal, ast.Atom)
        for term in literal.terms
        if isinstance(term, ast.Variable)
    }
    equations = [literal for literal in body if isinstance(literal, ast.Test) and literal.operator == "="]
    alone = Counter(term.name for equation in equations for term in equation.terms if isinstance(term, ast.Variable))
    for position, literal in enumerate(body):
        if literal not in equations:
            continue
        assert isinstance(literal, ast.Test), "an equation"
        left, right = literal.terms
        for variable, value in ((left, right), (right, left)):
            if not isinstance(variable, ast.Variable) or not isinstance(value, ast.Variable | ast.Constant):
                continue
            if isinstance(value, ast.Variable) and value.name == variable.name:
                continue
            bound_elsewhere = variable.name in in_atoms or alone[variable.name] > 1
            if by_value and bound_elsewhere and not _means_identity(value):
                continue
            return position, variable.name, value
    return None


def _means_identity(value: ast.Variable | ast.Constant) -> bool:
    from upheld.language.terms.values import is_by_identity  # which programs without RDF do not need

    return isinstance(value, ast.Constant) and is_by_identity(str(value.value))


def close_equivalences(draft: Draft) -> None:
    """Add symmetry and transitivity; a value that is equivalent to another is to itself by both of them."""
    for declaration in draft.program.declarations:
        if not declaration.equivalence:
            continue
        types = [attribute.type for attribute in declaration.attributes]
        if len(types) != 2 or types[0] != types[1]:
            draft.problem(
                "bad-equivalence",
                f"{quote(declaration.name)} cannot be an equivalence",
                declaration.span,
                note="an equivalence (`eqrel`) is between two values of one type",
                hint="declare two attributes of the same type, or leave `eqrel` out",
            )
            continue
        draft.rules.append(_rule(declaration, "yx", "xy"))
        draft.rules.append(_rule(declaration, "xz", "xy", "yz"))


def _rule(declaration: ast.Declaration, head: str, *body: str) -> ast.Clause:
    span = declaration.span

    def atom(names: str) -> ast.Atom:
        return ast.Atom(declaration.name, tuple(ast.Variable(name, span) for name in names), span)

    atoms: list[ast.Formula] = [atom(names) for names in body]
    return ast.Clause((atom(head),), atoms[0] if len(atoms) == 1 else ast.Conjunction(tuple(atoms), span), span)
