"""Reading facts files: a fast path over blocks of good rows, and a careful one that explains the bad ones."""

from __future__ import annotations

import gzip
import math
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import BinaryIO, cast

from upheld.base.errors import FactsError, Problem, count, nearest, quote
from upheld.base.limits import allow, look
from upheld.facts.columns import Columns, Row
from upheld.facts.files.badrows import EXPECTED, BadRows, column_name
from upheld.facts.files.formats import Format
from upheld.language.terms.ntriples import NotATerm, are_canonical, term
from upheld.language.types.columns import ColumnType, NotAValue
from upheld.language.types.primitive import FLOAT, INTEGER, INTEGER_RANGES
from upheld.language.types.records import NotARecord, RecordType, from_file
from upheld.language.values import Value, normalise_float

#: A function that parses the bytes of a facts file to rows, like `rows_in`.
Reader = Callable[[bytes, Path, Sequence[str], Format], list[Row] | Columns]

#: The line number of each record, and the fields of each record.
Block = tuple[Sequence[int], list[list[str]]]

#: Characters split at a time: enough for the loops to run inside the interpreter's C code, little enough to be freed
#: again before the rows of a large file are all there.
_BLOCK_LENGTH = 1 << 20

GZIP_MAGIC = b"\x1f\x8b"  # no UTF-8 text starts so

#: Bytes read at a time from a file that is unpacked.
_PART_LENGTH = 1 << 20

#: Bytes that a gzipped file may unpack to whatever its size, and beyond that as a multiple of its size. Facts of one
#: shape compress 5 to 50 times, the same byte over and over a thousand times.
MOST_UNPACKED, MOST_TIMES = 1 << 26, 200

#: Exceptions of opening, unpacking and reading a file, which `unreadable` explains.
UNREADABLE = (EOFError, OSError, ValueError, zlib.error)


def rows_in(data: bytes, path: Path, types: Sequence[str], format: Format) -> list[Row]:
    """Return the rows of a facts file that has been read from `path`, in the order of the file.

    Lines end with `\\n` or `\\r\\n`. An empty line is the empty symbol where rows are one symbol, and `()` where they
    have no columns. Raises `FactsError` with all bad rows, up to twenty.
    """
    rows: list[Row] = []
    bad = BadRows(str(path))
    for block in blocks(data, path, format, bad):
        rows += rows_of(block, types, format, bad)
    bad.check()
    return rows


def rows_of(block: Block, types: Sequence[str], format: Format, bad: BadRows) -> list[Row]:
    """Return the rows that records of the file of `bad` are; those that are none are added there."""
    lines, records = block
    if "," in format.delimiter and any(isinstance(type, RecordType) for type in types):
        records = [_rejoined(record, types, format.delimiter) for record in records]
    good = _rows(records, types)
    if good is not None:
        return good
    rows: list[Row] = []
    for line, record in zip(lines, records):
        row = _row(record, types)
        if row is not None:
            rows.append(row)
        else:
            bad.add([replace(p, place=f"{bad.place}:{line}") for p in _explain(record, types, format)])
    return rows


def blocks(data: bytes, path: Path, format: Format, bad: BadRows, line: int = 1, offset: int = 0) -> Iterator[Block]:
    """Yield the records of a file, without its header line. Wrong quoting is added to `bad` and ends the file.

    Where the data is a part of the file, `line` and `offset` are the position of its first byte.
    """
    allow(len(data), path)
    text = decoded(data, path, line, offset)
    if format.rfc4180 and '"' in text:
        found = _quoted_blocks(text, format.delimiter, path, bad, line)
    else:
        found = _plain_blocks(text, format.delimiter, line)
    first = 1 if format.headers else 0
    for lines, records in found:
        look(path)
        yield lines[first:], records[first:]
        first = 0


# -- files to text ----------------------------------------------------------------------------------------------------


def read_bytes(path: Path) -> bytes:
    """Return what is in a file, unpacked if it is gzipped. Raises `FactsError` for what is not a file."""
    check_file(path)
    try:
        with path.open("rb", buffering=0) as file:  # what a buffer has looked into is copied once more
            is_packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            if is_packed:
                return Unpacked(BufferedReader(file), path).whole()
            allow(os.fstat(file.fileno()).st_size, path)
            return file.readall()
    except UNREADABLE as error:
        raise FactsError(unreadable(path, error)) from None


