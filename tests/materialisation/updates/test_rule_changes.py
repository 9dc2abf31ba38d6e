"""Changes of rules: the new program holds as if it had been materialised, and what fails changes nothing."""

from __future__ import annotations

import pytest

from tests.helpers.streams.rule_changes import follow
from tests.helpers.streams.streams import NAMES, Recomputed, assert_recomputed, held
from upheld import UpheldError, materialise, parse, restore
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.representation import Plain
from upheld.materialisation.updates.rule_changes import refuse_rule_changes

REACH = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
EDGES = {"edge": [(1, 2), (2, 3), (3, 1), (3, 4)]}


def recounted(m: Materialisation) -> None:
    """Facts and bookkeeping are those of recomputation."""
    explicit = {(p, row) for p in m._core.predicates for row in m._state.E.rows(p)}
    assert_recomputed(m, Recomputed(m._core, m._strata, explicit))


@pytest.mark.parametrize("engine", ["memory", "reference"])
@pytest.mark.parametrize("algorithm", NAMES)
def test_random_rule_changes(algorithm, engine):
    for seed in range(2):
        follow(seed + 2 * NAMES.index(algorithm), engine, algorithm, steps=4)


@pytest.mark.parametrize("algorithm", ["adaptive", "counting", "dred", "dred-c"])
def test_strata_that_merge(algorithm):
    """A rule makes two strata mutually recursive: the rest of them is counted as recursive from then on."""
    rules = "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z). q(x, y) :- p(x, y), f(y). q(x, z) :- q(x, y), p(y, z)."
    facts = {"e": [(1, 2), (2, 3), (4, 5)], "f": [3, 5]}
    m = materialise(rules, facts, algorithm=algorithm)
    added = "p(y, x) :- q(x, y), f(y)."
    m.change_rules(add=added)
    assert m.facts() == materialise(rules + added, facts).facts()
    recounted(m)
    m.update(delete={"e": [(2, 3)]})
    m.change_rules(remove=added)
    assert m.facts() == materialise(rules, {"e": [(1, 2), (4, 5)], "f": [3, 5]}).facts()
    recounted(m)


def test_removed_strata_do_not_prevent_other_negation():
    """Both programs together have no stratification; one after the other does."""
    m = materialise("p(x) :- q(x), e(x).", {"e": [1, 2], "q": [2]})
    m.change_rules(add="q(x) :- e(x), !p(x).", remove="p(x) :- q(x), e(x).")
    assert m["q"].to_set() == {(1,), (2,)}
    recounted(m)


def test_facts_that_come_back_in_the_second_step():
    """Where one program goes before the other comes, a fact of both is not in the change."""
    m = materialise("p(x) :- q(x), e(x).", {"e": [1, 2], "q": [2]}, algorithm="dred")
    change = m.change_rules(add="q(x) :- e(x), !p(x). p(x) :- e(x), x > 1.", remove="p(x) :- q(x), e(x).")
    assert repr(change) == "<Change +1 q>"


def test_a_rule_without_atoms_in_the_coarsest_strata():
    """Its guard was in its own stratum, which must not make it recursive: later updates would not apply it."""
    m = materialise("p(x) :- e(x).", {"e": [1]}, algorithm="rematerialise", stratification="coarsest")
    m.change_rules(add="q(n) :- n = range(0, 3).")
    m.update(insert={"e": [2]})
    assert m["q"].to_set() == {(0,), (1,), (2,)}


def test_cost_is_that_of_the_instances():
    """A rule beside a long chain is added and removed by its own instances alone."""
    m = materialise(REACH, {"edge": [(i, i + 1) for i in range(80)]})
    change = m.change_rules(add="near(x) :- edge(x, y), x < 3.")
    assert len(change.inserted["near"]) == 3
    assert change.statistics.instances.total() < 200  # of 3,000
    assert m.change_rules(remove="near(x) :- edge(x, y), x < 3.").statistics.instances.total() < 200


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        ({"add": "path(x, w) :- edge(x, y)."}, "unsafe-head"),
        ({"add": "edge(x, y) :- path(x, y), !path(y, x)."}, "negation-in-recursion"),
        ({"add": "path(x y)."}, "syntax"),
        ({"add": 'path(x, "a") :- edge(x, _).'}, "type-clash"),
        ({"add": "path(x) :- edge(x, _)."}, "arity-clash"),
        ({"remove": "path(x, y) :- edge(y, x)."}, "unknown-rule"),
        ({"remove": "edge(7, 8)."}, "unknown-rule"),
        ({"remove": ".decl edge(x:number)"}, "not-a-rule"),
        ({"add": "p(1).", "replace": "p(2)."}, "ambiguous-change"),
        ({"replace": ".decl edge(x:symbol, y:symbol)"}, "relation-changed"),
        ({"add": "big(n) :- n = sum x * 9223372036854775807 : { edge(x, _) }."}, "undefined-result"),
        ({"add": 7}, "bad-argument"),
    ],
)
def test_refused(given, slug):
    m = materialise(REACH, EDGES)
    before, version = held(m), m.version
    with pytest.raises(UpheldError) as error:
        m.change_rules(**given)
    assert list(error.value.slugs) == [slug]
    assert (held(m), m.version, m.relations) == (before, version, ("edge", "path"))
    recounted(m)
    assert m.change_rules(add="node(x) :- edge(x, _).")


