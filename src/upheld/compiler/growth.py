"""Rules that compute new values from values of their own stratum, and so may find new ones for ever."""

from __future__ import annotations

from collections.abc import Iterator

from upheld.compiler.strata import Stratification, Stratum
from upheld.language.ast import Variable
from upheld.language.core import Apply, Builtin, Rule, expression_variables
from upheld.language.patterns import taken
from upheld.language.types.functors import IDEMPOTENT


def growing_rules(strata: Stratification) -> Iterator[Rule]:
    """Yield the recursive rules that compute a value of their head from values of their own stratum.

    In coarser strata than the finest, rules count as recursive that are not.
    """
    return (rule for stratum in strata for rule in stratum.recursive if _may_grow(rule, stratum))


def _may_grow(rule: Rule, stratum: Stratum) -> bool:
    level = stratum.stratification.level
    inside = {v for atom in rule.positive if level(atom) == stratum.index for v in atom.variables()}
    outside = {v for atom in rule.positive if level(atom) != stratum.index for v in atom.variables()}
    bound, growing = inside | outside, inside - outside
    # A field of a record is smaller than the record.
    for value, record in _fields(rule, bound):
        bound.add(value)
        if not growing.isdisjoint(record):
            growing.add(value)
    while found := {v for b in rule.builtins for v in _computed(b, growing) if v not in bound | growing}:
        growing |= found
    return any(v in growing - bound for v in rule.head.variables())


def _fields(rule: Rule, bound: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield the variables of fields of bound records, each with its record's variables; `bound` grows meanwhile."""
    waiting = [field for field in map(taken, rule.builtins) if field is not None and isinstance(field.value, Variable)]
    while ready := next((field for field in waiting if bound.issuperset(expression_variables(field.record))), None):
        waiting.remove(ready)
        value = ready.value
        if isinstance(value, Variable) and value.name not in bound:
            yield value.name, set(expression_variables(ready.record))


def _computed(builtin: Builtin, variables: set[str]) -> Iterator[str]:
    """Yield the variable that an equation computes from an expression over some of these variables."""
    left, right = builtin.arguments
    for one, other in ((left, right), (right, left)):
        if builtin.operator == "=" and isinstance(one, Variable) and isinstance(other, Apply):
            if other.functor.name in IDEMPOTENT:
                continue  # applied to what it has found it finds nothing more
            if not variables.isdisjoint(expression_variables(other)):
                yield one.name
