"""A relation declared as `eqrel` gets the rules that make it an equivalence on the values that occur in it."""

from __future__ import annotations

from upheld.base.errors import quote
from upheld.language.ast import Atom, Clause, Conjunction, Declaration, Formula, Variable
from upheld.language.draft import Draft


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


def _rule(declaration: Declaration, head: str, *body: str) -> Clause:
    span = declaration.span

    def atom(names: str) -> Atom:
        return Atom(declaration.name, tuple(Variable(name, span) for name in names), span)

    atoms: list[Formula] = [atom(names) for names in body]
    return Clause((atom(head),), atoms[0] if len(atoms) == 1 else Conjunction(tuple(atoms), span), span)
