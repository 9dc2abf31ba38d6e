"""Sources of facts: a fact is explicit while a source claims it."""

from __future__ import annotations

import json
from unittest.mock import patch

import pytest
from pyarrow import parquet

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.streams.sourced import follow
from tests.helpers.streams.streams import NAMES
from upheld import UpheldError, materialise, restore
from upheld.engines import ENGINES
from upheld.materialisation.materialisation import Materialisation
from upheld.store.versions import Store

REACH = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def fed() -> Materialisation:
    """Return a materialisation in which `b -> c` has two sources and `a -> b` none besides a source."""
    m = materialise(REACH, {"edge": [("a", "b")]})
    m.update(insert={"edge": [("a", "b"), ("b", "c"), ("c", "d")]}, source="feed-7")
    m.update(insert={"edge": [("b", "c")]}, source="feed-8")
    return m


@pytest.mark.parametrize("algorithm", NAMES)
def test_random_sources(algorithm):
    """Claims are those of a plain dictionary, and facts those of recomputation."""
    follow(NAMES.index(algorithm), "memory", algorithm, steps=6)


def test_random_sources_on_the_reference_engine():
    for seed in range(100, 106):
        follow(seed, "reference", steps=6)


@pytest.mark.parametrize("engine", [*ENGINES, Driven(2)], ids=lambda engine: getattr(engine, "name", engine))
def test_sources_on_every_engine(engine):
    """Claims are kept above the engine, which knows the explicit facts alone: on tasks that work in step as well."""
    m = materialise(REACH, {"edge": [("a", "b")]}, engine=engine)
    m.update(insert={"edge": [("a", "b"), ("b", "c"), ("c", "d")]}, source="feed-7")
    m.update(insert={"edge": [("b", "c")]}, source="feed-8")
    assert not m.update(delete={"edge": [("b", "c")]}, source="feed-7")
    change = m.update(replace={"edge": [("a", "b"), ("d", "e")]}, source="feed-7")
    assert change.retracted["edge"].to_rows() == [("c", "d")] and change.asserted["edge"].to_rows() == [("d", "e")]
    assert [str(change) for change in m.stream([{"retract": "feed-8"}])] == ["<Change -1 edge, -2 path>"]
    with pytest.raises(UpheldError, match="unknown-source"):
        m.retract("feed-9")
    assert m.sources() == {"feed-7": 2, "feed-8": 0}
    assert m.retract("feed-7").deleted["edge"].to_rows() == [("d", "e")]
    assert m["path"].to_set() == {("a", "b")} and m["edge"].to_set() == {("a", "b")}


def test_a_fact_with_another_source_stays():
    m = fed()
    assert m.sources() == {"feed-7": 3, "feed-8": 1}
    change = m.retract(source="feed-7")
    assert change.deleted["edge"].to_set() == {("c", "d")}
    assert m["edge"].to_set() == {("a", "b"), ("b", "c")}
    assert m.sources() == {"feed-7": 0, "feed-8": 1}
    assert not m.retract("feed-7")  # it has been named, and has no facts
    m.retract("feed-8")
    assert m["edge"].to_set() == {("a", "b")}


def test_a_plain_deletion_deletes_outright():
    m = fed()
    assert m.update(delete={"edge": [("b", "c")]}).deleted["edge"].to_set() == {("b", "c")}
    assert m.sources() == {"feed-7": 2, "feed-8": 0}
    m.update(insert={"edge": [("b", "c")]})
    assert not m.update(delete={"edge": [("b", "c")]}, source="feed-8")  # it does not claim the fact any more
    assert ("b", "c") in m["edge"]


def test_a_snapshot_of_a_source():
    m = fed()
    change = m.update(replace={"edge": [("a", "b"), ("x", "y")]}, source="feed-7")
    assert change.inserted["edge"].to_set() == {("x", "y")} and change.deleted["edge"].to_set() == {("c", "d")}
    assert m.sources() == {"feed-7": 2, "feed-8": 1}
    m.update(replace={"edge": [("a", "b")]})
    assert m.sources() == {"feed-7": 1, "feed-8": 0}


