"""Facts as users pass them: every form gives the same rows, and what does not fit is explained."""

from __future__ import annotations

import datetime
import enum
import math
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from upheld.base.errors import FactsError, MissingDependency
from upheld.facts.files.badrows import BAD_ROWS_SHOWN
from upheld.facts.ingest import facts_of
from upheld.facts.relation import Relation
from upheld.language.types.primitive import INT64_MAX, INT64_MIN, UINT64_MAX
from upheld.language.values import NAN, normalise_float

ROWS = [(1, "a"), (2, "b")]
TYPES = ("number", "symbol")
XSD = "http://www.w3.org/2001/XMLSchema#"


def rows_of(relation_name, data, types=None, columns=None):
    """Return facts as rows, in whatever form they are taken."""
    facts, found, _ = facts_of(relation_name, data, types, columns)
    return list(facts), found


def problems_of(data, types=None, columns=None):
    with pytest.raises(FactsError) as caught:
        rows_of("edge", data, types, columns)
    return caught.value.problems


def problem_of(data, types=None, columns=None):
    (problem,) = problems_of(data, types, columns)
    return problem


def as_file(name, write):
    def make(folder):
        write(folder / name)
        return folder / name

    return make


FRAME = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
FORMS = {
    "tuples": lambda _: ROWS,
    "lists": lambda _: [list(row) for row in ROWS],
    "generator": lambda _: iter(ROWS),
    "dictionary keys": lambda _: dict.fromkeys(ROWS).keys(),
    "numpy scalars": lambda _: [(np.int32(1), np.str_("a")), (np.uint8(2), np.str_("b"))],
    "object array": lambda _: np.array(ROWS, dtype=object),
    "relation": lambda _: Relation("other", ("x", "y"), TYPES, ROWS),
    "relation, unnamed": lambda _: Relation("other", ("c0", "c1"), TYPES, ROWS),
    "dictionaries": lambda _: [{"x": 1, "y": "a"}, {"y": "b", "x": 2}],
    "dictionary of lists": lambda _: {"y": ["a", "b"], "x": (1, 2)},
    "dictionary of arrays": lambda _: {"y": np.array(["a", "b"]), "x": np.array([1, 2])},
    "dictionary of series": lambda _: {"y": FRAME["y"], "x": FRAME["x"]},
    "structured array": lambda _: np.array([("a", 1), ("b", 2)], np.dtype([("y", "U9"), ("x", "i8")])),
    "pandas": lambda _: FRAME,
    "pandas, nullable": lambda _: FRAME.astype({"x": "Int64", "y": "string"}),
    "pandas, categorical": lambda _: FRAME.astype({"y": "category"}),
    "pandas, reordered": lambda _: FRAME[["y", "x"]],
    "pandas, more columns": lambda _: FRAME.assign(z=[None, 0.5])[["z", "y", "x"]],
    "pandas, unnamed": lambda _: FRAME.set_axis([0, 1], axis=1),
    "pandas, other index": lambda _: FRAME.set_index(pd.Index([7, 7])),
    "arrow": lambda _: pa.Table.from_pandas(FRAME),
    "arrow, reordered": lambda _: pa.Table.from_pandas(FRAME[["y", "x"]]),
    "arrow, dictionary": lambda _: pa.table({"x": [1, 2], "y": pa.array(["a", "b"]).dictionary_encode()}),
    "parquet": as_file("e.parquet", FRAME.to_parquet),
    "csv": as_file("e.csv", lambda path: FRAME.to_csv(path, index=False)),
    "csv, reordered": as_file("e.csv", lambda path: FRAME[["y", "x"]].to_csv(path, index=False)),
    "csv, more columns": as_file("e.csv", lambda path: path.write_text("y,note,x\na,7,1\nb,-,2\n")),
    "csv of a spreadsheet": as_file("e.CSV", lambda path: path.write_bytes(b'\xef\xbb\xbfx,y\r\n1,"a"\r\n2,b\r\n')),
    "csv, packed": as_file("e.csv.gz", lambda path: FRAME.to_csv(path, index=False)),
    "tsv": as_file("e.tsv", lambda path: path.write_text("1\ta\n2\tb\n")),
    "facts": as_file("e.facts", lambda path: path.write_text("1\ta\n2\tb")),
    "path as text": lambda folder: str(FORMS["facts"](folder)),
}


