"""The primitive types, the values they hold, and one order on rows of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from upheld.language.values import Value

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT64_MAX = 2**64 - 1

#: The integers that a type holds, as its least and greatest.
INTEGER_RANGES = {"number": (INT64_MIN, INT64_MAX), "unsigned": (0, UINT64_MAX)}

#: How integers and floats are written in texts, by whoever reads them: in facts files, and for conversions.
INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|([0-9]+))")
FLOAT = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE)


#: The characters after a backslash in the strings of both dialects, and in those of `.dl`.
ESCAPES = {'"': '"', "\\": "\\", "'": "'", "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
DL_ESCAPES = {**ESCAPES, "a": "\a", "v": "\v"}
_ESCAPED = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


class PrimitiveType(NamedTuple):
    """A primitive type, with its names in other libraries."""

    name: str
    numpy: str
    #: In Arrow, and as an extension type of pandas.
    arrow: str
    spark: str


#: The primitive types by name. A `symbol` is any text, a `term` the N-Triples text of an RDF term, and a `record` the
#: text of a record or of a value of an algebraic data type.
TYPES = {
    type.name: type
    for type in (
        PrimitiveType("number", "int64", "int64", "bigint"),
        PrimitiveType("unsigned", "uint64", "uint64", "decimal(20,0)"),
        PrimitiveType("float", "float64", "float64", "double"),
        PrimitiveType("symbol", "object", "string", "string"),
        PrimitiveType("record", "object", "string", "string"),
        PrimitiveType("term", "object", "string", "string"),
    )
}
PRIMITIVE_TYPES = tuple(TYPES)


def quoted(text: str) -> str:
    """Return a string literal that says `text`."""
    return f'"{text.translate(_ESCAPED)}"'


def float_text(x: float) -> str:
    """Return the shortest text that reads back as `x`, a whole number without a point: `0.1`, `2`, `1e+30`, `inf`."""
    return repr(x).removesuffix(".0")


def sorted_rows(rows: Iterable[tuple[Value, ...]], types: Sequence[str]) -> list[tuple[Value, ...]]:
    """Return the rows in ascending order, column by column, NaN after every other float."""
    ordered = list(rows)
    floats = [i for i, type in enumerate(types) if type == "float"]
    # NaN is neither below nor above anything, which would leave the order to chance.
    if any(math.isnan(row[i]) for i in floats for row in ordered):  # type: ignore[arg-type]
        ordered.sort(key=lambda row: tuple((value != value, value) for value in row))
    else:
        ordered.sort()
    return ordered
