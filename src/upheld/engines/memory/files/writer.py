"""Facts files from columns: a kernel that writes lines, byte by byte those of `factfiles.writing`.

values    (columns, rows) numbers as they are, and of all else the number of its text
kinds     how each column is written: `TEXT`, `SIGNED` or `UNSIGNED`
data      UTF-8 of all texts, one after the other; text `i` lies from `offsets[i]` to `offsets[i + 1]`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.base.threads import ONE_THREAD, Threads, Work
from upheld.engines.memory.kernels.jit import compile_kernels, kernel
from upheld.engines.memory.storage.dictionary import NEWLINE, Places, utf8
from upheld.facts.columns import Column, Columns, Row, Texts
from upheld.facts.files.formats import Format
from upheld.facts.files.writing import as_text, enclosed, facts_text, header_text
from upheld.facts.relation import Relation
from upheld.language.types.columns import ColumnType
from upheld.language.types.primitive import float_text

#: Rows below which Python finishes before the kernel is loaded.
WORTH_A_KERNEL = 1 << 12
#: Rows below which there is too little work for several threads.
WORTH_SHARING = 1 << 17
_ROWS_AT_A_TIME = 1 << 15

TEXT, SIGNED, UNSIGNED = 0, 1, 2
MINUS, ZERO = ord("-"), ord("0")
TEN = np.uint64(10)
MOST_DIGITS = 20


def columns_text(rows: Iterable[Row], types: Sequence[str], format: Format, threads: Threads = ONE_THREAD) -> str:
    """Return the text of a facts file as `facts_text` does, quickly if the rows are many and kept by column."""
    columns = rows.by_column if isinstance(rows, Relation) and len(rows) >= WORTH_A_KERNEL else None
    return facts_text(rows, types, format) if columns is None else header_text(format) + lines(columns, format, threads)


def lines(columns: Columns, format: Format, threads: Threads = ONE_THREAD) -> str:
    """Return rows as lines, in the order in which they are. Threads write chunks of many rows at once."""
    texts: list[str] = []
    kinds = np.empty(len(columns.types), np.int64)
    values: list[npt.NDArray[Any]] = []
    for c, (column, type) in enumerate(zip(columns.columns, columns.types)):
        kinds[c] = TEXT if isinstance(type, ColumnType) else {"number": SIGNED, "unsigned": UNSIGNED}.get(type, TEXT)
        if kinds[c] == TEXT:
            codes, spelled = _spelled(column, type, format.rfc4180)
            values.append(codes + len(texts))
            texts += spelled
        else:
            values.append(column.view(np.int64))
    data, offsets = utf8(texts)
    delimiter = np.frombuffer(format.delimiter.encode(), np.uint8)
    starts = range(0, columns.count, _ROWS_AT_A_TIME)
    parts = [b""] * len(starts)

    def writing(k: int) -> Callable[[Work], None]:
        def write(work: Work) -> None:
            work.tick()
            chunk = np.stack([column[starts[k] : starts[k] + _ROWS_AT_A_TIME] for column in values])
            out = np.empty(_room(chunk, kinds, offsets, len(delimiter)), np.uint8)
            parts[k] = out[put_lines(chunk, kinds, data, offsets, delimiter, out) :].tobytes()

        return write

    shared = threads if columns.count >= WORTH_SHARING else ONE_THREAD
    if shared.count > 1:
        compile_kernels()
    shared.run([writing(k) for k in range(len(parts))], lambda: None)
    return b"".join(parts).decode()


def _spelled(column: Column, type: str, rfc4180: bool) -> tuple[npt.NDArray[Any], list[str]]:
    """Return a column of floats or texts as numbers of texts, and these."""
    if isinstance(type, ColumnType) and not isinstance(column, Texts):
        distinct, codes = np.unique(column, return_inverse=True)
        return codes, list(map(type.text, distinct.tolist()))
    if isinstance(column, Texts) and type == "record":
        used, codes = np.unique(column.codes, return_inverse=True)
        return codes, list(map(as_text(type, rfc4180), column.dictionary.take(used).tolist()))
    if isinstance(column, Texts):
        texts = column.dictionary.take(np.arange(len(column.dictionary))).tolist()
        return column.codes, list(map(enclosed, texts)) if rfc4180 else texts
    distinct, codes = np.unique(column, return_inverse=True)
    return codes, list(map(float_text, distinct.tolist()))


def _room(values: npt.NDArray[np.int64], kinds: Places, offsets: Places, delimiter: int) -> int:
    """Return a number of bytes that the lines do not exceed."""
    arity, rows = values.shape
    of_texts = sum(int((offsets[v + 1] - offsets[v]).sum()) for v, kind in zip(values, kinds) if kind == TEXT)
    return of_texts + rows * ((MOST_DIGITS + 1) * int((kinds != TEXT).sum()) + delimiter * (arity - 1) + 1)


@kernel
def put_lines(values, kinds, data, offsets, delimiter, out):
    """Write rows as lines, from the end of `out` to its start, as digits come; return where the first line begins."""
    at = len(out)
    arity, rows = values.shape
    for i in range(rows - 1, -1, -1):
        at -= 1
        out[at] = NEWLINE
        for c in range(arity - 1, -1, -1):
            value = values[c, i]
            if kinds[c] == TEXT:
                for k in range(offsets[value + 1] - 1, offsets[value] - 1, -1):
                    at -= 1
                    out[at] = data[k]
            else:
                negative = kinds[c] == SIGNED and value < 0
                left = np.uint64(-value) if negative else np.uint64(value)
                while True:
                    at -= 1
                    out[at] = ZERO + left % TEN
                    left //= TEN
                    if not left:
                        break
                if negative:
                    at -= 1
                    out[at] = MINUS
            if c:
                for k in range(len(delimiter) - 1, -1, -1):
                    at -= 1
                    out[at] = delimiter[k]
    return at
