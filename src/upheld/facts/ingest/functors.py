"""User-defined functors: Python functions that programs declare with `.functor` and call as `@name(...)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from upheld.base.errors import Problem, UpheldError, UsageError, quote
from upheld.language.types.columns import ColumnType, NotAValue, column_type, plain_name
from upheld.language.types.functors import Undefined, define_functor
from upheld.language.types.primitive import INTEGER_RANGES
from upheld.language.values import Value, normalise_float

F = TypeVar("F", bound=Callable[..., Any])
Array = npt.NDArray[Any]

#: The types of arguments and results, with the types of the arrays that hold them.
_ARRAYS: dict[str, str] = {
    "number": "int64",
    "unsigned": "uint64",
    "float": "float64",
    "symbol": "object",
    "date": "datetime64[D]",
    "timestamp": "datetime64[us]",
    "decimal": "object",
    "boolean": "bool",
}
_NAME = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*")


def functor(name: str, types: Sequence[str], *, arrays: bool = False) -> Callable[[F], F]:
    """Register the decorated function as the functor that programs declare with `.functor` and call as `@name(...)`.

    The function must be pure: the same arguments give the same result in every run. It is called once for each
    combination of arguments that a rule evaluates at a time, and may be called again later. The Spark engine sends the
    function to its tasks.

    Args:
        name: Name of the functor, without `@`. A function registered earlier under this name is replaced.
        types: Types of the arguments, then of the result: `number`, `unsigned`, `float`, `symbol`, `date`,
            `timestamp`, `decimal(p, s)` or `boolean`.
        arrays: The function takes NumPy arrays of arguments and returns an array of results of the same length.

    >>> @functor("initial", ["symbol", "symbol"])
    ... def initial(text):
    ...     return text[:1]
    >>> rules = ".functor initial(text:symbol):symbol\\n.decl a, b(x:symbol)\\nb(@initial(x)) :- a(x)."
    >>> import upheld
    >>> upheld.materialise(rules, {"a": ["Ada"]})["b"].to_rows()
    [('A',)]
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(Problem("bad-argument", f"{quote(name)} is not the name of a functor"))
    is_list = isinstance(types, Sequence) and not isinstance(types, str)
    held = [_held(type) for type in types] if is_list else []
    if len(held) < 2 or None in held:
        message = f"`types` must be a list with a type for each argument and one for the result, got {quote(types)}"
        note = f"the types are {', '.join(quote('decimal(p, s)' if t == 'decimal' else t) for t in _ARRAYS)}"
        raise UsageError(Problem("bad-argument", message, note=note))

    def register(function: F) -> F:
        *arguments, result = (type for type in held if type is not None)
        names, of = tuple(map(plain_name, arguments)), plain_name(result)
        if arrays:
            on_arrays = _on_arrays(name, function, arguments, result)
            define_functor(name, names, of, _on_one(on_arrays, arguments), on_arrays)
        else:
            define_functor(name, names, of, _checked(name, function, arguments, result))
        return function

    return register


def _held(type: object) -> str | None:
    """Return the type of a name, a `ColumnType` unless it is primitive; None if no functor has such arguments."""
    held = column_type(type) if isinstance(type, str) else None
    kind = held.kind if isinstance(held, ColumnType) and not held.nullable else held
    return held if kind in _ARRAYS else None


def _checked(name: str, function: Callable[..., Any], types: Sequence[str], result: str) -> Callable[..., Value]:
    """Return a function of values that raises `Undefined` where the result is not a value of its type."""
    if not any(isinstance(type, ColumnType) for type in types):
        return lambda *values: _fitted(name, _called(name, function, values), result)

    def evaluate(*codes: Value) -> Value:
        values = [t.value(c) if isinstance(t, ColumnType) else c for c, t in zip(codes, types, strict=True)]
        return _fitted(name, _called(name, function, values), result)

    return evaluate


def _as_arguments(codes: Array, type: str) -> Array:
    """Return an array of codes as an array of the values that they stand for."""
    if not isinstance(type, ColumnType):
        return codes
    if type.kind != "decimal":
        return codes.astype(_ARRAYS[type.kind])
    values = np.empty(len(codes), np.object_)
    values[:] = [type.value(code) for code in codes.tolist()]
    return values


def _on_arrays(name: str, function: Callable[..., Any], types: Sequence[str], type: str) -> Callable[..., list[Value]]:
    """Return a function of arrays that raises `Undefined` where a result is not a value of the type."""

    def evaluate(*codes: Array) -> list[Value]:
        arrays = [_as_arguments(part, of) for part, of in zip(codes, types, strict=True)]
        results = np.asarray(_called(name, function, arrays))
        if results.shape != arrays[0].shape:
            raise Undefined(f"`@{name}` returned an array of shape {results.shape}, not {arrays[0].shape}")
        return [_fitted(name, result, type) for result in results.tolist()]

    return evaluate


def _on_one(on_arrays: Callable[..., list[Value]], types: Sequence[str]) -> Callable[..., Value]:
    """Return a function of values that calls one of arrays with arrays of one value each."""

    def evaluate(*values: Value) -> Value:
        return on_arrays(*(np.array([v], _ARRAYS[str.__str__(t)]) for v, t in zip(values, types, strict=True)))[0]

    return evaluate


def _called(name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    try:
        return function(*arguments)
    except UpheldError:
        raise  # a limit that was reached meanwhile
    except Exception as error:
        raise Undefined(f"`@{name}` raised {type(error).__name__}: {str(error)[:200]}") from error


def _fitted(name: str, result: Any, type: str) -> Value:
    """Return a result as a value of a type, or raise `Undefined`."""
    if isinstance(type, ColumnType):
        try:
            return type.code(result)
        except NotAValue:
            raise Undefined(f"`@{name}` returned {repr(result)[:60]}, which is not of type `{type}`") from None
    if isinstance(result, np.generic):
        result = result.item()
    if type in INTEGER_RANGES and isinstance(result, int) and not isinstance(result, bool):
        low, high = INTEGER_RANGES[type]
        if low <= result <= high:
            return result
    elif type == "float" and isinstance(result, int | float) and not isinstance(result, bool):
        return normalise_float(float(result))
    elif type == "symbol" and isinstance(result, str) and _is_text(result):
        return result
    raise Undefined(f"`@{name}` returned {repr(result)[:60]}, which is not of type `{type}`")


def _is_text(text: str) -> bool:
    """Return whether a string is a symbol: it has neither NUL characters nor halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
