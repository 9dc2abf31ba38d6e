"""User-defined functors: Python functions that programs declare with `.functor` and call as `@name(...)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from upheld.errors import Problem, UpheldError, UsageError, quote
from upheld.language.types.functors import Undefined, define_functor
from upheld.language.types.primitive import INTEGER_RANGES, normalise_float
from upheld.language.values import Value

F = TypeVar("F", bound=Callable[..., Any])
Array = npt.NDArray[Any]

#: The types of arguments and results, with the types of the arrays that hold them.
_ARRAYS: dict[str, type] = {"number": np.int64, "unsigned": np.uint64, "float": np.float64, "symbol": np.object_}
_NAME = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*")


def functor(name: str, types: Sequence[str], *, arrays: bool = False) -> Callable[[F], F]:
    """Register the decorated function as the functor that programs declare with `.functor` and call as `@name(...)`.

    The function must be pure: the same arguments give the same result in every run. It is called once for each
    combination of arguments that a rule evaluates at a time, and may be called again later. The Spark engine sends the
    function to its tasks.

    Args:
        name: Name of the functor, without `@`. A function registered earlier under this name is replaced.
        types: Types of the arguments, then of the result: `number`, `unsigned`, `float` or `symbol`.
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
    if not is_list or len(types) < 2 or not all(isinstance(type, str) and type in _ARRAYS for type in types):
        message = f"`types` must be a list with a type for each argument and one for the result, got {quote(types)}"
        note = f"the types are {', '.join(map(quote, _ARRAYS))}"
        raise UsageError(Problem("bad-argument", message, note=note))

    def register(function: F) -> F:
        *arguments, result = types
        if arrays:
            on_arrays = _on_arrays(name, function, result)
            evaluate = _on_one(on_arrays, arguments)
            define_functor(name, tuple(arguments), result, evaluate, on_arrays)
        else:
            define_functor(name, tuple(arguments), result, _checked(name, function, result))
        return function

    return register


def _checked(name: str, function: Callable[..., Any], type: str) -> Callable[..., Value]:
    """Return a function of values that raises `Undefined` where the result is not a value of the type."""

    def evaluate(*values: Value) -> Value:
        return _fitted(name, _called(name, function, values), type)

    return evaluate


def _on_arrays(name: str, function: Callable[..., Any], type: str) -> Callable[..., list[Value]]:
    """Return a function of arrays that raises `Undefined` where a result is not a value of the type."""

    def evaluate(*arrays: Array) -> list[Value]:
        results = np.asarray(_called(name, function, arrays))
        if results.shape != arrays[0].shape:
            raise Undefined(f"`@{name}` returned an array of shape {results.shape}, not {arrays[0].shape}")
        return [_fitted(name, result, type) for result in results.tolist()]

    return evaluate


def _on_one(on_arrays: Callable[..., list[Value]], types: Sequence[str]) -> Callable[..., Value]:
    """Return a function of values that calls one of arrays with arrays of one value each."""

    def evaluate(*values: Value) -> Value:
        return on_arrays(*(np.array([v], _ARRAYS[type]) for v, type in zip(values, types, strict=True)))[0]

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
