"""Facts that tasks read from files and write to files: the driver passes on the names of files."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest
from pyarrow import parquet

import upheld
from tests.engines.spark.helpers.losing import Losing
from tests.engines.spark.helpers.tasks import Driven
from upheld.compiler.compile import compile_program
from upheld.engines.spark.owners import Owners
from upheld.facts.stored import StoredFacts, write_stored
from upheld.language.syntax.files import read_text
from upheld.language.types.columns import column_type
from upheld.materialisation.build import materialise_core

RULES = """
.decl edge(x: symbol, y: symbol, n: number)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y, _).
path(x, z) :- path(x, y), edge(y, z, _).
path("é0", "a constant").
"""
#: Facts of three files, of which some are in two files, and texts with line breaks.
EDGES = [(f"é{i % 7}", f"é{i % 5 + 2}\n" if i % 3 else "", i % 4) for i in range(40)]


def stored(folder, rows, types, files=3):
    folder.mkdir(exist_ok=True)
    parts = [rows[k::files] for k in range(files)]
    tables = [pa.table({f"c{i}": [row[i] for row in part] for i in range(len(types))}) for part in parts]
    return StoredFacts(types, [write_stored(table, types, str(folder)) for table in tables], None)


def materialised(facts, engine, rules=RULES):
    return materialise_core(compile_program(read_text(rules)).core, facts, engine=engine)


@pytest.fixture
def edges(tmp_path):
    return stored(tmp_path / "in", EDGES, ("symbol", "symbol", "number"))


def codec_of(m):
    return m._engine.driver._member.engine.context.codec


def test_rows_of_files(edges):
    assert sorted(edges) == sorted(EDGES) and len(edges) == 40


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_tasks_read_files(edges, parts):
    """All tasks agree on the codes of texts, and the driver need not know a text as long as nobody asks for one."""
    expected = upheld.materialise(RULES, {"edge": EDGES})
    with materialised([("edge", edges)], Driven(parts)) as m:
        assert codec_of(m)._waiting, "the driver has entered all texts"
        assert m._engine.texts() == len({text for row in EDGES for text in row[:2]} | {"a constant"})
        assert len(m["path"]) == len(expected["path"])
        assert codec_of(m)._waiting, "the driver has entered all texts to count facts"
        assert m.facts() == expected.facts() and not codec_of(m)._waiting
        change = {"delete": {"edge": EDGES[:3]}, "insert": {"edge": [("é0", "new", 1)]}}
        m.update(**change), expected.update(**change)
        assert m.facts() == expected.facts()
        m.verify()


def test_lost_tasks_read_the_files_again(edges):
    """With what updates have deleted since, and inserted again; a further loss meanwhile makes no difference."""
    expected, engine = upheld.materialise(RULES, {"edge": EDGES}), Losing([])
    updates = [
        {"delete": {"edge": [EDGES[0], EDGES[1]]}, "insert": {"edge": [("é9", "é0", 7)]}},
        {"delete": {"edge": [("é9", "é0", 7)]}, "insert": {"edge": [EDGES[1]]}},
        {"delete": {"edge": [EDGES[1], EDGES[2]]}},
    ]
    with materialised([("edge", edges)], engine) as m, warnings.catch_warnings(action="ignore"):
        record = m._record
        for update in updates:
            m.update(**update), expected.update(**update)
            engine.lose_after(1)
            assert engine.until_it_lasts(m.facts) == expected.facts()
            assert m.explicit("edge").to_set() == expected.explicit("edge").to_set()
    assert engine.lost >= 3 and record._E.count() <= 2, "the record has the facts of the files"


def test_a_file_that_a_task_cannot_read(edges, tmp_path):
    (tmp_path / "in").rename(tmp_path / "elsewhere")
    with pytest.raises(upheld.UpheldError) as refusal:
        materialised([("edge", edges)], Driven(2))
    assert refusal.value.slugs == ("unshared-folder",)


def test_values_of_every_type(tmp_path):
    """In files, in tasks, and in the Parquet files that tasks write."""
    rules = """
    .decl e(u: unsigned, f: float, s: symbol, d: date, n: number)
    .decl p(n: number, d: date, s: symbol, f: float, u: unsigned)
    p(n, d, s, f, u) :- e(u, f, s, d, n).
    """
    types = ("unsigned", "float", "symbol", column_type("date"), "number")
    rows = [(2**64 - 1, 0.5, "", 0, -(2**63)), (0, float("inf"), "x", 7, 2**63 - 1), (1, float("nan"), "x", -1, 0)]
    arrays = [
        pa.array(c, t) for c, t in zip(zip(*rows), (pa.uint64(), pa.float64(), pa.string(), pa.int64(), pa.int64()))
    ]
    (tmp_path / "in").mkdir()
    file = write_stored(pa.table(arrays, names=list("ufsdn")), types, str(tmp_path / "in"))
    with materialised([("e", StoredFacts(types, [file], None))], Driven(2), rules) as m:
        plain = upheld.materialise(rules, {"e": m["e"].to_rows()})
        assert repr(m["p"].to_rows()) == repr(plain["p"].to_rows())
        written = m._remote.write(m._state.I, "p", ("n", "d", "s", "f", "u"), str(tmp_path / "out"))
        assert sum(rows for _, rows in written) == 3 and all("part-0000" in path for path, _ in written)
        table = parquet.read_table(tmp_path / "out").sort_by("n")
        assert table.schema.field("u").type == pa.decimal128(20, 0) and table.schema.field("d").type == pa.date32()
        assert repr([tuple(row.values()) for row in table.to_pylist()]) == repr(
            [(n, d, s, f, table["u"][i].as_py()) for i, (n, d, s, f, u) in enumerate(m["p"])]
        )
        assert [int(u) for u in table["u"].to_pylist()] == [u for *_, u in m["p"]]


def test_a_folder_that_tasks_cannot_write(edges, tmp_path):
    (tmp_path / "out").write_text("in the way")
    with materialised([("edge", edges)], Driven(2)) as m:
        with pytest.raises(upheld.UpheldError) as refusal:
            m._remote.write(m._state.I, "path", ("x", "y"), str(tmp_path / "out"))
        assert refusal.value.slugs == ("unwritable-file",)
        assert len(m["path"]), "the tasks are out of step after a failure"


def test_texts_are_dealt_out_to_all_tasks():
    """Each text has one owner, and no task owns nearly all."""
    import numpy as np

    from upheld.engines.memory.storage.dictionary import utf8

    data, offsets = utf8([f"http://example.org/thing/{i:08d}" for i in range(4000)])
    owners = Owners(0, 4).of_texts(data, offsets)
    assert np.array_equal(owners, Owners(3, 4).of_texts(data, offsets))
    assert np.bincount(owners, minlength=4).min() > 800
