"""Small updates go from rows to rows, and come to what the operators come to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

import upheld
from upheld.engines.memory.rounds.strata import kernel
from upheld.engines.memory.rounds.strata.small_update import ChangeLines, MemoryUpdate
from upheld.engines.memory.sets.named import Named
from upheld.facts.change import Change
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.versions.views import History

PROGRAM = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lonely(x) :- node(x), !path(x, x).
far(x, y) :- path(x, y), !edge(x, y).
"""
TRIPLES = """
t(x, "b", z) :- t(x, "a", z).
t(x, "b", z) :- t(x, "b", y), t(y, "b", z).
t(x, "c", x) :- t(x, "b", x).
t(x, "d", y) :- t(x, "a", y), !t(x, "c", x).
"""
SIDES = ("inserted", "deleted", "asserted", "retracted", "ignored")


class Outcomes(list[bool]):
    """Whether each small update was made as a whole."""


@contextmanager
def counted() -> Iterator[Outcomes]:
    """Count the small updates in the block."""
    outcomes, make = Outcomes(), MemoryUpdate.make

    def counting(self: MemoryUpdate, I: Any) -> Any:
        made = make(self, I)
        outcomes.append(made is not None)
        return made

    with patch.object(MemoryUpdate, "make", counting):
        yield outcomes


def rows(change: Change) -> dict[str, dict[str, set[tuple[Any, ...]]]]:
    """Return the rows of all sides of a change."""
    return {side: {name: r.to_set() for name, r in getattr(change, side).items() if len(r)} for side in SIDES}


def numbers(m: Materialisation) -> dict[Any, Any]:
    return dict(m._state.bookkeeping.ranks.items())


def some_edges(random: Random) -> list[tuple[int, int]]:
    return [(random.randrange(7), random.randrange(7)) for _ in range(random.randrange(3))]


@pytest.mark.parametrize("algorithm", ["ranked", "adaptive"])
def test_as_the_reference_engine(algorithm):
    """Changes, facts, numbers and statistics are the same, also where updates repeat or delete and insert a fact."""
    random = Random(6)
    facts = {"edge": {(i, i * 3 % 7) for i in range(7)}, "node": {(i,) for i in range(8)}}
    small, reference = (
        upheld.materialise(PROGRAM, facts, engine=engine, algorithm=algorithm) for engine in ("memory", "reference")
    )
    with counted() as outcomes:
        for _ in range(40):
            update = {
                "delete": {"edge": some_edges(random), "node": [(random.randrange(9),)]},
                "insert": {"edge": some_edges(random) * 2, "node": [(random.randrange(9),)]},
            }
            one, two = small.update(**update), reference.update(**update)
            assert rows(one) == rows(two), update
            assert one.statistics.instances == two.statistics.instances
            assert (one.statistics.rounds, one.statistics.facts) == (two.statistics.rounds, two.statistics.facts)
            assert small.facts() == reference.facts()
            assert numbers(small) == numbers(reference)
    assert len(outcomes) == 40 and all(outcomes)


def test_relations_with_several_strata():
    """The stratum of a triple depends on its constants; new texts get codes, and known ones keep theirs."""
    random = Random(3)
    facts = {"t": {(x, "a", y) for x, y in zip("pqrs", "qrst", strict=True)}}
    small, reference = (upheld.materialise(TRIPLES, facts, engine=engine) for engine in ("memory", "reference"))
    with counted() as outcomes:
        for k in range(30):
            fact = random.choice("pqrstu"), random.choice("aabe"), random.choice(["p", "q", "r", f"new {k}"])
            update = {random.choice(["insert", "delete"]): {"t": [fact]}}
            assert rows(small.update(**update)) == rows(reference.update(**update)), update
    assert small.facts() == reference.facts()
    assert len(outcomes) == 30 and all(outcomes)


