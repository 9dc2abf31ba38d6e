"""Records and values of algebraic data types: their types, their texts, and the functors on them.

A value is its text in the `.dl` dialect, in one canonical form: `[1, ["a", nil]]`, `$Add($Num(1), $Zero)`. So engines
intern it like any other text, and files, saved states and other processes need no further notion of it. `nil` is a
value of every record type and of no other type.

Functors on these values have names that no program can write. `[]` and `$Add` construct a value of their arguments.
`[].0/2` is the first of the two fields of a record, `$Add.?/2` is 1 for a value of branch `Add`; both have no value for
other values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import chain, repeat
from typing import Any

from upheld.language.terms.terms import NoValue
from upheld.language.types.columns import ColumnType, NotAValue, column_type, plain_name
from upheld.language.types.primitive import DL_ESCAPES, FLOAT, INT64_MAX, INTEGER, INTEGER_RANGES, float_text, quoted
from upheld.language.values import Value, normalise_float

#: The primitive type of all these values, and the value without fields that every record type has.
RECORD, NIL = "record", "nil"

#: The functor that constructs a record. The functor of a branch is its name after the sign.
BRACKETS, SIGN = "[]", "$"

#: The sign instead of the number of a field in the name of the functor that tests for a branch.
TEST = "?"

_FIELD = re.compile(r"(?P<constructor>\[\]|\$.+)\.(?P<index>\?|[0-9]+)/(?P<fields>[0-9]+)")
_STRING = r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
_MARKS = re.compile(rf"{_STRING}|[\[\](),]")
_TOKEN = re.compile(rf"{_STRING}|\$[A-Za-z_?][A-Za-z0-9_?.]*+|[\[\](),]|[^\s\[\](),\"$]++")
_BLANKS = re.compile(r"\s*+")
_ESCAPE = re.compile(r"\\(.)")
_CLOSING = {"[": "]", "(": ")"}
#: Between the names of types; that of a decimal has a comma with a space behind it.
_BETWEEN_TYPES = re.compile(r",(?! )")


class NotARecord(Exception):
    """A text or Python object that is not a value of a record type; the message continues *which ...*."""


class RecordType(str):
    """The type `record` of a column or field, with the fields of its values.

    It equals the plain name, by which engines and files know how to hold its values. `branches` has the types of the
    fields by branch; the one branch of a record type is called `[]`.
    """

    name: str
    branches: dict[str, tuple[str, ...]]

    def __new__(cls, name: str, branches: dict[str, tuple[str, ...]] | None = None) -> RecordType:
        self = super().__new__(cls, RECORD)
        self.name = name
        self.branches = {} if branches is None else branches
        return self

    def __repr__(self) -> str:
        """Return a text that is the same for types with the same values, whatever their names."""
        numbers = {id(self): 0}
        pending, texts = [self], []
        for type in pending:
            branches = []
            for name, fields in type.branches.items():
                inside = []
                for field in fields:
                    if isinstance(field, RecordType) and id(field) not in numbers:
                        numbers[id(field)] = len(numbers)
                        pending.append(field)
                    inside.append(str(numbers[id(field)]) if isinstance(field, RecordType) else str(field))
                branches.append(f"{name}({','.join(inside)})")
            texts.append("|".join(branches))
        return f"'{RECORD} {';'.join(texts)}'"

    @property
    def described(self) -> str:
        """The type as it is named in messages."""
        return f"`{self.name}`"


@dataclass(frozen=True)
class Field:
    """A field of the values of a constructor, or if it has no index the test for the constructor, as a functor."""

    constructor: str
    index: int | None
    fields: int

    @property
    def functor(self) -> str:
        return f"{self.constructor}.{TEST if self.index is None else self.index}/{self.fields}"

    @classmethod
    def of(cls, functor: str) -> Field | None:
        """Return the field that a name of a functor means, or None for any other functor."""
        matched = _FIELD.fullmatch(functor)
        if matched is None:
            return None
        index = None if matched["index"] == TEST else int(matched["index"])
        return cls(matched["constructor"], index, int(matched["fields"]))


def is_constructor(functor: str) -> bool:
    """Return whether a functor constructs a value."""
    return functor == BRACKETS or (functor.startswith(SIGN) and _FIELD.fullmatch(functor) is None)


def is_functor(functor: str) -> bool:
    """Return whether a functor constructs a value or takes one apart."""
    return functor == BRACKETS or functor.startswith((SIGN, f"{BRACKETS}."))


def names_of_types(types: Iterable[str]) -> str:
    """Return the type of a functor that constructs a record of fields of these types: their names."""
    return ",".join(map(plain_name, types))


def types_of_names(names: str) -> list[str]:
    """Return the types of the fields that a functor constructs a record of.

    >>> types_of_names("decimal(6, 2),symbol")
    ['decimal(6, 2)', 'symbol']
    """
    return [column_type(name) or name for name in _BETWEEN_TYPES.split(names)] if names else []


def composed(constructor: str, fields: Iterable[str]) -> str:
    """Return the text of a value, or of a pattern, of the texts of its fields."""
    inside = ", ".join(fields)
    if constructor == BRACKETS:
        return f"[{inside}]"
    return f"{constructor}({inside})" if inside else constructor


# -- functors ---------------------------------------------------------------------------------------------------------


def constructing(constructor: str, types: Sequence[str]) -> Callable[..., str]:
    """Return the function that constructs a value of fields of these types."""
    writers = [_writer(type) for type in types]

    def construct(*fields: Value) -> str:
        return composed(constructor, [write(value) for write, value in zip(writers, fields, strict=True)])

    return construct


def taking(field: Field, type: str) -> Callable[[str], Value]:
    """Return the function that takes a field of a type out of a value, or tests which branch the value is of."""
    begin = "[" if field.constructor == BRACKETS else f"{field.constructor}("
    read = _reader(type)

    def take(value: str) -> Value:
        if not value.startswith(begin):
            raise NoValue(f"{value[:40]} is another branch")
        if field.index is None:
            return 1
        at = len(begin)
        for _ in range(field.index):
            at = _end(value, at) + 2
        end = len(value) - 1 if field.index == field.fields - 1 else _end(value, at)
        return read(value[at:end])

    return take


def _end(text: str, at: int) -> int:
    """Return where the field that begins at an offset of a canonical text ends."""
    depth = 0
    for matched in _MARKS.finditer(text, at):
        mark = text[matched.start()]
        if mark in "[(":
            depth += 1
        elif mark in "])":
            if depth == 0:
                return matched.start()
            depth -= 1
        elif mark == "," and depth == 0:
            return matched.start()
    raise AssertionError("a record without an end")


def end_of(text: str, at: int) -> int | None:
    """Return where the record or branch that begins at an offset of some text ends, or None if it does not."""
    matched = _TOKEN.match(text, at)
    assert matched is not None, "no record begins here"
    if matched[0] != "[":
        opened = _BLANKS.match(text, matched.end())
        assert opened is not None, "no blanks are blanks"
        if not text.startswith("(", opened.end()):
            return matched.end()
    depth = 0
    for mark in _MARKS.finditer(text, at):
        depth += (mark[0] in "[(") - (mark[0] in "])")
        if depth == 0 and mark[0] in "])":
            return mark.end()
    return None


def _writer(type: str) -> Callable[[Any], str]:
    """Return the function that writes a field of a type."""
    if isinstance(type, ColumnType):
        return type.literal
    match type:
        case "number":
            return str
        case "unsigned":
            return _unsigned_text
        case "float":
            return float_text
        case "symbol":
            return quoted
        case _:
            return str


def _unsigned_text(value: int) -> str:
    """Return a number that a program reads as one: a plain number above the largest `number` is out of range."""
    return f"{value}u" if value > INT64_MAX else str(value)


def _reader(type: str) -> Callable[[str], Value]:
    """Return the function that reads a field of a type from a canonical text."""
    if isinstance(type, ColumnType):
        return lambda text: type.parse(text.strip('"'))
    match type:
        case "number":
            return int
        case "unsigned":
            return lambda text: int(text.removesuffix("u"))
        case "float":
            return lambda text: normalise_float(float(text))
        case "symbol":
            return unquoted
        case _:
            return str


def unquoted(text: str) -> str:
    """Return what a string literal says."""
    inside = text[1:-1]
    return _ESCAPE.sub(lambda matched: DL_ESCAPES[matched[1]], inside) if "\\" in inside else inside


# -- texts ------------------------------------------------------------------------------------------------------------


def canonical(text: str, type: RecordType) -> str:
    """Return the canonical form of the text of a value, as programs write it."""
    return _Text(text, strings=True).value(type)


def from_file(text: str, type: RecordType) -> str:
    """Return the canonical text of a value as facts files have it: a symbol ends at a comma or closing bracket."""
    return _Text(text, strings=False).value(type)


def in_file(value: Value) -> str:
    """Return a value as Soufflé writes it to a file, where symbols have no quotes."""
    text = str(value)
    if '"' not in text and "u" not in text:
        return text
    return "".join(_in_file(token) for token in _tokens(text))


def _tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a canonical text, each comma with the space that follows it."""
    for matched in _TOKEN.finditer(text):
        yield f"{matched[0]} " if matched[0] == "," else matched[0]


