"""RDF terms as values: their N-Triples text, and the numbers and strings that literals stand for.

`terms.values` has SPARQL's operators on terms, `terms.functions` its functions.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache

from upheld.language.terms.ntriples_grammar import SHORT_ESCAPES, literal_parts

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TRUE, FALSE = (f'"{word}"^^<{XSD}boolean>' for word in ("true", "false"))

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


def boolean(truth: bool) -> str:
    """Return the literal of a truth value."""
    return TRUE if truth else FALSE


def to_double(number: Number) -> float:
    """Return the double nearest to a number."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
