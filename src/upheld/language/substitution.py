"""Terms in the place of variables, in atoms, built-ins and whole rules of a compiled program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from upheld.language.ast import Variable
from upheld.language.core import Apply, Atom, Builtin, CoreTerm, Expression, Rule

Substitution = Mapping[str, CoreTerm]


def substitute_rule(rule: Rule, by: Substitution) -> Rule:
    """Return a rule with these terms for its variables."""
    return replace(
        rule,
        head=substitute_atom(rule.head, by),
        positive=tuple(substitute_atom(a, by) for a in rule.positive),
        negative=tuple(substitute_atom(a, by) for a in rule.negative),
        builtins=tuple(substitute_builtin(b, by) for b in rule.builtins),
    )


def substitute_atom(atom: Atom, by: Substitution) -> Atom:
    # An atom that is only shown may have patterns of records.
    return Atom(atom.predicate, tuple(cast("CoreTerm", _expression(t, by)) for t in atom.terms))


def substitute_builtin(builtin: Builtin, by: Substitution) -> Builtin:
    left, right = builtin.arguments
    return replace(builtin, arguments=(_expression(left, by), _expression(right, by)))


def substitute_term(term: CoreTerm, by: Substitution) -> CoreTerm:
    return by.get(term.name, term) if isinstance(term, Variable) else term


def _expression(expression: Expression, by: Substitution) -> Expression:
    if isinstance(expression, Apply):
        return Apply(expression.functor, tuple(_expression(a, by) for a in expression.arguments))
    return substitute_term(expression, by)
