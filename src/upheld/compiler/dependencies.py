"""Dependencies between classes of atoms: strongly connected components, their levels, and cycles through negation."""

from __future__ import annotations

from collections.abc import Mapping

from upheld.base.errors import Problem, ProgramError, quote
from upheld.base.source import Span
from upheld.language.ast import Variable
from upheld.language.core import Aggregation, Atom, Core, Rule
from upheld.language.core_text import atom_text, with_prefixes

#: Whether it is through negation, and the rule and body atom that make it.
Dependency = tuple[bool, Rule, Atom]
#: For each class of atoms, the classes its rules look at.
Dependencies = dict[int, dict[int, Dependency]]


def components_of(nodes: list[int], depends: Dependencies) -> list[list[int]]:
    """Return the strongly connected components, each after those it depends on (Tarjan's algorithm, iterative)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    components: list[list[int]] = []
    for start in nodes:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        stack.append(start)
        on_stack.add(start)
        work = [(start, iter(sorted(depends.get(start, ()))))]
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(depends.get(target, ())))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    components.append(component)
    return components


def _granular(components: list[list[int]], depends: Dependencies, derived: set[int]) -> dict[int, int]:
    level: dict[int, int] = {}
    top = 1
    for component in components:
        if any(c in derived for c in component):
            top += 1
            level.update(dict.fromkeys(component, top))
        else:
            level.update(dict.fromkeys(component, 1))
    return level


def _by_levels(components: list[list[int]], depends: Dependencies, derived: set[int]) -> dict[int, int]:
    level: dict[int, int] = {}
    for component in components:
        members = set(component)
        if members.isdisjoint(derived):
            level.update(dict.fromkeys(component, 1))
        else:
            below = (level[target] for c in component for target in depends.get(c, ()) if target not in members)
            level.update(dict.fromkeys(component, 1 + max(below, default=1)))
    return level


def _coarsest(components: list[list[int]], depends: Dependencies, derived: set[int]) -> dict[int, int]:
    level: dict[int, int] = {}
    for component in components:
        members = set(component)
        below = [
            level[target] + negated
            for c in component
            for target, (negated, _, _) in depends.get(c, {}).items()
            if target not in members
        ]
        level.update(dict.fromkeys(component, max(below, default=1)))
    return level


def apart(level: dict[int, int], aggregated: Mapping[int, str]) -> dict[int, int]:
    """Return levels by which values of aggregates are below all else of their level, which may depend on them.

    Values of aggregates over the facts of one relation come together: they depend on nothing else.
    """
    if not aggregated:
        return level
    first: dict[str, int] = {}
    for c, body in aggregated.items():
        first[body] = min(level[c], first.get(body, level[c]))
    at = {c: (first[aggregated[c]], False) if c in aggregated else (n, True) for c, n in level.items()}
    ordered = {place: number for number, place in enumerate(sorted(set(at.values())), 1)}
    return {c: ordered[place] for c, place in at.items()}


LEVELS = {"granular": _granular, "levels": _by_levels, "coarsest": _coarsest}
STRATIFICATIONS = tuple(LEVELS)


def refuse_negation_in_cycle(core: Core, components: list[list[int]], depends: Dependencies) -> None:
    problems = []
    for component in components:
        members = set(component)
        for head in sorted(component):
            for target, (negated, rule, atom) in sorted(depends.get(head, {}).items()):
                if negated and target in members:
                    cycle = [(True, rule, atom), *_path(target, head, members, depends)]
                    aggregated = {a.relation: a for a in core.aggregations}
                    through = [aggregated[r.head.predicate] for _, r, _ in cycle if r.head.predicate in aggregated]
                    cycle = _without_hidden(core, cycle)
                    problem = _aggregate_problem(through[0], cycle) if through else _cycle_problem(core, cycle)
                    problems.append(with_prefixes(problem, core))
                    break
            else:
                continue
            break
    if problems:
        raise ProgramError(problems)


def _path(start: int, end: int, members: set[int], depends: Dependencies) -> list[Dependency]:
    """Return the shortest chain of rules by which `start` depends on `end`."""
    came: dict[int, tuple[int, Dependency] | None] = {start: None}
    frontier = [start]
    while frontier and end not in came:
        reached = []
        for node in frontier:
            for target, dependency in sorted(depends.get(node, {}).items()):
                if target in members and target not in came:
                    came[target] = (node, dependency)
                    reached.append(target)
        frontier = reached
    steps: list[Dependency] = []
    step = came[end]
    while step is not None:
        steps.append(step[1])
        step = came[step[0]]
    return steps[::-1]


def _without_hidden(core: Core, cycle: list[Dependency]) -> list[Dependency]:
    """Return the cycle as its author knows it: a dependency on a hidden relation is one on what that stands for."""
    while core.predicates[cycle[0][1].head.predicate].hidden:
        cycle = [cycle[-1], *cycle[:-1]]
    result: list[Dependency] = []
    through: tuple[bool, Rule] | None = None
    for negated, rule, atom in cycle:
        if through:
            negated, rule = negated or through[0], through[1]
        through = (negated, rule) if core.predicates[atom.predicate].hidden else None
        if not through:
            result.append((negated, rule, atom))
    return result


def _cycle_problem(core: Core, cycle: list[Dependency]) -> Problem:
    _, rule, _ = cycle[0]
    texts = [("!" if negated else "") + atom_text(atom) for negated, _, atom in cycle]
    related: list[tuple[str, Span]] = []
    for (_, step, _), text in zip(cycle[1:], texts[1:]):
        if step.span:
            related.append((f"{quote(atom_text(step.head))} depends on {quote(text)}", step.span))
    return Problem(
        "negation-in-recursion",
        f"negation through recursion: {' <- '.join([atom_text(rule.head), *texts])}",
        rule.span,
        related=tuple(related),
        note="the negated relation must be complete before the rule is applied, so it must not depend on the head",
        hint=_way_out(core, rule),
    )


def _aggregate_problem(aggregation: Aggregation, cycle: list[Dependency]) -> Problem:
    texts = [atom_text(cycle[0][1].head), *(atom_text(atom) for _, _, atom in cycle)]
    return Problem(
        "aggregate-in-recursion",
        f"recursion through an aggregate: {' <- '.join(texts)}",
        aggregation.span,
        note="all facts that an aggregate ranges over must be known before it has a value, and so must its groups",
        hint="break the cycle, or aggregate over a relation of a lower stratum",
    )


def _way_out(core: Core, rule: Rule) -> str:
    """Return how to break a cycle through a rule; rules for all properties, as in rule sets, need another way."""
    for_all = any(r.head.predicate == "triple" and isinstance(r.head.terms[1], Variable) for r in core.rules)
    if core.dialect == "dlog" and rule.head.predicate == "triple" and for_all:
        return (
            "rules with a variable as property read and derive every triple; derive a relation of your own instead, "
            "such as `lazy(?x)`, or have `upheld owl` translate the ontology to rules that name their properties"
        )
    return "break the cycle, or negate a relation of a lower stratum"
