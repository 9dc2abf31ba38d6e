"""Checks of the arguments of public functions, by parameter name, before any work begins.

A wrong argument raises a `UsageError`, also for callers without a type checker.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import AsyncIterable, Callable, Collection, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from upheld.base.dataclass import dataclass
from upheld.base.errors import Problem, UsageError, quote
from upheld.base.limits import Limits
from upheld.language.ast import Program
from upheld.language.terms.ntriples import is_graph

A = ParamSpec("A")
R = TypeVar("R")


@dataclass(frozen=True)
class Kind:
    """A kind of argument: a predicate, and its description in messages."""

    accepts: Callable[[object], bool]
    meaning: str


def _is(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def _is_path(value: object) -> bool:
    """Whether `value` is a text path without NUL, which no file system allows."""
    return isinstance(value, str | os.PathLike) and isinstance(path := os.fspath(value), str) and "\0" not in path


def _is_paths(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(map(_is_path, value))


def _is_names(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(name, str) for name in value)


def _or_none(accepts: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or accepts(value)


_TEXT = _is(str)
_TRUTH = Kind(_is(bool), "True or False")
_FACTS = 'a dictionary of facts by relation, such as `{"edge": [(1, 2)]}`, paths of RDF files, or a graph'

PATH = Kind(_is_path, "a path")
PATH_OR_NONE = Kind(_or_none(_is_path), "a path, or None")
NAMES = Kind(_is_names, "a list of names")
NAMES_OR_NONE = Kind(_or_none(_is_names), "a list of relation names, or None")
ALGORITHM_OR_NONE = Kind(_or_none(_TEXT), "the name of an algorithm, or None")
MEMORY_OR_NONE = Kind(_or_none(_TEXT), "a size, such as `2g`, or None")
WHOLE = Kind(lambda n: isinstance(n, int) and not isinstance(n, bool) and n >= 0, "a whole number of at least 0")
WHOLE_OR_NONE = Kind(_or_none(WHOLE.accepts), f"{WHOLE.meaning}, or None")
BY_NAME_OR_NONE = Kind(_or_none(_is(Mapping)), "a dictionary of values by name, or None")
TEXT_OR_NONE = Kind(_or_none(_TEXT), "a string, or None")
RULES = Kind(lambda r: isinstance(r, str) or _is_names(r), "the text of a rule, or a list of texts")
SOURCE = Kind(lambda s: isinstance(s, str) and s != "", "a name of at least one character")
SOURCE_OR_NONE = Kind(_or_none(SOURCE.accepts), f"{SOURCE.meaning}, or None")
UPDATES = Kind(_is(Iterable, AsyncIterable), "an iterable of updates")

#: The kinds of parameters, by the names that they have in every public function.
KINDS = {
    "program": Kind(lambda p: isinstance(p, str | Program) or _is_path(p), "a string, a path, or an `upheld.Program`"),
    "facts": Kind(_or_none(lambda f: isinstance(f, Mapping) or _is_path(f) or _is_paths(f) or is_graph(f)), _FACTS),
    "include": Kind(_is_paths, "a list of paths"),
    "output": PATH,
    "engine": Kind(lambda e: isinstance(e, str) or hasattr(e, "open"), "the name of an engine, or a `SparkEngine`"),
    "algorithm": Kind(_TEXT, "the name of an algorithm"),
    "decompose": Kind(_TEXT, "`auto`, `never` or `always`"),
    "equality": Kind(_TEXT, "`off`, `axioms` or `rewrite`"),
    "dialect": Kind(_TEXT, "`dl` or `dlog`"),
    "threads": Kind(
        _or_none(lambda n: isinstance(n, int) and not isinstance(n, bool) and n >= 1),
        "a whole number of at least 1, or None",
    ),
    "limits": Kind(_or_none(_is(Limits)), "an `upheld.Limits`, or None"),
    "stratification": Kind(_TEXT, "`granular`, `levels` or `coarsest`"),
    "on_violation": Kind(
        _or_none(lambda v: isinstance(v, str) and v in ("refuse", "report")), "`refuse`, `report` or None"
    ),
    "verify": _TRUTH,
    "confined": _TRUTH,
    "edited": _TRUTH,
    "state": PATH_OR_NONE,
    "keep": PATH_OR_NONE,
    "source": SOURCE_OR_NONE,
    "strict": _TRUTH,
    "merge_waiting": Kind(lambda n: isinstance(n, int) and not isinstance(n, bool), "a whole number of at least 1"),
    "progress": Kind(lambda p: p is None or isinstance(p, bool) or callable(p), "a function, True, False or None"),
    "profile": PATH_OR_NONE,
    "committed": Kind(_or_none(callable), "a function, or None"),
    "changes": Kind(_or_none(lambda c: _is_path(c) or hasattr(c, "write")), "a path, an open text file, or None"),
    "text": Kind(_TEXT, "a string"),
    "parameters": Kind(
        _or_none(lambda p: isinstance(p, Mapping | Sequence) and not isinstance(p, str)),
        "a list of values, a dictionary of values by name, or None",
    ),
    "format": Kind(_or_none(_TEXT), "the name of a format, or None"),
    "fact": Kind(_TEXT, "a string"),
    "name": Kind(_TEXT, "the name of a relation"),
    "relation": Kind(_or_none(_TEXT), "the name of a relation, or None"),
    "version": Kind(_or_none(lambda n: isinstance(n, int) and not isinstance(n, bool)), "a whole number, or None"),
    "memory": Kind(_TEXT, "a size, such as `2g`"),
    "cores": Kind(_or_none(lambda n: isinstance(n, int) and not isinstance(n, bool)), "a whole number, or None"),
    "most": Kind(lambda n: isinstance(n, int) and not isinstance(n, bool) and n > 0, "a whole number of at least 1"),
    "m": Kind(lambda m: hasattr(m, "relations"), "an `upheld.Materialisation`"),
    "path": PATH,
    "paths": PATH,
    "base": Kind(_or_none(_TEXT), "an IRI, or None"),
    "blank_nodes": Kind(_TEXT, "`file` or `shared`"),
    "bound": Kind(_TEXT, "`lower` or `upper`"),
    "triples": Kind(_is(Iterable), "rows"),
    "quads": Kind(_is(Iterable), "rows"),
    "prefixes": Kind(_or_none(_is(Mapping)), "a dictionary of IRIs by prefix, or None"),
    "without": Kind(lambda n: isinstance(n, Collection) and not isinstance(n, str), "a list of rule names"),
}
KINDS["insert"] = KINDS["delete"] = KINDS["replace"] = KINDS["facts"]
KINDS["parts"] = KINDS["program"]
PROGRAM_OR_NONE = Kind(_or_none(KINDS["program"].accepts), f"{KINDS['program'].meaning}, or None")


def checked(**kinds: Kind) -> Callable[[Callable[A, R]], Callable[A, R]]:
    """Decorate a function to check the arguments of each call by `KINDS`, which `kinds` override."""

    def check(function: Callable[A, R]) -> Callable[A, R]:
        parameters = inspect.signature(function).parameters
        known = {name: kinds.get(name) or KINDS.get(name) for name in parameters}
        rest = next((name for name, p in parameters.items() if p.kind is p.VAR_POSITIONAL), None)
        names = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]

        @functools.wraps(function)
        def call(*args: A.args, **kwargs: A.kwargs) -> R:
            for i, value in enumerate(args):
                name = names[i] if i < len(names) else rest
                if name is not None and (kind := known[name]) is not None and not kind.accepts(value):
                    raise _refused(function, args, name, value, kind)
            for name, value in kwargs.items():
                if (kind := known.get(name)) is not None and not kind.accepts(value):
                    raise _refused(function, args, name, value, kind)
            return function(*args, **kwargs)

        return call

    return check


def _refused(
    function: Callable[..., object], args: tuple[object, ...], name: str, value: object, kind: Kind
) -> UsageError:
    message = f"`{name}` of `{_title(function, args)}` must be {kind.meaning}, got {described(value)}"
    return UsageError(Problem("bad-argument", message))


def _title(function: Callable[..., object], args: tuple[object, ...]) -> str:
    """Return the name of a function that was called; a method has the class of its object, whichever defines it."""
    is_method = next(iter(inspect.signature(function).parameters), None) == "self"
    name = f"{type(args[0]).__name__}.{function.__name__}" if is_method else function.__qualname__
    return name.removesuffix(".__init__")


def described(value: object) -> str:
    """Return a value with its type, for messages."""
    if value is None or isinstance(value, bool):
        return quote(value)
    try:
        shown = repr(value)
    except Exception:  # a `__repr__` that is not ours
        shown = "..."
    return f"the `{type(value).__name__}` {quote(shown)}"
