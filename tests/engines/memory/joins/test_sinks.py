"""Heads that are known to be new are appended without a look into the tuple index, and everything else is as before."""

from __future__ import annotations

from random import Random

import pytest

import upheld
from upheld.maintain.registry import ALGORITHMS

STAR = "star(k, a, b) :- one(k, a), two(k, b)."

#: Programs, and whether no row of `star` is looked up when it is materialised.
PROGRAMS = {
    "all variables in the head": (STAR, True),
    "variables in another order, with a constant": ("star(b, 7, k, a) :- one(k, a), two(k, b).", True),
    "with negation and comparison": ("star(k, a, b) :- one(k, a), two(k, b), !gone(a, k), a < b.", True),
    "one atom": ("star(a, k) :- one(k, a).", True),
    "a repeated variable": ("star(k, b) :- one(k, k), two(k, b).", True),
    "an assignment": ("star(k, a, c) :- one(k, a), c = k + a.", True),
    "a variable that the head lacks": ("star(k, a) :- one(k, a), two(k, _).", False),
    "two rules": (STAR + "\nstar(k, a, a) :- one(k, a), two(_, a).", False),
    "the same rule under other names": (STAR + "\nstar(x, y, z) :- one(x, y), two(x, z), x < 9.", False),
    "many copies": ("star(x) :- gone(x, 1).\nstar(x) :- gone(x, 2).\nstar(x) :- gone(1, x).", False),
    "explicit facts": (STAR + "\nstar(1, 1, 1).\nstar(1, 2, 3).", False),
    "recursion": ("star(k, a) :- one(k, a).\nstar(k, b) :- star(k, a), two(a, b).", False),
    "recursion with all variables": ("star(k, a) :- one(k, a).\nstar(a, k) :- star(k, a).", False),
    "a reader": (STAR + "\nread(k) :- star(k, a, b), !star(k, b, a).", False),
}
RELATIONS = ("one", "two", "gone")


def random_facts(r: Random, count: int) -> dict[str, list[tuple[int, int]]]:
    return {name: [(r.randrange(6), r.randrange(6)) for _ in range(count)] for name in RELATIONS}


def whole(rules: str) -> str:
    """Return a program that reads all relations."""
    return rules + "\nread_all(x) :- one(x, _), two(x, _), gone(x, _)."


def indexed_rows(m: upheld.Materialisation, name: str) -> tuple[int, int]:
    """Return how many rows the tuple index of a table has, and how many there are."""
    table = m._engine.tables[name]
    return table._indexed, table.n


@pytest.mark.parametrize("name", PROGRAMS)
def test_distinct_heads_are_appended(name):
    """A tuple index is made for those tables whose heads might repeat, and for no others."""
    rules, is_appended = PROGRAMS[name]
    m = upheld.materialise(whole(rules), random_facts(Random(1), 20), engine="memory", algorithm="rematerialise")
    known, count = indexed_rows(m, "star")
    assert count and (known == 0) == is_appended


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@pytest.mark.parametrize("name", PROGRAMS)
def test_updates_of_appended_facts(name, algorithm):
    """Facts are found, deleted and come back as they do on the reference engine."""
    rules, _ = PROGRAMS[name]
    r = Random(2)
    facts = random_facts(r, 20)
    m = upheld.materialise(whole(rules), facts, engine="memory", algorithm=algorithm)
    reference = upheld.materialise(whole(rules), facts, engine="reference", algorithm="rematerialise")
    assert m["star"].to_set() == reference["star"].to_set()
    assert all(row in m["star"] for row in reference["star"])
    for _ in range(6):
        deleted, inserted = random_facts(r, 4), random_facts(r, 3)
        changes = [each.update(delete=deleted, insert=inserted) for each in (m, reference)]
        assert m["star"].to_set() == reference["star"].to_set()
        gone, come = ([getattr(c, way)["star"].to_set() for c in changes] for way in ("deleted", "inserted"))
        assert gone[0] == gone[1] and come[0] == come[1]


def test_appended_facts_of_many_batches():
    """Results of several batches of bindings are distinct, counted, and found again by their values."""
    count = 70_000
    facts = {"one": [(k % 1000, k) for k in range(count)], "two": [(k, -k) for k in range(1000) for _ in (0, 1)]}
    m = upheld.materialise(STAR, facts, engine="memory", algorithm="rematerialise")
    assert indexed_rows(m, "star") == (0, count)
    assert len(m["star"]) == count
    assert (999, 69_999, -999) in m["star"] and (999, 69_998, -999) not in m["star"]
    change = m.update(delete={"two": [(5, -5)]})
    assert len(change.deleted["star"]) == count // 1000
