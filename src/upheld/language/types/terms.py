"""RDF terms as values: their N-Triples text, and what functors and comparisons mean on them.

Comparison and arithmetic follow SPARQL: numeric literals by value, strings by text, and an expression over terms that
have no such value has no value itself, so that the rule it stands in does not match.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from upheld.language.types.ntriples_grammar import SHORT_ESCAPES, literal_parts
from upheld.language.types.regex import NotARegex, found_in
from upheld.language.values import Value

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = f"<{RDF}type>"

#: Canonical N-Triples escapes these and nothing else, so that no term has a tab or a line break.
_CANONICAL = {code: f"\\u{code:04X}" for code in (*range(32), 127, 0xFFFE, 0xFFFF)} | {
    ord(character): f"\\{escape}" for escape, character in SHORT_ESCAPES.items() if escape != "'"
}
_INTEGERS = (
    "integer nonPositiveInteger negativeInteger long int short byte nonNegativeInteger unsignedLong unsignedInt "
    "unsignedShort unsignedByte positiveInteger"
).split()
_DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
#: How the values of each numeric datatype are written; Python itself would read more than that.
_NUMERALS = {
    **{XSD + name: re.compile(r"[+-]?[0-9]{1,4000}") for name in _INTEGERS},
    XSD + "decimal": re.compile(_DECIMAL),
    **{XSD + name: re.compile(rf"{_DECIMAL}(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN") for name in ("double", "float")},
}

Number = int | Decimal | float


class NoValue(Exception):
    """The expression has no value for these terms: as in SPARQL, the rule it stands in does not match."""


def unescape(text: str) -> str:
    """Return the characters that the inside of a literal stands for."""

    def one(found: re.Match[str]) -> str:
        code = found.group(1)
        return chr(int(code[1:], 16)) if code[0] in "uU" else SHORT_ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", one, text, flags=re.DOTALL)


def escape(text: str) -> str:
    """Return `text` as it stands inside a literal in canonical N-Triples: each text in one way."""
    return text.translate(_CANONICAL)


@lru_cache(maxsize=65536)
def number_of(term: str) -> Number | None:
    """Return the value of a numeric literal, and None for every other term."""
    found = literal_parts(term)
    datatype = found.group(3) if found else None
    if not found or datatype not in _NUMERALS:
        return None
    text = found.group(1).strip(" \t\r\n")
    if not _NUMERALS[datatype].fullmatch(text):
        return None
    if datatype in (XSD + "double", XSD + "float"):
        return float(text)
    return Decimal(text) if datatype == XSD + "decimal" else int(text)


def parts(term: str) -> tuple[str, str | None, str | None] | None:
    """Return the inside of a literal, its language and its datatype, and None for every other term."""
    found = literal_parts(term)
    return (found.group(1), found.group(2), found.group(3)) if found else None


def string_of(term: str) -> str | None:
    """Return the characters of a plain or language-tagged string, and None for every other term."""
    found = literal_parts(term)
    return unescape(found.group(1)) if found and (found.group(3) in (None, XSD + "string")) else None


def literal(value: Number | str) -> str:
    """Return the literal of a value."""
    if isinstance(value, str):
        return f'"{escape(value)}"'
    if isinstance(value, float):
        text = "NaN" if math.isnan(value) else str(value).replace("inf", "INF")
        return f'"{text}"^^<{XSD}double>'
    if isinstance(value, Decimal):
        text = format(value, "f")
        return f'"{text if "." in text else text + ".0"}"^^<{XSD}decimal>'
    return f'"{value}"^^<{XSD}integer>'


def _operands(*terms: str) -> list[Number]:
    numbers = [number_of(t) for t in terms]
    if any(n is None for n in numbers):
        raise NoValue
    found = [n for n in numbers if n is not None]
    if any(isinstance(n, float) for n in found):
        return [to_double(n) for n in found]
    return [Decimal(n) for n in found] if any(isinstance(n, Decimal) for n in found) else found


def to_double(number: Number) -> float:
    """Return the double nearest to a number."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _arithmetic(f: Callable[..., Number]) -> Callable[..., Value]:
    def evaluate(*terms: str) -> str:
        try:
            return literal(f(*_operands(*terms)))
        except (ArithmeticError, ValueError):
            raise NoValue from None

    return evaluate


def _quotient(a: Number, b: Number) -> Number:
    if isinstance(a, float) and isinstance(b, float):
        if b == 0:  # doubles follow IEEE 754; other numbers have no such quotient
            return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
        return a / b
    return Decimal(a) / Decimal(b)  # integers divide to a decimal in SPARQL


def _text(term: str) -> str:
    if (text := string_of(term)) is None:
        raise NoValue
    return text


def _characters(term: str) -> str:
    """Return what SPARQL's STR gives: the IRI without brackets, or the text of any literal."""
    if term.startswith("<"):
        return term[1:-1]
    found = literal_parts(term)
    if not found:
        raise NoValue
    return unescape(found.group(1))


FUNCTORS: dict[str, Callable[..., Value]] = {
    "+/2": _arithmetic(lambda a, b: a + b),
    "-/2": _arithmetic(lambda a, b: a - b),
    "-/1": _arithmetic(lambda a: -a),
    "*/2": _arithmetic(lambda a, b: a * b),
    "//2": _arithmetic(_quotient),
    "cat/2": lambda a, b: literal(_text(a) + _text(b)),
    "strlen/1": lambda a: literal(len(_text(a))),
    "to_string/1": lambda a: literal(_characters(a)),
}


def _same(a: Value, b: Value) -> bool:
    assert isinstance(a, str) and isinstance(b, str)
    if a == b:
        return True
    if number_of(a) is None or number_of(b) is None:
        return False
    x, y = _operands(a, b)
    return x == y


def _ordered(f: Callable[[int], bool]) -> Callable[[Value, Value], bool]:
    def holds(a: Value, b: Value) -> bool:
        assert isinstance(a, str) and isinstance(b, str)
        if number_of(a) is not None and number_of(b) is not None:
            x, y = _operands(a, b)
            return f((x > y) - (x < y)) if x == x and y == y else False
        s, t = _text(a), _text(b)
        return f((s > t) - (s < t))

    return holds


def _search(pattern: Value, text: Value) -> bool:
    try:
        return found_in(_text(str(pattern)), _text(str(text)))
    except NotARegex:
        raise NoValue from None


CONSTRAINTS: dict[str, Callable[[Value, Value], bool]] = {
    "=": lambda a, b: a == b,  # of a variable that was bound before its equation is looked at: 5 is not 5.0 here
    "==": _same,
    "!=": lambda a, b: not _same(a, b),
    "<": _ordered(lambda sign: sign < 0),
    "<=": _ordered(lambda sign: sign <= 0),
    ">": _ordered(lambda sign: sign > 0),
    ">=": _ordered(lambda sign: sign >= 0),
    "match": lambda pattern, text: _search(pattern, text),
    "!match": lambda pattern, text: not _search(pattern, text),
    "contains": lambda part, whole: _text(str(part)) in _text(str(whole)),
    "!contains": lambda part, whole: _text(str(part)) not in _text(str(whole)),
}
