"""The cost model of `adaptive`: what it expects, what it learns, and that it chooses otherwise then."""

import numpy as np
import pytest

import upheld
from upheld.engines.memory.rounds.strata import small_strata
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.storage.arrays import BITS
from upheld.maintain import cost_model
from upheld.maintain.cost_model import Experience, Part, Prices, Ratio

#: Costs of a derivation.
PRICES = Prices(losing=2.1, gaining=1.8, again=1.0)


def test_ratios_begin_with_an_assumption_and_follow_experience():
    ratio = Ratio(7.0)
    assert ratio.value == pytest.approx(7.0)
    ratio.learn(2.0 * cost_model.EVIDENCE, cost_model.EVIDENCE)
    assert ratio.value == pytest.approx(4.5)
    for _ in range(200):
        ratio.learn(0.02, 0.01)
    assert ratio.value == pytest.approx(2.0, abs=0.05)


def test_experience_that_is_long_past_fades():
    """However long a ratio was the same, it follows another one soon."""
    ratio = Ratio(1.0)
    for _ in range(10_000):
        ratio.learn(0.1, 0.1)
    for _ in range(10):
        ratio.learn(0.5, 0.1)
    assert ratio.value > 4


@pytest.mark.parametrize("part", [0.001, 0.05, 0.5])
def test_an_elasticity_expects_again_what_it_has_seen(part):
    elasticity = Ratio(7.0)
    for _ in range(1_000):
        elasticity.learn_share(1 - (1 - part) ** 3, part)
    assert elasticity.value == pytest.approx(3.0, rel=0.05)
    assert elasticity.share(part) == pytest.approx(1 - (1 - part) ** 3, rel=0.05)


def test_all_of_the_facts_take_all_derivations_with_them():
    elasticity = Ratio(0.5)
    assert (elasticity.share(0.0), elasticity.share(1.0)) == (0.0, 1.0)
    elasticity.learn_share(1.0, 1.0)  # teaches nothing, and fails no logarithm
    assert elasticity.value == pytest.approx(0.5)


def test_maintaining_is_expected_to_cost_more_with_more_that_goes():
    experience = Experience(7.0, 3.0)
    forecasts = [experience.forecast(10_000, Part(gone, 0.0, 0.0, 0.0), PRICES, 9) for gone in (0.001, 0.02, 0.1, 0.5)]
    assert [f.maintaining for f in forecasts] == sorted(f.maintaining for f in forecasts)
    assert [f.again for f in forecasts] == sorted((f.again for f in forecasts), reverse=True)
    assert [f.prefers_again for f in forecasts] == [False, False, True, True]


def test_insertions_are_maintained_unless_most_facts_are_new():
    experience = Experience(7.0, 3.0)
    new = (0.01, 0.1, 0.6)
    assert [experience.forecast(10_000, Part(0.0, part, 0.0, 0.0), PRICES, 100).prefers_again for part in new] == [
        False,
        False,
        True,
    ]


def test_updates_that_delete_and_insert_teach_nothing():
    """It would not be known which derivations are back, and which are new."""
    experience = Experience(7.0, 3.0)
    experience.learn(experience.forecast(10_000, Part(0.1, 0.1, 0.0, 0.0), PRICES, 100), 5_000, 9_000)
    assert (experience.lost.value, experience.net.value) == pytest.approx((7.0, 3.0))


def test_what_is_only_assumed_does_not_last():
    """Starting again shows that little goes: deletion is not expected to take everything away for ever."""
    experience, tenth = Experience(7.0, 3.0), Part(0.1, 0.0, 0.0, 0.0)
    first = experience.forecast(10_000, tenth, PRICES, 100)
    assert first.prefers_again
    experience.learn(first, None, 9_000)
    assert not experience.forecast(10_000, tenth, PRICES, 100).prefers_again


def test_what_deletion_has_shown_lasts():
    """It takes everything away, and all comes back: to start again each time does not call that into question."""
    experience, tenth = Experience(7.0, 3.0), Part(0.1, 0.0, 0.0, 0.0)
    for _ in range(5):
        experience.learn(experience.forecast(10_000, tenth, PRICES, 100), 10_000, 10_000)
    for _ in range(100):
        forecast = experience.forecast(10_000, tenth, PRICES, 100)
        assert forecast.prefers_again
        experience.learn(forecast, None, 10_000)


def test_an_insertion_is_expected_to_bring_what_the_deletion_took():
    experience = Experience(7.0, 3.0)
    for _ in range(100):
        experience.learn(experience.forecast(10_000, Part(0.4, 0.0, 0.0, 0.0), PRICES, 100), None, 5_000)
    again = experience.forecast(5_000, Part(0.0, 0.4, 0.0, 0.0), PRICES, 100).again
    assert again == pytest.approx(10_100, rel=0.01)


def test_searches_in_vain_become_rare():
    """One update goes without after the first, three after the second; a proof makes searches worth it again."""
    experience = Experience(7.0, 3.0)
    done = []
    for _ in range(8):
        done.append(experience.searches())
        if done[-1]:
            experience.has_searched(is_found=False)
    assert done == [True, False, True, False, False, False, True, False]
    experience.has_searched(is_found=True)
    assert experience.searches()


def test_bindings_cost_something_on_both_sides():
    """Costs that do not depend on derivations then matter less."""
    experience, part = Experience(1.0, 1.0), Part(0.35, 0.0, 0.0, 0.0)
    easy, hard = (cost_model.prices(10_000, 10_000, 10_000, bindings) for bindings in (0, 100_000))
    assert hard.losing - easy.losing == pytest.approx(10 * cost_model.TRYING_CHANGED)
    assert hard.gaining - easy.gaining == pytest.approx(10 * cost_model.TRYING_CHANGED)
    assert hard.again - easy.again == pytest.approx(10 * cost_model.TRYING)
    assert not experience.forecast(10_000, part, easy, 5_000).prefers_again
    assert experience.forecast(10_000, part, hard, 5_000).prefers_again


