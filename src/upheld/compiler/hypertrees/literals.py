"""The literals of a rule body beside its positive atoms, and which of them may be tested early."""

from __future__ import annotations

from collections.abc import Iterator

from upheld.language.core import Apply, Atom, Builtin, Rule

#: Comparisons that may have no result: a pattern may be no regular expression.
_PARTIAL = ("match", "!match")


def partial_literals(rule: Rule) -> Iterator[Atom | Builtin]:
    """Yield the negated atoms and built-ins that must be tested last.

    These are computations, since a computation without a result is an error only where the rest of the body holds, and
    literals with a computed variable.
    """
    bound = {v for atom in rule.positive for v in atom.variables()}
    literals: tuple[Atom | Builtin, ...] = (*rule.negative, *rule.builtins)
    for literal in literals:
        if not bound.issuperset(literal.variables()) or _is_partial(literal):
            yield literal


def _is_partial(literal: Atom | Builtin) -> bool:
    return isinstance(literal, Builtin) and (
        literal.operator in _PARTIAL or any(isinstance(a, Apply) for a in literal.arguments)
    )