@pytest.mark.parametrize("types", [TYPES, None], ids=["declared", "inferred"])
@pytest.mark.parametrize("form", FORMS)
def test_forms(tmp_path, form, types):
    """The same facts come out of every form, as plain Python values."""
    rows, found = rows_of("edge", FORMS[form](tmp_path), types, ["x", "y"])
    assert rows == ROWS and found == TYPES
    assert all((type(x), type(y)) == (int, str) for x, y in rows)


def test_scalars_for_a_relation_of_one_column():
    assert rows_of("n", [1, 2]) == ([(1,), (2,)], ("number",))
    assert rows_of("n", range(2), ["unsigned"]) == ([(0,), (1,)], ("unsigned",))
    assert rows_of("s", {"ab"}, ["symbol"]) == ([("ab",)], ("symbol",))
    assert rows_of("n", np.array([1.5]), ["float"]) == ([(1.5,)], ("float",))


def test_facts_of_no_columns():
    assert rows_of("p", [()], ()) == ([()], ())
    assert rows_of("p", [], ()) == ([], ())
    assert rows_of("p", pd.DataFrame(index=[0]), ()) == ([()], ())
    assert rows_of("p", Relation("p", (), (), [()]).to_arrow(), ()) == ([()], ())


def test_nothing(tmp_path):
    """Without rows the types are those given, or those the columns of a table have, or none."""
    assert rows_of("e", [], TYPES) == ([], TYPES)
    assert rows_of("e", []) == ([], ())
    frame = pd.DataFrame({"x": pd.Series([], dtype="uint64"), "y": pd.Series([], dtype="object")})
    assert rows_of("e", frame) == ([], ("unsigned", "symbol"))
    assert rows_of("e", pa.table({"x": pa.array([], pa.float32())})) == ([], ("float",))
    (tmp_path / "e.facts").touch()
    assert rows_of("e", tmp_path / "e.facts", TYPES) == ([], TYPES)
    (tmp_path / "e.csv").write_text("y,x\n")
    assert rows_of("e", tmp_path / "e.csv", TYPES, ["x", "y"]) == ([], TYPES)


# -- values and types -------------------------------------------------------------------------------------------------


class Colour(enum.IntEnum):
    RED = 1


class Name(enum.StrEnum):
    ANN = "ann"


@pytest.mark.parametrize(
    "given_, type_, expected",
    [
        (INT64_MIN, "number", INT64_MIN),
        (np.uint64(UINT64_MAX), "unsigned", UINT64_MAX),
        (Colour.RED, "number", 1),
        (Name.ANN, "symbol", "ann"),
        (3, "float", 3.0),
        (np.float32(0.5), "float", 0.5),
        (np.float64(0.5), "float", 0.5),
        ("<http://a>", "term", "<http://a>"),
        (5, "term", f'"5"^^<{XSD}integer>'),
        (1.5, "term", f'"1.5"^^<{XSD}double>'),
        ("a\0b", "symbol", "a\0b"),
    ],
)
def test_values(given_, type_, expected):
    (((value,),), types) = rows_of("r", [(given_,)], [type_])
    assert value == expected and type(value) is type(expected) and types == (type_,)


def test_floats_are_normal():
    rows, _ = rows_of("r", [(float("nan"),), (-0.0,), (np.float64("nan"),)], ["float"])
    assert rows[0][0] is NAN and rows[2][0] is NAN
    assert math.copysign(1, rows[1][0]) == 1


@pytest.mark.parametrize(
    "column, expected",
    [
        ([1, -1], "number"),
        ([1, INT64_MAX + 1], "unsigned"),
        ([1, 0.5], "float"),
        ([float("nan")], "float"),
        ([1, float("nan")], "float"),
        (["a"], "symbol"),
    ],
)
def test_inferred_types(column, expected):
    assert rows_of("r", [(v,) for v in column])[1] == (expected,)


@pytest.mark.parametrize(
    "texts, expected",
    [
        (["1", "-20"], "number"),
        (["18446744073709551615"], "unsigned"),
        (["1", "0.5", "-2e9"], "float"),
        (["007"], "symbol"),
        (["nan"], "symbol"),
        (["1", ""], "symbol"),
    ],
)
def test_inferred_types_of_texts(tmp_path, texts, expected):
    path = tmp_path / "r.facts"
    path.write_text("".join(f"{text}\n" for text in texts))
    rows, types = rows_of("r", path)
    assert types == (expected,) and len(rows) == len(texts)


