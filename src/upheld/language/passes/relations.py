"""Check that relations are declared once, used with one arity, and known.

A program with a `.decl` declares all its relations; one with none declares them by using them.
"""

from __future__ import annotations

from collections.abc import Iterator

from upheld.errors import count, nearest, quote
from upheld.language.passes.draft import Draft
from upheld.language.syntax.ast import Atom, Clause, Constant, nodes
from upheld.source import Span


def check_relations(draft: Draft) -> None:
    """Split the clauses into rules and facts, and drop those that misuse a relation, with a problem for each."""
    first_use: dict[str, Span | None] = {}
    for declaration in draft.program.declarations:
        if declaration.name in draft.arities:
            related = first_use[declaration.name]
            draft.problem(
                "duplicate-relation",
                f"relation {quote(declaration.name)} is declared twice",
                declaration.span,
                related=(("declared here first", related),) if related else (),
                hint="remove one of the declarations",
            )
            continue
        draft.arities[declaration.name] = len(declaration.attributes)
        first_use[declaration.name] = declaration.span
        names = [a.name for a in declaration.attributes]
        for i, attribute in enumerate(declaration.attributes):
            if attribute.name in names[:i]:
                draft.problem(
                    "duplicate-attribute",
                    f"attribute {quote(attribute.name)} of {quote(declaration.name)} is declared twice",
                    attribute.span,
                    hint="give each attribute its own name",
                )
    all_declared = bool(draft.program.declarations)
    if not all_declared:
        draft.arities |= {name: len(types) for name, types in draft.known_types.items()}
    heads = {head.predicate for clause in draft.program.clauses for head in clause.heads}

    def fits(atom: Atom) -> bool:
        expected = draft.arities.get(atom.predicate)
        if expected is None:
            if all_declared or (draft.closed and atom.predicate not in heads):
                draft.problem(
                    "unknown-relation",
                    f"unknown relation {quote(atom.predicate)}",
                    atom.span,
                    note="a program with declarations declares every relation it uses" if all_declared else None,
                    hint=nearest(atom.predicate, draft.arities)
                    or (f"add `.decl {atom.predicate[:60]}(...)`" if all_declared else None),
                )
                return False
            draft.arities[atom.predicate] = len(atom.terms)
            first_use[atom.predicate] = atom.span
            return True
        if expected != len(atom.terms):
            place = first_use.get(atom.predicate)
            label = "declared here" if all_declared else f"first used here, with {expected}"
            draft.problem(
                "arity-clash",
                f"relation {quote(atom.predicate)} has {count(expected, 'column')}, not {len(atom.terms)}",
                atom.span,
                related=((label, place),) if place else (),
                note="a relation has the same number of columns everywhere",
            )
            return False
        return True

    for clause in draft.program.clauses:
        # Every atom is checked, so that all mistakes of a clause are reported together.
        verdicts = [fits(atom) for atom in _atoms(clause)]
        if all(verdicts):
            (draft.facts if clause.body is None else draft.rules).append(clause)

    for directive in draft.program.directives:
        if directive.relation not in draft.arities:
            draft.problem(
                "unknown-relation",
                f"`.{directive.kind}` of unknown relation {quote(directive.relation)}",
                directive.span,
                hint=nearest(directive.relation, draft.arities) or f"add `.decl {directive.relation[:60]}(...)`",
            )


def _atoms(clause: Clause) -> Iterator[Atom]:
    if clause.body is None:
        if all(isinstance(term, Constant) for head in clause.heads for term in head.terms):
            return iter(clause.heads)  # most clauses by far: they need no walk
        return (node for node in nodes(*clause.heads) if isinstance(node, Atom))
    return (node for node in nodes(*clause.heads, clause.body) if isinstance(node, Atom))