def check_file(path: Path, *, or_pipe: bool = False) -> None:
    """Refuse a device or socket, and a pipe too unless it will do; whoever opens the file finds out all else."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (or_pipe and stat.S_ISFIFO(mode)):
        return
    what = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    hint = "use `-` for standard input" if or_pipe else "write its data to a file first"
    raise FactsError(Problem("not-a-file", f"this is {what}, which may never end", place=str(path), hint=hint))


class Unpacked:
    """The data of a gzipped stream, part by part: a stream that unpacks out of proportion is refused on the way."""

    def __init__(self, stream: BufferedReader, path: Path) -> None:
        self._path = path
        self._stream, self._packed, self._unpacked = stream, 0, 0
        self._source = gzip.GzipFile(fileobj=cast(BinaryIO, self))

    def read(self, size: int = -1) -> bytes:
        """Return packed bytes, and count them: `GzipFile` reads the stream through this."""
        # The first bytes of a member must come together; of all else, what a pipe has so far is enough.
        data = self._stream.read(size) if 0 <= size < _PART_LENGTH >> 10 else self._stream.read1(size)
        self._packed += len(data)
        return data

    def read1(self, size: int) -> bytes:
        """Return some unpacked bytes, none at the end."""
        data = self._source.read1(size)
        self._unpacked += len(data)
        if self._unpacked > max(MOST_UNPACKED, MOST_TIMES * self._packed):
            raise FactsError(
                Problem(
                    "unpacks-too-large",
                    f"{self._packed} bytes of gzip unpack to more than {self._unpacked}",
                    place=str(self._path),
                    note=f"beyond {MOST_UNPACKED >> 20} MB a file may unpack to {MOST_TIMES} times its size",
                    hint="if you trust the file, unpack it with `gunzip` and read the result",
                )
            )
        return data

    def whole(self) -> bytes:
        """Return all unpacked bytes."""
        unpacked = BytesIO()
        while data := self.read1(_PART_LENGTH):
            look(self._path)
            unpacked.write(data)
        return unpacked.getvalue()  # which copies nothing


def decoded(data: bytes, path: Path, line: int = 1, offset: int = 0) -> str:
    """Return the bytes of a file as text. `line` and `offset` are the position of the first byte."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        at = error.start
        line += data.count(b"\n", 0, at)
        raise FactsError(
            Problem(
                "not-utf8",
                f"byte 0x{data[at]:02x} at offset {offset + at} is not UTF-8",
                place=f"{path}:{line}",
                note="Upheld reads text in UTF-8",
                hint="convert the file, for example with `iconv -f latin1 -t utf-8`",
            )
        ) from None


def unreadable(path: Path, error: Exception) -> Problem:
    """Return the problem of a file that could not be opened or read."""
    place = str(path)
    match error:
        case EOFError() | gzip.BadGzipFile() | zlib.error():
            message = f"the file starts as gzip and cannot be unpacked: {error}"
            return Problem("unreadable-file", message, place=place, hint="restore or download the file again")
        case FileNotFoundError() | NotADirectoryError() if not path.parent.is_dir():
            message = f"there is no folder {quote(path.parent)}"
            hint = "create the folder, or name another one"
            return Problem("missing-file", message, place=str(path.parent), hint=hint)
        case FileNotFoundError():
            like = nearest(path.name, _names_in(path.parent))
            return Problem(
                "missing-file", "there is no such file", place=place, hint=like or "create the file; it may be empty"
            )
        case IsADirectoryError():
            return Problem("not-a-file", "this is a folder", place=place, hint="name a file in it")
        case PermissionError():
            return Problem(
                "no-permission", "no permission to read the file", place=place, hint="change the permissions"
            )
        case _:
            reason = getattr(error, "strerror", None) or error
            return Problem("unreadable-file", f"the file cannot be read: {reason}", place=place)


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


# -- text to records --------------------------------------------------------------------------------------------------


def _plain_blocks(text: str, delimiter: str, line: int) -> Iterator[Block]:
    start = 0
    while start < len(text):
        end = text.find("\n", start + _BLOCK_LENGTH) + 1 or len(text)
        lines = text[start:end].removesuffix("\n").split("\n")
        if text.find("\r", start, end) >= 0:
            lines = [one.removesuffix("\r") for one in lines]
        yield range(line, line + len(lines)), [one.split(delimiter) for one in lines]
        start, line = end, line + len(lines)