def test_repeated_derivations_are_cheap_to_change():
    """Where each fact has a hundred derivations, few of those that change take a fact with them, or bring one."""
    once, often = (cost_model.prices(10_000, first, 10_000, 0) for first in (10_000, 100))
    assert (once.losing, once.gaining) == (cost_model.LOSING, cost_model.GAINING)
    assert often.losing < 0.25 * once.losing
    assert often.gaining < 0.25 * once.gaining


@pytest.mark.parametrize(("trying", "choice"), [(0.0, "maintained"), (cost_model.TRYING, "started again")])
def test_joins_that_try_much_and_find_little(trying, choice, monkeypatch):
    """A quarter of the edges takes few triangles away, but each of them takes long to find."""
    monkeypatch.setattr(cost_model, "TRYING", trying)
    monkeypatch.setattr(cost_model, "TRYING_CHANGED", 2 * trying)
    edges = np.unique(np.random.default_rng(3).integers(0, 300, (6_000, 2)), axis=0)
    rules = "triangle(x, y, z) :- edge(x, y), edge(y, z), edge(z, x)."
    m = upheld.materialise(rules, {"edge": edges}, engine="memory", decompose="never")
    change = m.update(delete={"edge": edges[::4]})
    assert change.statistics.choices[-1].startswith(f"all strata: {choice} since ")
    left = np.delete(edges, np.s_[::4], axis=0)
    assert set(m["triangle"]) == set(upheld.materialise(rules, {"edge": left}, algorithm="dred")["triangle"])


def test_bindings_follow_the_derivations():
    """Three complete relations: n ** 3 bindings on the way to n ** 4 derivations, and fewer to those that are left."""
    n = 8
    pairs = [(i, j) for i in range(n) for j in range(n)]
    facts = {"a": pairs, "b": pairs, "c": pairs}
    m = upheld.materialise("far(x, w, 0) :- a(x, y), b(y, z), c(z, w).", facts, engine="memory")
    (s,) = m._state.strata.with_rules
    ranks = m._state.bookkeeping.ranks
    assert (ranks.derivations(s), ranks.bindings(s)) == (n**4, n**3)
    m.update(delete={"a": [(0, j) for j in range(n)]})
    assert (ranks.derivations(s), ranks.bindings(s)) == (n**4 - n**3, n**3 - n**2)


@pytest.mark.parametrize("engine", ["reference", "memory"])
def test_adaptive_chooses_otherwise_once_it_has_learned(engine, monkeypatch):
    """A tenth of the edges seems to be much of a recursive program, until small updates show that nothing goes."""
    monkeypatch.setattr(small_strata, "MOST_SEEDS", -1)  # strata that a kernel maintains teach nothing
    monkeypatch.setattr(cost_model, "FEW_FACTS", 0)
    monkeypatch.setattr(cost_model, "RENEWING", 0)
    rules = "path(x, y) :- edge(x, y, _). path(x, z) :- path(x, y), path(y, z)."
    nodes = range(16)
    edges = [(x, y, k) for k in range(3) for x in nodes for y in nodes]

    def delete_and_insert(count: int) -> str:
        change = m.update(delete={"edge": edges[:count]})
        assert not change.deleted["path"]
        m.update(insert={"edge": edges[:count]})
        return change.statistics.choices[-1]

    m = upheld.materialise(rules, {"edge": edges}, engine=engine)
    assert delete_and_insert(76).startswith("all strata: started again since maintaining was expected to cost ")
    for _ in range(12):
        assert delete_and_insert(8).startswith("all strata: maintained since starting again was expected to cost ")
    assert delete_and_insert(76).startswith("all strata: maintained since starting again was expected to cost ")
    assert m.facts() == upheld.materialise(rules, {"edge": edges}, engine="reference").facts()


@pytest.mark.parametrize(
    ("head", "repeated"), [("two(x, z)", cost_model.REPEATED_PAIR), ("two(x, z, 0)", cost_model.REPEATED)]
)
def test_another_derivation_of_a_fact_costs_less(head, repeated):
    """Less than the first one, and least if the fact is a pair."""
    edges = [(x, y) for x in range(16) for y in range(16)]
    m = upheld.materialise(f"{head} :- edge(x, y), edge(y, z).", {"edge": edges})
    state, first = m._state, 16**2
    cost = cost_model.deriving_all(state.strata, state.bookkeeping.ranks, state.I)
    assert cost == pytest.approx(first + repeated * (16**3 - first))


def test_sets_of_strata_that_are_done_are_let_go(monkeypatch):
    """Each stratum deletes into a set of its own. Many at once would run out of bits, and lend them to each other."""
    monkeypatch.setattr(small_strata, "MOST_SEEDS", -1)
    lent = []
    monkeypatch.setattr(Named, "lend", lent.append)
    rules = "".join(f"p{i + 1}(x) :- p{i}(x), p{i}(y), x = y. " for i in range(3 * BITS))
    rows = range(cost_model.SMALL + 100)
    m = upheld.materialise(rules, {"p0": rows})
    for _ in range(2):
        change = m.update(delete={"p0": rows[:80]})
        assert len(change.deleted[f"p{3 * BITS}"]) == 80
        m.update(insert={"p0": rows[:80]})
    assert not lent
