"""The kernel that writes facts files: byte by byte what the plain writer writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.memory.storage.test_codec import COLUMN_VALUES, TYPES, coded
from upheld.base.threads import Threads
from upheld.engines.memory.files import writer
from upheld.engines.memory.files.writer import WORTH_A_KERNEL, columns_text, lines
from upheld.facts.files.formats import Format
from upheld.facts.files.writing import facts_text
from upheld.facts.relation import Relation


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4), st.data())
def test_lines(types, data):
    rows = data.draw(st.lists(st.tuples(*(COLUMN_VALUES[t] for t in types)), max_size=20))
    delimiter = data.draw(st.sampled_from(["\t", ",", "::", "é"]))
    format = Format("r", [f"c{i}" for i in types], delimiter=delimiter, rfc4180=data.draw(st.booleans()))
    relation = Relation("r", types, types, coded(set(rows), types))
    assert lines(relation.by_column, format) == facts_text(set(rows), types, format)


def test_many_rows():
    """The kernel is used where it is worth it, chunk by chunk, after the header."""
    types = ("number", "symbol")
    rows = [(i - 50_000, f"t{i % 9}") for i in range(100_000)]
    assert len(rows) > WORTH_A_KERNEL
    format = Format("r", ("x", "y"), headers=True)
    assert columns_text(Relation("r", ("x", "y"), types, coded(rows, types)), types, format) == facts_text(
        rows, types, format
    )
    assert columns_text(rows, types, format) == facts_text(rows, types, format)


@pytest.mark.parametrize("threads", [2, 5])
def test_many_rows_by_several_threads(threads, monkeypatch):
    """Chunks that several threads have written come in order."""
    types = ("number", "symbol", "float")
    rows = [(i - 1000, f"t{i % 9}", i / 8) for i in range(3000)]
    relation = Relation("r", ("x", "y", "z"), types, coded(rows, types))
    monkeypatch.setattr(writer, "WORTH_SHARING", 0)
    monkeypatch.setattr(writer, "_ROWS_AT_A_TIME", 7)
    assert lines(relation.by_column, Format("r", ()), Threads(threads)) == facts_text(rows, types, Format("r", ()))