def test_explanations_name_sources():
    m = fed()
    shown = str(m.explain("path", ("a", "c")))
    assert 'edge("a", "b")  explicit, from feed-7 and without a source' in shown
    assert 'edge("b", "c")  explicit, from feed-7, feed-8' in shown
    steps = json.loads(m.explain("edge", ("a", "b")).to_json())["proof"]
    assert steps[0]["sources"] == ["feed-7", None]
    m.retract("feed-7")
    assert str(m.explain("edge", ("a", "b"))) == 'edge("a", "b")  explicit'


def test_sources_of_a_stream():
    m = materialise(REACH, {"edge": [("a", "b")]})
    updates = [
        {"insert": {"edge": [("b", "c")]}, "source": "monday.csv"},
        {"insert": {"edge": [("b", "c"), ("c", "d")]}, "source": "tuesday.csv"},
        {"insert": {"edge": [("d", "e")]}},
        {"delete": {"edge": [("b", "c")]}, "source": "monday.csv"},
        {"delete": {"edge": [("c", "d")]}},
    ]
    changes = list(m.stream(updates, merge_waiting=4))
    assert [change.updates for change in changes] == [(1,), (2,), (3,), (4,), (5,)]
    assert m.sources() == {"monday.csv": 0, "tuesday.csv": 1}
    assert m["edge"].to_set() == {("a", "b"), ("b", "c"), ("d", "e")}


def test_saved_and_restored(tmp_path):
    m = fed()
    m.update(insert={"edge": [("q", "r")]}, source="feed-9")
    m.retract("feed-9")
    m.save(tmp_path)
    m.save(tmp_path)
    files = sorted(path.name for path in tmp_path.rglob("*.sources.parquet"))
    assert len(files) == 1  # nothing has changed between the versions
    again = restore(REACH, tmp_path)
    assert again.sources() == m.sources() == {"feed-7": 3, "feed-8": 1, "feed-9": 0}
    assert again.retract("feed-7").deleted["edge"].to_set() == {("c", "d")}
    again.save(tmp_path)
    assert restore(REACH, tmp_path).sources() == {"feed-7": 0, "feed-8": 1, "feed-9": 0}
    edited = restore("path(x, y) :- edge(x, y).", tmp_path, edited=True)
    assert edited.retract("feed-8").deleted["path"].to_set() == {("b", "c")}


def test_versions_write_what_has_changed(tmp_path, monkeypatch):
    """A version has the facts whose sources changed, until there are more changes than facts."""
    m = fed()
    m.update(insert={"edge": [(f"x{i}", f"y{i}") for i in range(30)]}, source="feed-7")

    def saved() -> list[int]:
        """Save a version, and return the rows of each file of sources."""
        m.save(tmp_path)
        again = restore(REACH, tmp_path)
        assert again.sources() == m.sources()
        assert all(again._sources.of(("edge", row)) == m._sources.of(("edge", row)) for row in m["edge"])
        files = Store.open(tmp_path).last().sources.files["edge"]
        return [parquet.ParquetFile(tmp_path / path).metadata.num_rows for path in files]

    assert saved() == [33]
    m.update(delete={"edge": [("x0", "y0")]})
    m.update(insert={"edge": [("x1", "y1")]}, source="feed-8")
    assert saved() == [33, 2]
    assert not m.retract("feed-8").deleted["edge"]
    with m.transaction() as t:
        m.retract("feed-7")
        t.rollback()
    assert saved() == [33, 2, 32]  # a rollback has changed the claims twice
    monkeypatch.setattr("upheld.store.draft._MOST_ROWS", 0)
    m.update(delete={"edge": [("x2", "y2")]})
    assert saved() == [31]
    monkeypatch.setattr("upheld.materialisation.updates.sources._MOST_CHANGES", 0)
    m.update(insert={"edge": [(f"z{i}", "z") for i in range(40)]}, source="feed-9")
    m.retract("feed-9")  # more changes than facts are not kept
    assert saved() == [31]


