"""Facts by column: what is taken without a look at each row is what a look at each row finds, right or wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.helpers.runs import run
from upheld.base.errors import FactsError
from upheld.engines import ENGINES
from upheld.facts import ingest
from upheld.facts.columns import Columns
from upheld.facts.files.badrows import BAD_ROWS_SHOWN
from upheld.facts.ingest import facts_of
from upheld.facts.relation import Relation
from upheld.language.types.primitive import INT64_MAX, INT64_MIN, UINT64_MAX

TYPES = ("number", "unsigned", "float", "symbol", "term")
ROWS = 3

texts = st.sampled_from(["", "a", "é", "\U0001f600", "line\nbreak"])
lone = st.just("\ud800")
missing = st.sampled_from([None, float("nan"), pd.NA, pd.NaT])
objects = st.one_of(texts, lone, missing, st.integers(), st.booleans(), st.floats(), st.just([]), st.just(np.str_("a")))
int64 = st.integers(-2, 2) | st.sampled_from([INT64_MIN, INT64_MAX])
uint64 = st.integers(0, 2) | st.sampled_from([INT64_MAX + 1, UINT64_MAX])


def series(values, dtype):
    return st.lists(values, min_size=ROWS, max_size=ROWS).map(lambda v: pd.Series(v, dtype=dtype))


series_of_any_kind = st.one_of(
    series(int64, "int64"),
    series(uint64, "uint64"),
    series(st.integers(0, 255), "uint8"),
    series(st.integers(-128, 127), "int8"),
    series(int64 | st.none(), "Int64"),
    series(uint64 | st.none(), "UInt64"),
    series(st.floats(), "float64"),
    series(st.floats(width=32), "float32"),
    series(st.floats() | st.none(), "Float64"),
    series(texts, "object"),
    series(texts | st.none(), "string"),
    series(texts | st.none(), "string[pyarrow]"),
    series(texts | st.none(), "category"),
    series(int64, "category"),
    series(st.integers(-2, 2) | st.none(), "int64[pyarrow]"),
    series(st.floats() | st.none(), "double[pyarrow]"),
    series(objects, "object"),
    series(st.booleans(), "bool"),
    series(st.just(pd.Timestamp(0)), "datetime64[ns]"),
)
types_or_none = st.none() | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3)


def outcome(data, types):
    columns = ("a", "b") if types is None else ("a", "b", "c")[: len(types)]
    try:
        facts, found, _ = facts_of("r", data, types, columns)
        return [tuple(repr(v) for v in row) for row in facts], found
    except FactsError as error:
        return error.problems


def row_by_row(data, types):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "source_of", lambda *_: None)
        return outcome(data, types)


@given(st.lists(series_of_any_kind, min_size=1, max_size=3), types_or_none, st.permutations(["a", "b", "c"]))
def test_frames(columns, types, names):
    frame = pd.concat(columns, axis=1, keys=names[: len(columns)])
    assert outcome(frame, types) == row_by_row(frame, types)


def arrow(values, type_):
    chunks = st.lists(st.lists(values, max_size=2), max_size=3)
    return chunks.map(lambda chunks: pa.chunked_array(chunks, type_))


arrow_of_any_kind = st.one_of(
    arrow(int64 | st.none(), pa.int64()),
    arrow(uint64, pa.uint64()),
    arrow(st.integers(0, 9), pa.uint16()),
    arrow(st.floats(), pa.float64()),
    arrow(st.floats(width=32) | st.none(), pa.float32()),
    arrow(texts | st.none(), pa.string()),
    arrow(texts, pa.large_string()),
    arrow(texts, pa.string()).map(lambda a: a.dictionary_encode()),
    arrow(st.integers(0, 9), pa.int8()).map(lambda a: a.dictionary_encode()),
    arrow(st.booleans(), pa.bool_()),
    arrow(st.just(b"a"), pa.binary()),
    arrow(st.none(), pa.null()),
)


@given(arrow_of_any_kind, types_or_none)
def test_arrow_tables(column, types):
    for table in (pa.table({"a": column}), pa.table({"b": column, "a": column})):
        assert outcome(table, types) == row_by_row(table, types)


arrays_of_any_kind = st.one_of(
    *(st.lists(v, max_size=4).map(lambda v, d=d: np.array(v, d)) for v, d in [
        (int64, np.int64), (uint64, np.uint64), (st.integers(0, 9), np.int8), (st.floats(), np.float64),
        (st.floats(), np.longdouble), (texts, np.str_), (texts, object), (st.booleans(), np.bool_),
        (st.just(b"a"), "S"),
        (objects.filter(lambda v: v != []), object), (st.tuples(int64, st.floats()), np.dtype("i8,f8")),
        (st.tuples(int64, texts), np.dtype([("b", "i8"), ("a", "U9")])),
    ]),
    st.lists(st.tuples(int64, int64), min_size=1, max_size=3).map(np.array),
    st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=3).map(lambda v: np.array(v, order="F")),
    *(st.just(np.zeros(shape)) for shape in [(0, 2), (2, 0), (2, 2, 2), ()]),
    st.just(np.zeros((2, 2), "i4,i4")),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
@given(arrays_of_any_kind, types_or_none)
def test_arrays(array, types):
    for data in (array, {"b": array, "a": array[::-1] if array.ndim else array}):
        assert outcome(data, types) == row_by_row(data, types)


def test_rows_that_do_not_fit_are_found_among_many():
    """They are told by their numbers, all of the first ones at once."""
    x, y = np.arange(100_000), np.zeros(100_000, np.uint64)
    y[[70_000, 5]] = UINT64_MAX
    frame = pd.DataFrame({"x": x, "y": y})
    for data in (frame, pa.Table.from_pandas(frame), np.rec.fromarrays([x, y], names="x,y"), {"y": y, "x": x}):
        with pytest.raises(FactsError) as caught:
            facts_of("r", data, ["number", "number"], ["x", "y"])
        assert [p.place for p in caught.value.problems] == ['facts["r"] row 6', 'facts["r"] row 70001']
        assert caught.value.slugs == ("number-out-of-range",) * 2
    with pytest.raises(FactsError) as caught:
        facts_of("r", frame, ["symbol", "unsigned"], ["x", "y"])
    assert caught.value.slugs == ("ill-typed-value",) * BAD_ROWS_SHOWN + ("more-bad-rows",)
    with pytest.raises(FactsError) as caught:
        facts_of("r", frame.to_numpy(), ["number"])
    assert caught.value.slugs == ("wrong-arity",) * BAD_ROWS_SHOWN + ("more-bad-rows",)


def test_rows_are_not_made():
    """Arrays, frames and tables stay columns, and a relation that came from an engine makes no rows for them."""
    frame = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    for data in (frame, pa.Table.from_pandas(frame), np.array([[1, 2]]), np.array(["a"])):
        assert isinstance(facts_of("r", data)[0], Columns)
    m = upheld.materialise("p(x, y) :- r(x, y).", {"r": frame}, engine="memory")
    relation = m["p"]
    assert isinstance(facts_of("r", relation)[0], Columns)
    assert len(relation) == 2 and (1, "a") in relation and (1, "b") not in relation and ("a",) not in relation
    relation.to_pandas(), relation.to_arrow(), relation.to_numpy()
    assert "_rows" not in vars(relation)


# -- through the engines ----------------------------------------------------------------------------------------------

FORMS = {
    "rows": lambda frame: list(frame.itertuples(index=False, name=None)),
    "pandas": lambda frame: frame,
    "arrow": lambda frame: pa.table({name: pa.array(frame[name].tolist()) for name in frame}),
    "array of records": lambda frame: frame.to_records(index=False),
    "relation": lambda frame: upheld.materialise("r(x, y, z) :- q(x, y, z).", {"q": frame}, engine="memory")["r"],
}


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("engine", ENGINES)
def test_facts_in_and_out(engine, form, declared):
    """The same relation comes out of both engines, whatever form its facts had, also after an update."""
    program = "q(z, y, x) :- r(x, y, z)."
    if declared:
        program += " .decl r(x:number, y:symbol, z:float) .decl q(z:float, y:symbol, x:number)"
    frame = pd.DataFrame({"x": [3, -1, 3], "y": ["b", "é", "a"], "z": [0.5, np.nan, -0.0]})
    rows = {(0.0, "a", 3), (0.5, "b", 3)}
    m = upheld.materialise(program, {"r": FORMS[form](frame)}, engine=engine)
    assert m["q"].to_set() - rows and m["q"].to_set() >= rows and len(m["q"]) == 3
    assert [row[1:] for row in m["q"].to_rows()] == [("a", 3), ("b", 3), ("é", -1)]
    change = m.update(delete={"r": FORMS[form](frame[1:2])}, insert={"r": FORMS[form](frame[2:])})
    assert m["q"].to_set() == rows and len(change.deleted["q"]) == 1 and len(change.ignored["r"]) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_relations_out(engine):
    """Both engines give arrays, frames and tables of the same types, in the same order."""
    facts = {"r": [(INT64_MIN, UINT64_MAX, 0.5, "b"), (-1, 0, float("nan"), ""), (-1, 0, float("inf"), "é")]}
    m = upheld.materialise(".decl r(x:number, y:unsigned, z:float, t:symbol)", facts, engine=engine)
    arrays = m["r"].to_numpy()
    assert {name: array.dtype.str for name, array in arrays.items()} == {"x": "<i8", "y": "<u8", "z": "<f8", "t": "|O"}
    assert arrays["t"].tolist() == ["b", "é", ""] and arrays["z"].tolist()[:2] == [0.5, float("inf")]
    arrays["x"][:] = 0
    assert m["r"].to_numpy()["x"].tolist() == m["r"].to_pandas()["x"].tolist() == [INT64_MIN, -1, -1]
    plain = Relation("r", m["r"].columns, m["r"].types, m["r"].to_set())
    pd.testing.assert_frame_equal(m["r"].to_pandas(), plain.to_pandas())
    assert m["r"].to_arrow().equals(plain.to_arrow()) or np.isnan(arrays["z"][2])
    assert m["r"].to_arrow().schema == plain.to_arrow().schema
    assert m["r"] == plain and hash(m["r"]) == hash(plain) and repr(m["r"]) == repr(plain)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_columns_and_no_rows(engine):
    m = upheld.materialise(".decl p() .decl q(x:symbol) .decl r() p() :- q(_). r().", {"q": []}, engine=engine)
    assert (m["p"].to_set(), m["q"].to_set(), m["r"].to_set()) == (set(), set(), {()})
    assert [len(m[name].to_pandas()) for name in "pqr"] == [m[name].to_arrow().num_rows for name in "pqr"] == [0, 0, 1]
    assert list(m["q"].to_numpy()) == ["x"] and not len(m["q"].to_numpy()["x"]) and m["r"].to_numpy() == {}
    assert () in m["r"] and () not in m["p"] and ("a",) not in m["q"]


def test_both_engines_run_alike(tmp_path):
    """Files large enough for the kernels, and a file that only the careful reader can read, give the same outputs."""
    program = """
    .decl e(x:symbol, y:number) .input e
    .decl f(x:symbol, y:number) .input f(filename="f.csv", delimiter=",", headers=true, rfc4180=true)
    .decl g(y:number, x:symbol) .output g .output g(IO=stdout, rfc4180=true)
    g(y, x) :- e(x, y). g(y, x) :- f(x, y).
    """
    (tmp_path / "e.facts").write_text("".join(f"node {i % 1000}\t{-i}\n" for i in range(20_000)))
    (tmp_path / "f.csv").write_text("x,y\n" + "".join(f'"node ""{i}""",0x{i:x}\n' for i in range(20_000)))
    outputs = []
    for engine in ENGINES:
        (tmp_path / engine).mkdir()
        printed, _ = run(program, tmp_path, tmp_path / engine, engine=engine)
        outputs.append((printed, (tmp_path / engine / "g.csv").read_bytes()))
    assert outputs[0] == outputs[1] and outputs[0][1].count(b"\n") == 40_000
