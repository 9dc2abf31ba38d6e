"""`Materialisation.keep`: a table on disk has the facts of a relation after each change, for readers of Parquet."""

from __future__ import annotations

import datetime
import json
import math
import os
import random
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas
import pyarrow
import pytest

import upheld
from tests.test_arguments import WRONG
from upheld.base.errors import FactsError, UpheldError, UsageError
from upheld.cli import main
from upheld.store.files import LocalFiles
from upheld.store.kept import draft
from upheld.store.kept import table as kept

RULES = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files of few rows, so that they are split and joined."""
    monkeypatch.setattr(draft, "MOST_ROWS", 8)


def rows_in(folder: Path, **partition: object) -> list[tuple]:
    return sorted(tuple(row.values()) for row in upheld.read_table(folder, partition or None).to_pylist())


def data_files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*.parquet")}


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("partition_by", [[], ["c1"], ["c1", "c0"]])
def test_random_stream_equals_recomputation(tmp_path: Path, partition_by: list[str]) -> None:
    """After each update of a stream, readers find the facts that a new materialisation has."""
    chance = random.Random(len(partition_by))
    edges = {(chance.randrange(12), chance.randrange(12)) for _ in range(8)}
    m = upheld.materialise(RULES, {"edge": edges})
    updates = []
    for _ in range(12):
        new = {(chance.randrange(12), chance.randrange(12)) for _ in range(2)}
        updates.append({"insert": {"edge": new}, "delete": {"edge": chance.sample(sorted(edges), len(edges) // 3)}})
        edges = (edges - set(updates[-1]["delete"]["edge"])) | new
    now = set(m.explicit("edge"))
    with m.keep("path", tmp_path / "path", partition_by=partition_by) as keeping:
        for update, _ in zip(updates, m.stream(updates), strict=True):
            now = (now - set(update["delete"]["edge"])) | update["insert"]["edge"]
            expected = upheld.materialise(RULES, {"edge": now})["path"].to_rows()
            assert rows_in(tmp_path / "path") == expected
            read = duckdb.read_parquet(upheld.table_files(tmp_path / "path"), hive_partitioning=False)
            assert sorted(read.fetchall()) == expected
    assert keeping.version > 6
    if partition_by:
        value = expected[0][1]
        assert rows_in(tmp_path / "path", c1=value) == [row for row in expected if row[1] == value]


@pytest.mark.usefixtures("small_files")
def test_a_table_that_shrinks_and_grows(tmp_path: Path) -> None:
    """Files stay between few and many rows, and a table without rows has a file with its columns."""
    m = upheld.materialise("q(x, y) :- p(x, y).", {"p": [(x, x % 3) for x in range(200)]})
    with m.keep("q", tmp_path):
        assert 25 <= len(upheld.table_files(tmp_path)) <= 50
        m.update(delete={"p": [(x, x % 3) for x in range(200) if x % 10]})
        assert len(upheld.table_files(tmp_path)) <= 10
        m.update(delete={"p": list(m["p"])})
        assert pandas.read_parquet(upheld.table_files(tmp_path)).columns.tolist() == ["c0", "c1"]
        assert rows_in(tmp_path) == []
        m.update(insert={"p": [(-x, 0) for x in range(100)]})
        assert rows_in(tmp_path) == sorted((-x, 0) for x in range(100))


def test_an_update_writes_what_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One fact among many writes one file anew, and reads no other."""
    monkeypatch.setattr(draft, "MOST_ROWS", 64)
    m = upheld.materialise("q(x, y) :- p(x, y).", {"p": [(x, -x) for x in range(5000)]})
    m.keep("q", tmp_path)
    before = data_files(tmp_path)
    read: list[str] = []
    plain = LocalFiles.read
    monkeypatch.setattr(LocalFiles, "read", lambda self, path: read.append(path) or plain(self, path))
    m.update(insert={"p": [(2500, 1)]})
    assert len(data_files(tmp_path) - before) == 1
    assert len([path for path in read if path.endswith(".parquet")]) == 1
    assert (2500, 1) in rows_in(tmp_path)


