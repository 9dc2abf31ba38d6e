"""Joining a body, one binding at a time.

A body is matched step by step: each time the atom with the most bound columns, and built-ins and negated atoms as
soon as their variables are bound. Where a built-in has no result, that is an error if the rest of the body holds, and
nothing otherwise: whether a rule fails may not depend on the order in which its body is matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from upheld.algebra.instances import Binding, cheapest_first, evaluate_builtin, instantiate, is_ready, undefined, unify
from upheld.language.ast import Constant
from upheld.language.core import Atom, Builtin, Fact, Rule
from upheld.language.types.functors import Undefined
from upheld.language.values import Value

#: Gives the rows of a predicate with these values at these positions.
Lookup = Callable[[str, tuple[int, ...], tuple[Value, ...]], Iterable[tuple[Value, ...]]]
Holds = Callable[[Fact], bool]


@dataclass(frozen=True, eq=False)
class Step:
    """A literal of a body with where it is matched: rows from `lookup` that pass `holds`, or a test alone."""

    atom: Atom
    holds: Holds
    #: None for a negated atom: its fact, all of it known by then, must not hold.
    lookup: Lookup | None = None


def match(rule: Rule, first: Step | None, steps: Iterable[Step], binding: Binding) -> Iterator[Binding]:
    """Yield every binding of the rule's variables that extends `binding` and passes all steps and built-ins."""
    return _extend(rule, _in_order(rule, first, steps, set(binding)), 0, binding)


def _extend(rule: Rule, order: list[Step | Builtin], at: int, binding: Binding) -> Iterator[Binding]:
    if at == len(order):
        yield binding
        return
    step = order[at]
    if isinstance(step, Builtin):
        try:
            found = evaluate_builtin(step, binding)
        except Undefined as e:
            if _may_hold(order[at + 1 :], binding):
                raise undefined(rule, str(e), binding) from None
            return
        for extended in found:
            yield from _extend(rule, order, at + 1, extended)
    elif step.lookup is None:
        if not step.holds(instantiate(step.atom, binding)):
            yield from _extend(rule, order, at + 1, binding)
    else:
        for extended in _match_atom(step, binding):
            yield from _extend(rule, order, at + 1, extended)


def _may_hold(steps: list[Step | Builtin], binding: Binding) -> bool:
    """Return whether some binding passes these steps, leaving out what lacks a value or has no result.

    Atoms first, then all that can be evaluated, then negated atoms: what is left out is the same in every order.
    """
    builtins = cheapest_first(s for s in steps if isinstance(s, Builtin))
    atoms = [s for s in steps if isinstance(s, Step) and s.lookup is not None]
    negated = [s for s in steps if isinstance(s, Step) and s.lookup is None]
    return any(_may_pass(builtins, negated, found) for found in _joined(atoms, binding))


def _joined(atoms: list[Step], binding: Binding) -> Iterator[Binding]:
    if not atoms:
        yield binding
        return
    for extended in _match_atom(atoms[0], binding):
        yield from _joined(atoms[1:], extended)


def _may_pass(builtins: list[Builtin], negated: list[Step], binding: Binding) -> bool:
    ready = next((b for b in builtins if is_ready(b, binding)), None)
    if ready is None:
        known = [s for s in negated if all(v in binding for v in s.atom.variables())]
        return not any(s.holds(instantiate(s.atom, binding)) for s in known)
    rest = [b for b in builtins if b is not ready]
    try:
        found = evaluate_builtin(ready, binding)
    except Undefined:
        found = [binding]
    return any(_may_pass(rest, negated, extended) for extended in found)


def _in_order(rule: Rule, first: Step | None, steps: Iterable[Step], bound: set[str]) -> list[Step | Builtin]:
    """Return the order in which to match: whatever is ready and only filters, else the atom with most bound columns."""
    order: list[Step | Builtin] = []
    todo: list[Step | Builtin] = [*steps, *cheapest_first(rule.builtins)]
    step: Step | Builtin | None = first
    while todo or step:
        if step is None:
            step = _next(todo, bound)
            todo.remove(step)
        order.append(step)
        bound.update(step.variables() if isinstance(step, Builtin) else step.atom.variables())
        step = None
    return order


def _next(todo: list[Step | Builtin], bound: set[str]) -> Step | Builtin:
    for step in todo:
        if isinstance(step, Builtin):
            if is_ready(step, bound):
                return step
        elif step.lookup is None and all(v in bound for v in step.atom.variables()):
            return step
    atoms = [s for s in todo if isinstance(s, Step) and s.lookup is not None]
    assert atoms, "an unsafe rule: nothing binds the variables that are left"
    return max(atoms, key=lambda s: sum(isinstance(t, Constant) or t.name in bound for t in s.atom.terms))


def _match_atom(step: Step, binding: Binding) -> Iterator[Binding]:
    assert step.lookup is not None, "a negated atom has no rows"
    atom = step.atom
    positions, key = [], []
    for position, term in enumerate(atom.terms):
        value = term.value if isinstance(term, Constant) else binding.get(term.name)
        if value is not None:
            positions.append(position)
            key.append(value)
    for row in step.lookup(atom.predicate, tuple(positions), tuple(key)):
        if not step.holds((atom.predicate, row)):
            continue
        extended = unify(atom, row, binding)
        if extended is not None:
            yield extended
