"""The public API: what goes in, what comes out, what an update reports, and what stays as it was."""

from __future__ import annotations

import time
from copy import copy
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.programs.strategies import cases
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.engines import ENGINES

PATHS = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


@pytest.fixture(params=[*ENGINES, pytest.param(Driven(2), id="driven")])
def engine(request) -> str:
    return request.param


def test_public_names():
    """`__all__` lists every public name, and each is there."""
    assert sorted(upheld.__all__) == upheld.__all__
    assert all(hasattr(upheld, name) for name in upheld.__all__)


# -- materialise ------------------------------------------------------------------------------------------------------


def test_materialise(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2), (2, 3)]}, engine=engine)
    assert m["path"].to_set() == {(1, 2), (2, 3), (1, 3)}
    assert m["edge"].to_set() == {(1, 2), (2, 3)}
    assert set(m.relations) == {"edge", "path"}
    assert m.explicit("edge") == m["edge"]
    assert m.explicit("path").to_set() == set()
    assert m.facts() == {("edge", row) for row in m["edge"]} | {("path", row) for row in m["path"]}
    assert repr(m) in ("<Materialisation edge: 2, path: 3>", "<Materialisation path: 3, edge: 2>")


def test_explicit_and_derived_facts_of_one_relation(engine):
    """Any relation may hold both."""
    m = upheld.materialise(PATHS, {"edge": [(1, 2)], "path": [(1, 2), (7, 8)]}, engine=engine)
    assert m["path"].to_set() == {(1, 2), (7, 8)}
    assert m.explicit("path").to_set() == {(1, 2), (7, 8)}
    m.update(delete={"path": [(1, 2), (7, 8)]})
    assert m["path"].to_set() == {(1, 2)}


@pytest.mark.parametrize(
    "data",
    [
        [(1, "a"), (2, "b")],
        ((1, "a"), (2, "b")),
        {(1, "a"), (2, "b")},
        iter([(1, "a"), (2, "b")]),
        [[1, "a"], [2, "b"], [1, "a"]],
        pyarrow.table({"x": [1, 2], "y": ["a", "b"]}),
        upheld.Relation("other", ("x", "y"), ("number", "symbol"), [(1, "a"), (2, "b")]),
    ],
    ids=["list", "tuple", "set", "iterator", "lists", "arrow", "relation"],
)
def test_kinds_of_facts(engine, data):
    m = upheld.materialise(".decl p(x:number, y:symbol)", {"p": copy(data)}, engine=engine)
    assert m["p"].to_set() == {(1, "a"), (2, "b")}


def test_facts_from_pandas(engine):
    pandas = pytest.importorskip("pandas")
    m = upheld.materialise("q(x) :- p(x, _).", {"p": pandas.DataFrame({"x": [1, 2], "y": ["a", "b"]})}, engine=engine)
    assert m["q"].to_set() == {(1,), (2,)}


def test_names_are_adopted_from_the_first_frame(engine, tmp_path):
    """A relation that nobody declares has the columns of its first frame, and later frames go by these names."""
    pandas = pytest.importorskip("pandas")
    rules = "q(x, y) :- e(x, y)."
    u = upheld.materialise(rules, {"e": pandas.DataFrame({"src": [1], "dst": [2]})}, engine=engine)
    assert u["e"].columns == ("src", "dst") and u["q"].columns == ("c0", "c1")
    change = u.update(insert={"e": pandas.DataFrame({"dst": [20], "note": ["new"], "src": [10]})})
    assert change.inserted["q"].to_rows() == [(10, 20)]
    assert change.inserted["e"].columns == ("src", "dst")
    assert u.update(delete={"e": [{"dst": 2, "src": 1}]}).deleted["q"].to_rows() == [(1, 2)]
    with pytest.raises(upheld.UpheldError) as caught:
        u.update(insert={"e": pandas.DataFrame({"source": [1], "dst": [2]})})
    assert caught.value.slugs == ("missing-column",)
    assert u["q"].to_rows() == [(10, 20)]
    u.save(tmp_path)
    again = upheld.restore(rules, tmp_path, engine=engine)
    assert again["e"].columns == ("src", "dst")
    assert again.update(insert={"e": pandas.DataFrame({"dst": [2], "src": [1]})}).inserted["q"].to_rows() == [(1, 2)]


