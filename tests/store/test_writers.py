"""Several writers and readers of a state, and saves that fail."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import upheld
from upheld.materialisation.lifecycle import draft_of
from upheld.store.files import LocalFiles
from upheld.store.versions import Store

REACH = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def small(*edges: tuple[int, int], program: str = REACH) -> upheld.Materialisation:
    return upheld.materialise(program, {"edge": edges}, engine="reference")


def restored(folder: Path | Store) -> upheld.Materialisation:
    return upheld.restore(REACH, folder, engine="reference")


def data_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


# -- conflicts ---------------------------------------------------------------------------------------------------------


def test_a_save_from_an_earlier_version_is_refused(tmp_path):
    """Otherwise the facts that the other has saved would be gone, and nobody told."""
    small((0, 1)).save(tmp_path)
    a, b = restored(tmp_path), restored(tmp_path)
    a.update(insert={"edge": [(1, 2)]})
    assert a.save(tmp_path) == 2
    b.update(insert={"edge": [(5, 6)]})
    before = data_files(tmp_path)
    with pytest.raises(upheld.UpheldError) as refusal:
        b.save(tmp_path)
    assert refusal.value.slugs == ("state-changed",)
    assert data_files(tmp_path) == before
    assert restored(tmp_path)["edge"].to_set() == {(0, 1), (1, 2)}
    assert b.save(tmp_path / "elsewhere") == 1  # nothing is lost there


def test_saving_again_and_again(tmp_path):
    """Each save of a materialisation goes on from its last one, under whichever name of the folder."""
    m = small((0, 1))
    assert [m.save(tmp_path), m.save(str(tmp_path) + "/"), m.save(tmp_path / "relations" / "..")] == [1, 2, 3]
    os.symlink(tmp_path, tmp_path.parent / "alias")
    assert m.save(tmp_path.parent / "alias") == 4
    assert small((7, 8)).save(tmp_path) == 5  # made from facts, not from a version of this folder


def test_a_version_opened_by_its_number_cannot_undo_the_last(tmp_path):
    m = small((0, 1))
    m.save(tmp_path)
    m.save(tmp_path)
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.restore(REACH, tmp_path, engine="reference", version=1).save(tmp_path)
    assert refusal.value.slugs == ("state-changed",)


def test_a_folder_that_was_emptied_takes_a_version(tmp_path):
    m = small((0, 1))
    m.save(tmp_path / "state")
    LocalFiles().remove(str(tmp_path / "state"))
    assert m.save(tmp_path / "state") == 1


def test_a_writer_that_is_overtaken_by_several_versions(tmp_path):
    """The manifest of the number that it wants has been there and gone; it must not believe that it has won."""
    m = small((0, 1))
    m.save(tmp_path)
    slow = draft_of(m, Store.open(tmp_path))
    for _ in range(3):
        m.save(tmp_path)
    assert not (tmp_path / "manifest-000002.json").exists()
    with pytest.raises(upheld.UpheldError) as refusal:
        slow.commit()
    assert refusal.value.slugs == ("state-changed",)
    assert Store.open(tmp_path).version == 4
    restored(tmp_path)


class Followed(LocalFiles):
    """A file system where another writer goes on from a version the moment it is there."""

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        restored(Path(path).parent).save(Path(path).parent)


def test_a_writer_whose_version_is_followed_at_once(tmp_path):
    """It has won all the same."""
    m = small((0, 1))
    m.save(tmp_path)
    assert draft_of(m, Store.open(tmp_path, Followed())).commit() == 2
    assert Store.open(tmp_path).version == 3


def test_another_program_is_not_saved_into_a_state(tmp_path):
    small((0, 1)).save(tmp_path)
    before = data_files(tmp_path)
    with pytest.raises(upheld.UpheldError) as refusal:
        small((0, 1), program="path(x, y) :- edge(y, x).").save(tmp_path)
    assert refusal.value.slugs == ("other-program",)
    assert data_files(tmp_path) == before


@pytest.mark.parametrize("folder", ["", None, "a\0b", 5, b"kept"])
def test_what_is_not_a_folder_is_refused(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    for call in (lambda: small((0, 1)).save(folder), lambda: restored(folder)):
        with pytest.raises(upheld.UpheldError) as refusal:
            call()
        assert refusal.value.slugs == ("bad-folder",)
    assert list(tmp_path.iterdir()) == []


# -- readers -----------------------------------------------------------------------------------------------------------


class Overtaken(LocalFiles):
    """A file system where others save while we read: two versions follow before the first file is checked."""

    def __init__(self, m: upheld.Materialisation):
        self.m: upheld.Materialisation | None = m

    def checksums(self, paths):
        if self.m is not None:
            m, self.m = self.m, None
            for i in range(2):
                m.update(insert={"edge": [(10 + i, 11 + i)]})
                m.save(Path(next(path for path in paths if path.endswith(".parquet"))).parents[2])
        return super().checksums(paths)


def test_a_reader_beside_a_writer_looks_again(tmp_path):
    """When the files of the version that it has found are gone, there is a later version."""
    m = small((0, 1))
    m.save(tmp_path)
    assert restored(Store.open(tmp_path, Overtaken(m))).facts() == m.facts()


class Renaming(LocalFiles):
    """A file system where the first look at a folder finds names that were there one after the other."""

    def __init__(self, seen: list[str]):
        self.seen: list[str] | None = seen

    def names(self, folder: str) -> list[str]:
        if self.seen is not None:
            seen, self.seen = self.seen, None
            return seen
        return super().names(folder)


@pytest.mark.parametrize("seen", [["superseded-000001.json"], ["manifest-000001.json"], ["relations"]])
def test_a_reader_while_manifests_are_renamed(tmp_path, seen):
    """A list of names is not taken at one moment: what is missing in it is looked for once more."""
    m = small((0, 1))
    m.save(tmp_path)
    m.save(tmp_path)
    assert Store.open(tmp_path, Renaming(seen)).version == 2


# -- sweeping ----------------------------------------------------------------------------------------------------------


def test_files_of_a_version_in_the_making_are_not_swept(tmp_path):
    """One writer sweeps after its version holds, while another already writes the next one."""
    m = small((0, 1))
    m.save(tmp_path)
    m.save(tmp_path)
    draft = draft_of(m, Store.open(tmp_path))
    Store.open(tmp_path)._sweep({})
    assert draft.commit() == 3
    assert restored(tmp_path).facts() == m.facts()


def test_what_was_left_behind_is_swept(tmp_path):
    """Files of versions that never held, and manifests that were not put in place."""
    m = small((0, 1))
    m.save(tmp_path)
    draft_of(m, Store.open(tmp_path))  # a run that is killed now
    (tmp_path / "manifest-000002.json.0123abcd").write_text("{")
    m.save(tmp_path)
    m.save(tmp_path)
    kept = {file for n in (2, 3) for file in Store.open(tmp_path, version=n).last().files()}
    assert data_files(tmp_path) == kept | {"superseded-000002.json", "manifest-000003.json"}


class NoRemoving(LocalFiles):
    def remove(self, path: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", path)


def test_a_version_holds_though_the_old_ones_cannot_be_removed(tmp_path):
    m = small((0, 1))
    store = Store.open(tmp_path, NoRemoving())
    assert [draft_of(m, store).commit() for _ in range(4)] == [1, 2, 3, 4]
    assert restored(tmp_path).facts() == m.facts()


# -- saves that fail ---------------------------------------------------------------------------------------------------


class Full(LocalFiles):
    """A file system that is full after some files."""

    def __init__(self, files: int):
        self.left = files

    def written(self, path: str):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return super().written(path)

    def create(self, path: str, data: bytes) -> None:
        if self.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        super().create(path, data)


@pytest.mark.parametrize("files", range(4))
def test_a_failed_save_removes_what_it_wrote(tmp_path, files):
    m = small((0, 1), (1, 2))
    m.save(tmp_path)
    before = data_files(tmp_path)
    with pytest.raises(upheld.UpheldError) as refusal:
        draft_of(m, Store.open(tmp_path, Full(files))).commit()
    assert refusal.value.slugs == ("unwritable-file",)
    assert data_files(tmp_path) == before
    assert m.save(tmp_path) == 2


def test_a_version_that_may_not_last_is_gone_on_from(tmp_path, monkeypatch):
    """If syncing the folder fails when the manifest is there, save fails; a later save is no conflict with itself."""
    m = small((0, 1))
    m.save(tmp_path)
    m.update(insert={"edge": [(1, 2)]})

    def link(source: str, target: str) -> None:
        os.rename(source, target)
        monkeypatch.setattr("upheld.store.files._sync", fail)

    def fail(folder: str) -> None:
        monkeypatch.undo()
        raise OSError(errno.EIO, "Input/output error", folder)

    with monkeypatch.context() as patched:
        patched.setattr("upheld.store.files.os.link", link)
        with pytest.raises(upheld.UpheldError) as refusal:
            m.save(tmp_path)
    assert refusal.value.slugs == ("unwritable-file",)
    assert restored(tmp_path).facts() == m.facts()
    assert m.save(tmp_path) == 3


# -- moves -------------------------------------------------------------------------------------------------------------


def test_a_manifest_moves_nothing_to_other_places(tmp_path, monkeypatch):
    """What a version has left to move goes to places that the caller names, and to no others."""
    monkeypatch.chdir(tmp_path)
    Path("precious").mkdir()
    Path("precious/file").write_text("here")
    Path("_precious-01234567").mkdir()
    Path("bait").mkdir()
    Path("out").mkdir()
    for path, target in [
        ("_precious-01234567", "precious"),
        ("bait", "out/x"),
        ("out/_x-01234567", "out/../precious"),
        ("out/_x-01234567", "outside/x"),
    ]:
        Path("out/_x-01234567").mkdir(exist_ok=True)
        with monkeypatch.context() as patched:
            patched.setattr(LocalFiles, "move", lambda self, path, target: None)  # as if it were killed just before
            draft = draft_of(small((0, 1)), Store.open("state"))
            draft.moves.append((path, target))
            draft.commit()
        with pytest.raises(upheld.UpheldError) as refusal:
            Store.open("state").finish(["out"])
        assert refusal.value.slugs == ("strange-move",)
        assert Path("precious/file").read_text() == "here" and Path("bait").exists()
    draft = draft_of(small((0, 1)), Store.open("state"))
    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "move", lambda self, path, target: None)
        draft.moves.append(("out/_x-01234567", "out/x"))
        draft.commit()
    Store.open("state").finish(["./out"])
    assert Path("out/x").exists()
