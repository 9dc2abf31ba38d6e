"""Sizes of relations before anything is derived."""

from __future__ import annotations

from tests.language.hypertrees.test_rewriting import read
from upheld.language.hypertrees.estimates import Table
from upheld.language.hypertrees.forecast import Forecast


def forecast(text: str, **tables: Table) -> Forecast:
    core = read(text)
    return Forecast(core, lambda name: tables.get(name, Table(0, (0,) * core.predicates[name].arity)))


EDGES = Table(1000, (100, 200))


def test_explicit_facts():
    assert forecast("p(x) :- e(x, y).", e=EDGES)["e"] == EDGES


def test_a_copy_and_a_projection():
    found = forecast("p(y, x) :- e(x, y). q(x) :- e(x, y). c(x, 3) :- e(x, 5).", e=EDGES)
    assert found["p"] == Table(1000, (200, 100))
    assert found["q"] == Table(100, (100,))
    assert found["c"] == Table(5, (5, 1))


def test_rules_and_explicit_facts_add_up():
    found = forecast("p(x, y) :- e(x, y). p(x, y) :- f(x, y).", e=EDGES, f=EDGES, p=Table(50, (50, 50)))
    assert found["p"] == Table(2050, (100, 200))


def test_a_join():
    assert forecast("p(x, z) :- e(x, y), f(y, z).", e=EDGES, f=EDGES)["p"] == Table(5000, (100, 200))


def test_recursion_counts_once():
    """A low estimate: one round on top of what other rules derive, though the recursive rule is written first."""
    found = forecast("p(x, z) :- p(x, y), e(y, z). p(x, y) :- e(x, y).", e=EDGES)
    assert found["p"] == Table(6000, (100, 200))


def test_mutual_recursion_ends():
    found = forecast("p(x, y) :- q(x, y). q(x, y) :- p(x, y). p(x, y) :- e(x, y).", e=EDGES)
    assert found["q"].rows >= 1000 and found["p"].rows >= 1000


def test_rules_without_facts_derive_nothing():
    assert forecast("p(x, z) :- e(x, y), n(y, z).", e=EDGES)["p"].rows == 0


def test_computed_values():
    """Each is taken to be another."""
    assert forecast("p(x, w) :- e(x, y), w = x + y.", e=EDGES)["p"] == Table(1000, (100, 1000))