def _quoted_blocks(text: str, delimiter: str, path: Path, bad: BadRows, line: int) -> Iterator[Block]:
    """As `_plain_blocks`, for fields that may be quoted as in RFC 4180; each record has the line it starts on."""
    quoted = r'"([^"]*+(?:""[^"]*+)*+)"'
    field = re.compile(rf'(?:{quoted}|(?!")([^\n]*?))({re.escape(delimiter)}|\r?\n|\r?\Z)')
    lines: list[int] = []
    records: list[list[str]] = []
    record: list[str] = []
    at = 0
    while at < len(text) or record:  # a record that ends with a delimiter has one more field, at the end of the text
        found = field.match(text, at)
        if found is None:
            closed = re.compile(quoted).match(text, at)
            bad.add([_bad_quoting(f"{path}:{line}", text[closed.end() :][:1] if closed else None)])
            break
        if not record:
            lines.append(line)
        inside, plain, end = found.groups()
        if inside is None:
            record.append(plain)
        else:
            record.append(inside.replace('""', '"'))
            line += inside.count("\n")
        at = found.end()
        if end != delimiter:
            records.append(record)
            record, line = [], line + 1
            if len(records) * len(records[0]) >= _BLOCK_LENGTH >> 4:
                yield lines, records
                lines, records = [], []
    yield lines[: len(records)], records


def _bad_quoting(place: str, after: str | None) -> Problem:
    if after is None:
        message, hint = "a quote is opened here and never closed", 'close it with `"`'
    else:
        message, hint = f"a closing quote is followed by {quote(after)}", 'write a quote inside a field as `""`'
    return Problem("bad-quoting", message, place=place, note="with `rfc4180` quotes enclose a whole field", hint=hint)


def _rejoined(record: list[str], types: Sequence[str], delimiter: str) -> list[str]:
    """Return the fields of a line where commas in the brackets of a value do not part columns."""
    joined: list[str] = []
    rest = iter(record)
    for field in rest:
        is_structure = len(joined) < len(types) and isinstance(types[len(joined)], RecordType)
        while is_structure and sum(map(field.count, "[(")) > sum(map(field.count, "])")):
            if (more := next(rest, None)) is None:
                break
            field = f"{field}{delimiter}{more}"
        joined.append(field)
    return joined


# -- records to rows, quickly -----------------------------------------------------------------------------------------


def _rows(records: list[list[str]], types: Sequence[str]) -> list[Row] | None:
    """Return the rows of the records, or None if some record needs a closer look."""
    if not types or set(map(len, records)) != {len(types)}:
        return None
    columns: list[Sequence[Value]] = []
    for fields, type in zip(zip(*records), types):
        column = _column(fields, type)
        if column is None:
            return None
        columns.append(column)
    return list(zip(*columns))


def _column(fields: tuple[str, ...], type: str) -> Sequence[Value] | None:
    if isinstance(type, ColumnType):
        try:
            codes = {text: type.parse(text) for text in set(fields)}
        except NotAValue:
            return None
        return [codes[text] for text in fields]
    if type == "symbol":
        return fields
    if type == "term":
        return fields if are_canonical(set(fields)) else None
    if isinstance(type, RecordType):
        try:
            return [from_file(text, type) for text in fields]
        except NotARecord:
            return None
    # Python reads more as a number than Soufflé does: `1_000`, other scripts' digits, spaces around.
    characters = b"0123456789+-.eE" if type == "float" else b"0123456789-"
    if "".join(fields).encode().translate(None, characters):
        return None
    try:
        if type == "float":
            floats = list(map(normalise_float, map(float, fields)))
            return None if math.inf in floats or -math.inf in floats else floats
        integers = list(map(int, fields))
    except ValueError:
        return None
    low, high = INTEGER_RANGES[type]
    return integers if low <= min(integers) and max(integers) <= high else None


# -- records to rows, carefully ---------------------------------------------------------------------------------------


class _Unfit(Exception):
    """A text that is not a value of the type; `slug` says why, and of a text that is not a term or record `reason`."""

    def __init__(self, slug: str, reason: NotATerm | NotARecord | NotAValue | None = None) -> None:
        self.slug, self.reason = slug, reason


