"""The history of a fact: when it appeared and vanished, and why; and verification."""

from __future__ import annotations

import json
import random

import pytest

import upheld
from upheld.base.errors import VerificationFailed
from upheld.cli import main
from upheld.materialisation.persistence import feeds
from upheld.testing import check_updates

RULES = """
path(x, y) :- edge(x, y), !closed(y).
path(x, z) :- path(x, y), edge(y, z), !closed(z).
sizes(n) :- n = count : { path(_, _) }.
"""
FACTS = {"edge": [(1, 2), (2, 3)], "closed": [9]}
ENGINES = ["memory", "reference"]


def events(history):
    return [(event.update, event.appeared, event.causes) for event in history.events]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ["adaptive", "dred", "counting", "rematerialise"])
def test_when_and_why(engine, algorithm):
    """Each event names the explicit fact that came or went, or the fact that blocks a rule."""
    m = upheld.materialise(RULES, FACTS, engine=engine, algorithm=algorithm)
    m.update(delete={"edge": [(2, 3)]})
    m.update(insert={"edge": [(2, 3), (7, 8)]})
    m.update(insert={"closed": [3]})
    m.update(insert={"edge": [(5, 6)]})
    m.update(delete={"closed": [3]})
    before = m.facts()
    history = m.history("path", (1, 3))
    assert events(history) == [
        (1, False, ("edge(2, 3) vanished",)),
        (2, True, ("edge(2, 3) appeared",)),
        (3, False, ("closed(3) appeared",)),
        (5, True, ("closed(3) vanished",)),
    ]
    assert (history.holds, history.held_before, history.since) == (True, True, 1)
    assert all(event.explanation.holds for event in history.events)
    assert m.facts() == before and m.version == 5
    m.verify()
    assert events(m.history("path(7, 8)")) == [(2, True, ("edge(7, 8) appeared",))]
    assert events(m.history("sizes(3)"))[0] == (1, False, ("count : { path(_, _) } = 3 has changed",))


def test_a_fact_that_never_changed():
    """A history without events says whether the fact holds."""
    m = upheld.materialise(RULES, FACTS)
    m.update(insert={"edge": [(7, 8)]})
    assert str(m.history("path(1, 2)")) == "path(1, 2)  holds\n  held when it was materialised"
    assert str(m.history("path(2, 1)")) == "path(2, 1)  does not hold\n  did not hold when it was materialised"


def test_the_history_as_text_and_json():
    """Both have the update, the causes and the proof; the page for notebooks folds."""
    m = upheld.materialise(RULES, FACTS)
    m.update(delete={"edge": [(1, 2)]})
    history = m.history("path", (1, 2))
    assert history.to_text().splitlines()[2:6] == [
        "  update 1: vanished",
        "    because edge(1, 2) vanished",
        "    the proof before:",
        "      path(1, 2)  by <program>:2:1: path(x, y) :- edge(x, y), !closed(y).",
    ]
    told = json.loads(history.to_json())
    assert told["events"][0]["event"] == "vanished" and told["events"][0]["explanation"]["holds"]
    assert "<details" in history._repr_html_()
    assert repr(history) == "<FactHistory path(1, 2), 1 event>"


def test_equal_constants():
    """A fact that held by equality vanished with the equality, by axioms and by representatives."""
    rules = upheld.parse("PREFIX : <a:> [?x, owl:sameAs, ?y] :- [?x, :is, ?y].", dialect="dlog")
    facts = {"triple": [("<a:a>", "<a:p>", "<a:o>"), ("<a:a>", "<a:is>", "<a:b>")]}
    for equality in ("axioms", "rewrite"):
        m = upheld.materialise(rules, facts, equality=equality)
        m.update(delete={"triple": [("<a:a>", "<a:is>", "<a:b>")]})
        m.update(insert={"triple": [("<a:c>", "<a:p>", "<a:o>")]})
        history = m.history("[:b, :p, :o]")
        assert events(history) == [(1, False, ("triple(:a, :is, :b) vanished",))]
        m.verify()