TYPED = """
.decl p(d: date, t: timestamp, n: decimal(9, 2), b: boolean, f: float, u: unsigned, s: symbol)
.decl q(d: date, t: timestamp, n: decimal(9, 2), b: boolean, f: float, u: unsigned, s: symbol)
q(d, t, n, b, f, u, s) :- p(d, t, n, b, f, u, s).
"""


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("column", [None, "t", "n", "s"])
def test_values_of_every_type(tmp_path: Path, column: str | None) -> None:
    """Values of each type come back as they are, also as those of partitions and after the folder is opened again."""
    chance = random.Random(5)

    def row() -> tuple:
        moment = datetime.datetime(2026, chance.randint(1, 3), 1, tzinfo=datetime.UTC)
        number = chance.choice([0.5, math.inf, -math.inf, -1.0, 3e300])
        text = chance.choice(["", "..", "a/b=c", "é\n", "null", "x" * 300, "_", '"'])
        big = chance.choice([0, 2**64 - 1])
        return moment.date(), moment, Decimal(chance.randrange(9)) / 4, chance.random() < 0.5, number, big, text

    m = upheld.materialise(TYPED, {"p": [row() for _ in range(40)]})
    partition_by = [column] if column else []
    for _ in range(3):
        with m.keep("q", tmp_path / "q", partition_by=partition_by):
            for _ in range(3):
                m.update(delete={"p": chance.sample(list(m["p"]), 9)}, insert={"p": [row() for _ in range(9)]})
                table = upheld.read_table(tmp_path / "q")
                assert table.schema == m["q"].to_arrow().schema
                assert {tuple(r.values()) for r in table.to_pylist()} == set(m["q"])
        version = json.loads((tmp_path / "q" / "manifest.json").read_text())["version"]
    assert version == 10


def test_nan_and_nothing(tmp_path: Path) -> None:
    """NaN is one value, and a relation without columns has a column `holds`."""
    m = upheld.materialise(".decl p(f: float) .decl any() any() :- p(_).", {"p": [math.nan, 1.0]})
    with m.keep("p", tmp_path / "p", partition_by=["f"]), m.keep("any", tmp_path / "any"):
        m.update(delete={"p": [1.0]})
        assert [str(v) for v in upheld.read_table(tmp_path / "p")["f"].to_pylist()] == ["nan"]
        assert upheld.read_table(tmp_path / "p", {"f": math.nan}).num_rows == 1
        assert upheld.read_table(tmp_path / "any").to_pylist() == [{"holds": True}]
        m.update(delete={"p": [math.nan]})
        assert upheld.read_table(tmp_path / "p").num_rows == upheld.read_table(tmp_path / "any").num_rows == 0


def test_transactions_and_rule_changes(tmp_path: Path) -> None:
    """A transaction is one version; a preview, a rollback and a refused update are none; rules may change."""
    rules = RULES + " .constraint loop :- path(x, x)."
    m = upheld.materialise(rules, {"edge": [(1, 2)]})
    keeping = m.keep("path", tmp_path)
    with m.transaction():
        m.update(insert={"edge": [(2, 3)]})
        m.update(insert={"edge": [(3, 4)]})
        assert rows_in(tmp_path) == [(1, 2)]
    assert keeping.version == 2
    m.preview(delete={"edge": [(1, 2)]})
    with pytest.raises(UpheldError, match="loop"):
        m.update(insert={"edge": [(4, 1)]})
    with m.transaction() as t:
        m.update(insert={"edge": [(8, 9)]})
        t.rollback()
    assert (keeping.version, rows_in(tmp_path)) == (2, m["path"].to_rows())
    m.change_rules(remove="path(x, z) :- path(x, y), edge(y, z).")
    assert (keeping.version, rows_in(tmp_path)) == (3, [(1, 2), (2, 3), (3, 4)])
    keeping.close()
    m.update(delete={"edge": [(1, 2)]})
    assert len(rows_in(tmp_path)) == 3


def test_only_the_difference_is_written_to_a_table_that_is_there(tmp_path: Path) -> None:
    """Another process that keeps the same table writes nothing if it has the facts, and else the difference."""
    upheld.materialise(RULES, {"edge": [(1, 2)]}).keep("path", tmp_path).close()
    assert upheld.materialise(RULES, {"edge": [(1, 2)]}).keep("path", tmp_path).version == 1
    assert upheld.materialise(RULES, {"edge": [(1, 2), (2, 3)]}).keep("path", tmp_path).version == 2
    assert rows_in(tmp_path) == [(1, 2), (1, 3), (2, 3)]


