"""Files read a part at a time, so that a long one need not fit into memory, nor a pipe come to its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from pathlib import Path
from typing import cast

from upheld.base.errors import FactsError
from upheld.base.limits import look
from upheld.facts.files.reading import GZIP_MAGIC, UNREADABLE, Unpacked, check_file, unreadable

#: The path that stands for standard input, and what messages call it.
STDIN, STDIN_NAME = Path("-"), "<stdin>"

#: Bytes read at a time: enough for what is done once a part to cost nothing, and what must be read twice is little.
_PART_LENGTH = 1 << 17


def name_of(path: Path) -> str:
    """Return what messages call a file."""
    return STDIN_NAME if path == STDIN else str(path)


def parts_of(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in parts that end where a line does, unpacked if it is gzipped.

    Of a pipe, each part is what has come so far.
    """
    try:
        with _opened(path) as stream:
            packed = stream.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
            source = Unpacked(stream, Path(name_of(path))) if packed else stream
            begun: list[bytes] = []  # of a line whose end has not been read
            while data := source.read1(_PART_LENGTH):
                look(name_of(path))
                end = data.rfind(b"\n") + 1
                if end:
                    yield b"".join((*begun, data[:end]))
                    begun.clear()
                begun.append(data[end:])
            if any(begun):
                yield b"".join(begun)
    except UNREADABLE as error:
        raise FactsError(unreadable(Path(name_of(path)), error)) from None


def _opened(path: Path) -> AbstractContextManager[BufferedReader]:
    if path != STDIN:
        check_file(path, or_pipe=True)
        return path.open("rb")
    replaced = sys.stdin is not sys.__stdin__
    if replaced:
        return nullcontext(cast(BufferedReader, sys.stdin.buffer))
    # Not by `sys.stdin`: the interpreter closes that at its end, and aborts if a thread is still waiting for input.
    return open(os.dup(sys.stdin.fileno()), "rb")
