"""Files are read and written by any number of threads, with the same facts, codes, errors and bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from tests.engines.memory.files.test_reader import small_parts
from tests.helpers.runs import run
from upheld.base.errors import FactsError, LimitReached
from upheld.engines.memory.files import reader, writer
from upheld.facts.files import side_by_side, writing

PROGRAM = """
.decl a(x: number, y: symbol)
.decl b(x: symbol, y: symbol)
.decl c(x: number)
.decl pair(x: symbol, y: symbol)
.decl both(x: number, y: symbol)
.input a
.input b(delimiter=",")
.input c
.output pair
.output both(compress=true)
.output c(filename="again.csv", delimiter=",")
pair(x, z) :- b(x, y), b(y, z).
both(x, y) :- a(x, y), c(x).
"""

THREADS = (1, 2, 5)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """However small files are, several threads read and write them, in parts."""
    monkeypatch.setattr(side_by_side, "WORTH_SHARING", 0)
    monkeypatch.setattr(writing, "WORTH_SHARING", 0)
    monkeypatch.setattr(writer, "WORTH_SHARING", 0)
    monkeypatch.setattr(writer, "WORTH_A_KERNEL", 0)
    monkeypatch.setattr(writer, "_ROWS_AT_A_TIME", 5)
    monkeypatch.setattr(reader, "WORTH_A_KERNEL", 0)
    monkeypatch.setattr(reader, "WORTH_A_COMPILED_KERNEL", 0)
    with small_parts():
        yield


@pytest.fixture
def facts(tmp_path) -> Path:
    folder = tmp_path / "facts"
    folder.mkdir()
    (folder / "a.facts").write_text("".join(f"{i}\tn{i * 7 % 20}\n" for i in range(40)))
    (folder / "b.facts").write_text("".join(f"n{i},m{i % 3}\nm{i % 3},n{i}\n" for i in range(30)))
    (folder / "c.facts").write_text("".join(f"{i}\n" for i in range(0, 90, 3)))
    return folder


def test_runs(facts, tmp_path):
    """The tables have the same rows of codes in the same order, and the files the same bytes."""
    found = []
    for threads in THREADS:
        output = tmp_path / f"output-{threads}"
        output.mkdir()
        project = upheld.Project(PROGRAM, facts, output)
        m = project.load(threads=threads)
        project.write(m)
        tables = {name: table.rows[: table.n].tolist() for name, table in m._engine.tables.items()}
        found.append((tables, {path.name: path.read_bytes() for path in output.iterdir()}))
    assert len(found[0][1]) == 3
    assert found[1:] == found[:1] * 2


def test_files_for_relations(facts):
    """So have the tables where files are given for relations, and updates that come in files."""
    found = []
    for threads in THREADS:
        files = {"a": facts / "a.facts", "c": str(facts / "c.facts")}
        m = upheld.materialise(PROGRAM, {"b": [("x", "y")], **files}, threads=threads)
        m.update(delete=files)
        m.update(insert=files)
        found.append({name: table.rows[: table.n].tolist() for name, table in m._engine.tables.items()})
    assert len(found[0]["both"]) == 14
    assert found[1:] == found[:1] * 2


@pytest.mark.parametrize("wrong", ["a row", "two files", "no file", "no text"])
def test_errors(facts, wrong):
    """All problems are reported, in the order of the relations, with their lines."""
    if wrong in ("a row", "two files"):
        with (facts / "a.facts").open("a") as file:
            file.write("1\tx\nx\tx\n")
    if wrong == "two files":
        (facts / "c.facts").write_text("1\n" * 50 + "1\t2\n")
    if wrong == "no file":
        (facts / "b.facts").unlink()
    if wrong == "no text":
        (facts / "b.facts").write_bytes((facts / "b.facts").read_bytes() + b"a,\xff\n")
    found = []
    for threads in THREADS:
        with pytest.raises(FactsError) as loading:
            upheld.load(PROGRAM, facts, threads=threads)
        with pytest.raises(FactsError) as given:
            upheld.materialise(PROGRAM, {name: facts / f"{name}.facts" for name in "cab"}, threads=threads)
        found.append((loading.value.problems, given.value.problems))
    assert len(found[0][0]) == (2 if wrong == "two files" else 1)
    assert found[1:] == found[:1] * 2


@pytest.mark.parametrize("threads", THREADS)
def test_outputs_that_cannot_be_written(facts, tmp_path, threads):
    """All problems are reported, in the order of the directives, and no file is replaced."""
    output = tmp_path / "output"
    output.mkdir()
    (output / "pair.csv").write_text("old")
    for name in ("both.csv.gz", "both.csv", "again.csv"):
        (output / name).mkdir()
    with pytest.raises(FactsError) as caught:
        run(PROGRAM, facts, output, threads=threads)
    assert [Path(problem.place or "").name.split(".")[0] for problem in caught.value.problems] == ["both", "again"]
    assert (output / "pair.csv").read_text() == "old"


@pytest.mark.parametrize("threads", THREADS)
def test_limits(facts, threads):
    """A limit that is reached while files are read ends the run."""
    with pytest.raises(LimitReached, match="while reading"):
        upheld.load(PROGRAM, facts, threads=threads, limits=upheld.Limits(seconds=0))
