"""Parts of a file are whole chunks of its lines, in order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from upheld.base.threads import Threads
from upheld.engines.memory.files import parts
from upheld.engines.memory.files.parts import count_line_ends, cut, lines_before_blocks

texts = st.lists(st.sampled_from([b"a", b"bcd", b"\n", b"\n", b"\r\n"]), max_size=60).map(b"".join)


@given(texts, st.integers(1, 9), st.integers(0, 3), st.integers(0, 9))
def test_count_line_ends(data, size, first, blocks):
    out = np.full(blocks, -7)
    count_line_ends(np.frombuffer(data, np.uint8), size, first, out)
    assert out.tolist() == [data[k * size : (k + 1) * size].count(b"\n") for k in range(first, first + blocks)]


@given(texts, st.integers(0, 5), st.integers(1, 4), st.integers(1, 9), st.integers(1, 5))
def test_cut(data, at, lines, block, threads):
    at, before = min(at, len(data)), (parts._BLOCK, parts.LINES_AT_A_TIME)
    parts._BLOCK, parts.LINES_AT_A_TIME = block, lines
    try:
        array = np.frombuffer(data, np.uint8)
        counted = lines_before_blocks(array, at, Threads(threads), lambda: None)
        found = cut(array, at, counted, threads)
    finally:
        parts._BLOCK, parts.LINES_AT_A_TIME = before
    assert counted[-1] == data[at:].count(b"\n")
    assert 1 <= len(found) <= threads
    assert (found[0].start, found[-1].end) == (at, len(data))
    assert all(one.end == other.start for one, other in pairwise(found))
    for part in found:
        assert part.line == data[at : part.start].count(b"\n") and part.line % lines == 0
        assert part.start == at or data[part.start - 1 : part.start] == b"\n"