scalars = st.one_of(
    st.tuples(st.just("number"), st.lists(st.integers(INT64_MIN, INT64_MAX))),
    st.tuples(st.just("unsigned"), st.lists(st.integers(0, UINT64_MAX))),
    st.tuples(st.just("float"), st.lists(st.floats().map(normalise_float))),
    st.tuples(st.just("symbol"), st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=5))),
)


@given(scalars)
def test_relations_survive_pandas_and_arrow(column):
    """A relation is the same after it has been a DataFrame or an Arrow table, its types inferred."""
    type_, values = column
    relation = Relation("r", ("x",), (type_,), [(v,) for v in values])
    for table in (relation.to_pandas(), relation.to_arrow(), relation):
        rows, types = rows_of("r", table)
        assert rows == relation.to_rows() and types == (type_,)


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.binary(),
    st.dates(),
    st.decimals(),
)


@given(
    st.lists(st.lists(anything, max_size=3).map(tuple) | anything),
    st.none() | st.lists(st.sampled_from(["number", "unsigned", "float", "symbol", "term"]), max_size=3),
)
def test_anything_is_taken_or_refused(data, types):
    """Only `FactsError` escapes, and what is taken is plain and of its type."""
    try:
        rows, found = rows_of("r", data, types)
    except FactsError:
        return
    plain = {"number": int, "unsigned": int, "float": float, "symbol": str, "term": str}
    assert all([type(v) for v in row] == [plain[t] for t in found] for row in rows)


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, type_, slug, words",
    [
        ("abc", "number", "ill-typed-value", ["the text `abc`", "not a `number`", "9223372036854775807"]),
        (1.0, "number", "ill-typed-value", ["the float `1.0`", "not a `number`"]),
        (5, "symbol", "ill-typed-value", ["the integer `5`", "pass it as text"]),
        ("5", "float", "ill-typed-value", ["the text `5`"]),
        (True, "number", "ill-typed-value", ["`True`", "a `boolean`", "0 and 1"]),
        (np.bool_(False), "symbol", "ill-typed-value", ["`False`"]),
        (b"a", "symbol", "ill-typed-value", ["a `bytes`"]),
        (Decimal(1), "number", "ill-typed-value", ["a `Decimal`"]),
        (datetime.date(2020, 1, 1), "symbol", "ill-typed-value", ["a `date`", "pass it as text"]),
        ((1, 2), "number", "ill-typed-value", ["a `tuple`"]),
        (INT64_MAX + 1, "number", "number-out-of-range", ["`9223372036854775808`", "no `number` can hold"]),
        (-1, "unsigned", "number-out-of-range", ["`-1`", "from 0"]),
        (10**400, "float", "number-out-of-range", ["no `float`"]),
        pytest.param(10**5000, "number", "number-out-of-range", ["16610 bits"], id="10**5000 number"),
        pytest.param(10**5000, "term", "number-out-of-range", ["16610 bits"], id="10**5000 term"),
        (None, "number", "missing-value", ["holds no value", "leave the row out"]),
        (pd.NA, "symbol", "missing-value", ["holds no value"]),
        (pd.NaT, "float", "missing-value", ["holds no value"]),
        (float("nan"), "number", "missing-value", ["holds no value"]),
        (float("nan"), "symbol", "missing-value", ["holds no value"]),
        ("\ud800", "symbol", "lone-surrogate", ["a lone surrogate"]),
    ],
)
def test_values_that_do_not_fit(value, type_, slug, words):
    good = {"number": 1, "unsigned": 1, "float": 0.5, "symbol": "a", "term": "_:a"}[type_]
    problem = problem_of([(1, good), (1, good), (1, value)], ["number", type_], ["x", "y"])
    assert problem.slug == slug and problem.place == 'facts["edge"] row 3'
    assert problem.message.startswith("column 2 (`y`) ") and problem.hint
    assert all(word in str(problem) for word in words), str(problem)


def test_undeclared_columns_are_called_by_number():
    assert problem_of([(1, True)], ["number", "number"]).message.startswith("column 2 holds")


def test_all_bad_rows_come_at_once():
    problems = problems_of([(1, "a"), ("x", 2), (None, "b")], TYPES)
    assert [p.place for p in problems] == ['facts["edge"] row 2'] * 2 + ['facts["edge"] row 3']
    assert [p.slug for p in problems] == ["ill-typed-value", "ill-typed-value", "missing-value"]
    problems = problems_of([("x", "y")] * 100, ["number", "symbol"])
    assert len(problems) == BAD_ROWS_SHOWN + 1 and problems[-1].slug == "more-bad-rows"