def _in_file(token: str) -> str:
    if token[0] == '"':
        return unquoted(token)
    return token.removesuffix("u") if token[0].isdigit() else token


class _Text:
    """Reads the text of a value, of fields nested to any depth. With `strings`, symbols are string literals."""

    def __init__(self, text: str, *, strings: bool):
        self.text, self.strings = text, strings
        self.at = 0

    def value(self, type: RecordType) -> str:
        """Return the canonical form of the whole text."""
        parts: list[str] = []
        #: Of each value around: the types of the fields that are left, whether one has been read, and its bracket.
        open: list[tuple[Iterator[str], str]] = []
        wanted: str | None = type
        while True:
            closing = open[-1][1] if open else ""
            if isinstance(wanted, RecordType):
                opened = self._begin(wanted, parts)
                if opened is not None:
                    open.append(opened)
                    wanted = next(opened[0], None)
                    if wanted is not None:
                        continue
                    self._expect(opened[1], parts)
                    open.pop()
            elif wanted is not None:
                parts.append(self._scalar(wanted, closing))
            while open:
                wanted = next(open[-1][0], None)
                if wanted is not None:
                    self._expect(",", parts)
                    break
                self._expect(open.pop()[1], parts)
            else:
                break
        self._skip()
        if self.at < len(self.text):
            raise NotARecord(f"goes on with {self._shown()} after its end")
        return "".join(parts)

    def _begin(self, type: RecordType, parts: list[str]) -> tuple[Iterator[str], str] | None:
        """Read the beginning of a value; return the types of its fields and its closing bracket, if it has fields."""
        self._skip()
        matched = _TOKEN.match(self.text, self.at)
        token = matched[0] if matched else ""
        if token == NIL and BRACKETS in type.branches:
            self.at += len(token)
            parts.append(NIL)
            return None
        branch = BRACKETS if token == "[" else token
        if branch not in type.branches:
            forms = [name if name != BRACKETS else "`[...]` or `nil`" for name in type.branches]
            forms = [form if form.startswith("`") else f"`{form}`" for form in forms]
            raise NotARecord(f"has {self._shown()} where {type.described} needs {' or '.join(forms)}")
        self.at += len(token)
        parts.append(token)
        fields = type.branches[branch]
        if branch == BRACKETS:
            return iter(fields), "]"
        if not fields:
            self._skip()
            if self.text.startswith("(", self.at):
                self.at += 1
                self._skip()
                self._expect(")", [])
            return None
        self._expect("(", parts)
        return iter(fields), ")"

    def _expect(self, mark: str, parts: list[str]) -> None:
        self._skip()
        if not self.text.startswith(mark, self.at):
            raise NotARecord(f"has {self._shown()} where `{mark}` is needed")
        self.at += len(mark)
        parts.append(", " if mark == "," else mark)

    def _scalar(self, type: str, closing: str) -> str:
        """Read a field that is a number or a symbol."""
        self._skip()
        if not self.strings and (type == "symbol" or isinstance(type, ColumnType)):
            ends = [end for mark in (",", closing) if (end := self.text.find(mark, self.at)) >= 0]
            end = min(ends, default=len(self.text))
            text, start, self.at = self.text[self.at : end], self.at, end
            if not isinstance(type, ColumnType):
                return quoted(text)
            if (written := _scalar(text.strip(), type)) is None:
                self.at = start
                raise NotARecord(f"has {self._shown()} where a `{type}` is needed")
            return written
        matched = _TOKEN.match(self.text, self.at)
        token = matched[0] if matched else ""
        if (written := _scalar(token, type)) is None:
            raise NotARecord(f"has {self._shown()} where a `{type}` is needed")
        self.at += len(token)
        return written

    def _skip(self) -> None:
        matched = _BLANKS.match(self.text, self.at)
        assert matched is not None, "no blanks are blanks"
        self.at = matched.end()

    def _shown(self) -> str:
        rest = self.text[self.at : self.at + 20]
        return f"`{rest}`" if rest else "its end"


