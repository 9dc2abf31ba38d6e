"""Damaged states: refused with the file that is damaged, and an earlier version opens only if it is asked for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import upheld

REACH = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def small(*edges: tuple[int, int]) -> upheld.Materialisation:
    return upheld.materialise(REACH, {"edge": edges}, engine="reference")


def restored(folder: Path, **options: object) -> set[tuple[object, ...]]:
    return upheld.restore(REACH, folder, engine="reference", **options)["edge"].to_set()


def refused(folder: Path, **options: object) -> upheld.UpheldError:
    with pytest.raises(upheld.UpheldError) as refusal:
        restored(folder, **options)
    return refusal.value


def two_versions(folder: Path) -> None:
    m = small((1, 2))
    m.save(folder)
    m.update(insert={"edge": [(2, 3)]})
    m.save(folder)


def flip(path: Path, byte: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("kind", ["explicit", "books"])
def test_one_wrong_bit_in_the_facts_is_refused(tmp_path, kind):
    """Some bits of a Parquet file are values: without checksums, other facts were restored without a word."""
    small((1, 2), (2, 3)).save(tmp_path)
    (path,) = tmp_path.rglob(f"*.{kind}.parquet")
    for byte in range(0, path.stat().st_size, 97):
        flip(path, byte)
        error = refused(tmp_path)
        assert error.slugs == ("bad-state",) and error.problems[0].place == str(path)
        flip(path, byte)
    assert restored(tmp_path) == {(1, 2), (2, 3)}


def test_books_that_were_written_anew_are_refused(tmp_path):
    """A valid Parquet file with other values is not the file that was saved."""
    import pyarrow
    from pyarrow import parquet

    small((1, 2), (2, 3)).save(tmp_path)
    (path,) = tmp_path.rglob("*.books.parquet")
    table = parquet.read_table(path)
    parquet.write_table(table.set_column(0, "c0", pyarrow.array([7] * table.num_rows, pyarrow.int64())), path)
    assert refused(tmp_path).slugs == ("bad-state",)


def test_all_damaged_files_are_named(tmp_path):
    small((1, 2), (2, 3)).save(tmp_path)
    paths = sorted(tmp_path.rglob("*.parquet"))
    flip(paths[0], 10)
    paths[1].unlink()
    assert [problem.place for problem in refused(tmp_path).problems] == [str(paths[0]), str(paths[1])]


def test_a_damaged_manifest_is_refused_at_every_byte(tmp_path):
    small((1, 2)).save(tmp_path)
    path = tmp_path / "manifest-000001.json"
    for byte in range(0, path.stat().st_size, 41):
        flip(path, byte, byte % 8)
        error = refused(tmp_path)
        assert error.slugs == ("bad-state",) and error.problems[0].place == str(path)
        flip(path, byte, byte % 8)


@pytest.mark.parametrize("damage", ["removed manifest", "damaged manifest", "damaged file"])
def test_the_version_before_opens_if_it_is_asked_for(tmp_path, damage):
    """It is never opened in the place of the last one."""
    two_versions(tmp_path)
    manifest = tmp_path / "manifest-000002.json"
    match damage:
        case "removed manifest":
            manifest.unlink()
        case "damaged manifest":
            flip(manifest, 200)
        case "damaged file":
            flip(next(tmp_path.rglob("000002-*.explicit.parquet")), 30)
    error = refused(tmp_path)
    assert error.slugs == ("bad-state",)
    assert "`restore(..., version=1)`" in str(error)
    assert restored(tmp_path, version=1) == {(1, 2)}


def test_the_way_back_by_hand(tmp_path):
    """The version before is the last one again when its manifest has the name that it had then."""
    two_versions(tmp_path)
    (tmp_path / "manifest-000002.json").unlink()
    (tmp_path / "superseded-000001.json").rename(tmp_path / "manifest-000001.json")
    m = upheld.restore(REACH, tmp_path, engine="reference")
    assert m["edge"].to_set() == {(1, 2)}
    assert m.save(tmp_path) == 2
    assert restored(tmp_path) == {(1, 2)}


def test_a_version_that_is_not_there(tmp_path):
    two_versions(tmp_path)
    error = refused(tmp_path, version=7)
    assert error.slugs == ("missing-version",)
    assert "the saved versions are 1, 2" in str(error)
    assert refused(tmp_path / "nowhere", version=1).slugs == ("missing-version",)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["relations"]["edge"].update(types=["number", "numb%r"]),
        lambda content: content["relations"]["edge"].update(sizes=[1e999, 1, 0]),
        lambda content: content["books"]["sums"].pop("below"),
        lambda content: content["books"]["sums"].update({"stratum x": 1}),
        lambda content: content["books"]["relations"].pop("edge"),
        lambda content: content["books"].update(changed=1e999),
    ],
)
def test_manifests_that_say_what_no_state_says(tmp_path, change):
    """Not damaged, but written by somebody else: refused as a whole rather than by an error of Python's."""
    small((1, 2)).save(tmp_path)
    (path,) = tmp_path.glob("manifest-*.json")
    content = json.loads(path.read_text())
    change(content)
    body = json.dumps({k: v for k, v in content.items() if k not in ("format", "sha256")}).removeprefix("{")
    path.write_text(f'{{"format": 2, "sha256": "{hashlib.sha256(body.encode()).hexdigest()}",\n{body}')
    assert refused(tmp_path).slugs == ("bad-state",)