def test_damaged_sources_are_refused(tmp_path):
    fed().save(tmp_path)
    (file,) = tmp_path.rglob("*.sources.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UpheldError, match="bad-state"):
        restore(REACH, tmp_path)


def test_a_preview_and_a_failed_update_leave_sources_as_they_were():
    rules = ".decl edge(x:symbol, y:symbol) .constraint loop :- edge(x, x)."
    m = materialise(rules, {"edge": [("a", "b")]})
    m.update(insert={"edge": [("b", "c")]}, source="feed-7")
    assert m.preview(delete={"edge": [("b", "c")]}, source="feed-7").deleted["edge"].to_set() == {("b", "c")}
    with pytest.raises(UpheldError, match="constraint"):
        m.update(insert={"edge": [("x", "x")]}, delete={"edge": [("b", "c")]}, source="feed-8")
    with pytest.raises(UpheldError):
        m.update(insert={"edge": [("x",)]}, source="feed-8")
    with patch.object(type(m), "_make", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        m.retract("feed-7")
    assert m.sources() == {"feed-7": 1} and m["edge"].to_set() == {("a", "b"), ("b", "c")}


def test_an_update_that_is_not_acknowledged_is_undone():
    """As on Spark, when the record of an update cannot be written."""
    m = fed()
    before = m.sources()
    with patch.object(type(m), "_acknowledge", side_effect=ZeroDivisionError), pytest.raises(ZeroDivisionError):
        m.update(insert={"edge": [("z", "z")]}, delete={"edge": [("b", "c")]}, source="feed-9")
    assert m.sources() == before and m._sources.of(("edge", ("z", "z"))) == frozenset()


def test_transactions():
    m = fed()
    before = m.sources()
    with m.transaction() as t:
        m.update(insert={"edge": [("z", "z")]}, source="feed-9")
        m.retract("feed-7")
        assert m.sources() == {"feed-7": 0, "feed-8": 1, "feed-9": 1}
        t.rollback()
    assert m.sources() == before and m._sources.of(("edge", ("z", "z"))) == frozenset()
    with m.transaction():
        m.update(insert={"edge": [("z", "z")]}, source="feed-9")
        with pytest.raises(UpheldError, match="unknown-source"):
            m.retract("feed-10")
        m.update(delete={"edge": [("b", "c")]})
    assert m.sources() == {"feed-7": 2, "feed-8": 0, "feed-9": 1}


def test_a_rule_change_that_deletes_facts_ends_their_claims():
    m = materialise("q(x) :- p(x). p(1).", {"p": [2]})
    m.update(insert={"p": [1, 2, 3]}, source="feed-7")
    m.change_rules(remove="p(1).")
    assert m.sources() == {"feed-7": 2}


@pytest.mark.parametrize(
    ("call", "slug"),
    [
        (lambda m: m.retract("feed-9"), "unknown-source"),
        (lambda m: m.update(delete={"edge": [("a", "b")]}, source="fed-7"), "unknown-source"),
        (lambda m: m.retract(""), "bad-argument"),
        (lambda m: m.update(insert={}, source=7), "bad-argument"),
        (lambda m: list(m.stream([{"insert": {}, "source": 7}])), "bad-argument"),
        (lambda m: m.preview(add="p(1).", source="feed-7"), "ambiguous-change"),
    ],
)
def test_refused(call, slug):
    m = fed()
    with pytest.raises(UpheldError) as error:
        call(m)
    assert error.value.slugs == (slug,)
    assert m.sources() == {"feed-7": 3, "feed-8": 1}


def test_an_unknown_source_has_a_hint():
    with pytest.raises(UpheldError, match="did you mean `feed-7`"):
        fed().retract("feed7")


def test_retracting_costs_what_it_changes():
    m = materialise("q(x) :- p(x).", {"p": list(range(20_000))})
    m.update(insert={"p": [30_000, 30_001]}, source="feed-7")
    m.update(insert={"p": list(range(40_000, 60_000))}, source="feed-8")
    change = m.retract("feed-7")
    assert change.statistics.instances.total() < 10 and len(change.deleted["q"]) == 2
    assert isinstance(change, upheld.Change)
