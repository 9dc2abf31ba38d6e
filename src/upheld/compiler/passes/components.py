"""Parts of a body that share no variable with the head or the rest only ask whether they hold at all.

`p(x) :- q(x), r(y, z), s(z).` becomes `p(x) :- q(x), h().` with a hidden relation `h() :- r(y, z), s(z).` Left as they
stand, such parts would multiply the instances of the rule by all the ways in which they hold.

A part that computes stays in the rule: where it has no result, that is an error only if the rest of the body holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from upheld.language.ast import Atom, Call, Clause, Conjunction, Constant, Term, Test, Variable, Wildcard, variables
from upheld.language.disjunction import Literal, literals
from upheld.language.draft import Draft
from upheld.language.syntax.printer import to_text
from upheld.language.types.functors import SIGNATURES
from upheld.language.wildcards import PREFIX

#: A literal, and the names of its variables.
_Named = tuple[Literal, set[str]]


def split_components(draft: Draft) -> None:
    """Give each part of a body that is connected neither to the head nor to another part a relation of its own."""
    hidden: dict[str, Clause] = {}
    draft.rules = [_split(clause, draft.program.dialect, hidden) for clause in draft.rules]
    draft.rules += hidden.values()
    draft.hidden |= hidden.keys()
    draft.arities |= dict.fromkeys(hidden, 0)


def _split(clause: Clause, dialect: str, hidden: dict[str, Clause]) -> Clause:
    named = [(literal, {v.name for v in variables(literal)}) for literal in literals(clause)]
    connected, rest = _component({v.name for v in variables(clause.heads[0])}, named)
    if not rest:
        return clause
    body: list[Literal] = [literal for literal, _ in connected]
    parts: list[list[_Named]] = []
    while rest:
        part, rest = _component(rest[0][1], rest[1:], rest[:1])
        parts.append(part)
    for part in parts:
        alone = [literal for literal, _ in part]
        if not any(names for _, names in part) or (len(parts) == 1 and not connected) or any(map(_may_fail, alone)):
            body += alone  # a ground literal, a body that is all one part, or one that computes
            continue
        name = f"[{', '.join(to_text(_as_written(literal), dialect) for literal in alone)}]"
        hidden.setdefault(name, Clause((Atom(name, ()),), Conjunction(tuple(alone)), clause.span))
        body.append(Atom(name, (), alone[0].span))
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


def _component(names: set[str], todo: list[_Named], first: Sequence[_Named] = ()) -> tuple[list[_Named], list[_Named]]:
    """Return the literals that are connected to these variables, and those that are not, both in the order written."""
    found = list(first)
    place = {id(literal): i for i, (literal, _) in enumerate(found + todo)}
    while more := [part for part in todo if not part[1].isdisjoint(names)]:
        found += more
        todo = [part for part in todo if part[1].isdisjoint(names)]
        names = names.union(*(own for _, own in more))
    return sorted(found, key=lambda part: place[id(part[0])]), todo