def test_frames_for_a_relation_without_names(engine):
    """Where rows came first there are no names that those of a frame could fit, and they are not left aside."""
    pandas = pytest.importorskip("pandas")
    u = upheld.materialise("q(x, y) :- e(x, y).", {"e": [(1, 2)]}, engine=engine)
    frame = pandas.DataFrame({"src": [10], "dst": [20]})
    with pytest.raises(upheld.UpheldError) as caught:
        u.update(insert={"e": frame})
    assert caught.value.slugs == ("missing-column",)
    assert "`e` has `c0`, `c1`, this has `src`, `dst`" in caught.value.problems[0].note
    assert u.update(insert={"e": frame.itertuples(index=False)}).inserted["q"].to_rows() == [(10, 20)]
    assert u.update(insert={"e": frame.set_axis([0, 1], axis=1) * 2}).inserted["q"].to_rows() == [(20, 40)]


def test_facts_from_a_file(engine, tmp_path):
    (tmp_path / "p.facts").write_text("1\ta\n2\tb\n")
    (tmp_path / "p.csv").write_text("x,y\n1,a\n")
    program = ".decl p(x:number, y:symbol)"
    assert upheld.materialise(program, {"p": tmp_path / "p.facts"}, engine=engine)["p"].to_set() == {(1, "a"), (2, "b")}
    assert upheld.materialise(program, {"p": tmp_path / "p.csv"}, engine=engine)["p"].to_set() == {(1, "a")}


def test_scalars_and_nullary_facts(engine):
    m = upheld.materialise("both() :- on(), p(_).", {"p": [1, 2], "on": [()]}, engine=engine)
    assert m["both"].to_set() == {()}
    m.update(delete={"on": [()]})
    assert m["both"].to_set() == set()