def _row(record: list[str], types: Sequence[str]) -> Row | None:
    if not types and record in ([""], ["()"]):
        return ()
    if len(record) != len(types):
        return None
    try:
        return tuple(map(_value, record, types))
    except _Unfit:
        return None


def _value(text: str, type: str) -> Value:
    if isinstance(type, ColumnType):
        try:
            return type.parse(text)
        except NotAValue as unlike:
            raise _Unfit(unlike.slug, unlike) from None
    if type == "symbol":
        return text
    if type == "term":
        try:
            return term(text)
        except NotATerm as wrong:
            raise _Unfit("bad-term", wrong) from None
    if isinstance(type, RecordType):
        try:
            return from_file(text, type)
        except NotARecord as wrong_record:
            raise _Unfit("ill-typed-value", wrong_record) from None
    text = text.lstrip(" \t")
    if type == "float":
        if not FLOAT.fullmatch(text):
            raise _Unfit("ill-typed-value")
        x = normalise_float(float(text))
        if math.isinf(x) and "n" not in text.lower():
            raise _Unfit("number-out-of-range")
        return x
    found = INTEGER.fullmatch(text)
    if not found:
        raise _Unfit("ill-typed-value")
    sign, hexadecimal, binary, decimal = found.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (decimal, 10)
    digits = digits.lstrip("0") or "0"
    low, high = INTEGER_RANGES[type]
    if len(digits) > 64:  # the digits of 2**64 in base two
        raise _Unfit("number-out-of-range")
    integer = int(sign + digits, base)
    if not low <= integer <= high:
        raise _Unfit("number-out-of-range")
    return integer


def _explain(record: list[str], types: Sequence[str], format: Format) -> list[Problem]:
    """Return the problem of a record that is not a row."""
    if len(record) != len(types) or record == [""]:
        return [_wrong_length(record, types, format)]
    problems = []
    for i, (text, type) in enumerate(zip(record, types)):
        try:
            _value(text, type)
        except _Unfit as unfit:
            problems.append(_wrong_value(unfit, text, type, column_name(i, format.columns)))
    return problems


def _wrong_length(record: list[str], types: Sequence[str], format: Format) -> Problem:
    note = f"{quote(format.relation)} has {count(len(types), 'column')}"
    if format.columns:
        note += ": " + ", ".join(f"{quote(name)} ({type})" for name, type in zip(format.columns, types))
    if record == [""]:
        return Problem("short-row", "the line is empty", note=note, hint="remove the line")
    if len(record) < len(types):
        message = f"the row has {count(len(record), 'column')}; {column_name(len(record), format.columns)} is missing"
        others = [d for d in (",", ";", "\t", "|", " ") if len(record[0].split(d)) == len(types)]
        if len(record) == 1 and others:
            shown = "\\t" if others[0] == "\t" else others[0]
            return Problem(
                "short-row", message, note=note, hint=f'if {quote(shown)} parts the columns: `delimiter="{shown}"`'
            )
        return Problem("short-row", message, note=note, hint="add the missing value, or remove the line")
    first = record[len(types)]
    message = f"the row has {count(len(record), 'column')}; the first extra one holds {quote(first)}"
    return Problem("long-row", message, note=note, hint="remove the extra values, or declare more columns")


def _wrong_value(unfit: _Unfit, text: str, type: str, column: str) -> Problem:
    if isinstance(unfit.reason, NotARecord | NotAValue):
        message = f"{column} holds {quote(text)}, which {unfit.reason}"
        note = type.expected if isinstance(type, ColumnType) else EXPECTED[type]
        return Problem(unfit.slug, message, note=note, hint="correct it, or declare another type")
    if unfit.reason is not None:
        message = f"{column} holds {quote(text)}, which {unfit.reason.reason}"
        return Problem("bad-term", message, note=EXPECTED[type], hint=unfit.reason.hint)
    outside = unfit.slug == "number-out-of-range"
    message = f"{column} holds {quote(text)}, which " + (f"no `{type}` can hold" if outside else f"is not a `{type}`")
    if _fits(text.strip(), type):
        hint = "remove the spaces around it"
    else:
        wider = next((t for t in ("number", "unsigned", "float") if _fits(text, t)), "symbol")
        hint = f"correct it, or declare the column as `{wider}`"
    return Problem(unfit.slug, message, note=EXPECTED[type], hint=hint)


def _fits(text: str, type: str) -> bool:
    try:
        _value(text, type)
    except _Unfit:
        return False
    return True
