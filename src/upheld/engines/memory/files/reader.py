"""Facts files by column: kernels that parse plain files, and leave all others to the careful reader.

They read the content of nearly every file: one byte between fields, decimal numbers, UTF-8. A file with anything
else in it, right or wrong, is read again from its first byte by `factfiles.reading`, so the rows and the errors are
those of the careful reader, whichever of the two gave them.

A large file is cut into parts, which several threads parse at once. Each part has a dictionary of its own, and the
dictionary of the file is made of these, in order.

    data     the bytes of the file
    bounds   (columns + 1, rows) places in data: a field lies between the places of its column and of the next one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from upheld.base.limits import allow, look
from upheld.base.threads import ONE_THREAD, Threads, Work
from upheld.engines.memory.files.parts import LINES_AT_A_TIME, Part, cut, lines_before_blocks, parts_for
from upheld.engines.memory.kernels.jit import are_compiled, compile_kernels, kernel
from upheld.engines.memory.storage.dictionary import NEWLINE, Bytes, Codes, Places, TextPool
from upheld.facts.columns import Columns, Row, Texts
from upheld.facts.files.formats import Format
from upheld.facts.files.reading import rows_in
from upheld.language.terms.ntriples import are_canonical
from upheld.language.types.columns import ColumnType, NotAValue
from upheld.language.types.primitive import INTEGER_RANGES, TYPES

P = TypeVar("P")
R = TypeVar("R")

#: Bytes below which the careful reader finishes before the kernels are loaded.
WORTH_A_KERNEL = 1 << 16
#: As before, where the kernels are loaded: the careful reader parses ten bytes while they parse a hundred.
WORTH_A_COMPILED_KERNEL = 1 << 10

RETURN, MINUS, PLUS, POINT, ZERO = (ord(c) for c in "\r-+.0")
#: A delimiter that is one of these is not told from what it separates.
_IN_INTEGERS = b"-0123456789\r\n"
UPPER_E, LOWER_E = ord("E"), ord("e")

TEN = np.uint64(10)
NINE = np.uint64(9)
ONE = np.uint64(1)
MOST = np.uint64(2**64 - 1)
MOST_DIGITS = 20
MOST_EXPONENT = 10_000
#: All whole numbers up to this one, and all powers of ten up to the greatest of these, are exact as floats.
EXACT = np.uint64(2**53)
POWERS = np.array([10.0**k for k in range(23)])


def columns_in(
    data: bytes, path: Path, types: Sequence[str], format: Format, threads: Threads = ONE_THREAD
) -> Columns | list[Row]:
    """Return the rows of a facts file as `rows_in` does, by column if the file is plain and not small."""
    worth = WORTH_A_COMPILED_KERNEL if are_compiled() else WORTH_A_KERNEL
    columns = parsed(data, path, types, format, threads) if len(data) >= worth else None
    return rows_in(data, path, types, format) if columns is None else columns


def parsed(
    data: bytes, path: Path, types: Sequence[str], format: Format, threads: Threads = ONE_THREAD
) -> Columns | None:
    """Return the rows of a plain facts file, None if the file needs the careful reader."""
    delimiter = format.delimiter.encode()
    if not types or len(delimiter) != 1 or (format.rfc4180 and b'"' in data):
        return None
    at = (data.find(b"\n") + 1 or len(data)) if format.headers else 0
    try:
        data[:at].decode()
        return _parsed(np.frombuffer(data, np.uint8), path, at, delimiter[0], tuple(types), threads)
    except (_NotPlain, UnicodeDecodeError):
        return None


class _NotPlain(Exception):
    """Something that only the careful reader knows."""


def _parsed(data: Bytes, path: Path, at: int, delimiter: int, types: tuple[str, ...], threads: Threads) -> Columns:
    if "record" in types:
        raise _NotPlain
    plain = all(not isinstance(type, ColumnType) and type in INTEGER_RANGES for type in types)
    if plain and delimiter not in _IN_INTEGERS:
        columns_of_integers = _all_integers(data, path, at, delimiter, types, threads)
        if columns_of_integers is not None:
            return columns_of_integers
    wanted = parts_for(len(data) - at, threads)
    cuts = _cut(data, path, at, threads, wanted)[0] if wanted > 1 else [Part(0, at, len(data))]
    parts = _in_parts(threads, path, cuts, lambda part: _lines(data, path, part, delimiter, types))
    pools, codes = _common_pools(parts)
    for one in {id(one): one for one in pools}.values():
        one.check()
    count = sum(part.rows for part in parts)
    wholes = []
    for c in range(len(types)):
        allow(8 * count, path)  # columns are joined one after the other
        wholes.append(
            _whole(threads, path, [part.columns[c] for part in parts], codes[c] if _has_codes(types[c]) else ())
        )
    columns = tuple(
        _codes(w, t, p) if isinstance(t, ColumnType) else Texts(w, p) if t in ("symbol", "term") else w
        for w, t, p in zip(wholes, types, pools)
    )
    terms = [(c, p) for c, type, p in zip(columns, types, pools) if type == "term" and isinstance(c, Texts)]
    if not all(are_canonical(pool.take(column.used()).tolist()) for column, pool in terms):
        raise _NotPlain
    return Columns(types, columns, count)


def _cut(data: Bytes, path: Path, at: int, threads: Threads, parts: int) -> tuple[list[Part], int]:
    """Return the parts of a file from byte `at` on, and the number of lines, of which the last one may be empty."""
    if parts > 1:
        compile_kernels()  # plain Python would not run beside plain Python
    before = lines_before_blocks(data, at, threads if parts > 1 else ONE_THREAD, lambda: look(path))
    return cut(data, at, before, parts), int(before[-1]) + 1


def _in_parts(threads: Threads, path: Path, parts: Sequence[P], parse: Callable[[P], R]) -> list[R]:
    """Return what parsing parts of a file returns, in order."""
    results: dict[int, R] = {}

    def parsing(k: int) -> Callable[[Work], None]:
        def run(work: Work) -> None:
            results[k] = parse(parts[k])

        return run

    threads.run([parsing(k) for k in range(len(parts))], lambda: look(path))
    return [results[k] for k in range(len(parts))]


class _Lines(NamedTuple):
    """Lines of a file: the values of each column, chunk by chunk, or the codes of texts and the dictionary of these."""

    columns: list[list[npt.NDArray[Any]]]
    pools: list[TextPool]
    rows: int


def _lines(data: Bytes, path: Path, part: Part, delimiter: int, types: tuple[str, ...]) -> _Lines:
    bounds = np.empty((len(types) + 1, LINES_AT_A_TIME), np.int64)
    pool = TextPool()
    pools = [TextPool() if isinstance(t, ColumnType) and t.kind != "symbol" else pool for t in types]
    columns: list[list[npt.NDArray[Any]]] = [[] for _ in types]
    count, at, mine = 0, part.start, data[: part.end]
    while at < part.end or not count:
        look(path)
        rows, at = split(mine, at, delimiter, bounds)
        if rows < 0:
            raise _NotPlain
        count += rows
        for c, type in enumerate(types):
            columns[c].append(_part(mine, bounds[c, :rows], bounds[c + 1, :rows], type, pools[c]))
        if not rows:
            break
    return _Lines(columns, pools, count)


def _common_pools(parts: Sequence[_Lines]) -> tuple[list[TextPool], list[list[Codes]]]:
    """Return the dictionary of each column, and for each column and each part but the first the codes of its codes.

    The dictionary of the first part becomes that of the file. The texts of the others are added in order, so each has
    the code that it would have in a file of one part.
    """
    pools = parts[0].pools
    codes: list[list[Codes]] = [[] for _ in pools]
    for part in parts[1:]:
        shared: dict[int, Codes] = {}  # columns of symbols have their dictionary in common
        for of_column, mine, other in zip(codes, pools, part.pools):
            if id(other) not in shared:
                shared[id(other)] = mine.intern_pool(other)
            of_column.append(shared[id(other)])
    return pools, codes


def _whole(
    threads: Threads, path: Path, parts: Sequence[Sequence[npt.NDArray[Any]]], codes: Sequence[Codes]
) -> npt.NDArray[Any]:
    """Return a column of all parts. If it has texts, `codes` are the codes of the codes of all parts but the first."""
    if len(parts) == 1:
        return np.concatenate(parts[0])
    starts = np.cumsum([0, *(sum(map(len, chunks)) for chunks in parts)])
    whole = np.empty(starts[-1], parts[0][0].dtype)

    def join(k: int) -> None:
        at = int(starts[k])
        for chunk in parts[k]:
            out = whole[at : at + len(chunk)]
            if k and codes:
                np.take(codes[k - 1], chunk, out=out, mode="clip")  # no code is out of bounds
            else:
                out[:] = chunk
            at += len(chunk)

    _in_parts(threads, path, range(len(parts)), join)
    return whole


def _all_integers(
    data: Bytes, path: Path, at: int, delimiter: int, types: tuple[str, ...], threads: Threads
) -> Columns | None:
    """Return the rows of a file of nothing but integers, None if there is anything else in it."""
    parts, most = _cut(data, path, at, threads, parts_for(len(data) - at, threads))
    allow(8 * most * len(types), path)
    values = np.empty((len(types), most), np.uint64)
    limits = np.array([(-low, high) for low, high in (INTEGER_RANGES[type] for type in types)], np.uint64)

    def parse(part: Part) -> int:
        count, at, mine = part.line, part.start, data[: part.end]
        while at < part.end:
            look(path)
            count, at = lines_of_integers(mine, at, delimiter, limits, values, count, count + LINES_AT_A_TIME)
            if count < 0:
                raise _NotPlain
        return count

    try:
        count = _in_parts(threads, path, parts, parse)[-1]
    except _NotPlain:
        return None
    columns = [column[:count].view(np.int64) if t == "number" else column[:count] for column, t in zip(values, types)]
    return Columns(types, columns, count)


def _has_codes(type: str) -> bool:
    """Return whether the values of a column are read as texts, by their codes."""
    return isinstance(type, ColumnType) or (type not in INTEGER_RANGES and type != "float")


def _part(data: Bytes, before: Places, after: Places, type: str, pool: TextPool) -> npt.NDArray[Any]:
    """Return the values of fields of one type; of texts, their codes."""
    if _has_codes(type):
        return pool.intern(data, before, after)
    if type == "float":
        return _floats(data, before, after)
    low, high = INTEGER_RANGES[type]
    values = np.empty(len(before), np.uint64)
    if not integers(data, before, after, np.uint64(-low), np.uint64(high), values):
        raise _NotPlain
    return values.view(np.int64) if type == "number" else values


def _codes(texts: npt.NDArray[Any], type: ColumnType, pool: TextPool) -> Texts | npt.NDArray[Any]:
    """Return the codes of the values that texts are; each distinct text is read once."""
    if type.kind == "symbol":
        return Texts(texts, pool)
    distinct, places = np.unique(texts, return_inverse=True)
    try:
        codes = [type.parse(text) for text in pool.take(distinct).tolist()]
    except NotAValue:
        raise _NotPlain from None
    return np.array(codes, TYPES[str.__str__(type)].numpy)[places.reshape(-1)]


def _floats(data: Bytes, before: Places, after: Places) -> npt.NDArray[np.float64]:
    values = np.empty(len(before), np.float64)
    hard = np.empty(len(before), np.int64)
    left = floats(data, before, after, values, hard)
    if left < 0:
        raise _NotPlain
    for i in hard[:left].tolist():  # with more digits than a float has, rounding right takes long arithmetic
        values[i] = float(data[before[i] + 1 : after[i]].tobytes())
    if np.isinf(values).any():
        raise _NotPlain
    return values + 0.0  # no -0.0


# -- kernels ----------------------------------------------------------------------------------------------------------
#
# Places in data that may be many bytes on are unsigned: where a place may be negative, each look checks for it, since
# Python then counts from the end. Reading integers takes half of the time without these checks.


@kernel
def split(data, at, delimiter, bounds):
    """Find the fields of the lines from byte `at` on, as many as there is room for.

    Returns the number of lines and the start of the next one; -1 for the number if a line has other than all fields.
    """
    arity, room = bounds.shape[0] - 1, bounds.shape[1]
    row, at, end = 0, np.uint64(at), np.uint64(len(data))
    while row < room and at < end:
        start = at
        bounds[0, row] = np.int64(start) - 1
        column = 0
        while at < end and data[at] != NEWLINE:
            if data[at] == delimiter:
                column += 1
                if column == arity:
                    return -1, np.int64(at)
                bounds[column, row] = at
            at += ONE
        if column != arity - 1:
            return -1, np.int64(at)
        bounds[arity, row] = at - ONE if at > start and data[at - ONE] == RETURN else at
        at += ONE
        row += 1
    return row, np.int64(min(at, end))


@kernel
def lines_of_integers(data, at, delimiter, limits, out, row, stop):
    """Read lines of decimal numbers from byte `at` on as rows up to `stop`, by column.

    Column c has numbers from -limits[c, 0] to limits[c, 1]. Returns the number of rows and the start of the next line;
    -1 for the number if a line has anything else, or a number with more digits than every 64 bits hold.
    """
    arity, at, end = len(limits), np.uint64(at), np.uint64(len(data))
    while row < stop and at < end:
        for c in range(arity):
            negative = at < end and data[at] == MINUS
            if negative:
                at += ONE
            first, value = at, np.uint64(0)
            while at < end:
                digit = np.uint64(data[at]) - np.uint64(ZERO)  # what comes before 0 is a large number
                if digit > NINE:
                    break
                value = value * TEN + digit
                at += ONE
            if at == first or at - first >= np.uint64(MOST_DIGITS) or value > limits[c, 0 if negative else 1]:
                return -1, np.int64(at)
            out[c, row] = MOST - value + ONE if negative and value else value
            if c < arity - 1:
                if at == end or data[at] != delimiter:
                    return -1, np.int64(at)
                at += ONE
        if at < end and data[at] == RETURN:
            at += ONE
        if at < end and data[at] != NEWLINE:
            return -1, np.int64(at)
        at += ONE
        row += 1
    return row, np.int64(min(at, end))


@kernel
def integers(data, before, after, low, high, out):
    """Read decimal numbers from -`low` to `high` as 64 bits; return whether all fields are such."""
    for i in range(len(before)):
        at, end = before[i] + 1, after[i]
        negative = at < end and data[at] == MINUS
        if negative:
            at += 1
        if at >= end or end - at > MOST_DIGITS:
            return False
        value = np.uint64(0)
        for k in range(at, end):
            digit = int(data[k]) - ZERO
            if digit < 0 or digit > 9:
                return False
            if k - at == MOST_DIGITS - 1 and value > (MOST - np.uint64(digit)) // TEN:
                return False
            value = value * TEN + np.uint64(digit)
        if value > (low if negative else high):
            return False
        out[i] = MOST - value + ONE if negative and value else value
    return True


@kernel
def floats(data, before, after, out, hard):
    """Read decimal floats. Return how many are left, with their numbers in `hard`; -1 if a field is no such float.

    The result is exact: a whole number and a power of ten that are floats themselves make one correct rounding.
    """
    left = 0
    for i in range(len(before)):
        at, end = before[i] + 1, after[i]
        negative = at < end and data[at] == MINUS
        if negative:
            at += 1
        value, digits, exponent, pointed = np.uint64(0), 0, 0, False
        while at < end and (data[at] == POINT or ZERO <= data[at] <= ZERO + 9):
            if data[at] == POINT:
                if pointed:
                    return -1
                pointed = True
            else:
                digits += 1
                if value < EXACT:  # what is past this is hard, whatever follows
                    value = value * TEN + np.uint64(int(data[at]) - ZERO)
                exponent -= pointed
            at += 1
        if not digits:
            return -1
        if at < end and (data[at] == LOWER_E or data[at] == UPPER_E):
            at += 1
            below = at < end and data[at] == MINUS
            if below or (at < end and data[at] == PLUS):
                at += 1
            if at == end:
                return -1
            given = 0
            while at < end and ZERO <= data[at] <= ZERO + 9:
                if given < MOST_EXPONENT:  # far beyond any float already
                    given = given * 10 + int(data[at]) - ZERO
                at += 1
            exponent += -given if below else given
        if at < end:
            return -1
        if value < EXACT and -len(POWERS) < exponent < len(POWERS):
            x = np.float64(value)
            x = x * POWERS[exponent] if exponent >= 0 else x / POWERS[-exponent]
            out[i] = -x if negative else x
        else:
            hard[left] = i
            left += 1
    return left