def _scalar(token: str, type: str) -> str | None:
    """Return the canonical text of a field that is written as a token, or None if it is not of the type."""
    if isinstance(type, ColumnType):
        try:
            return type.literal(type.parse(token.strip('"')))
        except NotAValue:
            return None
    if type == "symbol":
        if not token.startswith('"'):
            return None
        try:
            return quoted(unquoted(token))
        except KeyError:
            return None
    if type == "float":
        return float_text(normalise_float(float(token))) if FLOAT.fullmatch(token) else None
    matched = INTEGER.fullmatch(token.removesuffix("u") if type == "unsigned" else token)
    if matched is None:
        return None
    sign, hexadecimal, binary, decimal = matched.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (decimal, 10)
    digits = digits.lstrip("0") or "0"
    low, high = INTEGER_RANGES[type]
    if len(digits) > 64 or not low <= (value := int(sign + digits, base)) <= high:
        return None
    return _writer(type)(value)


# -- Python -----------------------------------------------------------------------------------------------------------


class Record:
    """A record, or with `branch` a value of an algebraic data type, as a Python object.

    Facts given to Upheld may have such objects, or tuples, `None` for `nil`, or the text. Facts that Upheld returns
    have the text; `Record.parse` makes an object of it.

    Args:
        fields: The fields: numbers, texts, dates, timestamps, decimals, Booleans, records, and `None` for `nil`.
        branch: The name of the branch of an algebraic data type, without `$`.

    >>> str(Record(1, Record("a", None)))
    '[1, ["a", nil]]'
    >>> Record.parse('$Add($Num(1), $Zero)')
    Record(Record(1, branch='Num'), Record(branch='Zero'), branch='Add')
    """

    __slots__ = ("branch", "fields")

    fields: tuple[Any, ...]
    branch: str | None

    def __init__(self, *fields: Any, branch: str | None = None) -> None:
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "branch", branch)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a record cannot be changed")

    @classmethod
    def parse(cls, text: str) -> Record | None:
        """Return the record that a text is, or None for `nil`.

        Args:
            text: The text of a value, as facts have it.
        """
        open: list[tuple[str | None, list[Any]]] = [(None, [])]
        tokens = [matched[0] for matched in _TOKEN.finditer(text)]
        for token, following in zip(tokens, chain(tokens[1:], repeat(""))):
            match token[0]:
                case "[":
                    open.append((None, []))
                case "$" if following == "(":
                    open.append((token[1:], []))
                case "$":
                    open[-1][1].append(cls(branch=token[1:]))
                case "(" | ",":
                    continue
                case "]" | ")" if len(open) > 1:
                    branch, fields = open.pop()
                    open[-1][1].append(cls(*fields, branch=branch))
                case _:
                    open[-1][1].append(_python(token))
        if len(open) != 1 or len(open[0][1]) != 1 or not isinstance(open[0][1][0], Record | None):
            raise ValueError(f"not the text of a record: {text[:60]!r}")
        value: Record | None = open[0][1][0]
        return value

    def __str__(self) -> str:
        return "".join(_emitted(self))

    def __repr__(self) -> str:
        branch = [] if self.branch is None else [f"branch={self.branch!r}"]
        return f"Record({', '.join([*map(repr, self.fields), *branch])})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self.branch == other.branch and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((self.branch, self.fields))

    def __reduce__(self) -> tuple[object, ...]:
        return _record, (self.branch, self.fields)


