"""Rule instances on Python values: unification, built-ins, and a rule under a binding."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import cached_property, partial

from upheld.base.errors import EvaluationError, Problem, quote
from upheld.compiler.strata import Stratum
from upheld.language.ast import Constant, Variable
from upheld.language.core import Apply, Atom, Builtin, Expression, Fact, Rule, expression_variables
from upheld.language.core_text import value_text
from upheld.language.terms.terms import NoValue
from upheld.language.types.functors import constraint
from upheld.language.values import Value

Binding = dict[str, Value]


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


@dataclass(frozen=True)
class RuleInstance:
    """A rule under a binding of its variables, which are in the order of `rule.variables()`."""

    rule: Rule
    values: tuple[Value, ...]

    @cached_property
    def binding(self) -> Binding:
        return dict(zip(self.rule.variables(), self.values, strict=True))

    @cached_property
    def head(self) -> Fact:
        return instantiate(self.rule.head, self.binding)

    @cached_property
    def body(self) -> tuple[Fact, ...]:
        return tuple(instantiate(a, self.binding) for a in self.rule.positive)

    @cached_property
    def negated(self) -> tuple[Fact, ...]:
        return tuple(instantiate(a, self.binding) for a in self.rule.negative)

    def body_in(self, stratum: Stratum) -> tuple[Fact, ...]:
        """The facts of the positive atoms that belong to a stratum."""
        body = self.body
        return tuple(body[i] for i in stratum.own(self.rule))


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


#: The effort of a built-in that may have many results.
GENERATOR = 2


def effort(builtin: Builtin) -> int:
    """Return 0 for a comparison of values that are there, 1 for one that computes or matches, 2 for a generator."""
    if any(map(_generates, builtin.arguments)):
        return GENERATOR
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
        case Apply(functor=functor, arguments=arguments) if functor.lazy:
            return functor.evaluate(*(partial(evaluate, a, binding) for a in arguments))
        case Apply(functor=functor, arguments=arguments):
            return functor.evaluate(*(evaluate(a, binding) for a in arguments))


def undefined(rule: Rule, reason: str, binding: Binding) -> EvaluationError:
    """Return the error for a built-in without a result: it names the rule and the binding."""
    types = rule.whole.types
    named = ((name, value_text(v, types.get(name, "symbol"))) for name, v in binding.items() if name[0] not in "_$")
    shown = ", ".join(f"{name} = {text}" for name, text in named)
    return EvaluationError(
        Problem(
            "undefined-result",
            f"{reason} in {quote(rule.whole)}",
            rule.span,
            note=f"with {shown[:400] or 'no variables'}",
            hint="guard the expression with a comparison that excludes these values",
        )
    )