def test_programs_as_texts_files_and_programs(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rules.dl").write_text("p(1).")
    Path("rules.dlog").write_text("[?x, <http://a>, ?y] :- [?y, <http://a>, ?x].")
    for program in ("p(1).", "rules.dl", Path("rules.dl"), upheld.parse("p(1).")):
        assert upheld.materialise(program, engine=engine)["p"].to_set() == {(1,)}
    m = upheld.materialise("rules.dlog", {"triple": [("<http://b>", "<http://a>", "<http://c>")]}, engine=engine)
    assert ("<http://c>", "<http://a>", "<http://b>") in m["triple"]
    assert upheld.parse(Path("rules.dlog").read_text(), dialect="dlog") == upheld.parse("rules.dlog")
    with pytest.raises(upheld.UpheldError, match="unknown-dialect"):
        upheld.parse("p(1).", dialect="prolog")


def test_relations_that_the_program_does_not_mention(engine):
    """Without declarations, given facts make a relation; with them, they must be declared."""
    assert upheld.materialise("p(1).", {"q": [(1, 2)]}, engine=engine)["q"].to_set() == {(1, 2)}
    with pytest.raises(upheld.UpheldError, match="unknown-relation"):
        upheld.materialise(".decl p(x:number)", {"q": [(1, 2)]}, engine=engine)


def test_names_of_relations(engine):
    m = upheld.materialise("p(x) :- q(x).", {"q": [(1,)]}, engine=engine)
    assert {name: len(m[name]) for name in m} == {"p": 1, "q": 1}
    assert "p" in m and "r" not in m
    for unknown in ("r", 0, None):
        with pytest.raises(upheld.UpheldError, match="unknown-relation"):
            m[unknown]


def test_every_type_comes_back(engine):
    program = ".decl p(a:number, b:unsigned, c:float, d:symbol)\n.decl q(a:number, b:unsigned, c:float, d:symbol)\n"
    program += "q(a, b, c, d) :- p(a, b, c, d).\n"
    rows = {(-(2**63), 0, float("inf"), ""), (2**63 - 1, 2**64 - 1, -1.5, "é\t\n\0"), (0, 1, float("nan"), "x")}
    m = upheld.materialise(program, {"p": rows}, engine=engine)
    assert len(m["q"]) == 3
    assert m["q"] == m["p"]
    assert m["q"].to_pandas().dtypes.astype(str).tolist() == ["int64", "uint64", "float64", "string"]
    assert m["q"].to_arrow().num_rows == 3


@given(case=cases())
def test_stratification_changes_no_fact(case):
    """The stratification does not change the materialisation."""
    granular = upheld.materialise(case.program, case.facts)
    for stratification in STRATIFICATIONS:
        m = upheld.materialise(case.program, case.facts, stratification=stratification)
        assert m.facts() == granular.facts()


def test_unknown_stratification():
    with pytest.raises(upheld.UpheldError, match="did you mean `levels`") as raised:
        upheld.materialise("p(x) :- q(x).", stratification="level")
    assert raised.value.slugs == ("unknown-stratification",)


# -- query ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def m(engine) -> upheld.Materialisation:
    return upheld.materialise(PATHS + " node(x) :- edge(x, _); edge(_, x).", {"edge": [(1, 2), (2, 3)]}, engine=engine)


@pytest.mark.parametrize(
    "query, columns, rows",
    [
        ("path(1, y)", ("y",), {(2,), (3,)}),
        ("path(x, y), !edge(x, y)", ("x", "y"), {(1, 3)}),
        ("path(x, x)", ("x",), set()),
        ("path(1, 3)", (), {()}),
        ("path(3, 1)", (), set()),
        ("edge(x, y); path(y, x)", ("x", "y"), {(1, 2), (2, 3), (2, 1), (3, 2), (3, 1)}),
        ("node(x), !path(x, _)", ("x",), {(3,)}),
        ("path(x, _), z = x + 10", ("x", "z"), {(1, 11), (2, 12)}),
        ("edge(x, y), path(u, v), u > x", ("x", "y", "u", "v"), {(1, 2, 2, 3)}),
        ("node(x), x != 2.", ("x",), {(1,), (3,)}),
    ],
)
def test_query(m, query, columns, rows):
    answer = m.query(query)
    assert answer.columns == columns
    assert answer.to_set() == rows


def test_queries_change_nothing(m):
    before = m.facts()
    for _ in range(2):
        assert len(m.query("node(x), !edge(x, _), node(y)")) == 3
    assert m.facts() == before
    m.update(insert={"edge": [(3, 4)]})
    assert m.query("node(x), !edge(x, _)").to_set() == {(4,)}


def test_query_of_rdf(engine, tmp_path):
    program = tmp_path / "rules.dlog"
    program.write_text("PREFIX : <http://a/>\n:B[?x] :- :A[?x].")
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    m = upheld.materialise(program, {"triple": [("<http://a/x>", kind, "<http://a/A>")]}, engine=engine)
    assert m.query("[?x, rdf:type, <http://a/B>]".replace("rdf:type", kind)).to_set() == {("<http://a/x>",)}


@pytest.mark.parametrize(
    "query, slug",
    [
        ("pth(x, y)", "unknown-relation"),
        ("path(x)", "arity-clash"),
        ("path(x, y), z < 3", "unsafe-head"),
        ('path(x, "a")', "type-clash"),
        ("path(x, y", "missing-bracket"),
        ("", "empty-body"),
    ],
)
def test_bad_queries(m, query, slug):
    with pytest.raises(upheld.UpheldError) as refusal:
        m.query(query)
    assert slug in refusal.value.slugs
    assert all(str(p).startswith("<query>:1:") for p in refusal.value.problems)


def test_query_has_the_limits_to_itself(engine):
    """Time that went by since the materialisation is not the query's."""
    facts = {"q": [(i,) for i in range(6000)]}
    m = upheld.materialise("p(x) :- q(x).", facts, engine=engine, limits=upheld.Limits(seconds=5))
    m._engine.meter._started -= 10
    assert len(m.query("p(x)")) == 6000


# -- update -----------------------------------------------------------------------------------------------------------


def test_update_reports_the_change(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2), (2, 3)]}, engine=engine)
    change = m.update(delete={"edge": [(2, 3)]}, insert={"edge": [(2, 4)]})
    assert change.deleted["path"].to_set() == {(1, 3), (2, 3)}
    assert change.inserted["path"].to_set() == {(1, 4), (2, 4)}
    assert change.deleted["edge"].to_set() == {(2, 3)}
    assert change.inserted["edge"].to_set() == {(2, 4)}
    assert m["path"].to_set() == {(1, 2), (2, 4), (1, 4)}
    assert repr(change).startswith("<Change +")


