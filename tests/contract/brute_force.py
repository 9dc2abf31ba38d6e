"""Rule instances by trying every choice of facts for the positive atoms: slow, and too plain to be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from upheld.language.ast import Constant, Variable
from upheld.language.core import Apply, Atom, Expression, Fact, Rule
from upheld.language.types.functors import Undefined, constraint
from upheld.language.values import Value

Facts = frozenset[Fact]


@dataclass(frozen=True)
class Instance:
    rule: Rule
    head: Fact
    body: tuple[Fact, ...]
    negated: tuple[Fact, ...]


#: What a variable that no atom binds may be: random programs compute values between -2 and 5.
COMPUTED = range(-2, 8)


def instances(rules: Iterable[Rule], P: Facts, N: Facts) -> Iterator[Instance]:
    """Yield the instances with positive atoms in P and negated atoms outside N."""
    for rule in rules:
        for binding in _bindings(rule, P):
            negated = tuple(_fact(a, binding) for a in rule.negative)
            if N.isdisjoint(negated) and all(_holds(b, binding) for b in rule.builtins):
                yield Instance(
                    rule, _fact(rule.head, binding), tuple(_fact(a, binding) for a in rule.positive), negated
                )


def _bindings(rule: Rule, P: Facts) -> Iterator[dict[str, Value]]:
    candidates = [[row for predicate, row in P if predicate == a.predicate] for a in rule.positive]
    for chosen in product(*candidates):
        binding: dict[str, Value] = {}
        if all(_unify(a, row, binding) for a, row in zip(rule.positive, chosen)):
            free = [v for v in rule.variables() if v not in binding]
            for values in product(COMPUTED, repeat=len(free)):
                yield {**binding, **dict(zip(free, values))}


def _unify(atom: Atom, row: tuple[Value, ...], binding: dict[str, Value]) -> bool:
    return all(
        (t.value if isinstance(t, Constant) else binding.setdefault(t.name, value)) == value
        for t, value in zip(atom.terms, row)
    )


def restricted(found: Iterable[Instance], X: Facts, Y: Facts) -> Iterator[Instance]:
    """Yield the instances with a positive atom in X or a negated one in Y."""
    return (i for i in found if not X.isdisjoint(i.body) or not Y.isdisjoint(i.negated))


def _fact(atom: Atom, binding: dict[str, Value]) -> Fact:
    return atom.predicate, tuple(t.value if isinstance(t, Constant) else binding[t.name] for t in atom.terms)


def _holds(builtin, binding: dict[str, Value]) -> bool:
    left, right = builtin.arguments
    try:
        return constraint(builtin.operator, builtin.type)(_value(left, binding), _value(right, binding))
    except Undefined:
        return False


def _value(expression: Expression, binding: dict[str, Value]) -> Value:
    match expression:
        case Variable(name=name):
            return binding[name]
        case Constant(value=value):
            return value
        case Apply(functor=functor, arguments=arguments):
            return functor.evaluate(*(_value(a, binding) for a in arguments))
