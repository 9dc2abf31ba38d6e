"""Constraints: a change that violates one is refused with bindings and a proof, or reported."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.runs import run
from tests.helpers.streams.guarded import follow
from tests.helpers.streams.streams import NAMES
from upheld import ConstraintViolated, UpheldError, materialise, parse, restore
from upheld.cli import main

BANK = """\
.decl transfer(from:symbol, to:symbol, n:number)
.decl account(a:symbol)
.decl balance(a:symbol, n:number)
balance(a, n) :- account(a), n = (sum m : { transfer(_, a, m) }) - (sum m : { transfer(a, _, m) }).
.constraint overdrawn :- balance(a, n), n < -10.
.constraint unknown :- transfer(a, _, _), !account(a).
"""
FACTS = {"account": ["ann", "bob"], "transfer": [("ann", "bob", 5)]}
CYCLES = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). .constraint cyclic :- path(x, x)."


@pytest.mark.parametrize("engine", ["memory", "reference"])
@pytest.mark.parametrize("algorithm", NAMES)
def test_random_updates(algorithm, engine):
    """An update is refused exactly if recomputation finds new violations, and then changes nothing."""
    follow(NAMES.index(algorithm), engine, algorithm, steps=5)


@pytest.mark.parametrize("engine", ["memory", "reference", Driven(2)])
def test_a_refused_update(engine):
    with materialise(BANK, FACTS, engine=engine) as m:
        before = m.facts()
        with pytest.raises(ConstraintViolated) as refused:
            m.update(insert={"transfer": [("ann", "bob", 7), ("eve", "bob", 1)]})
        assert refused.value.slugs == ("constraint-violated", "constraint-violated")
        assert {name: r.to_rows() for name, r in refused.value.violations.items()} == {
            "overdrawn": [("ann", -12)],
            "unknown": [("eve",)],
        }
        assert m.facts() == before and m.version == 0
        assert len(m.update(insert={"transfer": [("ann", "bob", 4)]}).inserted["balance"]) == 2


def test_the_error_names_constraint_bindings_and_proof():
    m = materialise(BANK, FACTS)
    with pytest.raises(ConstraintViolated) as refused:
        m.update(insert={"transfer": [("eve", "bob", 1)]})
    assert str(refused.value) == (
        "<program>:6:1: error: the update violates the constraint `unknown`: 1 violation [constraint-violated]\n"
        "  6 | .constraint unknown :- transfer(a, _, _), !account(a).\n"
        "    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  violated by:\n"
        '    a = "eve"\n'
        "  proof of the first:\n"
        '    unknown("eve")  by <program>:6:1: unknown(a) :- transfer(a, _, _), !account(a).\n'
        '      transfer("eve", "bob", 1)  explicit\n'
        '      !account("eve")  does not hold\n'
        "  note: it was refused, and nothing has changed\n"
        '  hint: correct the facts, or pass `on_violation="report"` to go on with the violations'
    )
    again = pickle.loads(pickle.dumps(refused.value))
    assert again.violations == refused.value.violations and str(again) == str(refused.value)


def test_many_violations_are_cut_short():
    m = materialise(".decl n(x:number) .constraint negative :- n(x), x < 0.", {"n": [1]})
    with pytest.raises(ConstraintViolated) as refused:
        m.update(insert={"n": range(-2000, 0)})
    assert "2,000 violations" in str(refused.value) and "    and 1,995 more\n" in str(refused.value)
    assert len(refused.value.violations["negative"]) == 2000


def test_reported_violations():
    """A reported update is made, and its change has the new violations alone."""
    m = materialise(BANK, FACTS)
    change = m.update(insert={"transfer": [("eve", "bob", 1)]}, on_violation="report")
    assert {name: r.to_rows() for name, r in change.violations.items()} == {"unknown": [("eve",)]}
    assert repr(change) == "<Change +1 balance, +1 transfer, -1 balance, 1 violation of unknown>"
    assert change.inverse().violations == {}
    change = m.update(insert={"transfer": [("eve", "ann", 1)]})  # which violates nothing that was not violated before
    assert not change.violations
    assert m.violations()["unknown"].to_rows() == [("eve",)]
    m.update(insert={"account": ["eve"]})
    assert m.violations() == {}


def test_a_materialisation_that_reports():
    m = materialise(BANK, FACTS, on_violation="report")
    assert m.update(insert={"transfer": [("eve", "bob", 1)]}).violations
    with pytest.raises(ConstraintViolated):
        m.update(insert={"transfer": [("joe", "bob", 1)]}, on_violation="refuse")


def test_facts_that_violate_from_the_start():
    facts = {"edge": [(1, 2), (2, 1)]}
    with pytest.raises(ConstraintViolated, match="the program with its facts violates the constraint `cyclic`"):
        materialise(CYCLES, facts)
    m = materialise(CYCLES, facts, on_violation="report")
    assert m.violations()["cyclic"].to_rows() == [(1,), (2,)]


def test_a_preview_reports():
    m = materialise(CYCLES, {"edge": [(1, 2)]})
    assert m.preview(insert={"edge": [(2, 1)]}).violations["cyclic"].to_rows() == [(1,), (2,)]
    assert m.preview(add=".constraint loose :- edge(x, _), !edge(_, x).").violations["loose"].to_rows() == [(1,)]
    assert m.violations() == {} and m.version == 0


def test_rule_changes():
    """A constraint that is added must hold of the facts; one that is removed is not checked any more."""
    m = materialise(CYCLES, {"edge": [(1, 2)]})
    loose = ".constraint loose :- edge(x, _), !edge(_, x)."
    with pytest.raises(ConstraintViolated, match="the rule change violates the constraint `loose`"):
        m.change_rules(add=loose)
    assert m.change_rules(add=loose, on_violation="report").violations["loose"].to_rows() == [(1,)]
    assert m.explain("loose", (1,)).holds and m.explain("loose(1)").holds
    with pytest.raises(ConstraintViolated):
        m.change_rules(add="edge(y, x) :- edge(x, y).")
    m.change_rules(remove=".constraint loose :- !edge(_, a), edge(a, _).")
    assert m.violations() == {}
    m.change_rules(remove=".constraint cyclic :- path(y, y).")
    m.update(insert={"edge": [(2, 1)]})
    with pytest.raises(UpheldError, match="duplicate-constraint"):
        m.change_rules(add=[".constraint c :- edge(x, 5).", ".constraint c :- edge(5, x)."])
    m.change_rules(add=".constraint c :- edge(x, 5).")
    with pytest.raises(UpheldError, match="duplicate-constraint"):
        m.change_rules(add=".constraint c :- edge(5, x).")


def test_constraints_are_not_relations():
    m = materialise(CYCLES, {"edge": [(1, 2)]}, on_violation="report")
    assert set(m.relations) == {"path", "edge"} and "cyclic" not in list(m.update(insert={"edge": [(2, 1)]}).inserted)
    for wrong in (lambda: m["cyclic"], lambda: m.query("cyclic(x)"), lambda: m.update(insert={"cyclic": [(1,)]})):
        with pytest.raises(UpheldError, match="unknown-relation"):
            wrong()
    with pytest.raises(UpheldError):
        materialise(CYCLES, {"edge": [(1, 2)], "cyclic": [(1,)]})


@pytest.mark.parametrize(
    ("program", "slug"),
    [
        (".constraint c :- e(x). .constraint c :- e(y).", "duplicate-constraint"),
        (".decl e(x:number) .decl c(x:number) .constraint c :- e(x).", "constraint-as-relation"),
        (".constraint c :- e(x). p(x) :- c(x).", "constraint-as-relation"),
        (".constraint c :- e(x). c(1).", "constraint-as-relation"),
        (".constraint c :- e(x). .output c", "constraint-as-relation"),
        (".constraint c :- e(x), !c(x).", "constraint-as-relation"),
        (".constraint c(x) :- e(x).", "syntax"),
        (".constraint c.", "syntax"),
        (".constraint c :- e(x), y > x.", "unsafe-comparison"),
        (".constraint c :- !e(x).", "unsafe-negation"),
        (".decl e(x:number) .constraint c :- f(x).", "unknown-relation"),
    ],
)
def test_wrong_constraints(program, slug):
    with pytest.raises(UpheldError) as refused:
        materialise(program)
    assert slug in refused.value.slugs


@pytest.mark.parametrize("value", ["ignore", True, 1])
def test_a_wrong_choice(value):
    with pytest.raises(UpheldError, match="must be `refuse`, `report` or None"):
        materialise(CYCLES, on_violation=value)
    with pytest.raises(UpheldError, match="must be `refuse`, `report` or None"):
        materialise(CYCLES, {"edge": []}).update(on_violation=value)


def test_constraints_print_and_parse_back():
    text = ".decl e(x:number)\n.constraint none :- !e(0).\n.constraint c :- e(x), (x = 1; x > 5), x < 9.\n"
    program = parse(text)
    assert parse(str(program)) == program and ".constraint c :- e(x), (x = 1; x > 5), x < 9." in str(program)
    with pytest.raises(ConstraintViolated) as refused:
        materialise(text, {"e": [1, 7, 3]})
    assert {name: r.to_rows() for name, r in refused.value.violations.items()} == {"none": [()], "c": [(1,), (7,)]}


def test_constraints_of_components():
    text = """
    .comp Graph { .decl edge(x:number, y:number) .constraint loop :- edge(x, x). }
    .init a = Graph  .init b = Graph
    """
    m = materialise(text, {"a.edge": [(1, 2)], "b.edge": [(3, 4)]})
    with pytest.raises(ConstraintViolated) as refused:
        m.update(insert={"b.edge": [(5, 5)]})
    assert list(refused.value.violations) == ["b.loop"]


def test_a_saved_state(tmp_path):
    """A state with violations opens if they are reported, and constraints refuse updates of what was opened."""
    m = materialise(BANK, FACTS)
    m.save(tmp_path / "good")
    with restore(BANK, tmp_path / "good") as again, pytest.raises(ConstraintViolated):
        again.update(insert={"transfer": [("eve", "bob", 1)]})
    m.update(insert={"transfer": [("eve", "bob", 1)]}, on_violation="report")
    m.save(tmp_path / "bad")
    with pytest.raises(ConstraintViolated):
        restore(BANK, tmp_path / "bad")
    assert restore(BANK, tmp_path / "bad", on_violation="report").violations()["unknown"].to_rows() == [("eve",)]


def test_a_stream_ends_before_a_refused_update():
    m = materialise(CYCLES, {"edge": [(1, 2)]})
    updates = [{"insert": {"edge": [(a, b)]}} for a, b in ((2, 3), (3, 1), (3, 4))]
    stream = m.stream(updates)
    assert not next(stream).violations
    with pytest.raises(ConstraintViolated, match="update 2 of the stream violates the constraint `cyclic`"):
        next(stream)
    assert m.explicit("edge").to_set() == {(1, 2), (2, 3)}
    changes = list(m.stream(updates[1:], on_violation="report"))
    assert [sorted(change.violations) for change in changes] == [["cyclic"], []]
    with pytest.raises(ConstraintViolated, match="the merge of updates 1 to 2 of the stream violates"):
        list(materialise(CYCLES, {"edge": [(1, 2)]}).stream(updates, merge_waiting=2))


def test_equivalences_by_classes():
    text = ".decl same(x:number, y:number) eqrel .decl odd(x:number) .constraint mixed :- same(x, y), odd(x), !odd(y)."
    m = materialise(text, {"same": [(1, 3), (2, 4)], "odd": [1, 3]}, equality="rewrite")
    with pytest.raises(ConstraintViolated) as refused:
        m.update(insert={"same": [(3, 4)]})
    assert len(refused.value.violations["mixed"]) == 4
    assert m.equals(1, "same") == [1, 3]


@pytest.mark.parametrize("equality", ["off", "axioms", "rewrite"])
def test_violation_of_an_ontology(equality):
    """Facts of `violation` are reported by default, and refused if that is asked for."""
    prefix = "PREFIX : <http://e/> "
    rules = parse(prefix + 'violation("both", ?x) :- [?x, a, :Cat], [?x, a, :Dog].', dialect="dlog")
    a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    facts = {"triple": [("<http://e/tom>", a, "<http://e/Cat>")]}
    more = {"triple": [("<http://e/tom>", a, "<http://e/Dog>")]}
    m = materialise(rules, facts, equality=equality)
    assert m.update(insert=more).violations["violation"].to_rows() == [('"both"', "<http://e/tom>")]
    assert m.violations()["violation"] == m["violation"]
    m = materialise(rules, facts, equality=equality, on_violation="refuse")
    with pytest.raises(ConstraintViolated, match=r'violated by:\n    violation\("both", :tom\)'):
        m.update(insert=more)
    assert not len(m["violation"])
    with pytest.raises(ConstraintViolated):
        materialise(rules, {"triple": facts["triple"] + more["triple"]}, equality=equality, on_violation="refuse")


def test_runs_and_applied_updates(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rules = ".decl edge(x:number, y:number)\n.input edge\n.output edge\n.constraint loop :- edge(x, x).\n"
    Path("rules.dl").write_text(rules)
    Path("edge.facts").write_text("1\t2\n3\t3\n")
    Path("out").mkdir()
    with pytest.raises(ConstraintViolated):
        run("rules.dl", ".", "out")
    assert not list(Path("out").iterdir())
    _, warnings = run("rules.dl", ".", "out", on_violation="report")
    assert [w.slug for w in warnings] == ["constraint-violated"] and Path("out/edge.csv").exists()
    Path("edge.facts").write_text("1\t2\n")
    Path("updates.txt").write_text("+edge(2, 3).\ncommit.\n+edge(4, 4).\ncommit.\n+edge(5, 6).\ncommit.\n")
    apply = ["apply", "rules.dl", "--updates", "updates.txt", "-D", "out", "--changes", "changes.txt"]
    assert main(apply) == 2
    assert re.search(r"commit 2 could not be applied[\s\S]*the constraint `loop`", capsys.readouterr().err)
    assert "edge(2, 3)" in Path("changes.txt").read_text() and "edge(4, 4)" not in Path("changes.txt").read_text()
    assert main([*apply, "--on-violation", "report", "--verify"]) == 0
    assert Path("changes.txt").read_text().count("commit.") == 3
    with upheld.load("rules.dl", on_violation="report") as m:
        changes = m.stream(upheld.read_updates("updates.txt", m))
        assert [len(change.violations) for change in changes] == [0, 1, 0]


def test_the_report_lists_constraints():
    report = upheld.check(BANK)
    assert "2 constraints\n  overdrawn(a, n)  <program>:5:1\n  unknown(a)  <program>:6:1" in report.to_text()
    assert [c["name"] for c in report.to_dict()["constraints"]] == ["overdrawn", "unknown"]
    assert [w.slug for w in report.warnings] == []


def test_updates_of_testing_are_not_refused():
    from upheld.testing import check_updates

    assert check_updates(CYCLES, {"edge": [(1, 2), (2, 3)]}, updates=4).version == 4


def test_the_command_line(tmp_path, monkeypatch, capsys):
    """Violations refuse a run with code 2; reported, they are warnings, and with `--fail-on-violation` code 1."""
    monkeypatch.chdir(tmp_path)
    Path("rules.dl").write_text(".decl n(x:number)\n.input n\n.output n\n.constraint negative :- n(x), x < 0.\n")
    Path("n.facts").write_text("1\n-5\n")
    Path("out").mkdir()
    run = ["run", "rules.dl", "-D", "out"]
    assert main(run) == 2 and "[constraint-violated]" in capsys.readouterr().err
    assert main([*run, "--on-violation", "report"]) == 0
    assert (
        "warning: the constraint `negative` is violated: 1 violation [constraint-violated]" in capsys.readouterr().err
    )
    assert main([*run, "--on-violation", "report", "--fail-on-violation"]) == 1
    assert main(["explain", "rules.dl", "negative(-5)"]) == 0
    assert "n(-5)  explicit" in capsys.readouterr().out
    Path("n.facts").write_text("1\n")
    assert main([*run, "--fail-on-violation"]) == 0
