"""Checkpoints: what was acknowledged is in a folder, and another process continues from there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from upheld.base.errors import UpheldError
from upheld.store.files import LocalFiles

RULES = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
EDGES = [("a", "b"), ("b", "c"), ("c", "d")]


class Disk(LocalFiles):
    """A file system that refuses new manifests: before they are there, after, or after and cannot be read then."""

    refuses: str | None = None

    def names(self, folder):
        if self.refuses == "after and silent":
            raise OSError("no route to host")
        return super().names(folder)

    def create(self, path, data):
        if self.refuses == "before":
            raise OSError("disk full")
        super().create(path, data)
        if self.refuses is not None:
            raise OSError("connection reset")


@dataclass(frozen=True)
class Checkpointing(Driven):
    """Tasks in threads, with a folder for checkpoints."""

    checkpoint: Path | None = None
    idle: float | None = None
    disk: LocalFiles = LocalFiles()

    def files(self):
        return self.disk


def driven(parts, folder, disk=None):
    return Checkpointing(parts, checkpoint=folder, disk=disk or LocalFiles())


def expected(edges):
    return upheld.materialise(RULES, {"edge": edges}).facts()


def test_every_acknowledged_version_is_there(tmp_path):
    """Whoever opens the folder, at any time, with any partitions or in memory, has the last acknowledged version."""
    edges = set(EDGES)
    with upheld.materialise(RULES, {"edge": EDGES}, engine=driven(2, tmp_path)) as m:
        assert upheld.restore(RULES, tmp_path).facts() == expected(EDGES)
        for gone, new in ((("a", "b"), ("d", "e")), (("d", "e"), ("d", "a")), (("b", "c"), ("b", "d"))):
            m.update(delete={"edge": [gone]}, insert={"edge": [new]})
            edges = (edges - {gone}) | {new}
            assert upheld.restore(RULES, tmp_path).facts() == expected(edges) == m.facts()
        m.preview(insert={"edge": [("x", "y")]})
        with pytest.raises(UpheldError):
            m.update(insert={"edge": [("only one",)]})
        assert sum(1 for _ in m.stream([{"insert": {"edge": [("e", "f")]}}, {"insert": {"edge": [("f", "g")]}}])) == 2
    edges |= {("e", "f"), ("f", "g")}
    # The process has gone; others go on, with another number of partitions.
    with upheld.restore(RULES, tmp_path, engine=driven(3, tmp_path)) as m:
        assert m.facts() == expected(edges)
        m.update(delete={"edge": [("e", "f")]})
        assert upheld.restore(RULES, tmp_path).facts() == expected(edges - {("e", "f")})
    written = [p.name for p in tmp_path.glob("relations/path/*") if "changes" not in p.name]
    assert len(written) == 2, "facts and bookkeeping are written once"


def test_tasks_that_are_lost(tmp_path):
    """Tasks are started again, and the next update is logged as before."""
    with upheld.materialise(RULES, {"edge": EDGES}, engine=driven(2, tmp_path)) as m:
        m.update(delete={"edge": [("a", "b")]})
        m._engine.driver._tasks.wire.close()
        with pytest.warns(upheld.UpheldWarning, match="started its tasks again"):
            m.update(insert={"edge": [("d", "a")]})
        assert upheld.restore(RULES, tmp_path).facts() == m.facts() == expected([*EDGES[1:], ("d", "a")])


@pytest.mark.filterwarnings("ignore:.*started its tasks again")
@pytest.mark.parametrize("refuses", ["before", "after"])
def test_a_version_that_cannot_be_written(tmp_path, refuses):
    """An update whose version is not in the folder fails and is not made; one whose version is there is made."""
    disk = Disk()
    with upheld.materialise(RULES, {"edge": EDGES}, engine=driven(2, tmp_path, disk)) as m:
        disk.refuses = refuses
        if refuses == "before":
            with pytest.raises(UpheldError, match="disk full"):
                m.update(delete={"edge": [("a", "b")]})
            assert (m.version, m.facts()) == (0, expected(EDGES))
        else:
            m.update(delete={"edge": [("a", "b")]})
            assert (m.version, m.facts()) == (1, expected(EDGES[1:]))
        disk.refuses = None
        assert upheld.restore(RULES, tmp_path).facts() == m.facts()
        m.update(insert={"edge": [("d", "a")]})
        assert upheld.restore(RULES, tmp_path).facts() == m.facts()


@pytest.mark.filterwarnings("ignore:.*started its tasks again")
def test_a_version_of_which_nothing_is_known(tmp_path):
    """The update fails, and the next one writes all facts: the folder may have a version that nobody acknowledged."""
    disk = Disk()
    with upheld.materialise(RULES, {"edge": EDGES}, engine=driven(2, tmp_path, disk)) as m:
        disk.refuses = "after and silent"
        for _ in range(2):
            with pytest.raises(UpheldError, match="no route to host"):
                m.update(delete={"edge": [("a", "b")]})
        disk.refuses = None
        assert (m.version, m.facts()) == (0, expected(EDGES))
        m.update(insert={"edge": [("d", "a")]})
        assert upheld.restore(RULES, tmp_path).facts() == m.facts() == expected([*EDGES, ("d", "a")])


@pytest.mark.filterwarnings("ignore:.*started its tasks again")
def test_a_folder_that_is_in_use(tmp_path):
    """A new materialisation does not replace what others have acknowledged, and two do not take turns."""
    with upheld.materialise(RULES, {"edge": EDGES}, engine=driven(1, tmp_path)) as m:
        with pytest.raises(UpheldError) as caught:
            upheld.materialise(RULES, {"edge": []}, engine=driven(1, tmp_path))
        assert caught.value.slugs == ("checkpoint-in-use",)
        m.save(tmp_path)
        m.update(delete={"edge": [("a", "b")]})
        upheld.restore(RULES, tmp_path).save(tmp_path)
        for _ in range(2):
            with pytest.raises(UpheldError) as caught:
                m.update(delete={"edge": [("b", "c")]})
            assert caught.value.slugs == ("state-changed",)
    assert upheld.restore(RULES, tmp_path).facts() == expected(EDGES[1:])