def test_an_edited_program_continues_its_table(tmp_path: Path) -> None:
    """A state that an edited program opens may continue the table of the program before."""
    m = upheld.materialise(RULES, {"edge": [(1, 2), (2, 3)]})
    m.keep("path", tmp_path / "path").close()
    m.save(tmp_path / "state")
    edited = upheld.restore("path(x, y) :- edge(x, y).", tmp_path / "state", edited=True)
    assert edited.keep("path", tmp_path / "path").version == 2
    assert rows_in(tmp_path / "path") == [(1, 2), (2, 3)]


def test_files_stay_for_readers_of_earlier_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Superseded files go after a grace, and those of a killed writer after a grace from the next start on."""
    clock = [1000.0]
    monkeypatch.setattr(kept.time, "monotonic", lambda: clock[0])
    m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
    first = m.keep("q", tmp_path)
    (old,) = upheld.table_files(tmp_path)
    m.update(insert={"p": [2]})
    clock[0] += kept.GRACE - 1
    m.update(insert={"p": [3]})
    assert os.path.exists(old)
    clock[0] += 1
    m.update(insert={"p": [4]})
    assert not os.path.exists(old)
    assert len(data_files(tmp_path)) == 3
    first.close()
    (tmp_path / "000009-0123abcd.parquet").write_bytes(b"half")
    (tmp_path / "manifest.json.0123abcd").write_bytes(b"half")
    again = m.keep("q", tmp_path)
    clock[0] += kept.GRACE
    m.update(insert={"p": [5]})
    assert {str(file.name) for file in tmp_path.iterdir()} == {
        "manifest.json",
        *(os.path.basename(path) for path in upheld.table_files(tmp_path)),
        *(name for name in data_files(tmp_path) if name.startswith("000004")),
    }
    assert again.version == 5


def test_a_reader_that_is_overtaken_reads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader whose files go meanwhile finds the later version whole."""
    monkeypatch.setattr(kept, "GRACE", 0.0)
    m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
    m.keep("q", tmp_path)
    plain, overtaken = LocalFiles.read, []

    def read(self: LocalFiles, path: str) -> bytes:
        if path.endswith(".parquet") and not overtaken:
            overtaken.append(path)
            m.update(insert={"p": [2]})
        return plain(self, path)

    monkeypatch.setattr(LocalFiles, "read", read)
    assert rows_in(tmp_path) == [(1,), (2,)]
    assert not os.path.exists(overtaken[0])


