"""What Spark holds is saved and restored by Spark, and opens in every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from tests.helpers.sizes import usually
from upheld.engines.spark.engine import DataFrameEngine
from upheld.engines.spark.sets import Local
from upheld.materialisation.materialisation import draft_of
from upheld.store import Store

pytestmark = pytest.mark.xdist_group("spark")

PROGRAM = """
.decl e(n:number, u:unsigned, f:float, s:symbol)
.decl p(s:symbol, f:float, u:unsigned, n:number)
.decl q(n:number)
.decl some()
.decl on()
p(s, f, u, n) :- e(n, u, f, s), on().
q(n) :- e(n, _, _, _).
q(n - 1) :- q(n), n > 0.
some() :- q(_).
"""

ROWS = [
    (-(2**63), 2**64 - 1, float("-inf"), "é\n\t"),
    (1, 0, 0.5, ""),
    (1, 2**63, 0.0, '"'),
    (1, 3, float("nan"), "x"),
]


def content(m: upheld.Materialisation) -> dict[str, tuple[set, set]]:
    """Return the explicit facts and all facts of each relation; texts, as NaN differs from itself."""
    return {name: ({*map(str, m.explicit(name))}, {*map(str, m[name])}) for name in m.relations}


def ranks_of(m: upheld.Materialisation) -> tuple[list[str], dict[str, int]]:
    """Return what is known of each fact, as texts, and of all together."""
    return sorted(map(str, m._state.bookkeeping.ranks.items())), m._state.bookkeeping.ranks.sums()


@pytest.fixture
def fetched(monkeypatch) -> list[int]:
    """The numbers of rows that came to the driver because somebody looked at what Spark holds."""
    found: list[int] = []
    fetch = DataFrameEngine.fetch

    def watched(self, part):
        if not isinstance(part, Local):
            found.append(part.count)
        return fetch(self, part)

    monkeypatch.setattr(DataFrameEngine, "fetch", watched)
    return found


def test_there_and_back(tmp_path, spark_engine, fetched):
    """Values of every type go from Spark to the disk, to the memory engine, and back, with changes on the way."""
    store = Store.open(tmp_path / "a [odd] {name}")
    m = upheld.materialise(PROGRAM, {"e": ROWS, "on": [()]}, engine=spark_engine(small=2), algorithm="ranked")
    draft_of(m, store).commit()
    assert not fetched
    folders = {name: relation.facts for name, relation in store.last().relations.items() if relation.facts}
    assert [name for name, path in folders.items() if not path.endswith(".parquet")] == ["e", "p", "q"]
    again = upheld.restore(PROGRAM, store)
    assert content(again) == content(m)
    assert not again.statistics.instances, "what was saved of each fact is derived anew"

    for number, update in enumerate(
        [
            {"delete": {"e": ROWS[3:], "on": [()]}, "insert": {"q": [(1,), (2,)]}},
            {"insert": {"on": [()], "e": [(1, 1, 1.5, "new")], "q": [(-5,)]}},
        ][: usually(1, 2)],
        start=2,
    ):
        change = again.update(**update)
        assert draft_of(again, store, change).commit() == number
        fetched.clear()
        back = upheld.restore(PROGRAM, store, engine=spark_engine(small=2), algorithm="ranked")
        assert not fetched
        assert content(back) == content(again)
    back.save(store.folder)
    once_more = upheld.restore(PROGRAM, store.folder, engine=spark_engine(small=2), algorithm="ranked")
    assert ranks_of(once_more) == ranks_of(back)


def test_changes_made_on_spark(tmp_path, spark_engine, fetched):
    """A small change is written by itself, a large one with all facts of its relation, by Spark."""
    rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
    edges = [(i, i + 1) for i in range(5)]
    store = Store.open(tmp_path)
    m = upheld.materialise(rules, {"edge": edges}, engine=spark_engine(small=3), algorithm="dred")
    draft_of(m, store).commit()
    small = m.update(insert={"edge": [(20, 21)]})
    draft_of(m, store, small).commit()
    assert [len(store.last().relations[name].changes) for name in ("edge", "path")] == [1, 1]
    large = m.update(delete={"edge": [(2, 3)]})
    fetched.clear()
    draft_of(m, store, large).commit()
    assert not fetched
    assert [len(store.last().relations[name].changes) for name in ("edge", "path")] == [2, 0]
    assert content(upheld.restore(rules, store)) == content(m)
    _damage(tmp_path / store.last().relations["path"].facts, rules, spark_engine(small=3))


def _damage(folder: Path, rules: str, engine: upheld.SparkEngine) -> None:
    """Files that Spark has written are checked as others are, whichever engine reads them."""
    part = next(folder.glob("*.parquet"))
    data = part.read_bytes()
    for damage in ("a bit", "a file too many"):
        more = part.with_name("part-00009.parquet")
        if damage == "a bit":
            part.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        else:
            more.write_bytes(data)
        for chosen in ("memory", engine):
            with pytest.raises(upheld.UpheldError) as refusal:
                upheld.restore(rules, folder.parents[2], engine=chosen)
            assert refusal.value.slugs == ("bad-state",)
            assert refusal.value.problems[0].place == str(part if damage == "a bit" else more)
        part.write_bytes(data)


def test_a_folder_that_cannot_be_written(tmp_path, spark_engine):
    (tmp_path / "relations").write_text("a file where a folder is to be")
    m = upheld.materialise("p(x) :- e(x).", {"e": range(3)}, engine=spark_engine(small=0), algorithm="dred")
    with pytest.raises(upheld.UpheldError) as refusal:
        m.save(tmp_path)
    assert refusal.value.slugs == ("missing-file",)