def test_wrong_arity():
    problem = problem_of([(1, 2), (1, 2, 3)], ["number", "number"])
    assert (problem.slug, problem.place) == ("wrong-arity", 'facts["edge"] row 2')
    assert "3 values where `edge` has 2 columns" in problem.message
    problem = problem_of([1], ["number", "number"])
    assert "1 value where" in problem.message and "tuple" in problem.hint
    assert problem_of([(1, 2), (1,)]).place == 'facts["edge"] row 2'
    for table in (FRAME, FRAME[:0], pa.Table.from_pandas(FRAME)):
        problem = problem_of(table, ["number"])
        assert (problem.slug, problem.place) == ("wrong-arity", 'facts["edge"]')
        assert "2 columns where `edge` has 1 column" in problem.message


def test_rows_of_the_wrong_length_hide_no_others():
    """All bad rows are reported together, in their order."""
    short, ill_typed, long = problems_of([(1, "a"), (1,), (2, 7), (1, "b", 0)], TYPES)
    assert [p.place for p in (short, ill_typed, long)] == [f'facts["edge"] row {i}' for i in (2, 3, 4)]
    assert [p.slug for p in (short, ill_typed, long)] == ["wrong-arity", "ill-typed-value", "wrong-arity"]


@pytest.mark.parametrize(
    "column, rows", [([1, 2, "a"], (1, 3)), (["a", 0.5], (1, 2)), ([float("nan"), "a", 1], (2, 3))]
)
def test_mixed_types(column, rows):
    problem = problem_of([(v,) for v in column], columns=["x"])
    assert (problem.slug, problem.place) == ("mixed-types", f'facts["edge"] row {rows[1]}')
    assert f"in row {rows[0]} and" in problem.message and f"in row {rows[1]}" in problem.message
    assert problem.message.startswith("column 1 (`x`) holds the ")


def test_missing_values_of_tables():
    problem = problem_of(pd.DataFrame({"x": ["a", None]}))
    assert (problem.slug, problem.place) == ("missing-value", 'facts["edge"] row 2')
    assert problem_of(pd.DataFrame({"x": ["a", float("nan")]})).slug == "missing-value"
    assert problem_of(pd.DataFrame({"x": pd.array([1, None], dtype="Int64")})).slug == "missing-value"
    whole, missing = problems_of(pd.DataFrame({"x": [1, None]}), ["number"])
    assert (whole.slug, missing.slug) == ("ill-typed-value", "missing-value")
    assert "pandas makes floats" in whole.hint
    assert problem_of(pa.table({"x": [1, None]})).slug == "missing-value"
    assert problem_of(pd.DataFrame({"x": [True, None]})).slug == "missing-value"


OTHER_NAMES = {
    "pandas": FRAME.rename(columns={"y": "z"}),
    "pandas, all others": FRAME.rename(columns={"x": "u", "y": "v"}),
    "pandas, numbers that are names": FRAME.set_axis([1, 0], axis=1),
    "pandas, fewer": FRAME[["y"]],
    "arrow": pa.table({"x": [1], "z": ["a"]}),
    "relation": Relation("other", ("u", "v"), TYPES, ROWS),
    "dictionary": {"x": [1], "z": ["a"]},
    "structured array": np.array([(1, "a")], np.dtype([("u", "i8"), ("v", "U9")])),
}


@pytest.mark.parametrize("form", OTHER_NAMES)
def test_columns_of_other_names_are_refused(form):
    """Columns with names never go by position: both lists of names are shown, and the ways out."""
    problem = problem_of(OTHER_NAMES[form], TYPES, ["x", "y"])
    assert (problem.slug, problem.place) == ("missing-column", 'facts["edge"]')
    assert "`edge` has `x`, `y`, this has " in problem.note
    assert "rename" in problem.hint and "itertuples(index=False)" in problem.hint


def test_the_way_out_of_other_names():
    """Tuples go by position."""
    other = FRAME.rename(columns={"x": "u", "y": "v"})
    for data in (other.itertuples(index=False), other.to_numpy(), Relation("o", ("u", "v"), TYPES, ROWS).to_rows()):
        assert rows_of("edge", data, TYPES, ["x", "y"])[0] == ROWS


