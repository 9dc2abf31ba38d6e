"""Check that relations are declared once, used with one arity, and known.

A program with a `.decl` declares all its relations; one with none declares them by using them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from upheld.base.errors import Problem, count, nearest, quote
from upheld.base.source import Span
from upheld.language.ast import Atom, Clause, Constant, nodes
from upheld.language.draft import Draft


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
    _take_constraints(draft, first_use)
    heads = {head.predicate for clause in draft.program.clauses for head in clause.heads}

    def fits(atom: Atom) -> bool:
        if atom.predicate in draft.constraints:
            _refuse_constraint(draft, atom.predicate, atom.span)
            return False
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
        if directive.relation in draft.constraints:
            _refuse_constraint(draft, directive.relation, directive.span)
        elif directive.relation not in draft.arities:
            draft.problem(
                "unknown-relation",
                f"`.{directive.kind}` of unknown relation {quote(directive.relation)}",
                directive.span,
                hint=nearest(directive.relation, draft.arities) or f"add `.decl {directive.relation[:60]}(...)`",
            )


def _take_constraints(draft: Draft, first_use: Mapping[str, Span | None]) -> None:
    """Enter the constraints as hidden relations; refuse names that are declared or taken."""
    for problem in duplicate_constraints(draft.program.clauses):
        draft.problems.append(problem)
    for clause in draft.program.clauses:
        if not clause.constraint:
            continue
        head = clause.heads[0]
        draft.constraints[head.predicate] = head
        if head.predicate in first_use:
            _refuse_constraint(draft, head.predicate, first_use[head.predicate])
        draft.arities[head.predicate] = len(head.terms)
        draft.hidden.add(head.predicate)


def duplicate_constraints(clauses: Iterable[Clause]) -> Iterator[Problem]:
    """Yield a problem for each constraint whose name another one has."""
    first: dict[str, Clause] = {}
    for clause in clauses:
        if clause.constraint:
            known = first.setdefault(clause.heads[0].predicate, clause)
            if known is not clause:
                yield Problem(
                    "duplicate-constraint",
                    f"there are two constraints {quote(clause.heads[0].predicate)}",
                    clause.span,
                    related=(("the first one is here", known.span),) if known.span else (),
                    hint="give each constraint its own name, or join the two bodies with `;`",
                )


def _refuse_constraint(draft: Draft, name: str, span: Span | None) -> None:
    place = draft.constraints[name].span
    draft.problem(
        "constraint-as-relation",
        f"{quote(name)} is a constraint, not a relation",
        span,
        related=(("the constraint is here", place),) if place else (),
        note="declarations, facts, rules and directives cannot name a constraint",
        hint="derive a relation by a rule, and let the constraint read that",
    )


def _atoms(clause: Clause) -> Iterator[Atom]:
    if clause.constraint and clause.body is not None:
        return (node for node in nodes(clause.body) if isinstance(node, Atom))
    if clause.body is None:
        if all(isinstance(term, Constant) for head in clause.heads for term in head.terms):
            return iter(clause.heads)  # most clauses by far: they need no walk
        return (node for node in nodes(*clause.heads) if isinstance(node, Atom))
    return (node for node in nodes(*clause.heads, clause.body) if isinstance(node, Atom))


def split_heads(draft: Draft) -> None:
    """Give every clause exactly one head."""
    draft.rules = [single for clause in draft.rules for single in _split(clause)]
    draft.facts = [single for clause in draft.facts for single in _split(clause)]


def _split(clause: Clause) -> list[Clause]:
    return [clause] if len(clause.heads) == 1 else [replace(clause, heads=(head,)) for head in clause.heads]
