"""Subsumption by an order of numbers: a relation holds the least or the greatest fact of each group.

`r(x, a) <= r(x, b) :- a > b.` says that `r(x, a)` gives way to `r(x, b)` if `a > b`. The rules of `r` derive candidates
instead, and `r` selects from them:

    [candidates of r](x, a) :- ...
    r(x, a) :- [candidates of r](x, a), a = min b : { [candidates of r](x, b) }.

Columns in which both atoms have the same variable make the groups. One other column is compared. If there are more, the
comparison must be strict: otherwise two facts would give way to each other, and the order of evaluation would decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from upheld.base.errors import count, nearest, quote
from upheld.language.ast import Aggregate, Atom, Clause, Conjunction, Subsumption, Term, Test, Variable, Wildcard, nodes
from upheld.language.draft import Draft

#: Comparisons of the value that gives way with the other one, and the aggregate that is left.
_KEEPS = {">": "min", ">=": "min", "<": "max", "<=": "max"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class _Order:
    """The columns that make groups, the column that is compared, and the aggregate that selects its value."""

    groups: tuple[int, ...]
    value: int
    function: str


def select_by_subsumption(draft: Draft) -> None:
    """Replace each subsumption by candidates and a rule that selects from them, or report why it cannot be."""
    relations: set[str] = set()
    for subsumption in draft.program.subsumptions:
        name = subsumption.dominated.predicate
        misfits = [a for a in (subsumption.dominated, subsumption.dominating) if not _fits(a, draft)]
        if misfits:
            continue
        order = _order(subsumption)
        reason = order if isinstance(order, str) else _obstacle(name, relations, draft)
        relations.add(name)
        if reason is not None:
            draft.problem(
                "unsupported-subsumption",
                f"this subsumption is not supported: {reason}",
                subsumption.span,
                note="supported is the least or the greatest value of each group, as in "
                "`r(x, a) <= r(x, b) :- a > b.`, where `r` does not depend on itself",
                hint="select by an aggregate: `best(x, a) :- r(x, a), a = min b : { r(x, b) }.`",
            )
        elif isinstance(order, _Order):
            _select(subsumption, order, draft)


def _fits(atom: Atom, draft: Draft) -> bool:
    """Report an atom of a relation that is not known, or has another number of columns."""
    arity = draft.arities.get(atom.predicate)
    if arity is None:
        hint = nearest(atom.predicate, draft.arities)
        draft.problem("unknown-relation", f"unknown relation {quote(atom.predicate)}", atom.span, hint=hint)
    elif arity != len(atom.terms):
        message = f"relation {quote(atom.predicate)} has {count(arity, 'column')}, not {len(atom.terms)}"
        draft.problem("arity-clash", message, atom.span)
    return arity == len(atom.terms)


def _order(subsumption: Subsumption) -> _Order | str:
    """Return the order by which facts give way to each other, or what is not one about it."""
    dominated, dominating, body = subsumption.dominated, subsumption.dominating, subsumption.body
    if dominated.predicate != dominating.predicate:
        return "its atoms are of two relations"
    left = [_name(term, f"left {i}") for i, term in enumerate(dominated.terms)]
    right = [_name(term, f"right {i}") for i, term in enumerate(dominating.terms)]
    if any(None in side or len(set(side)) < len(side) for side in (left, right)):
        return "its atoms have terms other than different variables"
    groups = tuple(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a == b)
    if any(a in right and i not in groups for i, a in enumerate(left)):
        return "a variable stands in different columns of its atoms"
    if not isinstance(body, Test) or body.operator not in _KEEPS:
        return "its body is not one comparison of two variables"
    one, other = body.terms
    operator = body.operator
    if isinstance(other, Variable) and other.name in left:
        one, other, operator = other, one, _MIRRORED[operator]
    if not (isinstance(one, Variable) and isinstance(other, Variable)) or one.name not in left:
        return "its body is not one comparison of two variables"
    value = left.index(one.name)
    if value in groups or right[value] != other.name:
        return "its body does not compare the values of one column"
    if operator in (">=", "<=") and len(groups) + 1 < len(left):
        return "facts with the same value would give way to each other"
    return _Order(groups, value, _KEEPS[operator])


def _name(term: Term, place: str) -> str | None:
    """Return the variable that a term is; `_` is another one in each place."""
    match term:
        case Variable(name=name):
            return name
        case Wildcard():
            return f"_ {place}"
        case _:
            return None


def _obstacle(name: str, subsumed: set[str], draft: Draft) -> str | None:
    """Return why facts of a relation cannot be selected after all of them have been derived."""
    if name in subsumed:
        return f"{quote(name)} has two of them"
    if any(d.equivalence for d in draft.program.declarations if d.name == name):
        return f"{quote(name)} is an equivalence"
    if any(d.kind == "input" and d.relation == name for d in draft.program.directives):
        return f"{quote(name)} is read from a file; read another relation, and derive {quote(name)} from it"
    if name in _needed(name, draft):
        return f"{quote(name)} depends on itself, so that a fact may give way after others follow from it"
    return None


def _needed(name: str, draft: Draft) -> set[str]:
    """Return the relations that a relation depends on."""
    bodies: dict[str, set[str]] = {}
    for clause in draft.rules:
        terms = [term for head in clause.heads for term in head.terms]  # which may have aggregates
        parts = [*terms, *([clause.body] if clause.body is not None else [])]
        used = {node.predicate for node in nodes(*parts) if isinstance(node, Atom)}
        for head in clause.heads:
            bodies.setdefault(head.predicate, set()).update(used)
    needed: set[str] = set()
    pending = [name]
    while pending:
        for other in bodies.get(pending.pop(), set()) - needed:
            needed.add(other)
            pending.append(other)
    return needed


def _select(subsumption: Subsumption, order: _Order, draft: Draft) -> None:
    """Let the rules and facts of a relation derive candidates, and enter the rule that selects from them."""
    name, span = subsumption.dominated.predicate, subsumption.span
    candidates = f"[candidates of {name}]"
    draft.hidden.add(candidates)
    arity = draft.arities[candidates] = draft.arities[name]

    def renamed(clause: Clause) -> Clause:
        if all(head.predicate != name for head in clause.heads):
            return clause
        heads = (replace(head, predicate=candidates) if head.predicate == name else head for head in clause.heads)
        return replace(clause, heads=tuple(heads))

    draft.rules = [renamed(clause) for clause in draft.rules]
    draft.facts = [renamed(clause) for clause in draft.facts]
    written = enumerate(subsumption.dominated.terms)
    columns = tuple(t if isinstance(t, Variable) else Variable(f"column {i}", span) for i, t in written)
    best = subsumption.dominating.terms[order.value]
    compared: list[Term] = [columns[i] if i in order.groups else Wildcard(span) for i in range(arity)]
    compared[order.value] = best
    extreme = Aggregate(order.function, best, Atom(candidates, tuple(compared), span), span)
    body = Conjunction((Atom(candidates, columns, span), Test("=", (columns[order.value], extreme), span)), span)
    draft.rules.append(Clause((Atom(name, columns, span),), body, span))