def test_apply_keeps_the_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`upheld apply --keep` has a table of each output that is up to date after each commit."""
    monkeypatch.chdir(tmp_path)
    rules = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n.input edge\n.output path\n"
    Path("reach.dl").write_text(rules + RULES)
    Path("edge.facts").write_text("1\t2\n")
    Path("updates.txt").write_text("+edge(2, 3).\ncommit.\n-edge(1, 2).\ncommit.\n")
    seen = []
    write = upheld.ChangeFile.write

    def watched(file: upheld.ChangeFile, change: upheld.Change) -> None:
        seen.append(rows_in(Path("tables/path")))
        write(file, change)

    monkeypatch.setattr(upheld.ChangeFile, "write", watched)
    apply = ["apply", "reach.dl", "--updates", "updates.txt", "--keep", "tables", "--changes", "c.txt"]
    assert main(apply) == 0
    assert seen == [[(1, 2), (1, 3), (2, 3)], [(2, 3)]]
    assert [folder.name for folder in Path("tables").iterdir()] == ["path"]
    assert main(apply) == 0
    assert rows_in(Path("tables/path")) == [(2, 3)]


# -- errors ------------------------------------------------------------------------------------------------------------


def slug(error: pytest.ExceptionInfo) -> str:
    return error.value.problems[0].slug


def test_a_change_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If files cannot be written nothing changes; if the manifest cannot, the next update brings it up to date."""
    m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
    m.keep("q", tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(LocalFiles, "written", refuse)
        with pytest.raises(FactsError, match="No space"):
            m.update(insert={"p": [2]})
    assert m["q"].to_rows() == rows_in(tmp_path) == [(1,)]
    assert len(data_files(tmp_path)) == 1
    with monkeypatch.context() as full:
        full.setattr(LocalFiles, "replace", refuse)
        with pytest.raises(FactsError) as error:
            m.update(insert={"p": [3]})
        assert slug(error) == "table-behind"
    assert (m["q"].to_rows(), rows_in(tmp_path)) == ([(1,), (3,)], [(1,)])
    m.update(insert={"p": [3]})
    assert m["q"].to_rows() == rows_in(tmp_path) == [(1,), (3,)]


def test_wrong_arguments(tmp_path: Path) -> None:
    """What is not a relation, a column or a folder for this table is named, and nothing is written."""
    m = upheld.materialise(RULES, {"edge": [(1, 2)]})
    for call, expected in (
        (lambda: m.keep("paths", tmp_path / "t"), "unknown-relation"),
        (lambda: m.keep("path", tmp_path / "t", partition_by=["x"]), "unknown-column"),
        (lambda: m.keep("path", tmp_path / "t", partition_by="c0"), "bad-argument"),
        (lambda: m.keep("path", 7), "bad-argument"),
        (lambda: upheld.read_table(tmp_path / "t"), "not-a-table"),
        (lambda: upheld.table_files(tmp_path / "t"), "not-a-table"),
    ):
        with pytest.raises(UpheldError) as error:
            call()
        assert slug(error) == expected
    assert not (tmp_path / "t").exists()
    with m.transaction(), pytest.raises(UsageError):
        m.keep("path", tmp_path / "t")
    m.keep("path", tmp_path / "t")
    shorter = upheld.materialise("path(x, y) :- edge(x, y).", {"edge": [(1, 2)]})
    texts = upheld.materialise(RULES, {"edge": [("a", "b")]})
    for call, expected in (
        (lambda: m.keep("path", tmp_path / "t"), "bad-argument"),
        (lambda: m.keep("edge", tmp_path / "t"), "other-table"),
        (lambda: m.keep("path", tmp_path / "t", partition_by=["c0"]), "other-table"),
        (lambda: shorter.keep("path", tmp_path / "t"), "other-table"),
        (lambda: texts.keep("path", tmp_path / "t"), "other-table"),
        (lambda: upheld.read_table(tmp_path / "t", {"c0": 1}), "unknown-column"),
    ):
        with pytest.raises(UpheldError) as error:
            call()
        assert slug(error) == expected
    assert rows_in(tmp_path / "t") == [(1, 2)]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: object) -> None:
    """Whatever is passed, what escapes is an error of ours."""
    monkeypatch.chdir(tmp_path)
    m = upheld.materialise("q(x) :- p(x).", {"p": [1]}, engine="reference")
    m.keep("q", "table").close()
    for call in (
        lambda: m.keep(wrong, "table"),
        lambda: m.keep("q", wrong),
        lambda: m.keep("q", "table", partition_by=wrong),
        lambda: upheld.read_table(wrong),
        lambda: upheld.read_table("table", wrong),
        lambda: upheld.table_files(wrong),
        lambda: upheld.table_files("table", wrong),
    ):
        with suppress(UpheldError):
            call()
    assert rows_in(Path("table")) == [(1,)]


def test_folders_of_something_else(tmp_path: Path) -> None:
    """A folder with other files is left alone."""
    m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(FactsError) as error:
        m.keep("q", tmp_path)
    assert slug(error) == "not-a-table"
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_damage(tmp_path: Path) -> None:
    """Each changed byte of a manifest is found, and so is a file that is missing or is not the one that was written."""
    m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
    keeping = m.keep("q", tmp_path)
    manifest = tmp_path / "manifest.json"
    text = manifest.read_bytes()
    for place in range(0, len(text), 7):
        manifest.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
        with pytest.raises(FactsError) as error:
            upheld.read_table(tmp_path)
        assert slug(error) == "bad-table"
    with pytest.raises(FactsError) as error:
        m.update(insert={"p": [2]})
    assert slug(error) == "table-changed"
    manifest.write_bytes(text)
    (file,) = upheld.table_files(tmp_path)
    for other in ([1, 2], [2]):  # more rows, and as many that are others
        pyarrow.parquet.write_table(pyarrow.table({"c0": other}), file)
        for call in (lambda: upheld.read_table(tmp_path), lambda: m.update(insert={"p": [2]})):
            with pytest.raises(FactsError) as error:
                call()
            assert slug(error) == "bad-table"
    os.unlink(file)
    for call in (lambda: upheld.read_table(tmp_path), lambda: m.update(insert={"p": [2]})):
        with pytest.raises(FactsError) as error:
            call()
        assert slug(error) == "bad-table"
    assert (m["q"].to_rows(), keeping.version) == ([(1,)], 1)
