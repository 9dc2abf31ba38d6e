"""Kernels made for rules, as plain Python: they meet what the generic kernels meet, wherever they stop and go on.

`test_kernels_modes.py` runs this without compilation, since to compile each of these rules would take a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.engines.memory.joins.test_hot_rules import hot
from tests.helpers.programs.strategies import Case, cases, cyclic_cases, typed_cases
from tests.helpers.sizes import examples
from upheld.base.errors import EvaluationError
from upheld.engines.memory.joins import batch, strategies
from upheld.engines.memory.kernels import hashing


@contextmanager
def impatient() -> Iterator[None]:
    """Kernels of rules come back after every few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "PATIENCE", 8)  # more than the loops of a nest, so that it gets on
        patch.setattr(batch, "pair_room", lambda width: 3)
        yield


def told(case: Case, algorithm: str) -> list[object]:
    """Return all that a case tells: facts, changes, and the instances met in each phase."""
    try:
        m = upheld.materialise(case.program, case.facts, algorithm=algorithm)
        found: list[object] = [{name: set(m[name]) for name in m.relations}, dict(m.statistics.instances)]
        for update in case.updates:
            change = m.update(insert=update.insertions, delete=update.deletions)
            found += [str(change), dict(change.statistics.instances)]
    except EvaluationError as error:  # arithmetic that has no result
        return [error.problems[0].slug]
    return found


@examples(40)
@given(st.one_of(cases(2), typed_cases(2), cyclic_cases(2)), st.sampled_from(["dred", "bf", "ranked"]))
def test_same_as_the_generic_kernels(case, algorithm):
    with hot(), impatient():
        own = told(case, algorithm)
    assert own == told(case, algorithm)


@examples(40)
@given(st.one_of(cases(2), cyclic_cases(2)))
def test_same_bindings_as_by_the_generic_kernels(case):
    """The bindings on the way to instances are counted alike, or choices would depend on when a kernel is ready."""

    def bindings(after: int) -> list[int]:
        with hot(after):
            try:
                m = upheld.materialise(case.program, case.facts, engine="memory")
            except EvaluationError:  # arithmetic that has no result
                return []
            return [m._state.bookkeeping.ranks.bindings(s) for s in m._state.strata.with_rules]

    with impatient():
        own = bindings(0)
    assert own == bindings(1 << 60)


def test_bindings_of_a_chain():
    """Kernels come back again and again, and count each binding once."""
    everything = [(i, j) for i in range(5) for j in range(5)]
    facts = {"a": everything, "b": everything, "c": everything}
    with hot() as ran, impatient():
        m = upheld.materialise("far(x, w) :- a(x, y), b(y, z), c(z, w).", facts, engine="memory")
        (s,) = m._state.strata.with_rules
        assert m._state.bookkeeping.ranks.bindings(s) == 5**3
    assert ran


def test_programs_run_by_kernels_of_their_own():
    """Those tests do not pass because no rule ever gets a kernel."""
    program = """
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    lonely(x, y) :- edge(x, y), node(y), !path(y, x), !edge(7, y).
    loop(x) :- node(x), pair(x, y, y).
    """
    edges = [(1, 2), (2, 3), (3, 1), (3, 4), (7, 5), (1, 3), (2, 4)]
    facts = {"edge": edges, "node": [(k,) for k in range(8)], "pair": [(1, 2, 2), (1, 3, 3), (2, 1, 3), (4, 4, 4)]}
    case = Case(program, facts)
    with hot() as ran, impatient():
        own = told(case, "dred")
    assert own == told(case, "dred")
    assert {rule.partition("(")[0] for rule in ran} == {"path", "lonely", "loop"}


def test_a_rule_that_proves_hot_in_the_middle_of_a_run(monkeypatch):
    """Its kernel takes over with the next batch, and meets what is left."""
    case = Case("far(x, z) :- edge(x, y), edge(y, z).", {"edge": [(i, j) for i in range(12) for j in range(12)]})
    expected = told(case, "dred")
    monkeypatch.setattr(batch, "FEWEST_ROWS", 1)
    monkeypatch.setattr(strategies, "MOST_BINDINGS", 24)
    with hot(after=100) as ran:
        own = told(case, "dred")
    assert own == expected
    assert 40 < len(ran) < 72  # of 72 batches of 24 bindings, the first ones have shown that it is hot
