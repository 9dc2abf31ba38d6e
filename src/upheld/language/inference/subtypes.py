"""Declared subtypes: values may flow from a type to one above it, and only related types are compared."""

from __future__ import annotations

from upheld.base.errors import quote
from upheld.base.source import Span
from upheld.language.ast import Atom, Clause, Negation, Test, Variable
from upheld.language.disjunction import literals
from upheld.language.draft import Draft
from upheld.language.inference.inference import Inference

Source = tuple[frozenset[str], str, Span | None]


def check_subtypes(draft: Draft, types: Inference) -> None:
    """Report each variable whose values come from, go to, or meet types that are not related."""
    if draft.program.types:
        for clause in draft.rules:
            _check(clause, draft, types)


def _check(clause: Clause, draft: Draft, types: Inference) -> None:
    body = literals(clause)
    sources: dict[str, Source] = {}
    for atom in (a for a in body if isinstance(a, Atom)):
        for variable, declared in _declared(atom, types):
            below = types.table.below(declared)
            before = sources.get(variable.name)
            if before is None:
                sources[variable.name] = (below, declared, variable.span)
            elif both := before[0] & below:
                name = before[1] if len(before[0]) <= len(below) else declared
                sources[variable.name] = (both, name, variable.span)
            else:
                _unrelated(draft, f"variable {quote(variable.name)}", before, (below, declared, variable.span))
                return
    sinks = [clause.heads[0], *(n.formula for n in body if isinstance(n, Negation) and isinstance(n.formula, Atom))]
    for atom in sinks:
        for variable, declared in _declared(atom, types):
            source = sources.get(variable.name)
            if source and not source[0] <= types.table.below(declared):
                draft.problem(
                    "subtype-clash",
                    f"{quote(variable.name)} has type {quote(source[1])}, which is not a subtype of {quote(declared)}",
                    variable.span,
                    related=(("its values come from here", source[2]),) if source[2] else (),
                    note="values flow from a type to itself or to a type above it",
                )
    for test in (t for t in body if isinstance(t, Test)):
        found = [sources[t.name] for t in test.terms if isinstance(t, Variable) and t.name in sources]
        if len(found) == 2 and not found[0][0] & found[1][0]:
            _unrelated(draft, f"comparison {quote(test.operator)}", found[0], found[1], test.span)


def _declared(atom: Atom, types: Inference) -> list[tuple[Variable, str]]:
    declared = types.declared.get(atom.predicate)
    if declared is None:
        return []
    return [(t, name) for t, name in zip(atom.terms, declared, strict=True) if isinstance(t, Variable)]


def _unrelated(draft: Draft, what: str, one: Source, other: Source, at: Span | None = None) -> None:
    draft.problem(
        "subtype-clash",
        f"{what} joins the unrelated types {quote(one[1])} and {quote(other[1])}",
        at or other[2],
        related=((f"{one[1]} here", one[2]),) if one[2] else (),
        note="types are related if one is a subtype or a member of the other, or they share one",
    )
