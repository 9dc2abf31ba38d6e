"""Large files cut into parts, which several threads read at once.

A part is a whole number of chunks of lines, but for the last one. So a file has the same chunks however many parts it
has, and texts get the codes that one thread by itself would give them, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from upheld.base.threads import Threads, Work
from upheld.engines.memory.kernels.jit import kernel
from upheld.engines.memory.storage.dictionary import NEWLINE, Bytes, Places

#: Bytes of a file from which on it pays to share the work.
WORTH_SHARING = 1 << 19

#: Lines that are parsed at a time.
LINES_AT_A_TIME = 1 << 15

#: Bytes whose line ends are counted together.
_BLOCK = 1 << 16


class Part(NamedTuple):
    """Lines of a file: the number of the first one, and the bytes where they begin and end."""

    line: int
    start: int
    end: int


def parts_for(length: int, threads: Threads) -> int:
    """Return how many parts to cut this many bytes into."""
    return threads.count if length >= WORTH_SHARING else 1


def cut(data: Bytes, at: int, before: Places, parts: int) -> list[Part]:
    """Return the parts of a file from byte `at` on, in order, at most this many and at least one.

    `before` is the number of line ends before each block.
    """
    chunks = -(-(int(before[-1]) + 1) // LINES_AT_A_TIME)
    firsts = range(0, int(before[-1]) + 1, LINES_AT_A_TIME * -(-chunks // parts))
    starts = [at, *(line_start(data, at, before, line) for line in firsts[1:]), len(data)]
    parts_of_file = [Part(line, start, end) for line, (start, end) in zip(firsts, pairwise(starts)) if start < end]
    return parts_of_file or [Part(0, at, at)]


def lines_before_blocks(data: Bytes, at: int, threads: Threads, look: Callable[[], object]) -> Places:
    """Return the number of line ends from byte `at` on before each block of bytes, and at last the number of all."""
    blocks = -(-(len(data) - at) // _BLOCK)
    before = np.zeros(blocks + 1, np.int64)
    share = max(1, -(-blocks // threads.count))

    def counting(first: int) -> Callable[[Work], None]:
        return lambda work: count_line_ends(data[at:], _BLOCK, first, before[first + 1 : first + 1 + share])

    threads.run([counting(first) for first in range(0, blocks, share)], look)
    return np.cumsum(before)


def line_start(data: Bytes, at: int, before: Places, line: int) -> int:
    """Return the place of the first byte of a line, counted from byte `at` on: behind that many line ends."""
    block = int(np.searchsorted(before, line)) - 1
    start = at + block * _BLOCK
    ends = np.flatnonzero(data[start : start + _BLOCK] == NEWLINE)
    return start + int(ends[line - int(before[block]) - 1]) + 1


@kernel
def count_line_ends(data, size, first, out):
    """Count the line ends in blocks of a size, from block `first` on."""
    for k in range(len(out)):
        count = 0
        for byte in data[(first + k) * size : (first + k + 1) * size]:
            if byte == NEWLINE:
                count += 1
        out[k] = count
