"""Built-ins on whole batches of codes. `language.types.functors` defines their meaning, value by value.

Integer arithmetic is done on arrays when the extremes of the operands show that no result can overflow; whatever is
not plain arithmetic or comparison is evaluated once for each distinct combination of arguments. An expression of RDF
terms is evaluated as a whole, once for each distinct combination of its variables, so that only its value gets a code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.algebra.instances import Binding
from upheld.algebra.instances import evaluate as value_of
from upheld.base.limits import MUCH, reserve
from upheld.engines.memory.storage.codec import Codec, Codes
from upheld.language.ast import Constant, Variable
from upheld.language.core import Apply, Builtin, Expression, expression_variables
from upheld.language.terms.terms import NoValue
from upheld.language.types.functors import Functor, Undefined, constraint
from upheld.language.types.primitive import INTEGER_RANGES
from upheld.language.values import Value

Mask = npt.NDArray[np.bool_]

_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class Batch:
    """Named columns of codes of equal length. `undefined` gives for bindings without a result the reason."""

    def __init__(self, codec: Codec, columns: dict[str, Codes], width: int):
        self.codec, self.columns, self.width = codec, columns, width
        self.undefined: dict[int, str] = {}


def holds(builtin: Builtin, batch: Batch) -> Mask:
    """Return for each binding whether a built-in holds whose variables are all bound."""
    if builtin.type == "term":
        return _holds_of_terms(builtin, batch)
    (left, left_ok), (right, right_ok) = (evaluate(a, builtin.type, batch) for a in builtin.arguments)
    truth = _compare(builtin, left, right, batch)
    return truth & left_ok & right_ok


def generates(expression: Expression) -> bool:
    return isinstance(expression, Apply) and expression.functor.generates


def generate(expression: Apply, type: str, batch: Batch, most: int) -> Iterator[tuple[Codes, Codes]]:
    """Yield the bindings that values of a generator belong to, and the values, at most `most` at a time."""
    arguments = [evaluate(a, type, batch) for a in expression.arguments]
    known = np.ones(batch.width, np.bool_)
    for _, ok in arguments:
        known &= ok
    produced = _produced(expression, type, [codes for codes, _ in arguments], known, batch)
    while some := list(islice(produced, most)):
        yield np.array([i for i, _ in some], np.int64), batch.codec.encode([value for _, value in some], type)


def _produced(
    expression: Apply, type: str, arguments: Sequence[Codes], known: Mask, batch: Batch
) -> Iterator[tuple[int, Value]]:
    for i, given in enumerate(_decoded(arguments, [type] * len(arguments), batch)):
        if known[i]:
            values: Iterator[Value] = expression.functor.evaluate(*given)  # type: ignore[assignment]
            yield from ((i, value) for value in values)


def evaluate(expression: Expression, type: str, batch: Batch) -> tuple[Codes, Mask | bool]:
    """Return the codes of an expression of that type for each binding, and which of them have a value at all."""
    match expression:
        case Variable(name=name):
            return batch.columns[name], True
        case Constant(value=value):
            return np.full(batch.width, batch.codec.encode_one(value, expression.type), np.int64), True
        case Apply(functor=functor) if functor.type == "term":
            return _value_of_terms(expression, batch)
        case Apply(functor=functor, arguments=arguments):
            types = functor.argument_types(len(arguments))
            parts = [evaluate(a, t, batch) for a, t in zip(arguments, types, strict=True)]
            fast = _arithmetic(functor, [codes for codes, _ in parts])
            known: Mask | bool = True
            for _, ok in parts:
                known = known & ok
            if fast is None and functor.on_arrays is not None:
                fast = _on_arrays(functor, [codes for codes, _ in parts], types, known, batch)
            if fast is not None:
                return fast, known
            codes, ok = _one_by_one(functor, [codes for codes, _ in parts], types, known, batch)
            return codes, known & ok


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _arithmetic(functor: Functor, arguments: Sequence[Codes]) -> Codes | None:
    """Return the results of a functor on arrays, or None if it is not one of these or might be undefined somewhere."""
    if not len(arguments[0]):
        return np.empty(0, np.int64)
    if functor.type == "float" and functor.name in "+-*" and len(arguments) == 2:
        with np.errstate(all="ignore"):
            a, b = (x.view(np.float64) for x in arguments)
            sums = a + b if functor.name == "+" else a - b if functor.name == "-" else a * b
            return (np.where(np.isnan(sums), np.nan, sums) + 0.0).view(np.int64)
    if functor.type not in INTEGER_RANGES or functor.name not in "+-*/%":
        return None
    low, high = INTEGER_RANGES[functor.type]
    kind = np.int64 if functor.type == "number" else np.uint64
    values = [x.view(kind) for x in arguments]
    if len(values) == 1:
        only = values[0]
        return np.negative(only).view(np.int64) if functor.type == "number" and int(only.min()) > low else None
    left, right = values
    bounds = [(int(x.min()), int(x.max())) for x in values]
    if functor.name in "/%":
        least = min(lowest for lowest, _ in bounds)
        if (least <= low and functor.type == "number") or np.any(right == 0):  # there is no absolute value of the least
            return None
        quotient = np.abs(left) // np.abs(right) if functor.type == "number" else left // right
        if functor.type == "number":
            quotient = np.where((left < 0) == (right < 0), quotient, -quotient)
        return (quotient if functor.name == "/" else left - right * quotient).view(np.int64)
    (a_low, a_high), (b_low, b_high) = bounds
    if functor.name == "+":
        extremes = [a_low + b_low, a_high + b_high]
    elif functor.name == "-":
        extremes = [a_low - b_high, a_high - b_low]
    else:
        extremes = [x * y for x in bounds[0] for y in bounds[1]]
    if min(extremes) < low or max(extremes) > high:
        return None
    result = left + right if functor.name == "+" else left - right if functor.name == "-" else left * right
    return result.view(np.int64)


def _compare(builtin: Builtin, left: Codes, right: Codes, batch: Batch) -> Mask:
    operator, type = builtin.operator, builtin.type
    if operator in ("=", "!="):  # codes are equal exactly when values are
        return left == right if operator == "=" else left != right
    if operator in _ORDER and type in ("number", "unsigned", "float"):
        kind = {"number": np.int64, "unsigned": np.uint64, "float": np.float64}[type]
        return _ORDER[operator](left.view(kind), right.view(kind))  # type: ignore[no-any-return]
    test = constraint(operator, type)
    result = np.zeros(len(left), np.bool_)
    known: dict[tuple[int, int], bool] = {}
    for i, pair in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        if pair not in known:
            a, b = next(_decoded([left[i : i + 1], right[i : i + 1]], [type, type], batch))
            try:
                known[pair] = test(a, b)
            except Undefined as e:
                batch.undefined[i] = str(e)
                continue
        result[i] = known[pair]
    return result


# -- RDF terms --------------------------------------------------------------------------------------------------------


def _holds_of_terms(builtin: Builtin, batch: Batch) -> Mask:
    test = constraint(builtin.operator, builtin.type)
    left, right = builtin.arguments
    bindings, places = _distinct(tuple(dict.fromkeys(builtin.variables())), batch)
    truths = np.zeros(len(bindings), np.bool_)
    for i, binding in enumerate(bindings):
        try:
            truths[i] = test(value_of(left, binding), value_of(right, binding))
        except NoValue:
            continue
    return truths[places]


def _value_of_terms(expression: Apply, batch: Batch) -> tuple[Codes, Mask]:
    bindings, places = _distinct(tuple(dict.fromkeys(expression_variables(expression))), batch)
    known = np.zeros(len(bindings), np.bool_)
    values: list[Value] = []
    characters = 0
    for i, binding in enumerate(bindings):
        try:
            value = value_of(expression, binding)
        except NoValue:
            continue
        known[i] = True
        values.append(value)
        characters += len(str(value))
        if characters >= MUCH:  # the text that is made, its UTF-8, and a place for it among all texts
            reserve(4 * characters)
            characters = 0
    codes = np.zeros(len(bindings), np.int64)
    codes[known] = batch.codec.encode(values, "term")
    return codes[places], known[places]


def _distinct(names: Sequence[str], batch: Batch) -> tuple[list[Binding], Codes]:
    """Return the distinct bindings of some variables, which are terms, and the place of each binding among them."""
    columns = [batch.columns[name] for name in names]
    if len(columns) == 1:
        codes, places = np.unique(columns[0], return_inverse=True)
        return [{names[0]: value} for value in batch.codec.decode(codes, "term")], places.reshape(-1)
    seen: dict[tuple[int, ...], int] = {}
    rows = zip(*(column.tolist() for column in columns), strict=True) if columns else [()] * batch.width
    places = np.fromiter((seen.setdefault(row, len(seen)) for row in rows), np.int64, batch.width)
    distinct = np.array(list(seen), np.int64).reshape(len(seen), len(names)).T
    values = [batch.codec.decode(np.ascontiguousarray(codes), "term") for codes in distinct]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)] if names else [{}] * len(
        seen
    ), places


# -- user-defined functors on arrays ----------------------------------------------------------------------------------


def _on_arrays(
    functor: Functor, arguments: Sequence[Codes], types: Sequence[str], needed: Mask | bool, batch: Batch
) -> Codes | None:
    """Return the results of a functor, called once with the distinct arguments, or None if some have no result."""
    assert functor.on_arrays is not None, "a functor of single values"
    wanted = np.flatnonzero(np.broadcast_to(needed, len(arguments[0])))
    result = np.zeros(len(arguments[0]), np.int64)
    if not len(wanted):
        return result
    rows = np.column_stack([codes[wanted] for codes in arguments])
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    columns = [np.ascontiguousarray(column) for column in distinct.T]
    try:
        values = functor.on_arrays(*(_values(codes, type, batch) for codes, type in zip(columns, types, strict=True)))
    except Undefined:
        return None  # called for one binding after the other, it shows which of them is to blame
    result[wanted] = batch.codec.encode(values, functor.result_type(len(arguments)))[places.reshape(-1)]
    return result


def _values(codes: Codes, type: str, batch: Batch) -> npt.NDArray[Any]:
    """Return the values of codes as an array."""
    kinds: dict[str, Any] = {"number": np.int64, "unsigned": np.uint64, "float": np.float64}
    if type in kinds:
        return codes.view(kinds[type])
    values = np.empty(len(codes), np.object_)
    values[:] = list(batch.codec.decode(codes, type))
    return values


# -- anything else ----------------------------------------------------------------------------------------------------


def _one_by_one(
    functor: Functor, arguments: Sequence[Codes], types: Sequence[str], needed: Mask | bool, batch: Batch
) -> tuple[Codes, Mask]:
    """Evaluate a functor once for each distinct combination of arguments; say which have a value."""
    width = len(arguments[0])
    wanted = np.broadcast_to(needed, width)
    type = functor.result_type(len(arguments))
    seen: dict[tuple[int, ...], int | None] = {}
    result, ok = np.zeros(width, np.int64), np.zeros(width, np.bool_)
    made = 0  # characters of texts
    for i, given in enumerate(zip(*(a.tolist() for a in arguments), strict=True)):
        if not wanted[i]:
            continue
        if given not in seen:
            values = next(_decoded([a[i : i + 1] for a in arguments], types, batch))
            made += sum(len(value) for value in values if isinstance(value, str))
            if made >= MUCH:  # the text that is made, its UTF-8, and a place for it among all texts
                reserve(4 * made)
                made = 0
            try:
                seen[given] = batch.codec.encode_one(functor.evaluate(*values), type)
            except NoValue:  # a field of another branch than that of the record
                seen[given] = None
            except Undefined as e:
                batch.undefined[i] = str(e)
                continue
        code = seen[given]
        if code is not None:
            result[i], ok[i] = code, True
    return result, ok


def _decoded(arguments: Sequence[Codes], types: Sequence[str], batch: Batch) -> Iterator[tuple[Value, ...]]:
    return zip(*(batch.codec.decode(a, t) for a, t in zip(arguments, types, strict=True)), strict=True)
