"""Values of literals: which literals have one, and one literal for each value, whatever way it is written.

Value spaces follow XML Schema 1.1 part 2, as RDF 1.1 adopts them: an integer is a decimal, and the values
of `xsd:float` and `xsd:double` are neither decimals nor each other. No space is trimmed: RDF takes a literal as it is.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from functools import lru_cache

from upheld.language.terms.terms import RDF, XSD, NoValue, escape, parts, unescape

_UNBOUNDED = (-math.inf, math.inf)
#: The integers that a datatype has, from the least to the greatest.
INTEGERS: dict[str, tuple[float, float]] = {
    "integer": _UNBOUNDED,
    "nonPositiveInteger": (-math.inf, 0),
    "negativeInteger": (-math.inf, -1),
    "nonNegativeInteger": (0, math.inf),
    "positiveInteger": (1, math.inf),
    **{name: (-(2**bits), 2**bits - 1) for name, bits in (("long", 63), ("int", 31), ("short", 15), ("byte", 7))},
    **{f"unsigned{name}": (0, 2**bits - 1) for name, bits in (("Long", 64), ("Int", 32), ("Short", 16), ("Byte", 8))},
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,4000}(?:\.[0-9]{0,4000})?|\.[0-9]{1,4000})")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_BOOLEANS = {"true": "true", "1": "true", "false": "false", "0": "false"}


def datatype(term: str) -> str:
    """Return the datatype of a literal, whether or not it has a value, as an IRI."""
    if (found := parts(term)) is None:
        raise NoValue
    _, language, name = found
    return f"<{RDF}langString>" if language else f"<{name or XSD + 'string'}>"


@lru_cache(maxsize=65536)
def canonical(term: str) -> str:
    """Return the literal that stands for the value of one; there is none if that has no value that is known.

    >>> canonical('"010"^^<http://www.w3.org/2001/XMLSchema#byte>')
    '"10"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    if (found := parts(term)) is None:
        raise NoValue
    text, language, name = found
    if language or name in (None, XSD + "string"):
        return term if language else f'"{text}"'
    if name == RDF + "XMLLiteral" and _is_xml(unescape(text)):
        return term  # two ways to write one document are two values here
    space, _, local = name.rpartition("#")
    if space + "#" == XSD:
        if local in INTEGERS and _INTEGER.fullmatch(text):
            least, greatest = INTEGERS[local]
            if least <= int(text) <= greatest:
                return _typed(str(int(text)), "integer")
        if local == "decimal" and _DECIMAL.fullmatch(text):
            return _decimal(text)
        if local in ("double", "float") and _FLOAT.fullmatch(text):
            return _typed(_float(text, local), local)
        if local == "boolean" and text in _BOOLEANS:
            return _typed(_BOOLEANS[text], local)
        if local == "anyURI":
            return term
    raise NoValue


def _typed(text: str, local: str) -> str:
    return f'"{escape(text)}"^^<{XSD}{local}>'


def _decimal(text: str) -> str:
    number = Decimal(text)
    if number == (whole := number.to_integral_value()):
        return _typed(str(int(whole)), "integer")
    return _typed(format(number, "f").rstrip("0"), "decimal")


def _float(text: str, local: str) -> str:
    number = float(text)
    if local == "float":
        try:
            (number,) = struct.unpack("f", struct.pack("f", number))
        except OverflowError:
            number = math.copysign(math.inf, number)
    return "NaN" if math.isnan(number) else repr(number).replace("inf", "INF").replace("e", "E")


def _is_xml(text: str) -> bool:
    """Return whether a text is the content of an XML element."""
    from xml.parsers import expat  # which few programs need

    try:
        expat.ParserCreate().Parse(f"<x>{text}</x>", True)
    except (expat.ExpatError, UnicodeEncodeError):
        return False
    return True