def test_update_of_nothing(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]}, engine=engine)
    change = m.update()
    assert repr(change) == "<Change nothing>"
    assert not any(len(r) for rs in (change.inserted, change.deleted, change.ignored) for r in rs.values())


def test_ignored_facts(engine):
    """Deleting what is not explicit, or inserting what is, changes nothing and is told."""
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]}, engine=engine)
    change = m.update(delete={"edge": [(7, 7)], "path": [(1, 2)]}, insert={"edge": [(1, 2)]})
    assert change.ignored["edge"].to_set() == {(7, 7), (1, 2)}
    assert change.ignored["path"].to_set() == {(1, 2)}
    assert m["path"].to_set() == {(1, 2)}


def test_a_fact_deleted_and_inserted_stays(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]}, engine=engine)
    change = m.update(delete={"edge": [(1, 2), (3, 4)]}, insert={"edge": [(1, 2), (3, 4)]})
    assert m.explicit("edge").to_set() == {(1, 2), (3, 4)}
    assert change.deleted["edge"].to_set() == set()
    assert change.inserted["edge"].to_set() == {(3, 4)}


def test_derived_facts_outlive_their_explicit_twins(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]}, engine=engine)
    change = m.update(insert={"path": [(1, 2)]})
    assert repr(change) == "<Change nothing>"
    assert m.explicit("path").to_set() == {(1, 2)}
    m.update(delete={"edge": [(1, 2)]})
    assert m["path"].to_set() == {(1, 2)}
    m.update(delete={"path": [(1, 2)]})
    assert m.facts() == set()


def test_facts_of_the_program_can_be_deleted(engine):
    m = upheld.materialise("p(1). p(2). q(x) :- p(x).", engine=engine)
    m.update(delete={"p": [(1,)]})
    assert m["q"].to_set() == {(2,)}


def test_results_do_not_change_afterwards(engine):
    """What was handed out before an update stays what it was."""
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]}, engine=engine)
    before, asked = m["path"], m.query("path(x, y)")
    change = m.update(insert={"edge": [(2, 3)]})
    m.update(delete={"edge": [(2, 3)]})
    assert before.to_set() == asked.to_set() == {(1, 2)}
    assert change.inserted["path"].to_set() == {(2, 3), (1, 3)}


@pytest.mark.parametrize("engine_name", ENGINES)
@given(case=cases(updates=3))
def test_agrees_with_recomputation(engine_name, case):
    """After every update, the facts are the recomputed ones, and the change is the difference."""
    m = upheld.materialise(case.program, case.facts, engine=engine_name)
    for u in case.updates:
        before = m.facts()
        change = m.update(delete=u.deletions, insert=u.insertions)
        explicit = {name: m.explicit(name) for name in m.relations}
        again = upheld.materialise(case.program, explicit)
        assert m.facts() == again.facts()
        assert {(n, row) for n, r in change.inserted.items() for row in r} == m.facts() - before
        assert {(n, row) for n, r in change.deleted.items() for row in r} == before - m.facts()


# -- errors -----------------------------------------------------------------------------------------------------------


def state(m: upheld.Materialisation):
    return m.facts(), {name: m.explicit(name).to_set() for name in m.relations}


@pytest.mark.parametrize(
    "facts, slug",
    [
        ({"edge": [(1, 2, 3)]}, "wrong-arity"),
        ({"edge": [(1,)]}, "wrong-arity"),
        ({"edge": [(1, "a")]}, "ill-typed-value"),
        ({"edge": [(1, None)]}, "missing-value"),
        ({"edge": [(1, 2**70)]}, "number-out-of-range"),
        ({"egde": [(1, 2)]}, "unknown-relation"),
        ({"edge": 5}, None),
        ({"edge": "nothing.facts"}, None),
    ],
)
def test_bad_facts(engine, facts, slug):
    """Facts that do not fit are refused, in `materialise` and in `update`, which changes nothing."""
    program = ".decl edge(x:number, y:number)\n.decl path(x:number, y:number)\n" + PATHS
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.materialise(program, facts, engine=engine)
    assert slug is None or refusal.value.slugs == (slug,)
    m = upheld.materialise(program, {"edge": [(1, 2)]}, engine=engine)
    before = state(m)
    for update in ({"insert": facts}, {"delete": facts}, {"insert": {"edge": [(5, 6)]}, "delete": facts}):
        with pytest.raises(upheld.UpheldError):
            m.update(**update)
        assert state(m) == before


