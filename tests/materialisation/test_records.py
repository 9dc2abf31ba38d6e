"""Records through the public API: facts from Python, queries, explanations, saved states, updates and streams."""

from __future__ import annotations

import gc

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from upheld import Record
from upheld.engines import ENGINES

PROGRAM = """
.type List = [head:number, tail:List]
.type Item = Single {name:symbol} | Pack {items:Item, times:unsigned}
.decl list(l:List)
.decl item(i:Item)
.decl length(l:List, n:number)
.decl inside(i:Item)
list(t) :- list([_, t]).
length(nil, 0).
length([h, t], n + 1) :- list([h, t]), length(t, n).
inside(i) :- item(i).
inside(i) :- inside($Pack(i, _)).
"""
PEN = Record("pen", branch="Single")


@pytest.fixture(params=[*ENGINES, pytest.param(Driven(2), id="driven")])
def m(request):
    facts = {"list": [((1, (2, None)),), ("nil",)], "item": [(Record(PEN, 12, branch="Pack"),)]}
    return upheld.materialise(PROGRAM, facts, engine=request.param)


def test_facts(m):
    """Tuples, objects and texts go in, texts come out."""
    assert m["list"].to_rows() == [("[1, [2, nil]]",), ("[2, nil]",), ("nil",)]
    assert m["inside"].to_rows() == [('$Pack($Single("pen"), 12)',), ('$Single("pen")',)]
    assert Record.parse(m["inside"].to_rows()[1][0]) == PEN
    assert m["inside"].to_pandas()["i"].tolist() == m["inside"].to_arrow()["i"].to_pylist()
    assert (PEN,) in m["inside"] and PEN in m["inside"] and (Record("ink", branch="Single"),) not in m["inside"]
    assert ((2, None),) in m["list"] and "[2,nil]" in m["list"] and "[2]" not in m["list"]


@pytest.mark.parametrize(
    "relation, value, why",
    [
        ("list", (1,), "`,` is needed"),
        ("list", 1, "`List` needs"),
        ("list", PEN, "`List` needs `[...]` or `nil`"),
        ("item", None, "`Item` needs `$Single` or `$Pack`"),
        ("item", Record(PEN, -1, branch="Pack"), "a `unsigned` is needed"),
        ("item", Record("a\ud800", branch="Single"), "lone surrogate"),
    ],
)
def test_wrong_facts(m, relation, value, why):
    """A value that is not one of the type is refused with the reason, and nothing is updated."""
    with pytest.raises(upheld.UpheldError) as refusal:
        m.update(insert={relation: [(value,)]})
    assert why in str(refusal.value)
    assert len(m["list"]) == 3


def test_queries(m):
    """A query takes records apart, and a fact may have them."""
    assert m.query("length([h, _], n)").to_rows() == [(1, 2), (2, 1)]
    assert m.query("inside($Pack($Single(name), times))").to_rows() == [("pen", 12)]
    assert m.explain('inside($Single("pen"))').holds and not m.explain("length([3, nil], 1)").holds


def test_save_and_restore(m, tmp_path):
    """A saved state has the records, and goes on; a program with another type is another program."""
    m.save(tmp_path / "state")
    m.update(insert={"list": [((5, None),)]})
    m.save(tmp_path / "state")
    again = upheld.restore(PROGRAM, tmp_path / "state")
    assert {name: again[name].to_rows() for name in again.relations} == {n: m[n].to_rows() for n in m.relations}
    assert again.update(delete={"list": ["[5, nil]"]}).deleted["length"].to_rows() == [("[5, nil]", 1)]
    renamed = PROGRAM.replace("List", "Numbers")
    assert len(upheld.restore(renamed, tmp_path / "state")["list"]) == 4
    with pytest.raises(upheld.UpheldError, match="another program"):
        upheld.restore(PROGRAM.replace("head:number", "head:float"), tmp_path / "state")


def test_update_files(m, tmp_path):
    """Update files have records as programs write them, nested to any depth; a change reads back as an update."""
    deep = "[0, " * 210 + "nil" + "]" * 210
    text = f'+list({deep}).\n-item($Pack($Single("pen"),12)).\n+item(\n  $Single("a\\"),]")).\ncommit.\n'
    (tmp_path / "updates").write_text(text)
    (update,) = upheld.read_updates(tmp_path / "updates", m)
    change = m.update(delete=update.delete, insert=update.insert)
    assert len(change.inserted["length"]) == 210
    assert change.inserted["inside"].to_rows() == [('$Single("a\\"),]")',)]


@pytest.mark.parametrize(
    "fact", ["list([1)", "list([1, [2, nil])", "list($Single(1))", "list([1 + 1, nil])", "list(1)"]
)
def test_wrong_update_files(m, tmp_path, fact):
    """A record that is not one is refused with its line."""
    (tmp_path / "updates").write_text(f"+{fact}.\ncommit.\n")
    with pytest.raises(upheld.UpheldError) as refusal:
        list(upheld.read_updates(tmp_path / "updates", m))
    assert ":1:" in str(refusal.value)


def test_streams(m):
    """A stream of updates may have records."""
    updates = [{"insert": {"list": [((i, (9, None)),)]}} for i in range(3)]
    changes = list(m.stream(updates))
    assert [change.inserted["length"].to_rows()[0] for change in changes][1:] == [
        ("[1, [9, nil]]", 2),
        ("[2, [9, nil]]", 2),
    ]


def test_texts_are_reclaimed():
    """Records that no fact has are given up like other texts, and the others keep their values."""
    m = upheld.materialise(PROGRAM, {"list": [((i, (i, None)),) for i in range(50)]})
    codec = m._state.I.engine.context.codec
    for start in range(100, 1100, 100):
        rows = [((i, (-i, None)),) for i in range(start, start + 100)]
        m.update(insert={"list": rows})
        m.update(delete={"list": rows})
        gc.collect()
    assert codec.texts() < 1000
    assert m["list"].to_set() == {(f"[{i}, [{i}, nil]]",) for i in range(50)} | {
        (f"[{i}, nil]",) for i in range(50)
    } | {("nil",)}
    assert len(m["length"]) == 101
