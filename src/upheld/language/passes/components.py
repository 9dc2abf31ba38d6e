"""Parts of a body that share no variable with the head or the rest only ask whether they hold at all.

`p(x) :- q(x), r(y, z), s(z).` becomes `p(x) :- q(x), h().` with a hidden relation `h() :- r(y, z), s(z).` Left as they
stand, such parts would multiply the instances of the rule by all the ways in which they hold.

A part that computes stays in the rule: where it has no result, that is an error only if the rest of the body holds.
"""

from __future__ import annotations

from dataclasses import replace

from upheld.language.passes.disjunction import Literal, literals
from upheld.language.passes.draft import Draft
from upheld.language.passes.wildcards import PREFIX
from upheld.language.syntax.ast import (
    Atom,
    Call,
    Clause,
    Conjunction,
    Constant,
    Term,
    Test,
    Variable,
    Wildcard,
    variables,
)
from upheld.language.syntax.printer import to_text
from upheld.language.types.functors import SIGNATURES


def split_components(draft: Draft) -> None:
    """Give each part of a body that is connected neither to the head nor to another part a relation of its own."""
    hidden: dict[str, Clause] = {}
    draft.rules = [_split(clause, draft.program.dialect, hidden) for clause in draft.rules]
    draft.rules += hidden.values()
    draft.hidden |= hidden.keys()
    draft.arities |= dict.fromkeys(hidden, 0)


def _split(clause: Clause, dialect: str, hidden: dict[str, Clause]) -> Clause:
    head = clause.heads[0]
    connected, rest = _component({v.name for v in variables(head)}, list(literals(clause)))
    body: list[Literal] = connected
    parts: list[list[Literal]] = []
    while rest:
        part, rest = _component({v.name for v in variables(rest[0])}, rest, rest[0])
        parts.append(part)
    for part in parts:
        if not any(True for literal in part for _ in variables(literal)) or (len(parts) == 1 and not connected):
            body += part  # a ground literal, or a body that is all one part: nothing to gain
            continue
        if any(map(_may_fail, part)):
            body += part
            continue
        name = f"[{', '.join(to_text(_as_written(literal), dialect) for literal in part)}]"
        hidden.setdefault(name, Clause((Atom(name, ()),), Conjunction(tuple(part)), clause.span))
        body.append(Atom(name, (), part[0].span))
    return replace(clause, body=Conjunction(tuple(body)))


def _may_fail(literal: Literal) -> bool:
    """Return whether a literal may have no result."""
    if not isinstance(literal, Test):
        return False
    if literal.operator in ("match", "!match") and not isinstance(literal.terms[0], Constant):
        return True
    return any(map(_computes, literal.terms))


def _computes(term: Term) -> bool:
    """Return whether a term computes anything but a range, which always has a result."""
    if not isinstance(term, Call):
        return False
    generates = any(s.generates for s in SIGNATURES.get(term.functor, ()))
    return not generates or any(map(_computes, term.arguments))


def _as_written(literal: Literal) -> Literal:
    """Return a literal with `_` for the variables that were made of it; each of them occurs once."""
    if not isinstance(literal, Atom):
        return literal
    made = (isinstance(t, Variable) and t.name.startswith(PREFIX) for t in literal.terms)
    return replace(literal, terms=tuple(Wildcard() if m else t for m, t in zip(made, literal.terms)))


def _component(
    names: set[str], todo: list[Literal], first: Literal | None = None
) -> tuple[list[Literal], list[Literal]]:
    """Return the literals that are connected to these variables, and those that are not, both in the order written."""
    place = {id(literal): i for i, literal in enumerate(todo)}
    found: list[Literal] = []
    if first is not None:
        found.append(first)
        todo = [literal for literal in todo if literal is not first]
    while True:
        more = [literal for literal in todo if any(v.name in names for v in variables(literal))]
        if not more:
            return sorted(found, key=lambda literal: place[id(literal)]), todo
        found += more
        taken = {id(literal) for literal in more}
        todo = [literal for literal in todo if id(literal) not in taken]
        names = names | {v.name for literal in more for v in variables(literal)}