def test_all_bad_facts_at_once(engine):
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.materialise(
            ".decl p(x:number)\n.decl q(x:symbol)", {"p": [("a",), (2**70,)], "q": [("a", "b")], "r": []}, engine=engine
        )
    assert sorted(refusal.value.slugs) == ["ill-typed-value", "number-out-of-range", "unknown-relation", "wrong-arity"]


@pytest.mark.parametrize(
    "limits",
    [upheld.Limits(facts=500), upheld.Limits(rounds=50), upheld.Limits(seconds=0.3), upheld.Limits(memory=1000)],
    ids=["facts", "rounds", "seconds", "memory"],
)
def test_limits(engine, limits):
    """A run without end is stopped, and an update that is stopped leaves everything as it was."""
    program = "n(x + 1) :- n(x)."
    started = time.process_time()
    with pytest.raises(upheld.UpheldError) as stopped:
        upheld.materialise(program, {"n": [(0,)]}, engine=engine, limits=limits)
    assert stopped.value.slugs == ("limit-reached",)
    assert limits.memory or "`n(x + 1) :- n(x).`" in str(stopped.value)
    m = upheld.materialise(program + " m(1).", engine=engine, limits=limits)
    before = state(m)
    with pytest.raises(upheld.UpheldError, match="limit-reached"):
        m.update(insert={"n": [(0,)]}, delete={"m": [(1,)]})
    assert state(m) == before
    m.update(delete={"m": [(1,)]})
    assert m.facts() == set()
    assert time.process_time() - started < 20


def test_updates_that_fail_in_a_rule(engine):
    """Division by zero stops the update, names rule and binding, and leaves everything as it was."""
    m = upheld.materialise("q(10 / x) :- p(x). r(y) :- q(y).", {"p": [(2,)]}, engine=engine)
    before = state(m)
    with pytest.raises(upheld.UpheldError) as error:
        m.update(insert={"p": [(5,), (0,)]})
    assert error.value.slugs == ("undefined-result",)
    assert "with x = 0" in str(error.value)
    assert state(m) == before
    m.update(insert={"p": [(5,)]})
    assert m["r"].to_set() == {(5,), (2,)}


@pytest.mark.parametrize(
    "rule",
    [
        "p(z) :- q(x, y), r(y), z = x / y.",
        "p(x / y) :- q(x, y), r(y).",
        "p(z) :- z = x / y, q(x, y), !s(y).",
        "p(z) :- q(x, y), r(w), z = x / y, z < w + 9, y = w.",
        "p(z) :- q(x, y), z = x / y, y > 0.",
        "p(z) :- q(x, y), t(x / y, z), r(y).",
        "p(z) :- q(x, y), t(v, z), v = x / y, v > z - 9, r(y).",
        "p(z) :- q(x, y), z = x / y, y > 1 / (y + 1).",
        "p(z) :- q(x, y), z = range(2, 2 + 4 / y), z = x / y, !s(y).",
    ],
)
def test_no_result_where_the_rest_does_not_hold(engine, rule):
    """Dividing by zero is an error only where everything else in the body holds, in whatever order it is matched."""
    facts = {"q": [(1, 0), (4, 2)], "r": [(2,)], "s": [(0,)], "t": [(2, 2)]}
    m = upheld.materialise(rule, facts, engine=engine)
    assert m["p"].to_set() == {(2,)}
    assert m.update(insert={"q": [(3, 0)]}).inserted["p"].to_set() == set()


def test_unknown_names(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]}, engine=engine)
    for look in (lambda: m["pth"], lambda: m.explicit("pth")):
        with pytest.raises(upheld.UpheldError, match="did you mean `path`") as refusal:
            look()
        assert refusal.value.slugs == ("unknown-relation",)
    with pytest.raises(upheld.UpheldError, match="did you mean `memory`") as refusal:
        upheld.materialise(PATHS, engine="memry")
    assert refusal.value.slugs == ("unknown-engine",)


