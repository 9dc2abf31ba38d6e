"""Columns of texts as UTF-8: the facts are those of the texts one by one, whatever the form that they come in."""

from __future__ import annotations

import pickle
from enum import StrEnum

import numpy as np
import pandas
import pyarrow
import pytest
import rdflib

import upheld
from tests.engines.spark.helpers.tasks import Driven
from upheld.base.errors import FactsError
from upheld.engines.memory.storage.dictionary import TextPool
from upheld.facts.columns import Texts, utf8
from upheld.facts.columns.utf8 import Utf8Texts
from upheld.facts.ingest.columnar import source_of

RULES = ".decl p(x:symbol)\n.decl q(x:symbol)\nq(x) :- p(x)."

TEXTS = [
    "",
    "a",
    "1234567",
    "12345678",
    "123456789",
    "ähnlich",
    "日本語のテキスト",
    "🎈",
    "a",
    "x" * 100,
    "x" * 99 + "y",
] * 3


class Colour(StrEnum):
    RED = "red"


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch):
    monkeypatch.setattr(utf8, "WORTH_UTF8", 2)


FORMS = {
    "objects": lambda texts: pandas.DataFrame({"x": pandas.Series(texts, dtype=object)}),
    "strings": lambda texts: pandas.DataFrame({"x": pandas.Series(texts, dtype="string[python]")}),
    "arrow strings": lambda texts: pandas.DataFrame({"x": pandas.Series(texts, dtype="string[pyarrow]")}),
    "arrow type": lambda texts: pandas.DataFrame(
        {"x": pandas.Series(texts, dtype=pandas.ArrowDtype(pyarrow.string()))}
    ),
    "table": lambda texts: pyarrow.table({"x": texts}),
    "large": lambda texts: pyarrow.table({"x": pyarrow.array(texts, pyarrow.large_string())}),
    "chunks": lambda texts: pyarrow.table({"x": pyarrow.chunked_array([texts[:5], [], texts[5:]])}),
    "slice": lambda texts: pyarrow.table({"x": ["before", "é", *texts, "after"]}).slice(2, len(texts)),
    "array": lambda texts: {"x": np.array(texts, dtype=object)},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("texts", [TEXTS, [*TEXTS, "two\nlines"]], ids=["plain", "newlines"])
def test_all_forms_have_the_same_facts(form, texts):
    for engine in ("memory", "reference"):
        m = upheld.materialise(RULES, {"p": ["gone", "a"]}, engine=engine)
        change = m.update(replace={"p": FORMS[form](texts)})
        assert {x for (x,) in m["q"]} == set(texts)
        assert change.deleted["p"].to_rows() == [("gone",)]
        assert not m.update(replace={"p": FORMS[form](texts[::-1])})


def test_texts_come_as_utf8():
    """Otherwise these tests would test nothing."""
    for form in FORMS.values():
        source = source_of(form(TEXTS), "p")
        assert source is not None and isinstance(source.columns[0], Utf8Texts) and len(source.columns[0]) == len(TEXTS)


@pytest.mark.parametrize("form", ["objects", "table"])
def test_tasks_that_work_in_step(form):
    """Tasks agree on the codes of new texts, and so look at the distinct texts."""
    m = upheld.materialise(RULES, {"p": ["gone", "a"]}, engine=Driven(2))
    m.update(replace={"p": FORMS[form](TEXTS)})
    assert {x for (x,) in m["q"]} == set(TEXTS)


def test_codes_are_made_when_they_are_asked_for():
    (column,) = source_of(FORMS["chunks"](TEXTS), "p").columns
    assert column.values().tolist() == TEXTS and column[2:4].values().tolist() == TEXTS[2:4]
    again = pickle.loads(pickle.dumps(column))
    assert type(again) is Texts and again.values().tolist() == TEXTS


def test_a_pool_has_no_room_for_repetitions():
    texts = [f"text {i % 100}" for i in range(200_000)]
    column = utf8.from_strings(texts, lambda texts: pytest.fail("nobody asked for codes"))
    pool, codes = TextPool(), np.empty(len(texts), np.int64)
    pool.intern_repeated(column.parts[0], codes)
    assert pool.take(codes).tolist() == texts and pool.count == 100
    assert pool.nbytes() < 3_000_000


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA])
def test_missing_texts(missing):
    frame = pandas.DataFrame({"x": pandas.Series(["a", missing, "b"], dtype=object)})
    tables = [frame, pyarrow.table({"x": ["a", None, "b"]}), frame.astype("string[pyarrow]")]
    for data in tables:
        m = upheld.materialise(RULES.replace("x:symbol", "x:symbol?"), {"p": data})
        assert m["q"].to_set() == {("a",), (None,), ("b",)}
        m = upheld.materialise(RULES, {"p": ["a"]})
        with pytest.raises(FactsError, match="row 2"):
            m.update(insert={"p": data})
        assert m["p"].to_set() == {("a",)}


@pytest.mark.parametrize("bad", [7, b"bytes", "\ud800", ["a"]], ids=["number", "bytes", "surrogate", "list"])
def test_values_that_are_not_texts(bad):
    m = upheld.materialise(RULES, {"p": ["a"]})
    with pytest.raises(FactsError, match="row 3"):
        m.update(replace={"p": pandas.DataFrame({"x": pandas.Series(["a", "b", bad], dtype=object)})})
    assert m["p"].to_set() == {("a",)}


def test_bytes_that_are_not_utf8():
    texts = pyarrow.array([b"a", b"\xff\xfe"]).view(pyarrow.string())
    with pytest.raises(FactsError, match="not-utf8"):
        upheld.materialise(RULES, {"p": pyarrow.table({"x": texts})})


def test_classes_derived_from_str():
    values = [Colour.RED, np.str_("a"), rdflib.URIRef("http://e/a"), "b"]
    for engine in ("memory", "reference"):
        m = upheld.materialise(
            RULES, {"p": pandas.DataFrame({"x": pandas.Series(values, dtype=object)})}, engine=engine
        )
        found = [x for (x,) in m["q"]]
        assert set(found) == {"red", "a", "http://e/a", "b"} and set(map(type, found)) == {str}


def test_terms():
    """Terms are checked and brought to their canonical form, as one by one."""
    rules = upheld.parse("PREFIX : <http://e/> [?x, :q, ?y] :- [?x, :p, ?y].", dialect="dlog")
    rows = [("<http://e/a>", "<http://e/p>", text) for text in ('"b"^^xsd:string', '"c"', '"b"', np.str_('"d"'))]
    frame = pandas.DataFrame(rows, columns=["subject", "predicate", "object"], dtype=object)
    m = upheld.materialise(rules, {"triple": frame.iloc[1:]})
    assert {row[2] for row in m["triple"]} == {'"b"', '"c"', '"d"'}
    with pytest.raises(FactsError, match=r"row 1.*bad-term"):
        m.update(insert={"triple": frame})