def test_other_names_in_files(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("x,z\n1,a\n")
    problem = problem_of(path, TYPES, ["x", "y"])
    assert (problem.slug, problem.place) == ("missing-column", f"{path}:1")
    path = tmp_path / "edges.parquet"
    FRAME.rename(columns={"y": "z"}).to_parquet(path)
    problem = problem_of(path, TYPES, ["x", "y"])
    assert (problem.slug, problem.place) == ("missing-column", str(path))


@pytest.mark.parametrize("types", [TYPES, None], ids=["declared", "inferred"])
def test_a_column_that_is_there_twice(tmp_path, types):
    frame = pd.concat([FRAME, FRAME[["x"]]], axis=1)
    path = tmp_path / "edges.csv"
    path.write_text("x,y,x\n1,a,2\n")
    for data in (frame, pa.Table.from_arrays([pa.array([1])] * 3, ["x", "y", "x"]), path):
        problem = problem_of(data, types, ["x", "y"] if types else None)
        assert problem.slug == "duplicate-column" and "two columns called `x`" in problem.message


def test_dictionaries_that_differ():
    first, second = {"x": 1, "y": "a"}, {"x": 2, "y": "b", "z": 0}
    assert rows_of("edge", [second, first], TYPES, ["x", "y"])[0] == ROWS[::-1]
    problem = problem_of([first, second])
    assert (problem.slug, problem.place) == ("wrong-arity", 'facts["edge"] row 2')
    lacking, other = problems_of([first, {"x": 2}, ("b", 3)], TYPES, ["x", "y"])
    assert (lacking.slug, lacking.place) == ("missing-column", 'facts["edge"] row 2')
    assert (other.slug, other.place) == ("unsupported-facts", 'facts["edge"] row 3')
    assert problem_of([{"u": 1}], TYPES, ["x", "y"]).slug == "missing-column"


def test_dictionaries_of_what_are_no_columns():
    assert problem_of({"x": [1, 2], "y": ["a"]}).slug == "wrong-arity"
    for data in ({"x": 1, "y": "a"}, {"x": "ab"}, {}, {"x": [1], "y": b"a"}):
        assert problem_of(data).slug == "unsupported-facts"


@pytest.mark.parametrize("data", [5, None, b"ab", {"x": 1}, object()])
def test_unsupported_facts(data):
    problem = problem_of(data)
    assert (problem.slug, problem.place) == ("unsupported-facts", 'facts["edge"]')
    assert f"`{type(data).__name__}`" in problem.message and "DataFrame" in problem.note


@pytest.mark.parametrize("data", ["ab", "edge.xlsx", Path("edge"), ""])
def test_text_that_is_no_path(data):
    problem = problem_of(data)
    assert problem.slug == "unsupported-facts" and "`.csv` (comma-separated, with a header)" in problem.note


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["e.csv", "e.tsv", "e.facts", "e.parquet"])
def test_missing_files(tmp_path, name):
    problem = problem_of(tmp_path / name, TYPES)
    assert (problem.slug, problem.place) == ("missing-file", str(tmp_path / name))


def test_bad_rows_of_files(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("y,x\na,1\nb,z\n")
    problem = problem_of(path, TYPES, ["x", "y"])
    assert (problem.slug, problem.place) == ("ill-typed-value", f"{path}:3")
    assert "column 2 (`x`) holds `z`" in problem.message
    path = tmp_path / "e.facts"
    path.write_text("1\ta\n2\n")
    assert problem_of(path, TYPES).slug == problem_of(path).slug == "short-row"
    path = tmp_path / "e.parquet"
    parquet.write_table(pa.table({"x": [1, 2], "y": ["a", None]}), path)
    problem = problem_of(path, TYPES, ["x", "y"])
    assert (problem.slug, problem.place) == ("missing-value", f"{path} row 2")


@pytest.mark.parametrize("text", ["1,a\n2,b\n", "source,target\n1,a\n", ""])
def test_missing_headers(tmp_path, text):
    """The first row of a file without a header is not lost in silence."""
    path = tmp_path / "e.csv"
    path.write_text(text)
    problem = problem_of(path, TYPES, ["x", "y"])
    assert (problem.slug, problem.place) == ("missing-header", f"{path}:1")
    assert "`x,y`" in problem.note and "add such a line" in problem.hint


def test_headers_of_the_wrong_length(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("x,y,z\n")
    assert problem_of(path, TYPES).slug == "wrong-arity"
    path.write_text('"x,y\n')
    assert problem_of(path, TYPES).slug == "bad-quoting"


def test_broken_parquet(tmp_path):
    path = tmp_path / "e.parquet"
    path.write_text("nonsense")
    assert problem_of(path).slug == "unreadable-file"


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"pip install 'upheld\[arrow\]'"):
        rows_of("edge", tmp_path / "e.parquet")