def test_statistics(engine):
    """Rule instances are counted by phase, each once."""
    m = upheld.materialise(PATHS, {"edge": [(1, 2), (2, 3), (3, 4)]}, engine=engine)
    assert m.statistics.instances.total() == 6
    assert m.statistics.facts == 9
    assert m.statistics.seconds > 0
    assert m.update(insert={"edge": [(4, 5)]}).statistics.instances.total() > 0


# -- check ------------------------------------------------------------------------------------------------------------


def test_check():
    report = upheld.check("n(0). n(x + 1) :- n(x), x < 9. m(x) :- n(x), !k(x).")
    assert [w.slug for w in report.warnings] == ["arithmetic-recursion"]
    assert [len(s.rules) for s in report.strata] == [0, 1, 1]
    data = report.to_dict()
    assert data["facts"] == 1
    assert data["relations"][0] == {"name": "n", "columns": {"c0": "number"}, "arity": 1}
    assert data["strata"][1]["recursive"][0]["rule"] == "n(x + 1) :- n(x), x < 9."
    assert data["strata"][1]["nonrecursive"] == []


@pytest.mark.parametrize(
    "program, warned",
    [
        ("n(0). n(x + 1) :- n(x).", True),
        ("n(0). n(y) :- n(x), z = x + 1, y = z * 2.", True),
        ("p(x + 1) :- q(x). q(x) :- p(x). p(0).", True),
        ('p(cat(x, "a")) :- p(x). p("").', True),
        ("p(x + 1) :- q(x). q(1).", False),
        ("n(x + 1) :- n(x), d(x). d(1).", False),  # values of a finite relation
        ("n(z + 1) :- n(x), d(z). d(1).", False),
        ("n(y) :- n(x), d(y), y = x + 1. d(1).", False),
    ],
)
@pytest.mark.parametrize("stratification", STRATIFICATIONS)
def test_recursion_through_arithmetic(program, warned, stratification):
    """A warning wherever a rule computes a value from values of its own, whichever stratification is shown."""
    slugs = [w.slug for w in upheld.check(program, stratification=stratification).warnings]
    assert ("arithmetic-recursion" in slugs) is warned


@pytest.mark.parametrize("more", ["", "p(1).", ".input p", "p(x) :- q(x)."])
def test_unused_relations(more):
    """A relation that no rule looks at and that is not output, whatever goes into it."""
    text = ".decl p(x:number)\n.decl q(x:number)\n.decl r(x:number)\n.output r\n.input q\nr(x) :- q(x).\n"
    (warning,) = upheld.check(text + more).warnings
    assert warning.slug == "unused-relation"
    assert "`p`" in warning.message
    assert str(warning).startswith("<program>:1:7: warning: ")


def test_queries_with_parameters_and_a_limit():
    """A parameter is a value of a variable; a limit returns the first answers."""
    m = upheld.materialise(".decl p(x:number, y:symbol)", {"p": [(1, 'a"), p(z, _'), (2, "b"), (3, "b")]})
    assert m.query("p(x, y)", {"y": "b"}).to_rows() == [(2,), (3,)]
    assert m.query("p(x, y)", {"y": 'a"), p(z, _'}).to_rows() == [(1,)]
    assert m.query("p(x, y), x > n", {"n": 2}).to_rows() == [(3, "b")]
    assert m.query("p(x, y)", {"x": 1, "y": "b"}).to_rows() == []
    assert m.query("p(x, _)", limit=2).to_rows() == [(1,), (2,)]
    with pytest.raises(upheld.UpheldError, match="has no variable `z`"):
        m.query("p(x, y)", {"z": 1})
    with pytest.raises(upheld.UpheldError, match="parameters are numbers"):
        m.query("p(x, y)", {"x": (1,)})
    with pytest.raises(upheld.UpheldError, match="type-clash"):
        m.query("p(x, y)", {"x": "text"})
    with pytest.raises(upheld.UpheldError, match="at least 0, or None"):
        m.query("p(x, y)", limit=-1)


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_plans_of_a_query(engine):
    """They show how a query would be matched, and leave nothing behind."""
    m = upheld.materialise(".decl p(x:number, y:number) p(1, 2).", engine=engine)
    before = m.plans()
    assert m.plans("p(x, y), p(y, z)").startswith("$answer(x, y, z) :- p(x, y), p(y, z).\n  ")
    assert m.plans() == before
    with pytest.raises(upheld.UpheldError, match="unknown"):
        m.plans("q(x)")
