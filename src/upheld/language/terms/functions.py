"""The functions of SPARQL 1.1 on RDF terms that have no side effects, and SKOLEM of RDFox.

A function takes and returns terms, as N-Triples writes them, and raises `NoValue` where SPARQL has an error. A *lazy*
function gets its arguments as functions without arguments, which raise `NoValue` themselves: IF, COALESCE, `||`, `&&`
and IN go on where an argument has no value.

Departures from SPARQL: regular expressions follow RE2, without backreferences, lookaround and the classes of XML
such as `\\i`; integers have no bound; functions of dateTimes take dates and times as well.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from upheld.language.terms import datatypes, temporal
from upheld.language.terms.iris import resolve
from upheld.language.terms.ntriples import NotATerm, iri, language_tag
from upheld.language.terms.regex import NotARegex, replaced, with_flags
from upheld.language.terms.temporal import EXACT, Moment
from upheld.language.terms.terms import RDF, XSD, NoValue, boolean, literal, parts, to_double, unescape
from upheld.language.terms.values import (
    COMPARISONS,
    ROUNDING,
    arithmetic,
    equal,
    number,
    numeric,
    quotient,
    string,
    string_of,
    text_of,
    to_float,
    truth,
    typed_value,
    value_of,
)

Thunk = Callable[[], str]


@dataclass(frozen=True)
class Function:
    """A function of terms, with the least and the greatest number of its arguments."""

    name: str
    evaluate: Callable[..., str]
    least: int
    most: int | None
    #: Whether it takes its arguments as functions without arguments.
    lazy: bool = False
    #: Whether its values are booleans.
    is_test: bool = False


FUNCTIONS: dict[str, Function] = {}


def _define(name: str, evaluate: Callable[..., str], least: int, most: int | None = -1, *, lazy: bool = False) -> None:
    FUNCTIONS[name] = Function(name, evaluate, least, least if most == -1 else most, lazy)


def _define_test(
    name: str, holds: Callable[..., bool], least: int, most: int | None = -1, *, lazy: bool = False
) -> None:
    def evaluate(*terms: Any) -> str:
        return boolean(holds(*terms))

    FUNCTIONS[name] = Function(name, evaluate, least, least if most == -1 else most, lazy, is_test=True)


# -- logic ------------------------------------------------------------------------------------------------------------


def _truth_or_none(thunk: Thunk) -> bool | None:
    try:
        return truth(thunk())
    except NoValue:
        return None


def _or(*parts: Thunk) -> bool:
    return _any(map(_truth_or_none, parts))


def _and(*parts: Thunk) -> bool:
    return not _any(None if holds is None else not holds for holds in map(_truth_or_none, parts))


def _in(term: Thunk, *members: Thunk) -> bool:
    sought = term()

    def is_equal(member: Thunk) -> bool | None:
        try:
            return equal(sought, member())
        except NoValue:
            return None

    return _any(map(is_equal, members))


def _any(truths: Iterable[bool | None]) -> bool:
    """Return whether one is true, and look no further; if none is, all must be known."""
    unknown = False
    for holds in truths:
        if holds:
            return True
        unknown |= holds is None
    if unknown:
        raise NoValue
    return False


def _if(condition: Thunk, then: Thunk, otherwise: Thunk) -> str:
    return then() if truth(condition()) else otherwise()


def _coalesce(*parts: Thunk) -> str:
    for part in parts:
        try:
            return part()
        except NoValue:
            continue
    raise NoValue


_define_test("&&", _and, 2, None, lazy=True)
_define_test("||", _or, 2, None, lazy=True)
_define_test("!", lambda term: not truth(term), 1)
_define_test("IN", _in, 1, None, lazy=True)
_define("IF", _if, 3, lazy=True)
_define("COALESCE", _coalesce, 1, None, lazy=True)
for _name, _holds in COMPARISONS.items():
    _define_test(_name, _holds, 2)

# -- numbers ----------------------------------------------------------------------------------------------------------

_define("+", arithmetic(lambda a, b=0: a + b, lambda a, b=Decimal(0): EXACT.add(a, b)), 1, 2)
_define(
    "-",
    arithmetic(
        lambda a, b=None: -a if b is None else a - b,
        lambda a, b=None: EXACT.minus(a) if b is None else EXACT.subtract(a, b),
    ),
    1,
    2,
)
_define("*", arithmetic(lambda a, b: a * b, EXACT.multiply), 2)
_define("/", arithmetic(quotient), 2)
for _name, _function in ROUNDING.items():
    _define(_name, _function, 1)

# -- strings ----------------------------------------------------------------------------------------------------------


def _characters(term: str) -> str:
    """Return the IRI without brackets, or the text of any literal."""
    if term.startswith("<"):
        return term[1:-1]
    if (parsed := parts(term)) is None:
        raise NoValue
    return unescape(parsed[0])


def _compatible(one: str, other: str) -> tuple[str, str, str]:
    """Return the characters of two strings and the language of the first; the second has that one or none."""
    (a, language), (b, second) = string_of(one), string_of(other)
    if second not in ("", language):
        raise NoValue
    return a, b, language


def _substring(term: str, start: str, length: str | None = None) -> str:
    text, language = string_of(term)
    bounds = [number(t) for t in (start, length) if t is not None]
    if any(b.kind != "integer" for b in bounds):
        raise NoValue
    first = bounds[0].value - 1  # positions count from 1
    end = first + bounds[1].value if length is not None else len(text)
    return string(text[max(first, 0) : max(end, 0)], language)


def _concatenated(*terms: str) -> str:
    strings = [string_of(t) for t in terms]
    languages = {language for _, language in strings}
    return string("".join(text for text, _ in strings), languages.pop() if len(languages) == 1 else "")


def _before(term: str, mark: str) -> str:
    a, b, language = _compatible(term, mark)
    head, separator, _ = a.partition(b) if b else ("", True, "")
    return string(head, language) if separator else string("")


def _after(term: str, mark: str) -> str:
    a, b, language = _compatible(term, mark)
    _, separator, tail = a.partition(b) if b else ("", True, a)
    return string(tail, language) if separator else string("")


def _changed(change: Callable[[str], str]) -> Callable[[str], str]:
    def evaluate(term: str) -> str:
        text, language = string_of(term)
        return string(change(text), language)

    return evaluate


def _compared(holds: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    def test(one: str, other: str) -> bool:
        a, b, _ = _compatible(one, other)
        return holds(a, b)

    return test


def _language(term: str) -> str:
    if (parsed := parts(term)) is None:
        raise NoValue
    return string(parsed[1] or "")


def _language_matches(tag: str, range: str) -> bool:
    one, other = text_of(tag).lower(), text_of(range).lower()
    return bool(one) if other == "*" else one == other or one.startswith(f"{other}-")


def _search(term: str, pattern: str, flags: str = '""') -> bool:
    text, _ = string_of(term)
    try:
        return with_flags(text_of(pattern), text_of(flags)).search(text) is not None
    except NotARegex:
        raise NoValue from None


def _replace(term: str, pattern: str, replacement: str, flags: str = '""') -> str:
    text, language = string_of(term)
    try:
        return string(replaced(text_of(pattern), text_of(flags), text_of(replacement), text), language)
    except NotARegex:
        raise NoValue from None


def _encoded(term: str) -> str:
    from urllib.parse import quote  # which few programs need

    return string(quote(string_of(term)[0], safe=""))


def _hash(name: str) -> Callable[[str], str]:
    def evaluate(term: str) -> str:
        return string(hashlib.new(name, text_of(term).encode(), usedforsecurity=False).hexdigest())

    return evaluate


_define("STR", lambda term: string(_characters(term)), 1)
_define("STRLEN", lambda term: literal(len(string_of(term)[0])), 1)
_define("SUBSTR", _substring, 2, 3)
_define("UCASE", _changed(str.upper), 1)
_define("LCASE", _changed(str.lower), 1)
_define("CONCAT", _concatenated, 0, None)
_define("STRBEFORE", _before, 2)
_define("STRAFTER", _after, 2)
_define("ENCODE_FOR_URI", _encoded, 1)
_define_test("STRSTARTS", _compared(str.startswith), 2)
_define_test("STRENDS", _compared(str.endswith), 2)
_define_test("CONTAINS", _compared(lambda a, b: b in a), 2)
_define("LANG", _language, 1)
_define_test("LANGMATCHES", _language_matches, 2)
_define_test("REGEX", _search, 2, 3)
_define("REPLACE", _replace, 3, 4)
for _name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512"):
    _define(_name, _hash(_name), 1)

# -- terms ------------------------------------------------------------------------------------------------------------


def _iri(term: str, base: str | None = None) -> str:
    if term.startswith("<"):
        return term
    text = text_of(term)
    try:
        return f"<{iri(resolve(text, base[1:-1]) if base is not None else text)}>"
    except NotATerm:
        raise NoValue from None


def _with_datatype(term: str, datatype: str) -> str:
    text = text_of(term)
    if not datatype.startswith("<") or datatype in (f"<{RDF}langString>", f"<{RDF}dirLangString>"):
        raise NoValue
    return string(text) if datatype == f"<{XSD}string>" else f"{string(text)}^^{datatype}"


def _with_language(term: str, tag: str) -> str:
    text = text_of(term)
    try:
        return string(text, language_tag(text_of(tag)))
    except NotATerm:
        raise NoValue from None


def _skolem(*terms: str) -> str:
    """Return a blank node for some terms: the same one for the same terms, in every run."""
    digest = hashlib.blake2b("\n".join(terms).encode(), digest_size=20).hexdigest()  # terms have no line breaks
    return f"_:skolem{digest}"


_define("IRI", _iri, 1, 2)
_define("STRDT", _with_datatype, 2)
_define("STRLANG", _with_language, 2)
_define("DATATYPE", datatypes.datatype, 1)
_define("CANONICAL", datatypes.canonical, 1)
_define("SKOLEM", _skolem, 1, None)
_define_test("ISIRI", lambda term: term[0] == "<", 1)
_define_test("ISBLANK", lambda term: term[0] == "_", 1)
_define_test("ISLITERAL", lambda term: term[0] == '"', 1)
_define_test("ISNUMERIC", lambda term: value_of(term).kind in ("integer", "decimal", "float", "double"), 1)
_define_test("SAMETERM", lambda a, b: a == b, 2)
_define_test("BOUND", lambda term: True, 1)

# -- dates ------------------------------------------------------------------------------------------------------------


def _part(kinds: tuple[str, ...], part: Callable[[Moment], str]) -> Callable[[str], str]:
    def evaluate(term: str) -> str:
        kind, value = value_of(term)
        if kind not in kinds:
            raise NoValue
        return part(value)

    return evaluate


def _timezone(moment: Moment) -> str:
    if moment.zone is None:
        raise NoValue
    return f'"{temporal.zone_duration(moment.zone)}"^^<{XSD}dayTimeDuration>'


_DAYS, _TIMES = ("dateTime", "date"), ("dateTime", "time")
_define("YEAR", _part(_DAYS, lambda m: literal(m.year)), 1)
_define("MONTH", _part(_DAYS, lambda m: literal(m.month)), 1)
_define("DAY", _part(_DAYS, lambda m: literal(m.day)), 1)
_define("HOURS", _part(_TIMES, lambda m: literal(m.hour)), 1)
_define("MINUTES", _part(_TIMES, lambda m: literal(m.minute)), 1)
_define("SECONDS", _part(_TIMES, lambda m: numeric("decimal", m.second)), 1)
_define("TIMEZONE", _part((*_DAYS, "time"), _timezone), 1)
_define("TZ", _part((*_DAYS, "time"), lambda m: string("" if m.zone is None else temporal.zone_text(m.zone))), 1)

# -- casts ------------------------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,4000}(?:\.[0-9]{0,4000})?|\.[0-9]{1,4000})")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")


def _to_boolean(term: str) -> str:
    kind, value = value_of(term)
    if kind == "string":
        if (parsed := typed_value("boolean", value.strip())) is None:
            raise NoValue
        return boolean(parsed.value)
    return boolean(value if kind == "boolean" else bool(number(term).value == value and value))


def _to_number(kind: str, lexical: re.Pattern[str], convert: Callable[[Any], Any]) -> Callable[[str], str]:
    def evaluate(term: str) -> str:
        known, value = value_of(term)
        if known == "string":
            value = value.strip(" \t\r\n")
            if not lexical.fullmatch(value):
                raise NoValue
        elif known == "boolean":
            value = int(value)
        else:
            value = number(term).value
        try:
            return numeric(kind, convert(value))
        except (ArithmeticError, ValueError):
            raise NoValue from None

    return evaluate


def _to_decimal(value: int | Decimal | float | str) -> Decimal:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _to_moment(datatype: str) -> Callable[[str], str]:
    def evaluate(term: str) -> str:
        kind, value = value_of(term)
        inside = _characters(term).strip(" \t\r\n")
        if kind == "dateTime" and datatype != kind and not isinstance(value, str):
            zone = "" if value.zone is None else temporal.zone_text(value.zone)
            day, _, time = inside.partition("T")
            time = re.sub(r"Z|[+-][0-9:]+$", "", time)
            if time.startswith("24"):
                day, time = f"{_year(value.year)}-{value.month:02}-{value.day:02}", "00:00:00"
            inside = f"{day if datatype == 'date' else time}{zone}"
        elif kind == "date" and datatype == "dateTime":
            zone = "" if value.zone is None else temporal.zone_text(value.zone)
            inside = f"{_year(value.year)}-{value.month:02}-{value.day:02}T00:00:00{zone}"
        elif kind not in ("string", datatype):
            raise NoValue
        if typed_value(datatype, inside) is None:
            raise NoValue
        return f'"{inside}"^^<{XSD}{datatype}>'

    return evaluate


def _year(year: int) -> str:
    return f"{'-' if year < 0 else ''}{abs(year):04}"


def _to_duration(datatype: str) -> Callable[[str], str]:
    def evaluate(term: str) -> str:
        kind, _ = value_of(term)
        text = _characters(term).strip(" \t\r\n")
        if kind not in ("string", "duration") or typed_value(datatype, text) is None:
            raise NoValue
        return f'"{text}"^^<{XSD}{datatype}>'

    return evaluate


#: The functions that are called by the IRI of a datatype.
CASTS: dict[str, Callable[[str], str]] = {
    "string": lambda term: string(_characters(term)),
    "boolean": _to_boolean,
    "integer": _to_number("integer", _INTEGER, int),
    "decimal": _to_number("decimal", _DECIMAL, _to_decimal),
    "float": _to_number("float", _FLOAT, lambda value: to_float(float(value) if isinstance(value, str) else value)),
    "double": _to_number("double", _FLOAT, lambda value: to_double(float(value) if isinstance(value, str) else value)),
    **{kind: _to_moment(kind) for kind in sorted(temporal.MOMENTS)},
    **{kind: _to_duration(kind) for kind in sorted(temporal.DURATIONS)},
}
for _name, _function in CASTS.items():
    _define(f"<{XSD}{_name}>", _function, 1)
