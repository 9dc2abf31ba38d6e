"""The constants of a fact in an update file, fitted to the columns of their relation."""

from __future__ import annotations

from collections.abc import Mapping

from upheld.base.errors import Problem, count, nearest, quote
from upheld.base.source import Span
from upheld.facts.columns import Row
from upheld.facts.files.badrows import EXPECTED, column_name
from upheld.language.ast import Atom, Call, Constant, Term, Variable
from upheld.language.core import Predicate
from upheld.language.types.columns import ColumnType, NotAValue
from upheld.language.types.primitive import INTEGER_RANGES
from upheld.language.types.records import NotARecord, RecordType, canonical
from upheld.language.values import Value, normalise_float

#: Programs have no way to write these floats; facts files do, and relations may hold them.
_NAMED_FLOATS = ("inf", "nan")


def row_of(atom: Atom, predicates: Mapping[str, Predicate], problems: list[Problem]) -> Row | None:
    """Return the row of a fact; or None, and add what is wrong with it to the problems."""
    span, name = _span(atom), atom.predicate
    predicate = predicates.get(name)
    if predicate is None:
        problems.append(unknown_relation(name, predicates, span))
        return None
    if len(atom.terms) != predicate.arity:
        problems.append(wrong_arity(len(atom.terms), predicate, span))
        return None
    row: list[Value] = []
    for i, (term, type) in enumerate(zip(atom.terms, predicate.types)):
        value = _value(term, type, column_name(i, predicate.columns))
        if isinstance(value, Problem):
            problems.append(value)
        else:
            row.append(value)
    return tuple(row) if len(row) == predicate.arity else None


def unknown_relation(
    name: str, predicates: Mapping[str, Predicate], span: Span | None = None, place: str | None = None
) -> Problem:
    """Return the problem of a relation that the program does not have."""
    note = f"the relations are {', '.join(map(quote, list(predicates)[:20])) or 'none'}"
    message, hint = f"unknown relation {quote(name)}", nearest(name, predicates)
    return Problem("unknown-relation", message, span, place=place, note=note, hint=hint)


def wrong_arity(values: int, predicate: Predicate, span: Span | None = None) -> Problem:
    """Return the problem of a fact with another number of values than its relation has columns."""
    message = f"{count(values, 'value')} where {quote(predicate.name)} has {count(predicate.arity, 'column')}"
    columns = ", ".join(f"{quote(c)} ({t})" for c, t in zip(predicate.columns, predicate.types))
    return Problem("wrong-arity", message, span, note=f"the columns are {columns}" if columns else None)


def _value(term: Term, type: str, column: str) -> Value | Problem:
    """Return the value of a constant in a column of this type, or why there is none."""
    match term:
        case Constant(value=value, type=written):
            return _fitted(value, written, type, column, _span(term))
        case Variable(name=name) if type == "float" and name in _NAMED_FLOATS:
            return normalise_float(float(name))
        case Call(functor="-", arguments=(Variable(name="inf"),)) if type == "float":
            return -float("inf")
        case Variable(name=name):
            hint = f'write `"{name}"` for a text' if type == "symbol" and len(name) < 40 else "write a value"
            message = f"{column} holds the name {quote(name)}, which is not a value"
        case Call():
            message, hint = f"{column} holds an expression", "write its value"
        case _:
            message, hint = f"{column} holds a wildcard", "write a value"
    return Problem("not-a-constant", message, _span(term), note="updates have constants only", hint=hint)


def _fitted(value: Value, written: str, type: str, column: str, span: Span) -> Value | Problem:
    """Return a constant, written as one of some type, as the same value of the type of its column."""
    if isinstance(type, ColumnType):
        return _code(value, written, type, column, span)
    if written == "null":
        message, hint = f"{column} holds a null", "declare the column with `?` behind its type"
        return Problem("missing-value", message, span, note=EXPECTED[type], hint=hint)
    if isinstance(type, RecordType) and written == "record":
        try:
            return canonical(str(value), type)
        except NotARecord as wrong:
            message = f"{column} holds {quote(value)}, which {wrong}"
            return Problem("ill-typed-value", message, span, note=EXPECTED[type], hint="correct it")
    if type == written:
        return normalise_float(value) if isinstance(value, float) else value
    if isinstance(value, int) and written == "number":  # the others say of themselves what they are
        if type == "float":
            return float(value)
        if type in INTEGER_RANGES:
            low, high = INTEGER_RANGES[type]
            if low <= value <= high:
                return value
            message = f"{column} holds {quote(value)}, which no `{type}` can hold"
            return Problem("number-out-of-range", message, span, note=EXPECTED[type], hint="correct it")
    shown = span.source.text[span.start : span.end]
    message = f"{column} holds {quote(shown)}, which is not a `{type}`"
    hint = f"write it in quotes, as in {quote(chr(34) + shown + chr(34))}" if type == "symbol" else "correct it"
    return Problem("ill-typed-value", message, span, note=EXPECTED[type], hint=hint)


def _code(value: Value, written: str, type: ColumnType, column: str, span: Span) -> Value | Problem:
    """Return the code of a constant in a column whose values are codes."""
    shown = span.source.text[span.start : span.end]
    kinds = {"boolean": ("boolean",), "date": ("symbol",), "timestamp": ("symbol",), "decimal": ("number", "float")}
    fitting = kinds.get(type.kind, (type.kind, "number") if type.kind in ("unsigned", "float") else (type.kind,))
    try:
        if written == "null":
            return type.code(None)
        if written not in fitting:
            raise NotAValue(f"is not a `{type}`")
        if written == "boolean":
            return value
        code = type.code(shown.replace(" ", "") if type.kind == "decimal" else value)
        if type.is_null(code):
            raise NotAValue("stands for the null", "number-out-of-range")
        return code
    except NotAValue as wrong:
        if wrong.slug == "missing-value":
            hint = "declare the column with `?` behind its type"
            return Problem(wrong.slug, f"{column} holds a null", span, note=type.expected, hint=hint)
        message = f"{column} holds {quote(shown)}, which {wrong}"
        return Problem(wrong.slug, message, span, note=type.expected, hint="correct it")


def _span(node: Atom | Term) -> Span:
    assert node.span, "a parsed node has a span"
    return node.span
