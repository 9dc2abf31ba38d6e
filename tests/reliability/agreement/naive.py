"""An oracle that shares no code with what it judges: naive evaluation of a program in core form on plain Python sets.

It takes the rules as `compile_program` leaves them, and their functors by name; matching, strata, functors and counters
are its own. All rules are applied to all facts until nothing is new.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any

from upheld.language.ast import Constant, Variable
from upheld.language.core import Aggregation, Apply, Atom, Builtin, Core, CoreTerm, Expression, Fact, Rule
from upheld.language.values import NAN, Value

Row = tuple[Value, ...]
Facts = dict[str, set[Row]]
Binding = dict[str, Value]
#: The head of a rule under a binding, and the facts that its positive atoms become.
Instance = tuple[Fact, tuple[Fact, ...]]


class NoResult(Exception):
    """A functor has no value where the rest of a body holds: the program fails on these facts."""


class Naive:
    """All that follows from explicit facts: `facts`, and of each the derivations."""

    def __init__(self, core: Core, explicit: Iterable[Fact]):
        self.core, self.explicit = core, set(explicit)
        self._by_name: Facts = defaultdict(set)
        for name, row in self.explicit:
            self._by_name[name].add(row)
        levels = _levels(core.rules, core.aggregations)
        for level in sorted(set(levels.values())):
            for aggregation in core.aggregations:
                if levels[aggregation.relation] == level:
                    self._by_name[aggregation.relation] |= set(_aggregated(aggregation, self._by_name))
            self._close([rule for rule in core.rules if levels[rule.head.predicate] == level])

    def _close(self, rules: list[Rule]) -> None:
        """Apply rules until nothing is new."""
        new = True
        while new:
            found = [_fact(rule.head, binding) for rule in rules for binding in bindings(rule, self._by_name)]
            new = any(row not in self._by_name[name] for name, row in found)
            for name, row in found:
                self._by_name[name].add(row)

    @cached_property
    def facts(self) -> set[Fact]:
        return {(name, row) for name, rows in self._by_name.items() for row in rows}

    @cached_property
    def visible(self) -> set[Fact]:
        """The facts of relations that users see."""
        return {fact for fact in self.facts if not self.core.predicates[fact[0]].hidden}

    @cached_property
    def instances(self) -> list[Instance]:
        """The head and the positive body of each rule instance whose body holds."""
        return [
            (_fact(rule.head, binding), tuple([_fact(atom, binding) for atom in rule.positive]))
            for rule in self.core.rules
            for binding in bindings(rule, self._by_name)
        ]

    @cached_property
    def derived(self) -> set[Fact]:
        """The facts that rules derive, explicit ones among them."""
        return {head for head, _ in self.instances}

    def leanings(self, stratum_of: Callable[[Fact], int]) -> list[Instance]:
        """The head of each instance, with the facts of its own stratum that it leans on."""
        return [
            (head, tuple(fact for fact in body if stratum_of(fact) == stratum_of(head)))
            for head, body in self.instances
        ]

    def trace(self, leanings: list[Instance], counted: Callable[[Fact], bool]) -> dict[Fact, dict[int, int]]:
        """How often each fact is derived in each round of its stratum; an explicit fact counts once in the first."""
        rounds: dict[Fact, dict[int, int]] = {fact: {1: 1} for fact in self.explicit if counted(fact)}
        first = dict.fromkeys(self.explicit, 1)
        waiting, number = leanings, 1
        while waiting:
            ready = [(head, body) for head, body in waiting if all(first.get(f, number) < number for f in body)]
            waiting = [(head, body) for head, body in waiting if not all(first.get(f, number) < number for f in body)]
            assert ready or number == 1 or any(n == number - 1 for n in first.values()), "a fact that leans on itself"
            for head, _ in ready:
                counts = rounds.setdefault(head, {})
                counts[number] = counts.get(number, 0) + 1
                first.setdefault(head, number)
            number += 1
        return rounds


def _levels(rules: Iterable[Rule], aggregations: Iterable[Aggregation]) -> dict[str, int]:
    """Return a stratum for each relation."""
    levels: dict[str, int] = defaultdict(int)
    changed = True
    while changed:
        changed = False
        for aggregation in aggregations:
            if levels[aggregation.relation] <= levels[aggregation.body]:
                levels[aggregation.relation] = levels[aggregation.body] + 1
                changed = True
        for rule in rules:
            least = max(
                [levels[a.predicate] for a in rule.positive] + [levels[a.predicate] + 1 for a in rule.negative],
                default=0,
            )
            if levels[rule.head.predicate] < least:
                levels[rule.head.predicate] = least
                changed = True
        assert max(levels.values(), default=0) <= len(levels), "a relation depends on its own absence"
    return levels


def _aggregated(aggregation: Aggregation, facts: Facts) -> Iterator[Row]:
    """Yield the values of each group, and then what is kept for it; an overflow is no result."""
    groups: dict[Row, list[Any]] = defaultdict(list)
    for row in facts[aggregation.body]:
        value = None if aggregation.target is None else row[aggregation.target]
        groups[tuple([row[column] for column in aggregation.groups])].append(value)
    for group, values in groups.items():
        yield (*group, *AGGREGATES[aggregation.function](values, aggregation.type))


def _sum(values: list[Any], type: str) -> Any:
    if type != "float":
        return _whole(sum(values), type)
    special = {repr(v): v for v in values if not math.isfinite(v)}
    if special:
        return NAN if len(special) > 1 or "nan" in special else next(iter(special.values()))
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _mean(values: list[Any], type: str) -> tuple[Any, ...]:
    total = _sum(values, type)
    mean = total / len(values)
    return len(values), "", total, NAN if mean != mean else mean


def _greatest(values: list[Any], sign: int) -> Any:
    """Return the greatest value, or with a negative sign the least; NaN is greater than any other."""
    return max(values, key=lambda v: (sign * (v != v), 0 if v != v else sign * v))


def bindings(rule: Rule, facts: Facts) -> Iterator[Binding]:
    """Yield the bindings of its variables under which the body of a rule holds."""
    for binding in _joined(rule, facts):
        yield from _tested(rule, binding, facts) if rule.builtins or rule.negative else [binding]


def _joined(rule: Rule, facts: Facts) -> list[Binding]:
    found: list[Binding] = [{}]
    bound: set[str] = set()
    todo = list(rule.positive)
    while todo:
        atom = max(todo, key=lambda a: sum(isinstance(t, Constant) or t.name in bound for t in a.terms))
        todo.remove(atom)
        keyed = [(i, t) for i, t in enumerate(atom.terms) if isinstance(t, Constant) or t.name in bound]
        new = [(i, t.name) for i, t in enumerate(atom.terms) if isinstance(t, Variable) and t.name not in bound]
        first = {name: i for i, name in reversed(new)}
        again = [(i, first[name]) for i, name in new if i != first[name]]
        index: dict[Row, list[Binding]] = defaultdict(list)
        for row in facts[atom.predicate]:
            if all(_same(row[i], row[j]) for i, j in again):
                index[tuple([row[i] for i, _ in keyed])].append({name: row[i] for name, i in first.items()})
        found = [
            {**binding, **more}
            for binding in found
            for more in index.get(tuple([_term(t, binding) for _, t in keyed]), ())
        ]
        bound |= first.keys()
    return found


def _term(term: CoreTerm, binding: Binding) -> Value:
    return term.value if isinstance(term, Constant) else binding[term.name]


def _fact(atom: Atom, binding: Binding) -> Fact:
    return atom.predicate, tuple([_term(term, binding) for term in atom.terms])


def _tested(rule: Rule, binding: Binding, facts: Facts) -> Iterator[Binding]:
    """Yield the bindings that pass built-ins and negated atoms; a functor without a value is an error if one does."""
    found, todo = [(binding, False)], list(rule.builtins)
    while ready := [b for b in todo if any(_ready(b, bound) for bound, _ in found)]:
        todo.remove(ready[0])
        after: list[tuple[Binding, bool]] = []
        for bound, lacks in found:
            try:
                passed = _passes(ready[0], bound) if _ready(ready[0], bound) else [bound]
                after += [(extended, lacks) for extended in passed]
            except NoResult:
                after.append((bound, True))
        found = after
    for bound, lacks in found:
        known = [_fact(a, bound) for a in rule.negative if all(name in bound for name in a.variables())]
        if not any(row in facts[name] for name, row in known):
            if lacks:
                raise NoResult(str(rule))
            yield bound


def _free(expression: Expression, binding: Binding) -> bool:
    if isinstance(expression, Apply):
        return any(_free(argument, binding) for argument in expression.arguments)
    return isinstance(expression, Variable) and expression.name not in binding


def _ready(builtin: Builtin, binding: Binding) -> bool:
    """Return whether a built-in can be evaluated: all is bound, or all but a variable alone on one side of `=`."""
    sides = [(_free(side, binding), isinstance(side, Variable)) for side in builtin.arguments]
    (left, left_alone), (right, right_alone) = sides
    return not (left or right) or (
        builtin.operator == "=" and ((left_alone and not right) or (right_alone and not left))
    )


def _passes(builtin: Builtin, binding: Binding) -> list[Binding]:
    left, right = builtin.arguments
    if isinstance(right, Variable) and (_free(right, binding) or _is_range(left)):
        left, right = right, left
    if _is_range(right) or _free(left, binding):
        assert isinstance(left, Variable), "a generator stands alone on its side"
        values = _range(right, binding) if _is_range(right) else [_value(right, binding)]
        if left.name in binding:
            return [binding for value in values if _same(value, binding[left.name])]
        return [{**binding, left.name: value} for value in values]
    return [binding] if COMPARISONS[builtin.operator](_value(left, binding), _value(right, binding)) else []


def _is_range(expression: Expression) -> bool:
    return isinstance(expression, Apply) and expression.functor.name == "range"


def _value(expression: Expression, binding: Binding) -> Value:
    if isinstance(expression, Variable):
        return binding[expression.name]
    if isinstance(expression, Constant):
        return expression.value
    arguments = [_value(argument, binding) for argument in expression.arguments]
    return computed(expression.functor.name, expression.functor.type, *arguments)


def _range(expression: Expression, binding: Binding) -> list[Value]:
    assert isinstance(expression, Apply)
    start, stop, *step = (_value(argument, binding) for argument in expression.arguments)
    by = step[0] if step else type(start)(1 if start <= stop else -1)
    if by == 0:
        return [start] if start != stop else []
    values: list[Value] = []
    while (value := start + len(values) * by) < stop if by > 0 else (value := start + len(values) * by) > stop:
        values.append(value)
    return values


# -- functors and comparisons -----------------------------------------------------------------------------------------


def _same(a: Value, b: Value) -> bool:
    return a == b or (a != a and b != b)


def _whole(value: int, type: str) -> int:
    if value != _bits(value, type):
        raise NoResult(f"{value} does not fit")
    return value


def _bits(value: int, type: str) -> int:
    value %= 2**64
    return value - 2**64 if type == "number" and value >= 2**63 else value


def _quotient(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        return a / b if b else NAN if a == 0 or a != a else math.copysign(math.inf, a)
    if b == 0:
        raise NoResult("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        return NAN if b == 0 or math.isinf(a) else math.fmod(a, b)
    return a - b * _quotient(a, b)


def computed(name: str, type: str, a: Any, b: Any = None, c: Any = None) -> Value:
    """Return what a functor makes of its arguments; integers that do not fit have no result."""
    if name in _BITWISE:
        return _bits(_BITWISE[name](a, b), type)
    if name not in _ARITHMETIC:
        return _OTHER[name](a, b, c)
    value = _ARITHMETIC[name](a, b)
    if type != "float":
        return _whole(value, type)
    return NAN if value != value else value + 0.0


# fmt: off
AGGREGATES: dict[str, Callable[[list[Any], str], tuple[Any, ...]]] = {
    "count": lambda values, _: (len(values),), "sum": lambda values, type: (len(values), "", _sum(values, type)),
    "mean": _mean,
    "min": lambda values, _: (_greatest(values, -1),), "max": lambda values, _: (_greatest(values, 1),),
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": _same, "==": _same, "!=": lambda a, b: not _same(a, b), "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "match": lambda pattern, text: re.fullmatch(pattern, text) is not None,
    "!match": lambda pattern, text: re.fullmatch(pattern, text) is None,
    "contains": lambda part, text: part in text, "!contains": lambda part, text: part not in text,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: -a if b is None else a - b, "*": lambda a, b: a * b,
    "/": _quotient, "%": _remainder,
}
_BITWISE: dict[str, Callable[[Any, Any], int]] = {
    "band": lambda a, b: a & b, "bor": lambda a, b: a | b, "bxor": lambda a, b: a ^ b, "bnot": lambda a, _: ~a,
    "bshl": lambda a, b: a << b % 64, "bshru": lambda a, b: a % 2**64 >> b % 64, "land": lambda a, b: a != 0 and b != 0,
}
_OTHER: dict[str, Callable[[Any, Any, Any], Value]] = {
    "min": lambda a, b, _: b if b < a else a, "max": lambda a, b, _: b if b > a else a,
    "cat": lambda a, b, _: a + b, "strlen": lambda a, *_: len(a),
    "ord": lambda a, *_: int.from_bytes(hashlib.blake2b(a.encode(), digest_size=8).digest(), "big") // 2,
    "substr": lambda a, i, n: "" if not 0 <= i <= len(a) else a[i:] if n < 0 else a[i : i + n],
    "to_string": lambda a, *_: repr(a).removesuffix(".0") if isinstance(a, float) else str(a),
    "to_float": lambda a, *_: float(a), "to_unsigned": lambda a, *_: _whole(int(a), "unsigned"),
}