def test_refused_with_rewriting():
    rules = parse("PREFIX : <http://e/> [?x, owl:sameAs, ?y] :- [?x, :is, ?y].", dialect="dlog")
    m = materialise(rules, equality="rewrite")
    with pytest.raises(UpheldError) as error:
        m.change_rules(add="[?x, :p, ?x] :- [?x, :is, ?y].")
    assert list(error.value.slugs) == ["fixed-rules"]
    assert materialise(rules, equality="axioms").change_rules(add="[?x, :p, ?x] :- [?x, :is, ?y].") is not None


def test_refused_in_tasks():
    with pytest.raises(UpheldError) as error:
        refuse_rule_changes(Plain, in_tasks=True)
    assert list(error.value.slugs) == ["fixed-rules"]


def test_relations_with_explicit_facts_stay():
    m = materialise("q(x) :- p(x). p(3).", {"p": [1], "r": [5]})
    change = m.change_rules(replace="s(x) :- t(x).")
    assert change.deleted["q"].to_set() == {(1,), (3,)}
    assert change.retracted["p"].to_set() == {(3,)}  # the text of the program does not state it any more
    assert m.facts() == {("p", (1,)), ("r", (5,))}
    assert set(m.relations) == {"s", "t", "p", "r"}
    m.change_rules(replace='s(x) :- t(x), p(1). t("a").')
    assert m["s"].to_set() == {("a",)}


def test_snapshots_and_relations_keep_their_program():
    m = materialise("q(x) :- p(x).", {"p": [1, 2]})
    before, held_before = m.snapshot(), m["q"]
    m.change_rules(replace="r(x) :- p(x), x > 1.")
    assert set(m.relations) == {"r", "p"}
    assert set(before.relations) == {"p", "q"} and held_before.to_set() == {(1,), (2,)}
    assert before["q"].to_set() == before.query("q(x)").to_set() == {(1,), (2,)}
    assert before.explain("q", (1,)).holds
    assert m.explain("r", (2,)).holds and not m.explain("r", (1,)).holds
    m.change_rules(add="q(x) :- r(x).")
    assert m["q"].to_set() == {(2,)} and before["q"].to_set() == {(1,), (2,)}


def test_saved_in_the_same_folder(tmp_path):
    m = materialise(REACH, EDGES)
    m.save(tmp_path)
    m.change_rules(add="node(x) :- edge(x, _).")
    assert m.save(tmp_path) == 2
    again = restore(REACH + "node(x) :- edge(x, _).", tmp_path)
    assert again.facts() == m.facts()


def test_books_are_not_used_where_removed_rules_placed_the_facts(tmp_path):
    """The removed rule makes one stratum of `p` and `q`, so that explicit facts of `q` are counted."""
    declared = ".decl p(x:number)\n.decl q(x:number)\np(x) :- q(x).\n"
    m = materialise(declared + "q(x) :- p(x), x > 5.", {"q": [(1,)]}, algorithm="ranked")
    m.change_rules(remove="q(x) :- p(x), x > 5.")
    m.save(tmp_path)
    recounted(m)
    again = restore(declared, tmp_path, algorithm="ranked")
    recounted(again)
    again.change_rules(add="q(x) :- p(x), x > 5.")
    again.update(delete={"q": [(1,)]})
    assert not again["q"] and not again["p"]
    recounted(again)


def test_aggregates_come_and_go():
    m = materialise("p(x) :- q(x, _).", {"q": [(1, 2), (1, 3), (2, 5)]})
    rule = "n(x, c) :- p(x), c = sum y : { q(x, y) }."
    assert m.change_rules(add=rule).inserted["n"].to_set() == {(1, 5), (2, 5)}
    m.update(insert={"q": [(2, 7)]})
    assert m["n"].to_set() == {(1, 5), (2, 12)}
    assert m.change_rules(remove=rule).deleted["n"].to_set() == {(1, 5), (2, 12)}
    recounted(m)


