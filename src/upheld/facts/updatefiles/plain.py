"""Fast path for facts in common notation: regular expressions read many at a time and leave the rest."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from operator import methodcaller

from upheld.facts.columns import Row
from upheld.language.core import Predicate
from upheld.language.terms.ntriples import are_canonical
from upheld.language.terms.vocabulary import TRIPLE, XSD
from upheld.language.types.columns import ColumnType
from upheld.language.types.primitive import DL_ESCAPES, INTEGER_RANGES
from upheld.language.values import Value, normalise_float

_NAME = r"[A-Za-z_?][A-Za-z0-9_?]*+"
_STRING = r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
_IRI = r'<[^\x00-\x20<>"{}|^`\\]*+>'
_TAG = rf"@[a-z]++(?:-[a-z0-9]++)*+|\^\^(?!<{XSD}string>){_IRI}"
_PREFIXED = r"(?:[A-Za-z][A-Za-z0-9\-]*+)?:[A-Za-z0-9][A-Za-z0-9_]*+"

#: The values of each type. All of them mean here what they mean to the parsers, which read more.
_VALUES = {
    "number": r"(-?[0-9]{1,19}+)",
    "unsigned": r"([0-9]{1,18}+u?|[0-9]{19,20}+u)",
    "float": r"(-?[0-9]{1,18}+(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|-?inf|nan)",
    "symbol": rf"({_STRING})",
    "term": rf'({_IRI}|{_PREFIXED}|_:[A-Za-z0-9]++|"[^"\\\x00-\x1f\x7f]*+"(?:{_TAG})?+)',
}

#: How a fact begins, what stands between its brackets, and what is skipped between facts, in each dialect.
_FORMS = {
    "dl": (rf"{_NAME}(?:\.{_NAME})*+\(", rf'(?:{_STRING}|[^"()\n])*+\)', r"[ \t\r\n\ufeff]++|//[^\n]*+"),
    "dlog": (
        rf"(?:(?:[A-Za-z]\w*+|{_IRI})\(|\[)",
        rf'(?:{_STRING}|{_IRI}|[^"()\[\]<>\n])*+[)\]]',
        r"[ \t\r\n\ufeff]++|//[^\n]*+|[#%][^\n]*+",
    ),
}

_COMMIT = re.compile(r"^[ \t]*+commit[ \t]*+\.", re.MULTILINE)
_ESCAPE = re.compile(r"\\([\s\S])")


@dataclass(frozen=True)
class Segment:
    """The facts up to a `commit.`, or up to the end of the text. They begin on line `line`, counted from zero."""

    line: int
    rows: list[tuple[str, str, list[Row]]]
    committed: bool


class PlainFacts:
    """Reads facts of some relations that are written plainly in a dialect. Prefixes are added by who finds them."""

    def __init__(self, dialect: str, predicates: Mapping[str, Predicate], prefixes: Mapping[str, str]):
        begin, inside, skipped = _FORMS[dialect]
        self._skip = re.compile(f"(?:{skipped})*+")
        # One group, a fact or else a single character: together with what is skipped it matches everywhere.
        self._facts = re.compile(rf"([+=-]{begin}{inside}(?=[ \t]*+\.(?!\w))|[\s\S])(?:[ \t]*+\.)?+(?:{skipped})*+")
        self._columns: dict[str, _Columns] = {}
        for name, predicate in predicates.items():
            for sign in "+-=":
                self._columns[f"{sign}{name}("] = _Columns(sign, predicate, f"{name}(", ")", prefixes)
                if dialect == "dlog" and name == TRIPLE:
                    self._columns[f"{sign}["] = _Columns(sign, predicate, "[", "]", prefixes)

    def segments(self, text: str) -> list[Segment] | None:
        """Return all facts of a text, or None if not all of it is written plainly."""
        found: list[Segment] = []
        at = line = 0
        for commit in chain(_COMMIT.finditer(text), (None,)):
            end = commit.start() if commit else len(text)
            begin = self._skip.match(text, at, end).end()  # type: ignore[union-attr]
            rows = self._rows(self._facts.findall(text, begin, end))
            if rows is None:
                return None
            line += text.count("\n", at, begin)
            if rows or commit:
                found.append(Segment(line, rows, commit is not None))
            at = commit.end() if commit else end
            line += text.count("\n", begin, at)
        return found

    def _rows(self, facts: list[str]) -> list[tuple[str, str, list[Row]]] | None:
        if not facts:
            return []
        if min(map(len, facts)) == 1:
            return None
        first = _key(facts[0])
        groups = {first: facts}
        if not all(map(str.startswith, facts, repeat(first))):
            groups = {}
            for fact in facts:
                groups.setdefault(_key(fact), []).append(fact)
        rows: list[tuple[str, str, list[Row]]] = []
        for key, texts in groups.items():
            columns = self._columns.get(key)
            read = columns.rows(texts) if columns else None
            if columns is None or read is None:
                return None
            rows.append((columns.sign, columns.relation, read))
        return rows


def _key(fact: str) -> str:
    """Return the sign of a fact, its relation and its opening bracket."""
    return fact[: fact.find("(") + 1] if fact[1] != "[" else fact[:2]


class _Columns:
    """Reads facts of one sign and relation that are written with some brackets."""

    def __init__(self, sign: str, predicate: Predicate, opening: str, closing: str, prefixes: Mapping[str, str]):
        self.sign, self.relation, self.types = sign, predicate.name, predicate.types
        self._brackets = re.escape(sign + opening), re.escape(closing)
        self._prefixes = prefixes

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        opening, closing = self._brackets
        values = r"[ \t]*+,[ \t]*+".join(_VALUES[type] for type in self.types)
        return re.compile(rf"^{opening}[ \t]*+{values}[ \t]*+{closing}$", re.MULTILINE)

    def rows(self, facts: Sequence[str]) -> list[Row] | None:
        """Return a row for each fact, or None if some fact needs a closer look."""
        if "record" in self.types or any(isinstance(type, ColumnType) for type in self.types):
            return None
        found = self._pattern.findall("\n".join(facts))
        if len(found) != len(facts):
            return None
        if not self.types:
            return [()] * len(facts)
        columns: list[Sequence[Value]] = []
        for fields, type in zip(zip(*found) if len(self.types) > 1 else (found,), self.types):
            column = self._column(fields, type)
            if column is None:
                return None
            columns.append(column)
        return list(zip(*columns))

    def _column(self, fields: Sequence[str], type: str) -> Sequence[Value] | None:
        match type:
            case "symbol":
                return _strings(fields)
            case "term":
                return _terms(fields, self._prefixes)
            case "float":
                floats = list(map(normalise_float, map(float, fields)))
                infinite = [text for text, x in zip(fields, floats) if math.isinf(x)]
                return floats if all(text.endswith("inf") for text in infinite) else None
            case _:
                low, high = INTEGER_RANGES[type]
                digits = map(_without_suffix, fields) if type == "unsigned" else fields
                integers = list(map(int, digits))
                return integers if low <= min(integers) and max(integers) <= high else None


_without_suffix = methodcaller("removesuffix", "u")


def _strings(fields: Sequence[str]) -> list[str] | None:
    """Return what strings say, or None if one of them holds what no string may."""
    joined = "".join(fields)
    if "\0" in joined:
        return None
    if "\\" not in joined:
        return [text[1:-1] for text in fields]
    try:
        return [_ESCAPE.sub(lambda found: DL_ESCAPES[found[1]], text[1:-1]) for text in fields]
    except KeyError:
        return None


def _terms(fields: Sequence[str], prefixes: Mapping[str, str]) -> list[str] | None:
    """Return RDF terms in full; None if one of them has an undeclared prefix or is not plainly a term."""
    try:
        terms = [text if text[0] in '<"_' else _in_full(text, prefixes) for text in fields]
    except KeyError:
        return None
    return terms if are_canonical(set(terms)) else None


def _in_full(text: str, prefixes: Mapping[str, str]) -> str:
    prefix, _, local = text.partition(":")
    return f"<{prefixes[prefix]}{local}>"
