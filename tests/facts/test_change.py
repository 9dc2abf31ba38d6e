"""Changes: as tables, undone, and as text."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest

import upheld
from upheld.base.errors import MissingDependency, UsageError
from upheld.facts.change import known_sizes

RULES = """
.decl edge(x:number, y:number)
.decl label(x:number, y:symbol)
.decl on()
.decl name(s:symbol)
name(s) :- label(_, s), on().
"""


@pytest.fixture
def m() -> upheld.Materialisation:
    facts = {"edge": [(1, 2), (2, 3)], "label": [(1, "a"), (2, "b")], "on": [()]}
    return upheld.materialise(RULES, facts, engine="reference")


@pytest.fixture
def change(m) -> upheld.Change:
    return m.update(insert={"edge": [(7, 8)], "label": [(3, "c")]}, delete={"edge": [(1, 2)], "label": [(1, "a")]})


def test_a_change_is_one_table(change):
    """A column that relations use with different types is one of texts."""
    table = change.to_arrow()
    assert {f.name: str(f.type) for f in table.schema} == {
        "relation": "string",
        "sign": "int8",
        "x": "int64",
        "y": "string",
        "s": "string",
    }
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("edge", -1, 1, "2", None),
        ("edge", 1, 7, "8", None),
        ("label", -1, 1, "a", None),
        ("label", 1, 3, "c", None),
        ("name", -1, None, None, "a"),
        ("name", 1, None, None, "c"),
    ]


def test_the_columns_do_not_depend_on_the_facts(m, change):
    assert m.update().to_arrow().schema == change.to_arrow().schema
    assert change.inverse().to_arrow("edge").schema == m.update().to_arrow("edge").schema


def test_the_table_of_one_relation(change):
    assert change.to_arrow("edge").to_pylist() == [{"sign": -1, "x": 1, "y": 2}, {"sign": 1, "x": 7, "y": 8}]
    frame = change.to_pandas("edge")
    assert frame["y"].tolist() == [2, 8] and str(frame["y"].dtype) == "Int64"


def test_a_frame_keeps_integers_where_values_are_missing(change):
    frame = change.to_pandas()
    assert list(map(str, frame.dtypes)) == ["string", "Int8", "Int64", "string", "string"]
    assert frame["x"].isna().tolist() == [False] * 4 + [True] * 2


def test_relations_without_columns(m):
    gone = m.update(delete={"on": [()]})
    assert [(row["relation"], row["sign"]) for row in gone.to_arrow().to_pylist()] == [
        ("name", -1),
        ("name", -1),
        ("on", -1),
    ]
    assert gone.to_arrow("on").to_pylist() == [{"sign": -1}]


@pytest.mark.parametrize("columns, relation, refused", [("sign", "p", True), ("relation", "p", False)])
def test_columns_that_a_change_has_too(columns, relation, refused):
    m = upheld.materialise(f".decl p({columns}:number)", {"p": [1]}, engine="reference")
    change = m.update(insert={"p": [2]})
    with pytest.raises(UsageError, match="duplicate-column"):
        change.to_arrow()
    if refused:
        with pytest.raises(UsageError, match="duplicate-column"):
            change.to_arrow(relation)
    else:
        assert change.to_arrow(relation).num_rows == 1


def test_unknown_relation(change):
    with pytest.raises(UsageError, match="unknown-relation"):
        change.to_arrow("egde")


@pytest.mark.parametrize(
    "package, extra, method", [("pyarrow", "arrow", "to_arrow"), ("pandas", "pandas", "to_pandas")]
)
def test_missing_packages(change, monkeypatch, package, extra, method):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"upheld\[{extra}\]"):
        getattr(change, method)()


def test_the_inverse_undoes_a_change(m, change):
    undo = change.inverse()
    assert undo.inserted == change.deleted and undo.retracted == change.asserted and not undo.ignored.not_empty()
    again = m.update(insert=undo.asserted, delete=undo.retracted)
    assert again.inserted == undo.inserted and again.deleted == undo.deleted
    assert m["edge"].to_set() == {(1, 2), (2, 3)} and m["name"].to_set() == {("a",), ("b",)}
    assert not m.update().inverse()


def test_completion_of_names(m, change):
    assert m._ipython_key_completions_() == list(m.relations)
    assert m.snapshot()._ipython_key_completions_() == change.inserted._ipython_key_completions_() == list(m.relations)
    assert set(upheld.__all__) <= set(dir(upheld))


def test_get_of_a_relation_that_the_program_does_not_have():
    """It returns the default, as of every mapping; a relation without facts is there."""
    m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
    inserted = m.update(insert={"p": [2]}).inserted
    assert inserted.get("unknown") is None and inserted.get("unknown", 7) == 7
    assert inserted.get("q").to_set() == {(2,)} and m.update().inserted.get("q", 7).to_set() == set()


def test_sides_are_made_when_somebody_looks():
    """The change of a small update is whole wherever it goes, whoever has looked at which of its sides."""
    m = upheld.materialise("q(x) :- p(x).", {"p": [1, 2]}, engine="memory", algorithm="ranked")
    change = m.update(insert={"p": [3]}, delete={"p": [1, 7]})
    assert "inserted" not in vars(change)
    assert known_sizes(change) == [{"p": 1, "q": 1}, {"p": 1, "q": 1}, {"p": 1}, {"p": 1}]
    first, again = change.inserted, change.inserted
    assert first is again and first["q"].to_set() == {(3,)}
    sent = pickle.loads(pickle.dumps(change))
    assert sent == change and "deleted" in vars(sent) and sent.ignored["p"].to_set() == {(7,)}
    assert copy.copy(change) == change and known_sizes(change) == known_sizes(sent)
    assert not hasattr(change, "added")
    with pytest.raises(AttributeError, match="'Change' object has no attribute 'added'"):
        change.added  # noqa: B018
