"""Random expressions over RDF terms."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

#: Terms of all kinds, as Oxigraph writes them. Those on which Upheld departs from it are tested apart.
TERMS = {
    "number": ["0", "1", "-3", "2.5", "-0.5", '"1"^^xsd:double', '"-25"^^xsd:double', '"0.5"^^xsd:float'],
    "string": ['"a"', '"abc"', '""', '"Zoë"', '"12"', '"b"@en', '"abc"@en', '"c"@de', '"true"', '"2020-01-01"'],
    "other": ["true", "false", ":a", "<http://e/b>", '"u"^^:unknown', '"x"^^:unknown'],
    "moment": [
        '"2020-01-01T00:00:00Z"^^xsd:dateTime',
        '"2020-01-01T01:00:00+01:00"^^xsd:dateTime',
        '"1999-12-31T23:59:59.5Z"^^xsd:dateTime',
        '"2020-01-01"^^xsd:date',
        '"2021-06-30"^^xsd:date',
        '"10:20:30"^^xsd:time',
    ],
    "duration": [
        '"P1Y"^^xsd:yearMonthDuration',
        '"P1Y1M"^^xsd:duration',
        '"P1DT12H"^^xsd:dayTimeDuration',
        '"P2D"^^xsd:duration',
    ],
}
#: Oxigraph computes with dates, which SPARQL 1.1 does not.
WITHOUT_DATES = ("number", "string", "other")
#: Functions that show how a number is written, in which there is a choice.
OF_TEXTS = "STR xsd:string"
ONE = "STRLEN UCASE LCASE ENCODE_FOR_URI LANG DATATYPE isIRI isLiteral isNumeric ABS CEIL FLOOR ROUND YEAR MONTH DAY "
ONE += "HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ! xsd:boolean xsd:integer xsd:decimal "
ONE += "xsd:double IRI"
TWO = "STRSTARTS STRENDS CONTAINS STRBEFORE STRAFTER CONCAT LANGMATCHES sameTerm STRDT STRLANG COALESCE"
INFIX = "= != < <= > >= && ||"


def expression(source: Random, depth: int, kinds: Sequence[str] = tuple(TERMS), variables: Sequence[str] = ()) -> str:
    """Return a random expression of the language that Upheld and SPARQL share."""
    if depth == 0 and variables and source.random() < 0.5:
        return source.choice(variables)
    if depth == 0:
        return source.choice(TERMS[source.choice(kinds)])
    a, b, c = (expression(source, depth - 1 if source.random() < 0.6 else 0, kinds, variables) for _ in range(3))
    match source.randrange(10):
        case 0 | 1:
            return f"{source.choice(ONE.split())}({a})"
        case 2 | 3:
            return f"{source.choice(TWO.split())}({a}, {b})"
        case 4 | 5:
            return f"(({a}) {source.choice(INFIX.split())} ({b}))"
        case 6:
            return source.choice([f"IF({a}, {b}, {c})", f"(({a}) IN ({b}, {c}))", f"(({a}) NOT IN ({b}, {c}))"])
        case 7:
            one, other = (expression(source, depth - 1, WITHOUT_DATES, variables) for _ in range(2))
            return source.choice([f"-({one})", f"(({one}) {source.choice('+-*/')} ({other}))"])
        case 8:
            return f"{source.choice(OF_TEXTS.split())}({expression(source, 0, kinds, variables)})"
        case _:
            return source.choice([f"SUBSTR({a}, 2)", f'REGEX({a}, "b|1", "i")', f'REPLACE({a}, "[a-b]", "<$0>")'])
