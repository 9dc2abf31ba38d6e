"""Versions on a file system that Spark knows by its scheme: here that of this machine, by way of Hadoop."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from upheld.language.core import Predicate
from upheld.materialisation.lifecycle import draft_of
from upheld.store.versions import Store

pytestmark = pytest.mark.xdist_group("spark")

REACH = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def test_versions_elsewhere(spark):
    """They are made, read, swept and protected from each other as those of plain paths are."""
    from upheld.store.spark.versioned_files import AnyFiles

    files, folder = AnyFiles(spark), f"file:{Path('state').absolute()}"
    m = upheld.materialise(REACH, {"edge": [(1, 2), (2, 3)]}, engine="reference")
    store, other = Store.open(folder, files), Store.open(folder, files)
    assert (store.version, files.names(folder)) == (0, [])
    draft = draft_of(m, store)
    with files.written(f"{folder}/_beside") as file:
        file.write(b"told")
    draft.moves.append((f"{folder}/_beside", f"{folder}/feed"))
    assert draft.commit({"stream": {"batch": 0}}) == 1
    assert Path("state/feed").read_bytes() == b"told" == files.read(f"{folder}/feed")
    with pytest.raises(upheld.UpheldError) as refusal:
        draft_of(m, other).commit()
    assert refusal.value.slugs == ("state-changed",)
    for edge in ((3, 4), (4, 5)):
        draft_of(m, store, m.update(insert={"edge": [edge]})).commit()
    assert upheld.restore(REACH, Store.open(folder, files))["path"] == m["path"]
    assert upheld.restore(REACH, "state")["path"] == m["path"]
    assert sorted(p.name for p in Path("state").glob("*.json")) == ["manifest-000003.json", "superseded-000002.json"]
    files.remove(f"{folder}/{store.last().relations['edge'].explicit}")
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.restore(REACH, Store.open(folder, files))
    assert refusal.value.slugs == ("bad-state",)


def test_checksums_elsewhere(spark):
    """Those of files that Spark reaches by a scheme are computed by Spark, and are the same."""
    from upheld.store.spark.versioned_files import AnyFiles

    files, folder = AnyFiles(spark), Path("a [odd] {name}").absolute()
    folder.mkdir()
    for name in ("one.parquet", "two"):
        (folder / name).write_bytes(name.encode() * 1000)
    names = ("one.parquet", "two", "missing")
    here = files.checksums(f"{folder}/{name}" for name in names)
    there = files.checksums(f"file:{folder}/{name}" for name in names)
    assert {f"file:{path}": checksum for path, checksum in here.items()} == there
    assert len(there) == 2 and there[f"file:{folder}/two"].length == 3000


def test_update_files_elsewhere(spark):
    """A file of another file system is read as one of this machine is, and errors name it as it is called there."""
    from upheld.pipeline.job import Stream
    from upheld.pipeline.streaming.updates import UpdateFiles

    place = f"file:{Path('one.csv').absolute()}"
    edge = Predicate("edge", ("x", "y"), ("number", "number"))
    updates = UpdateFiles(spark, Stream(path="updates", relation="edge"), {"edge": edge})
    Path("one.csv").write_text("operation,x,y\n+,1,2\n")
    assert [update.insert for update in updates._elsewhere(place)] == [{"edge": [(1, 2)]}]
    Path("one.csv").write_text("operation,x,y\n+,1,two\n")
    with pytest.raises(upheld.UpheldError) as refusal:
        list(updates._elsewhere(place))
    assert [problem.place for problem in refusal.value.problems] == [f"{place}:2"]