def test_wide_values_and_many_rows():
    """A table gets wider values and more rows while an update looks for its facts."""
    m = upheld.materialise("q(y) :- p(_, y).", {"p": [(1, 2)]}, algorithm="ranked")
    new = [(2**40 + k, -k) for k in range(200)]
    with counted() as outcomes:
        assert rows(m.update(insert={"p": new}))["inserted"] == {"p": set(new), "q": {(-k,) for k in range(200)}}
        assert rows(m.update(delete={"p": [(2**40, 0), (5, 2**50)]}))["ignored"] == {"p": {(5, 2**50)}}
    assert outcomes == [True, True]
    assert m["p"].to_set() == {(1, 2), *new[1:]}
    assert m["q"].to_set() == {(2,), *((-k,) for k in range(1, 200))}


def test_floats_unsigned_and_no_columns():
    program = ".decl p(x: float, y: unsigned)\n.decl ok()\n.decl q(x: float, y: unsigned)\nq(x, y) :- p(x, y), ok()."
    small, reference = (
        upheld.materialise(program, {"p": [(0.5, 2**64 - 1)]}, engine=engine) for engine in ("memory", "reference")
    )
    for update in (
        {"insert": {"ok": [()], "p": [(-0.0, 3), (float("inf"), 0)]}},
        {"delete": {"p": [(0.0, 3), (0.5, 2**64 - 1)]}},
        {"delete": {"ok": [()]}},
    ):
        assert rows(small.update(**update)) == rows(reference.update(**update))
        assert small.facts() == reference.facts()


def test_left_to_the_operators():
    """An update that comes to an aggregate is undone and made by the operators; the next ones do not try in vain."""
    program = PROGRAM + "size(n) :- n = count : { far(_, _) }.\nlarge(x) :- node(x), size(n), n > 3.\n"
    random, facts = Random(9), {"edge": {(0, 1), (1, 2)}, "node": {(i,) for i in range(5)}}
    small, reference = (upheld.materialise(program, facts, engine=engine) for engine in ("memory", "reference"))
    with counted() as outcomes:
        for _ in range(40):
            update = {"delete": {"edge": some_edges(random)}, "insert": {"edge": some_edges(random)}}
            assert rows(small.update(**update)) == rows(reference.update(**update)), update
            assert numbers(small) == numbers(reference)
    assert 0 < outcomes.count(False) < 5


def test_the_time_of_the_kernel_is_that_of_its_rules(monkeypatch):
    m = upheld.materialise("q(x) :- p(x).", {"p": [1, 2]}, algorithm="ranked")
    m.update(delete={"p": [1]})
    original = kernel.maintain_strata

    def slow(*arguments: Any) -> None:
        time.sleep(0.02)
        original(*arguments)

    before = seconds_of_rules(m)
    monkeypatch.setattr(kernel, "maintain_strata", slow)
    m.update(delete={"p": [2]})
    assert seconds_of_rules(m) - before >= 0.02


def seconds_of_rules(m: Materialisation) -> float:
    return sum(rule.seconds for rule in m.profile().rules if rule.place)


def test_changes_outlive_what_they_speak_of():
    """A change has the rows of its version, also when their texts are gone and their codes are used again."""
    m = upheld.materialise("q(x) :- p(x).", {"p": ["a", "b"]}, algorithm="ranked")
    changes = []
    for k in range(50):
        changes += [m.update(insert={"p": [(f"text {k}",)]}), m.update(delete={"p": [(f"text {k}",)]})]
        if k % 10 == 9:
            m.compact()
    for k in range(50):
        text = {(f"text {k}",)}
        assert rows(changes[2 * k])["inserted"] == rows(changes[2 * k + 1])["deleted"] == {"p": text, "q": text}


class Stop(Exception):
    """Raised in the middle of an update."""


