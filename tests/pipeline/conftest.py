"""What the tests of sources share: a folder to work in, and what becomes of a source."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from upheld.language.core import Predicate
from upheld.pipeline.job import job_of

EDGE = Predicate("edge", ("x", "y"), ("symbol", "symbol"))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def load(spark):
    """Return what is loaded from a source: its path, or its options."""
    from upheld.pipeline.sources.choosing import choose, find
    from upheld.pipeline.sources.validation import Load

    def load(given: object, predicate: Predicate = EDGE) -> Load:
        (source,) = job_of("p(1).", {predicate.name: given}, [], {}).sources
        table = find(spark, source)
        names = choose(table, source, predicate)
        return Load(source, table, table.read(names, predicate.types), predicate, names)

    return load


@pytest.fixture
def rows(load):
    """Return the rows of a source, all of which fit."""
    from upheld.pipeline.sources.validation import check
    from upheld.store.spark.errors import explained

    def rows(given: object, predicate: Predicate = EDGE) -> list[tuple]:
        loaded = load(given, predicate)
        with explained(loaded.table.place):
            found = sorted(map(tuple, loaded.rows().collect()))
        _compare(loaded, found)
        check([loaded])
        assert loaded.read == len(found)
        return found

    return rows


def by_arrow(loaded) -> tuple[list[tuple], list[str]] | None:
    """Return the rows of a source as plain files have them, and the lines that are left; None if it is not plain."""
    import pyarrow as pa

    from upheld.pipeline.sources.arrow import NotPlain

    rows, rest = [], []
    try:
        for split in loaded.reading.plain.splits(2):
            table, left = loaded.reading.plain.read(split)
            rows += zip(*(column.to_pylist() for column in table.columns))
            rest += left["value"].to_pylist() if left is not None else []
    except (NotPlain, OSError, pa.ArrowException):
        return None
    return rows, rest


def _compare(loaded, found: list[tuple]) -> None:
    """Compare what Spark has read with what a task would read of a plain file."""
    came = by_arrow(loaded) if loaded.reading.plain is not None else None
    if came is not None:
        rows, rest = came
        assert not loaded.bad or rest
        assert set(rows) <= set(found) if rest else sorted(rows) == found


@pytest.fixture
def refused(rows):
    """Return the slug, place and message of each problem of a source."""

    def refused(given: object, predicate: Predicate = EDGE) -> list[tuple[str, str, str]]:
        with pytest.raises(upheld.UpheldError) as refusal:
            rows(given, predicate)
        here = f"{Path.cwd()}/"
        return [
            (p.slug, (p.place or "").replace(here, ""), p.message.replace(here, "")) for p in refusal.value.problems
        ]

    return refused
