"""Built-ins that the kernels of rounds can compute, as operations on two values each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.plans.plan import BuiltinStep
from upheld.language.ast import Constant, Variable
from upheld.language.core import Apply, Expression

#: A constant, or the name of a variable or of the result of an operation before.
Operand = Constant | str

_ARITHMETIC = {"+": r.PLUS, "-": r.MINUS, "*": r.TIMES}
#: Comparisons, and whether their sides change places.
_ORDER = {"<": (r.LESS, False), "<=": (r.AT_MOST, False), ">": (r.LESS, True), ">=": (r.AT_MOST, True)}


class Operation(NamedTuple):
    """A comparison of two operands, or the name that their result gets."""

    kind: int
    operands: tuple[Operand, Operand]
    result: str | None = None


def operations(step: BuiltinStep) -> list[Operation] | None:
    """Return the operations that evaluate a built-in, one after the other, or None if kernels cannot compute it.

    They compute sums, differences and products of integers, compare integers, and values of other types for equality.
    """
    builtin, done = step.builtin, list[Operation]()
    (left, right), operator = builtin.arguments, builtin.operator
    if builtin.type == "term" or not all(map(_is_plain, (left, right))):
        return None
    if isinstance(right, Variable) and right.name == step.binds:
        left, right = right, left
    names = (f"$value {k}" for k in range(_size(left) + _size(right)))  # no dialect lets a user write it
    if step.binds is not None:
        value = _operand(right, names, done)
        if done and done[-1].result == value:
            done[-1] = done[-1]._replace(result=step.binds)
        else:
            done.append(Operation(r.COPY, (value, value), step.binds))
        return done
    operands = _operand(left, names, done), _operand(right, names, done)
    if operator in ("=", "!="):  # codes are equal exactly when values are
        done.append(Operation(r.EQUAL if operator == "=" else r.UNEQUAL, operands))
    elif operator in _ORDER and builtin.type == "number":
        kind, are_swapped = _ORDER[operator]
        done.append(Operation(kind, (operands[1], operands[0]) if are_swapped else operands))
    else:
        return None
    return done


def _is_plain(expression: Expression) -> bool:
    if not isinstance(expression, Apply):
        return True
    functor = expression.functor
    is_known = functor.type == "number" and functor.name in _ARITHMETIC and len(expression.arguments) == 2
    return is_known and all(map(_is_plain, expression.arguments))


def _size(expression: Expression) -> int:
    return 1 + sum(map(_size, expression.arguments)) if isinstance(expression, Apply) else 0


def _operand(expression: Expression, names: Iterator[str], done: list[Operation]) -> Operand:
    """Return the operand that an expression is, once the operations that were added have been done."""
    if isinstance(expression, Variable):
        return expression.name
    if isinstance(expression, Constant):
        return expression
    left, right = (_operand(argument, names, done) for argument in expression.arguments)
    done.append(Operation(_ARITHMETIC[expression.functor.name], (left, right), next(names)))
    return done[-1].result or ""