def _record(branch: str | None, fields: tuple[Any, ...]) -> Record:
    return Record(*fields, branch=branch)


def _python(token: str) -> bool | int | float | str | None:
    """Return the Python object of a field that is written as a token."""
    if token[0] == '"':
        return unquoted(token)
    if token == NIL:
        return None
    if token in ("true", "false"):
        return token == "true"
    digits = token.removesuffix("u")
    if digits.lstrip("-").isdigit():
        return int(digits)
    if not FLOAT.fullmatch(token):
        raise ValueError(f"not a field of a record: {token[:60]!r}")
    return float(token)


def from_python(value: object, type: RecordType) -> str:
    """Return the canonical text of a value that is a text, a `Record`, a tuple or list, or None."""
    return canonical("".join(_emitted(value, type)), type)


def _emitted(value: object, type: str = "") -> Iterator[str]:
    """Yield the text of a Python object, part by part; by its `type` a text is a record or a symbol."""
    #: The parts left to write, last first: texts, and objects with their types.
    pending: list[str | tuple[object, str]] = [(value, type)]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            yield part
            continue
        thing, wanted = part
        if isinstance(wanted, ColumnType):
            yield _coded(thing, wanted)
            continue
        if isinstance(thing, tuple | list):
            thing = Record(*thing)
        match thing:
            case Record(fields=fields, branch=branch):
                constructor = BRACKETS if branch is None else f"{SIGN}{branch}"
                types = wanted.branches.get(constructor, ()) if isinstance(wanted, RecordType) else ()
                yield "[" if branch is None else f"{constructor}(" if fields else constructor
                if fields or branch is None:
                    pending.append("]" if branch is None else ")")
                for i in range(len(fields) - 1, -1, -1):
                    pending.append((fields[i], types[i] if i < len(types) else ""))
                    if i:
                        pending.append(", ")
            case None:
                yield NIL
            case str():
                yield thing if wanted == RECORD else quoted(thing)
            case float():
                yield float_text(thing)
            case bool():
                if wanted:
                    raise NotARecord(f"has the field `{thing}`")
                yield str(thing).lower()
            case date() | Decimal():
                yield f'"{thing.isoformat()}"' if isinstance(thing, date) else str(thing)
            case int():
                yield str(thing)
            case _ if hasattr(thing, "item") and thing.__class__.__module__ == "numpy":
                pending.append((thing.item(), wanted))
            case _:
                raise NotARecord(f"has a field of type `{thing.__class__.__name__}`")


def _coded(thing: object, type: ColumnType) -> str:
    """Return a Python object as a field of a type whose values are codes."""
    try:
        return type.literal(type.code(thing))
    except NotAValue as e:
        raise NotARecord(f"has the field `{str(thing)[:40]}`, which {e}") from None
