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
    from upheld.pipeline.fitting import Load
    from upheld.pipeline.sources import choose, find

    def load(given: object, predicate: Predicate = EDGE) -> Load:
        (source,) = job_of("p(1).", {predicate.name: given}, [], {}).sources
        table = find(spark, source)
        return Load(source, table, table.read(choose(table, source, predicate), predicate.types), predicate)

    return load


@pytest.fixture
def rows(load):
    """Return the rows of a source, all of which fit."""
    from upheld.pipeline.fitting import check
    from upheld.pipeline.sparkerrors import explained

    def rows(given: object, predicate: Predicate = EDGE) -> list[tuple]:
        loaded = load(given, predicate)
        with explained(loaded.table.place):
            found = sorted(map(tuple, loaded.rows().collect()))
        check([loaded])
        assert loaded.read == len(found)
        return found

    return rows


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
