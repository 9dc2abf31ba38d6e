"""Rules that are probably not what was meant: they never fire, multiply relations, or aggregate all facts at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from upheld.base.errors import Problem, quote
from upheld.base.source import Source, Span
from upheld.language.ast import Clause, Constant, Program, Variable
from upheld.language.core import Atom, Builtin, Core, Rule

Place = tuple[Source, int]

#: Comparisons with their sides exchanged.
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_NEVER_OF_ITSELF = ("<", ">", "!=")


def lint_rules(program: Program, core: Core, with_facts: Collection[str] = ()) -> Iterator[Problem]:
    """Yield a warning for each relation that nothing fills, except `with_facts`, and for each doubtful rule."""
    yield from _never_filled(program, core, with_facts)
    yield from _never_fires(program, core)
    reported: set[Place] = set()
    for rule in core.rules:
        for problem in (*_products(rule, core), *_ungrouped(rule, core)):
            # A clause makes several rules, and a component several clauses.
            place = _place(problem.span)
            if place is None or place not in reported:
                yield problem
            if place is not None:
                reported.add(place)


def _place(span: Span | None) -> Place | None:
    return None if span is None else (span.source, span.start)


def _never_filled(program: Program, core: Core, with_facts: Collection[str]) -> Iterator[Problem]:
    """Yield a warning for each relation that is used without facts, in a program that says where its facts are.

    A relation that is not used either has a warning of its own.
    """
    inputs = {directive.relation for directive in program.directives if directive.kind == "input"}
    if not inputs:
        return  # facts are passed in Python, or by updates
    filled = inputs | set(with_facts) | {head.predicate for clause in program.clauses for head in clause.heads}
    used = {directive.relation for directive in program.directives}
    used |= {atom.predicate for rule in core.rules for atom in rule.atoms}
    used |= {aggregation.body for aggregation in core.aggregations}
    for declaration in program.declarations:
        if declaration.name in used - filled:
            yield Problem(
                "never-filled",
                f"relation {quote(declaration.name)} has no rules, no facts and no `.input`",
                declaration.span,
                hint=f"add `.input {declaration.name[:60]}`, or remove the relation",
                severity="warning",
            )


def _never_fires(program: Program, core: Core) -> Iterator[Problem]:
    """Yield a warning for each clause none of whose rules can have an instance."""
    satisfiable = {_place(rule.span) for rule in core.rules if _contradiction(rule) is None}
    contradictions = {_place(rule.span): _contradiction(rule) for rule in core.rules}
    seen: set[Place] = set()
    for clause in program.clauses:
        place = _place(clause.span)
        if clause.body is None or place is None or place in satisfiable or place in seen:
            continue
        seen.add(place)
        yield _contradictory(clause, contradictions.get(place))


def _contradictory(clause: Clause, reason: str | None) -> Problem:
    return Problem(
        "never-fires",
        f"this rule never fires: {reason or 'a condition on constants does not hold'}",
        clause.span,
        hint="correct the conditions, or remove the rule",
        severity="warning",
    )


def _contradiction(rule: Rule) -> str | None:
    """Return why a rule has no instances, or None if nothing shows that."""
    if both := set(rule.positive) & set(rule.negative):
        return f"it asks for {quote(next(iter(both)).predicate)} and for its negation"
    for builtin in rule.builtins:
        left, right = builtin.arguments
        if isinstance(left, Variable) and left == right and builtin.operator in _NEVER_OF_ITSELF:
            return f"{quote(left.name)} is compared with itself"
    for name, limits in _limits(rule.builtins).items():
        if _empty(limits):
            return f"no value of {quote(name)} fulfils all comparisons"
    return None


def _limits(builtins: Collection[Builtin]) -> dict[str, list[tuple[str, int | float]]]:
    """Return the comparisons of each variable with numbers."""
    limits: dict[str, list[tuple[str, int | float]]] = {}
    for builtin in builtins:
        left, right = builtin.arguments
        operator = builtin.operator
        if isinstance(left, Constant):
            left, right, operator = right, left, _MIRRORED.get(operator, "")
        if isinstance(left, Variable) and isinstance(right, Constant) and operator in _MIRRORED:
            if builtin.type in ("number", "unsigned", "float") and not isinstance(right.value, str):
                limits.setdefault(left.name, []).append((operator, right.value))
    return limits


def _empty(limits: Collection[tuple[str, int | float]]) -> bool:
    """Return whether no number fulfils all comparisons; a few gaps between whole numbers are not noticed."""
    # A number within all limits is one of the limits, or between two of them, or beyond all.
    values = sorted({value for _, value in limits})
    between = [_middle(low, high) for low, high in pairwise(values)]
    candidates = [*values, *between, values[0] - 1, values[-1] + 1]
    return not any(all(_fulfils(x, operator, value) for operator, value in limits) for x in candidates)


def _middle(low: int | float, high: int | float) -> int | float:
    return low + (high - low) // 2 if isinstance(low, int) and isinstance(high, int) else low / 2 + high / 2


def _fulfils(x: int | float, operator: str, value: int | float) -> bool:
    match operator:
        case "<":
            return x < value
        case "<=":
            return x <= value
        case ">":
            return x > value
        case ">=":
            return x >= value
        case "=":
            return x == value
        case _:
            return x != value


def _parts(rule: Rule) -> list[Atom | Builtin]:
    return [*rule.positive, *rule.negative, *rule.builtins]


def _products(rule: Rule, core: Core) -> Iterator[Problem]:
    """Yield a warning for a rule that combines all facts of two groups of atoms."""
    visible = [a for a in rule.positive if not core.predicates[a.predicate].hidden and any(a.variables())]
    if len(visible) < 2:
        return
    groups: list[set[str]] = []
    for part in _parts(rule):
        joined = set(part.variables())
        for group in [g for g in groups if g & joined]:
            groups.remove(group)
            joined |= group
        groups.append(joined)
    first = visible[0]
    group = next(g for g in groups if not g.isdisjoint(first.variables()))
    for other in visible[1:]:
        if group.isdisjoint(other.variables()):
            yield Problem(
                "cartesian-product",
                f"{quote(first.predicate)} and {quote(other.predicate)} share no variable",
                rule.span,
                note="the rule combines all facts of one with all facts of the other",
                hint="join them by a variable or a comparison",
                severity="warning",
            )
            return


def _ungrouped(rule: Rule, core: Core) -> Iterator[Problem]:
    """Yield a warning for each aggregate over all facts whose value stands beside each fact of another relation."""
    aggregations = {a.relation: a for a in core.aggregations if not a.groups}
    others = [a for a in rule.positive if not core.predicates[a.predicate].hidden and any(a.variables())]
    for atom in rule.positive:
        aggregation = aggregations.get(atom.predicate)
        if aggregation is None or not others:
            continue
        rest = [part for part in _parts(rule) if part is not atom]
        value = atom.terms[-1]
        if isinstance(value, Variable) and all(value.name not in part.variables() for part in rest):
            yield Problem(
                "ungrouped-aggregate",
                f"{quote(aggregation.text)} has the same value for each fact of {quote(others[0].predicate)}",
                aggregation.span,
                note="an aggregate without a variable of the rest of the rule is over all facts",
                hint="use a variable of the rule in the aggregate, or derive the value by a rule of its own",
                severity="warning",
            )