@pytest.mark.parametrize(
    "where",
    [
        (MemoryUpdate, "_write"),
        (MemoryUpdate, "_run"),
        (MemoryUpdate, "_by_side"),
        (MemoryUpdate, "_count_strata"),
        (MemoryUpdate, "_tell_meter"),
        (MemoryUpdate, "close"),
        (Named, "has_changed"),
        (ChangeLines, "__init__"),
        (History, "after"),
    ],
    ids=lambda where: where[1].strip("_"),
)
@pytest.mark.parametrize("is_after", [False, True])
def test_failure_in_the_middle(where, is_after, monkeypatch):
    """Whatever fails, all is as it was, and the next update goes on from there."""
    owner, name = where
    facts = {"edge": [(i, i + 1) for i in range(6)], "node": [(i,) for i in range(8)]}
    m = upheld.materialise(PROGRAM, facts, algorithm="ranked")
    m.update(insert={"edge": [(6, 7)]})
    original = getattr(owner, name)
    update = {"delete": {"edge": [(2, 3)]}, "insert": {"edge": [(3, 1), (9, 9)]}}
    for at in (1, 2):
        before, counts, calls = m.facts(), numbers(m), at

        def fails(self: Any, *arguments: Any) -> Any:
            nonlocal calls
            calls -= 1
            if calls == 0 and not is_after:
                raise Stop
            done = original(self, *arguments)
            if calls == 0:
                raise Stop
            return done

        with monkeypatch.context() as context:
            context.setattr(owner, name, fails)
            try:
                m.update(**update)
            except Stop:
                assert m.facts() == before
                assert numbers(m) == counts
                assert not m._engine.context.bits.nobodys()
        m.update(**update)
        m.update(delete=update["insert"], insert=update["delete"])
        assert m.facts() == before
    there = {"edge": [*facts["edge"], (6, 7)], "node": facts["node"]}
    assert m.facts() == upheld.materialise(PROGRAM, there, engine="reference").facts()


def test_in_a_transaction():
    """Small updates of a transaction are undone together, and one that fails alone."""
    m = upheld.materialise(PROGRAM, {"edge": [(0, 1), (1, 2)], "node": [(0,), (1,)]}, algorithm="ranked")
    before, counts = m.facts(), numbers(m)
    with counted() as outcomes, m.transaction() as t:
        m.update(insert={"edge": [(2, 0)]})
        inside = m.facts()
        with patch.object(MemoryUpdate, "_tell_meter", side_effect=Stop), pytest.raises(Stop):
            m.update(delete={"edge": [(0, 1)]})
        assert m.facts() == inside
        m.update(delete={"edge": [(0, 1)]})
        t.rollback()
    assert outcomes == [True, True]
    assert (m.facts(), numbers(m)) == (before, counts)


def test_streams():
    """Updates of a stream are small as well."""
    m = upheld.materialise(PROGRAM, {"edge": [(0, 1)], "node": [(0,)]})
    updates = [{"insert": {"edge": [(k, k + 1)]}} for k in range(1, 6)]
    with counted() as outcomes:
        changes = list(m.stream(updates))
    assert outcomes == [True] * 5
    assert [len(change.inserted["path"]) for change in changes] == [2, 3, 4, 5, 6]
    with counted() as outcomes:
        changes = list(m.stream([{"insert": {"edge": [(6, 7)]}}, {"delete": {"edge": [(6, 7)]}}]))
    assert outcomes == [True, True]
    assert rows(changes[0])["inserted"]["path"] == rows(changes[1])["deleted"]["path"] == {(k, 7) for k in range(7)}


@pytest.mark.parametrize("arity", [4, 5, 16])
def test_wide_relations(arity):
    """Changes have all columns, however many relations have: also those of relations that no update has met before."""
    names = ", ".join(f"x{i}" for i in range(arity))
    rules = f"wide({names}) :- given({names}). first(x0) :- wide({names})."
    m = upheld.materialise(rules, {"given": [tuple(range(arity)), tuple(range(1, arity + 1))]}, algorithm="ranked")
    with counted() as made:
        for _ in range(3):
            change = m.update(insert={"given": [(7,) * arity]}, delete={"given": [tuple(range(arity))]})
            assert change.inserted["wide"].to_set() == {(7,) * arity}
            assert change.deleted["wide"].to_set() == {tuple(range(arity))}
            m.update(insert={"given": [tuple(range(arity))]}, delete={"given": [(7,) * arity]})
    assert any(made)
