"""Rule instances on Python values, one binding at a time: how the reference engine joins a body.

A body is matched step by step: each time the atom with the most bound columns, and built-ins and negated atoms as
soon as their variables are bound. Where a built-in has no result, that is an error if the rest of the body holds, and
nothing otherwise: whether a rule fails may not depend on the order in which its body is matched.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass

from upheld.errors import EvaluationError, Problem, quote
from upheld.language.core import Apply, Atom, Builtin, Expression, Fact, Rule, expression_variables
from upheld.language.core_text import value_text
from upheld.language.syntax.ast import Constant, Value, Variable
from upheld.language.types.functors import Undefined, constraint
from upheld.language.types.terms import NoValue

Binding = dict[str, Value]
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


def unify(atom: Atom, row: tuple[Value, ...], binding: Binding) -> Binding | None:
    """Return the binding extended so that the atom is this row, or None."""
    extended = dict(binding)
    for term, value in zip(atom.terms, row, strict=True):
        expected = term.value if isinstance(term, Constant) else extended.setdefault(term.name, value)
        if expected != value and expected is not value:
            return None
    return extended


def instantiate(atom: Atom, binding: Binding) -> Fact:
    """Return the fact that an atom is under a binding of its variables."""
    return atom.predicate, tuple(t.value if isinstance(t, Constant) else binding[t.name] for t in atom.terms)


# -- built-ins --------------------------------------------------------------------------------------------------------


def is_ready(builtin: Builtin, bound: Container[str]) -> bool:
    """Return whether a built-in can be evaluated: all is bound, or all but a variable alone on one side of `=`."""
    left, right = builtin.arguments
    free_left = [v for v in expression_variables(left) if v not in bound]
    free_right = [v for v in expression_variables(right) if v not in bound]
    if not free_left and not free_right:
        return True
    if builtin.operator != "=":
        return False
    return (not free_right and isinstance(left, Variable)) or (not free_left and isinstance(right, Variable))


def cheapest_first(builtins: Iterable[Builtin]) -> list[Builtin]:
    """Return comparisons of values that are there, then those that compute or match, and generators last.

    Of built-ins that are ready together the first is evaluated, so that comparisons guard computations.
    """
    return sorted(builtins, key=effort)


def effort(builtin: Builtin) -> int:
    """Return 0 for a comparison of values that are there, 1 for one that computes or matches, 2 for a generator."""
    if any(map(_generates, builtin.arguments)):
        return 2
    return int(builtin.operator.endswith("match") or any(isinstance(a, Apply) for a in builtin.arguments))


def evaluate_builtin(builtin: Builtin, binding: Binding) -> Iterable[Binding]:
    """Return the bindings under which a ready built-in holds; raise `Undefined` if it has no result."""
    left, right = builtin.arguments
    if isinstance(right, Variable) and (right.name not in binding or _generates(left)):
        left, right = right, left
    try:
        if _generates(right):
            assert isinstance(right, Apply) and isinstance(left, Variable), "a generator stands alone on its side"
            name = left.name
            values: Iterable[Value] = right.functor.evaluate(*(evaluate(a, binding) for a in right.arguments))  # type: ignore[assignment]
            return ({**binding, name: value} for value in values if binding.get(name, value) == value)
        if isinstance(left, Variable) and left.name not in binding:
            return [{**binding, left.name: evaluate(right, binding)}]
        holds = constraint(builtin.operator, builtin.type)(evaluate(left, binding), evaluate(right, binding))
        return [binding] if holds else []
    except NoValue:
        return []


def _generates(expression: Expression) -> bool:
    return isinstance(expression, Apply) and expression.functor.generates


def evaluate(expression: Expression, binding: Binding) -> Value:
    match expression:
        case Variable(name=name):
            return binding[name]
        case Constant(value=value):
            return value
        case Apply(functor=functor, arguments=arguments):
            return functor.evaluate(*(evaluate(a, binding) for a in arguments))


def undefined(rule: Rule, reason: str, binding: Binding) -> EvaluationError:
    """Return the error for a built-in without a result: it names the rule and the binding."""
    shown = ", ".join(f"{name} = {value_text(value)}" for name, value in binding.items() if name[0] not in "_$")
    return EvaluationError(
        Problem(
            "undefined-result",
            f"{reason} in {quote(rule.whole)}",
            rule.span,
            note=f"with {shown[:400] or 'no variables'}",
            hint="guard the expression with a comparison that excludes these values",
        )
    )