@pytest.mark.parametrize("algorithm", ["dred", "counting", "adaptive"])
def test_an_aggregate_that_comes_has_no_value_on_the_facts_of_before(algorithm):
    declared = ".decl e(x:number)\n.decl t(x:number)\n.decl s(n:number)\nt(x) :- e(x).\n"
    before = declared + "t(1) :- e(_)."
    m = materialise(before, {"e": [(2**63 - 1,)]}, algorithm=algorithm)
    change = m.change_rules(replace=parse(declared + "s(n) :- n = sum x : { t(x) }."))
    assert m["s"].to_rows() == change.inserted["s"].to_rows() == [(2**63 - 1,)]
    m.update(delete={"e": [(2**63 - 1,)]}, insert={"e": [(5,), (6,)]})
    assert m["s"].to_rows() == [(11,)]


def test_a_rule_that_two_clauses_make_stays_with_one_of_them():
    m = materialise("q(x), r(x) :- p(x). q(y) :- p(y).", {"p": [1]})
    assert not m.change_rules(remove="q(y) :- p(y).")
    assert m.change_rules(remove="q(a), r(a) :- p(a).").deleted["q"].to_set() == {(1,)}


def test_a_state_of_rules_that_are_there_twice_opens(tmp_path):
    m = materialise("q(x) :- p(x). q(y) :- p(y).", {"p": [1]})
    m.change_rules(remove="q(y) :- p(y).")
    m.save(tmp_path)
    again = restore("q(z) :- p(z). r(x) :- q(x).", tmp_path, edited=True)
    assert again["q"].to_set() == again["r"].to_set() == {(1,)}
    m.change_rules(add="q(y) :- p(y).")
    m.save(tmp_path)
    assert restore("q(z) :- p(z).", tmp_path).facts() == m.facts()


@pytest.mark.parametrize("algorithm", ["ranked", "counting", "dred-c"])
def test_rules_that_are_there_twice_are_replaced_one_by_one(algorithm, tmp_path):
    twice = "p(x) :- e(x). p(x) :- p(x). p(y) :- p(y)."
    m = materialise(twice, {"e": [1, 2]}, algorithm=algorithm)
    m.save(tmp_path)
    m.change_rules(replace=twice + "r(x) :- p(x).")
    recounted(m)
    opened = restore(twice + "r(x) :- p(x).", tmp_path, algorithm=algorithm, edited=True)
    for one in (m, opened):
        one.change_rules(replace="p(x) :- e(x). p(x) :- p(x).")
        recounted(one)
        one.change_rules(replace="p(x) :- e(x).")
        recounted(one)


@pytest.mark.parametrize("algorithm", ["ranked", "counting", "counting-by-rounds", "dred-c"])
def test_facts_keep_their_stratum_when_an_aggregate_over_them_goes(algorithm):
    """The aggregate over all of `c` is why its facts are in one stratum, also those that no rule derives."""
    declared = (
        ".decl c(x:number, y:number)\n.decl t(x:number, y:number)\n.decl h(x:number, y:number)\n.decl g(x:number)\n"
    )
    reads_all = "g(x) :- h(x, y), y = max z : { c(_, z) }."
    rules = declared + "c(0, min y : { t(_, y) }).\n" + reads_all
    m = materialise(rules, {"c": [(0, -1), (1, 0)], "t": [(1, 5)]}, algorithm=algorithm)
    m.change_rules(remove=reads_all)
    recounted(m)
    m.update(delete={"c": [(1, 0)], "t": [(1, 5)]})
    recounted(m)


def test_preview_of_rules():
    m = materialise(REACH, EDGES)
    before = held(m)
    preview = m.preview(remove="path(x, z) :- path(x, y), edge(y, z).", add="node(x) :- edge(x, _).")
    assert (held(m), m.relations, m.version) == (before, ("edge", "path"), 0)
    made = m.change_rules(remove="path(x, z) :- path(x, y), edge(y, z).", add="node(x) :- edge(x, _).")
    for side in ("inserted", "deleted"):
        for name in ("node", "path", "edge"):
            assert getattr(preview, side)[name].to_set() == getattr(made, side)[name].to_set()
    with pytest.raises(UpheldError) as error:
        m.preview(insert={"edge": [(1, 1)]}, add="p(1).")
    assert list(error.value.slugs) == ["ambiguous-change"]
    assert m.preview(program=REACH).deleted["node"].to_set() == {(1,), (2,), (3,)}