def test_what_is_remembered_is_bounded(monkeypatch):
    """The oldest updates are forgotten: by their number, and by the facts that they changed."""
    monkeypatch.setattr(feeds, "UPDATES_REMEMBERED", 3)
    m = upheld.materialise("q(x) :- p(x).", {"p": [0]})
    for i in range(1, 6):
        m.update(insert={"p": [i]})
    assert m.history("q(1)").since == 3 and m.history("q(1)").held_before
    assert "held before update 3, the first remembered" in str(m.history("q(1)"))
    assert events(m.history("q(4)")) == [(4, True, ("p(4) appeared",))]
    monkeypatch.setattr(feeds, "FACTS_REMEMBERED", 50)
    m.update(insert={"p": range(100, 200)})
    assert m.history("q(100)").since == 7 and events(m.history("q(100)")) == []


def test_what_is_remembered_holds_no_tables():
    """Changes of many facts are remembered without the rows of the tables that they came from."""
    m = upheld.materialise("q(x) :- p(x).", {"p": [str(i) for i in range(5_000)]})
    m.update(delete={"p": [str(i) for i in range(1_000)]})
    assert all(table._held is None or table._held() is None for table in m._engine.tables.values())
    m.compact()
    assert events(m.history("q", ("7",))) == [(1, False, ('p("7") vanished',))]


def test_facts_that_are_not_facts():
    """A wrong fact gives the errors of `explain`."""
    m = upheld.materialise(RULES, FACTS)
    with pytest.raises(upheld.UpheldError, match="unknown relation"):
        m.history("nothing", (1,))
    with pytest.raises(upheld.UpheldError, match="must be a string"):
        m.history(7)


@pytest.mark.parametrize("seed", range(4))
def test_random_histories(seed):
    """The events of each fact are those that changes report, each has a proof and a cause, and nothing is changed."""
    chosen = random.Random(seed)
    m = upheld.materialise(RULES, {"edge": [(1, 2), (2, 3), (3, 4)], "closed": [4]})
    changes = []
    for _ in range(8):
        sides = ("insert", "delete")
        edges = {side: [(chosen.randrange(1, 5), chosen.randrange(1, 5))] for side in sides}
        update = {side: {"edge": edges[side], "closed": [chosen.randrange(1, 6)]} for side in sides}
        changes.append(m.update(**update))
    for x in range(1, 5):
        for y in range(1, 5):
            history = m.history("path", (x, y))
            expected = [
                (number, appeared)
                for number, change in enumerate(changes, 1)
                for appeared, side in ((True, change.inserted), (False, change.deleted))
                if (x, y) in side["path"]
            ]
            assert [(event.update, event.appeared) for event in history.events] == expected
            assert all(event.explanation.holds and event.causes for event in history.events)
            assert history.holds == ((x, y) in m["path"])
    m.verify(engine="reference")


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "p.dl").write_text(
        ".decl p(x:number) .input p .decl q(x:number) q(x) :- p(x), !r(x). .decl r(x:number)"
    )
    (tmp_path / "p.facts").write_text("1\n")
    (tmp_path / "updates.txt").write_text("+p(2).\ncommit.\n+r(1).\ncommit.\n-r(1).\ncommit.\n")
    return tmp_path


def explain(folder, *more):
    return main(["explain", str(folder / "p.dl"), "-F", str(folder), *more])


def test_explain_when(folder, capsys):
    """It applies the updates, and prints the events of the fact."""
    assert explain(folder, "q(1)", "--when", "--updates", str(folder / "updates.txt")) == 0
    told = capsys.readouterr().out
    assert "update 2: vanished\n    because r(1) appeared" in told
    assert "update 3: appeared\n    because r(1) vanished" in told
    assert explain(folder, "q(7)", "--when", "--updates", str(folder / "updates.txt"), "--json") == 1
    assert json.loads(capsys.readouterr().out)["events"] == []


