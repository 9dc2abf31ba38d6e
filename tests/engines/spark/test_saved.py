"""What tasks hold is saved and restored, and opens in every engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.sizes import usually
from upheld.materialisation.lifecycle import draft_of
from upheld.store import Store

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


def test_there_and_back(tmp_path):
    """Values of every type go from tasks to the disk, to the memory engine, and back, with changes on the way."""
    store = Store.open(tmp_path / "a [odd] {name}")
    m = upheld.materialise(PROGRAM, {"e": ROWS, "on": [()]}, engine=Driven(2), algorithm="ranked")
    draft_of(m, store).commit()
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
        back = upheld.restore(PROGRAM, store, engine=Driven(2), algorithm="ranked")
        assert content(back) == content(again)
    back.save(store.folder)
    once_more = upheld.restore(PROGRAM, store.folder, engine=Driven(2), algorithm="ranked")
    assert ranks_of(once_more) == ranks_of(back)


def test_files_that_spark_wrote(tmp_path):
    """A relation of a state of an older version is a folder of Parquet files; they are read, and checked as others."""
    rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
    m = upheld.materialise(rules, {"edge": [(i, i + 1) for i in range(5)]}, algorithm="dred")
    m.save(tmp_path)
    _as_spark_wrote(tmp_path, "path")
    for engine in ("memory", Driven(2)):
        assert content(upheld.restore(rules, tmp_path, engine=engine, algorithm="dred")) == content(m)
    part = next(tmp_path.glob("relations/path/*/*.parquet"))
    data, more = part.read_bytes(), part.with_name("part-00009.parquet")
    for damage in ("a bit", "a file too many"):
        if damage == "a bit":
            part.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        else:
            more.write_bytes(data)
        for engine in ("memory", Driven(2)):
            with pytest.raises(upheld.UpheldError) as refusal:
                upheld.restore(rules, tmp_path, engine=engine)
            assert refusal.value.slugs == ("bad-state",)
            assert refusal.value.problems[0].place == str(part if damage == "a bit" else more)
        part.write_bytes(data)


def _as_spark_wrote(state: Path, name: str) -> None:
    """Put the file of all facts of a relation into a folder of its own, as jobs of Spark wrote them."""
    saved = Store.open(state).last()
    old = saved.relations[name].facts
    folder = old.removesuffix(".parquet")
    part = f"{folder}/part-00000.parquet"
    data = (state / old).read_bytes()
    (state / old).unlink()
    (state / folder).mkdir()
    (state / part).write_bytes(data)
    relations = {**saved.relations, name: replace(saved.relations[name], facts=folder)}
    checksums = {part if path == old else path: checksum for path, checksum in saved.checksums.items()}
    (manifest,) = state.glob("manifest-*.json")
    manifest.write_bytes(replace(saved, relations=relations, checksums=checksums, books=None).to_json())


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "relations").write_text("a file where a folder is to be")
    m = upheld.materialise("p(x) :- e(x).", {"e": range(3)}, engine=Driven(2), algorithm="dred")
    with pytest.raises(upheld.UpheldError) as refusal:
        m.save(tmp_path)
    assert refusal.value.slugs == ("missing-file",)
