"""Facts in databases, JSON files and standard input."""

from __future__ import annotations

import io
import json
import math
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

import upheld
from tests.helpers.runs import run
from upheld.cli import main

DECLARED = ".decl r(name:symbol, n:number, u:unsigned, f:float)\n"
ROWS = {
    ("a", -1, 0, 0.5),
    ('"quoted", \n', 2**63 - 1, 2**64 - 1, math.inf),
    ("", -(2**63), 2**63, -1e300),
    ("ü", 0, 1, 2.0),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(io: str, rows=ROWS, declared: str = DECLARED, **options: str) -> None:
    """Write the facts of a relation `r`."""
    texts = ", ".join([f"IO={io}", *(f'{key}="{value}"' for key, value in options.items())])
    given = upheld.parse(f"{declared}.decl s(x:number)\n.output r({texts})")
    columns = declared.count(":")
    facts = ["r(" + ", ".join(_literal(value) for value in row) + ")." for row in rows]
    assert all(len(row) == columns for row in rows)
    run(upheld.parse(str(given) + "\n".join(facts)))


def _literal(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, float):
        return 'to_float("inf")' if math.isinf(value) else repr(value)
    return f"{value}u" if value >= 2**63 else str(value)


def read(options: str, declared: str = DECLARED) -> set[tuple[object, ...]]:
    return upheld.load(f"{declared}.input r({options})\n.output r")["r"].to_set()


@pytest.mark.parametrize("options", [{}, {"format": "object"}, {"filename": "other.json"}])
def test_json_reads_back(options):
    written("jsonfile", **options)
    texts = "".join(f', {key}="{value}"' for key, value in options.items())
    assert read(f"IO=jsonfile{texts}") == ROWS


def test_json_is_json():
    written("jsonfile", [("a", 1, 2, 0.5), ("b", 3, 4, 1.5)], format="object")
    with open("r.json") as file:
        rows = json.load(file)
    assert rows == [{"name": "a", "n": 1, "u": 2, "f": 0.5}, {"name": "b", "n": 3, "u": 4, "f": 1.5}]


@pytest.mark.parametrize("io", ["jsonfile", "sqlite"])
def test_relations_without_rows_and_without_columns(io):
    written(io, [])
    assert read(f"IO={io}") == set()
    written(io, [()], ".decl r()\n")
    assert read(f"IO={io}", ".decl r()\n") == {()}


@pytest.mark.parametrize(
    "text, place, words",
    [
        ("[[1, 2], [2]", "r.json:1", ["this is not JSON"]),
        ("[" * 100_000, "r.json", ["nested too deeply"]),
        ('{"x": 1}', "r.json", ["holds an object, not an array of rows"]),
        ("[1]", "r.json: row 1", ["this is the number `1`, not an array"]),
        ('[[1, 2], [1, "2"]]', "r.json: row 2", ["column 2 (`y`) holds the string `2`", "not a `number`"]),
        ("[[1, null]]", "r.json: row 1", ["holds `null`"]),
        ("[[1, true]]", "r.json: row 1", ["holds `true`"]),
        ("[[1, [2]]]", "r.json: row 1", ["holds an array"]),
    ],
)
def test_bad_json(text, place, words, folder):
    (folder / "r.json").write_text(text)
    with pytest.raises(upheld.UpheldError) as error:
        read("IO=jsonfile", ".decl r(x:number, y:number)\n")
    (problem,) = error.value.problems
    assert problem.slug == "bad-json" and problem.place == place
    assert all(word in str(problem) for word in words), str(problem)


@pytest.mark.parametrize(
    "text, slug",
    [("[[1]]", "short-row"), ("[[1, 2, 3]]", "long-row"), ("[[1, 1.5]]", "ill-typed-value")]
    + [(f"[[1, {2**63}]]", "number-out-of-range")],
)
def test_rows_of_json_that_do_not_fit(text, slug, folder):
    (folder / "r.json").write_text(text)
    with pytest.raises(upheld.UpheldError) as error:
        read("IO=jsonfile", ".decl r(x:number, y:number)\n")
    assert [(p.slug, p.place) for p in error.value.problems] == [(slug, "r.json: row 1")]


def test_objects_need_all_columns(folder):
    (folder / "r.json").write_text('[{"x": 1}]')
    with pytest.raises(upheld.UpheldError, match="the object has no `y`"):
        read("IO=jsonfile, format=object", ".decl r(x:number, y:number)\n")


def test_databases_read_back():
    written("sqlite")
    assert read("IO=sqlite") == ROWS
    assert read('IO=sqlite, dbname="r.sqlite"') == ROWS


def test_databases_keep_their_other_tables():
    """A table is replaced, and so is the view of that name that Soufflé writes; relations share a database."""
    with closing(sqlite3.connect("d.db")) as connection:
        connection.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (7); CREATE VIEW p AS SELECT x FROM t;")
    program = '.decl p, q(x:number)\np(1). q(2).\n.output p, q(IO=sqlite, filename="d.db")'
    run(program)
    run(program)
    with closing(sqlite3.connect("d.db")) as connection:
        assert [connection.execute(f"SELECT * FROM {name}").fetchall() for name in "pqt"] == [[(1,)], [(2,)], [(7,)]]


def test_databases_are_written_with_all_other_outputs_or_not_at_all(folder):
    (folder / "d.db").write_text("not a database, and longer than the header of one" * 10)
    before = (folder / "d.db").read_bytes()
    with pytest.raises(upheld.UpheldError) as error:
        run('.decl p(x:number)\np(1).\n.output p\n.output p(IO=sqlite, filename="d.db")')
    assert error.value.slugs == ("unwritable-file",)
    assert (folder / "d.db").read_bytes() == before and not (folder / "p.csv").exists()


def test_a_file_is_a_database_or_a_table():
    with pytest.raises(upheld.UpheldError) as error:
        run('.decl p, q(x:number)\n.output p(IO=sqlite, filename="d")\n.output q(filename="d")')
    assert error.value.slugs == ("same-file",)


def test_bad_databases(folder):
    declared = ".decl r(x:number)\n"
    with pytest.raises(upheld.UpheldError) as error:
        read("IO=sqlite", declared)
    assert error.value.slugs == ("missing-file",)
    (folder / "r.sqlite").write_text("nothing of the kind, however long it is" * 10)
    with pytest.raises(upheld.UpheldError) as error:
        read("IO=sqlite", declared)
    assert error.value.slugs == ("unreadable-file",)
    with closing(sqlite3.connect("d.db")) as connection:
        connection.executescript("CREATE TABLE rr (x); CREATE TABLE q (x); INSERT INTO q VALUES (1), (NULL), ('a');")
    with pytest.raises(upheld.UpheldError, match="did you mean `rr`"):
        read('IO=sqlite, filename="d.db"', declared)
    with pytest.raises(upheld.UpheldError) as error:
        upheld.load('.decl q(x:number)\n.input q(IO=sqlite, filename="d.db")\n.output q')
    assert [(p.slug, p.place) for p in error.value.problems] == [
        ("ill-typed-value", "d.db: q: row 2"),
        ("ill-typed-value", "d.db: q: row 3"),
    ]


def test_names_of_tables_and_columns_are_quoted():
    program = '.comp C { .decl r(select:number) r(1). .output r(IO=sqlite, filename="d.db") }\n.init c = C'
    run(program)
    read_back = '.decl c.r(select:number)\n.input c.r(IO=sqlite, filename="d.db")\n.output c.r'
    assert upheld.load(read_back)["c.r"].to_set() == {(1,)}


class StandardInput(io.TextIOWrapper):
    """Standard input with a text in it."""

    def __init__(self, text: str):
        super().__init__(io.BytesIO(text.encode()))


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", StandardInput("a,1\nb,2\n"))
    assert read('IO=stdin, delimiter=","', ".decl r(x:symbol, n:number)\n") == {("a", 1), ("b", 2)}
    monkeypatch.setattr(sys, "stdin", StandardInput("a\n"))
    with pytest.raises(upheld.UpheldError, match="<stdin>:1"):
        read("IO=stdin", ".decl r(n:number)\n")


def test_standard_input_is_read_once(capsys):
    with pytest.raises(upheld.UpheldError, match="cannot both be read from standard input") as error:
        upheld.check(".decl p, q(x:number)\n.input p, q(IO=stdin)\n.output p, q")
    assert error.value.slugs == ("bad-option",)
    Path("p.dl").write_text(".decl p(x:number)\n.input p(IO=stdin)\n.output p")
    assert main(["apply", "p.dl", "--updates", "-"]) == 2
    told = capsys.readouterr().err
    assert "the updates and the facts of `p` cannot both be read" in told and "[same-file]" in told


@pytest.mark.parametrize("options", ["IO=stdin, filename=a", "IO=sqlite, delimiter=b", "IO=jsonfile, headers=true"])
def test_options_of_other_media(options):
    with pytest.raises(upheld.UpheldError) as error:
        upheld.check(f".decl r(x:number)\n.input r({options})\n.output r")
    assert error.value.slugs == ("unknown-option",)


def test_confined_programs_name_no_databases_elsewhere():
    with pytest.raises(upheld.UpheldError) as error:
        upheld.load('.decl r(x:number)\n.input r(IO=sqlite, dbname="../d.db")\n.output r', confined=True)
    assert error.value.slugs == ("outside-folder",)
    with pytest.raises(upheld.UpheldError) as error:
        upheld.check('.decl r(x:number)\n.input r(IO=sqlite, dbname="../d.db")\n.output r', confined=True)
    assert error.value.slugs == ("outside-folder",)


# -- folders of includes ----------------------------------------------------------------------------------------------


@pytest.fixture
def libraries(folder):
    """A program that includes a file of another folder, which includes one beside it."""
    (folder / "program").mkdir()
    (folder / "program" / "main.dl").write_text('.include "graph.dl"\n.output p, where(IO=stdout)\n')
    (folder / "library").mkdir()
    (folder / "library" / "graph.dl").write_text('.include "types.dl"\n.decl p(x:N)\np(__LINE__).\n')
    (folder / "library" / "types.dl").write_text(".type N <: number\n.decl where(f:symbol)\nwhere(__FILE__).\n")


@pytest.mark.parametrize("command", ["run", "check"])
def test_folders_of_includes(command, libraries, capsys):
    assert main([command, "program/main.dl"]) == 2
    assert "missing-file" in capsys.readouterr().err
    assert main([command, "program/main.dl", "-I", "nowhere", "--include", "library", "--confined"]) == 0
    if command == "run":
        assert "library/types.dl" in capsys.readouterr().out


def test_folders_of_includes_in_python(libraries):
    m = upheld.materialise(upheld.parse("program/main.dl", include=["library"]))
    assert m["p"].to_set() == {(3,)}
    assert m["where"].to_set() == {("library/types.dl",)}
    with pytest.raises(upheld.UpheldError) as error:
        upheld.parse("program/main.dl", include="library")
    assert error.value.slugs == ("bad-argument",)