@pytest.mark.parametrize("given", [["--when"], ["--updates", "updates.txt"]])
def test_explain_when_needs_updates(folder, given, capsys):
    """One option without the other is refused."""
    assert explain(folder, "q(1)", *given) == 2
    assert "needs" in capsys.readouterr().err


def test_the_history_of_large_updates(folder, monkeypatch, capsys):
    """A history over a file of updates has them all, however much each of them changes."""
    monkeypatch.setattr(feeds, "FACTS_REMEMBERED", 0)
    assert explain(folder, "q(1)", "--when", "--updates", str(folder / "updates.txt"), "--json") == 0
    found = json.loads(capsys.readouterr().out)["events"]
    told = [(event["update"], event["event"], event["causes"]) for event in found]
    assert told == [(2, "vanished", ["r(1) appeared"]), (3, "appeared", ["r(1) vanished"])]


def test_the_event_of_an_update(monkeypatch):
    """It is what `history` has of the last update, also of one that is too large to be remembered."""
    m = upheld.materialise(RULES, FACTS)
    change = m.update(delete={"edge": [(1, 2)]})
    event = m.event(change, "path", (1, 3))
    assert event is not None and event.to_dict() == m.history("path", (1, 3)).events[-1].to_dict()
    assert m.event(change, "path(2, 3)") is None
    monkeypatch.setattr(feeds, "FACTS_REMEMBERED", 0)
    event = m.event(m.update(insert={"edge": [(1, 2)]}), "path(1, 3)")
    assert event is not None and event.appeared and m.history("path(1, 3)").events == ()
    with m.transaction(), pytest.raises(upheld.UpheldError, match="cannot be asked for"):
        m.event(change, "path(1, 3)")


# -- verification ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("damage, told", [("add", "unexpected: `path(8, 9)`"), ("remove", "missing: `path(1, 3)`")])
def test_a_difference_is_found(engine, damage, told):
    """Verification reports a fact that should not be there, or is not there, with why."""
    m = upheld.materialise(RULES, FACTS, engine=engine)
    m.verify()
    if damage == "add":
        m._state.I |= m._engine.load("path", [(8, 9)])
    else:
        m._state.I -= m._engine.load("path", [(1, 3)])
    with pytest.raises(VerificationFailed) as error:
        m.verify()
    assert told in str(error.value) and "by recomputation: path(" in str(error.value)
    assert "after 0 updates the facts differ from recomputation" in str(error.value)


def test_an_unknown_engine():
    """It is refused as by `materialise`."""
    with pytest.raises(upheld.UpheldError, match="engine"):
        upheld.materialise(RULES, FACTS).verify(engine="oracle")


def test_random_updates_of_a_program():
    """The helper for tests makes as many updates as asked for, the same for the same seed."""
    first, second, other = (check_updates(RULES, FACTS, updates=6, seed=seed) for seed in (1, 1, 2))
    assert first.version == 6 and first.facts() == second.facts() != other.facts()


def test_random_updates_that_fail(monkeypatch):
    """The error has the updates made so far, as an update file that can be applied."""
    verify, calls = upheld.Materialisation.verify, []

    def failing(self, **options):
        calls.append(self)
        if len(calls) == 4:
            self._state.I |= self._engine.load("path", [(77, 78)])
        verify(self, **options)

    monkeypatch.setattr(upheld.Materialisation, "verify", failing)
    with pytest.raises(VerificationFailed) as error:
        check_updates(RULES, FACTS, seed=5)
    (note,) = error.value.__notes__
    assert "with seed 5" in note and note.count("commit.") == 3


def test_random_updates_of_nothing():
    """A program without explicit facts, and wrong numbers, are refused."""
    with pytest.raises(upheld.UpheldError, match="no explicit facts"):
        check_updates(".decl p(x:number) .decl q(x:number) q(x) :- p(x).")
    with pytest.raises(upheld.UpheldError, match="a whole number"):
        check_updates(RULES, FACTS, updates=-1)
