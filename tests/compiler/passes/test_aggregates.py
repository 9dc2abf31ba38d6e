"""What aggregates mean: which variables are local, what is a binding, and what is refused."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

import upheld
from upheld.base.errors import EvaluationError, ProgramError
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.engines import ENGINES
from upheld.engines.memory.counters import aggregates as memory_aggregates
from upheld.engines.memory.joins.batch import rows_with
from upheld.engines.memory.sets import expressions
from upheld.language.core_text import rule_text
from upheld.language.syntax.files import read_text

E = {"e": [(1, 10), (1, 20), (2, 10), (3, -5)], "n": [(1,), (2,), (4,)]}


def values(rule: str, facts=E, engine: str = "memory"):
    """Return the facts of `p` that a rule derives."""
    declared = ".decl e(x:number, y:number)\n.decl n(x:number)\n"
    return upheld.materialise(f"{declared}{rule}", facts, engine=engine)["p"].to_set()


P1, P2, PF = ".decl p(v:number)\n", ".decl p(x:number, v:number)\n", ".decl p(x:number, v:float)\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "rule, expected",
    [
        # groups, and none of them
        (P2 + "p(x, v) :- n(x), v = count : { e(x, _) }.", {(1, 2), (2, 1), (4, 0)}),
        (P2 + "p(x, v) :- n(x), v = sum y : { e(x, y) }.", {(1, 30), (2, 10), (4, 0)}),
        (P2 + "p(x, v) :- n(x), v = min y : { e(x, y) }.", {(1, 10), (2, 10)}),
        (PF + "p(x, v) :- n(x), v = mean y : { e(x, y) }.", {(1, 15.0), (2, 10.0)}),
        (P1 + "p(count : { e(_, _) }).", {(4,)}),
        (P1 + "p(count : { e(5, _) }).", {(0,)}),
        (P1 + "p(max y : { e(5, y) }).", set()),
        # an atom without braces; an aggregate on either side and within an expression
        (P1 + "p(v) :- sum y : e(_, y) = v.", {(35,)}),
        (P1 + "p(v) :- v = 1 + 2 * count : { n(_) }.", {(7,)}),
        (P1 + "p(v) :- n(v), v < count : { e(_, _) }.", {(1,), (2,)}),
        # bindings are distinct, with a variable for each `_`; a value that occurs twice counts twice
        (P1 + "p(sum y : { e(_, y) }).", {(35,)}),
        (P1 + "p(count : { e(_, y), y = 10 }).", {(2,)}),
        (P1 + "p(count : { n(x), e(x, _) }).", {(3,)}),
        (P1 + "p(sum 1 : { n(_) }).", {(3,)}),
        # variables: the same outside and inside, or local
        (P2 + "p(x, v) :- n(x), v = count : { e(_, y), y > 5 * x }.", {(1, 3), (2, 1), (4, 0)}),
        (P1 + "p(x) :- x = max x : { n(x) }.", {(4,)}),
        (P2 + "p(a, b) :- a = count : { e(x, 10) }, b = count : { e(x, -5) }.", {(2, 1)}),
        (P2 + "p(a, b) :- a = count : { n(_) }, b = count : { e(_, y), y > a }.", {(3, 3)}),
        # negation, disjunction, aggregates within aggregates
        (P1 + "p(count : { n(x), !e(x, _) }).", {(1,)}),
        (P1 + "p(count : { n(x) ; e(x, _) }).", {(4,)}),
        (P1 + "p(max k : { n(x), k = count : { e(x, _) } }).", {(2,)}),
        (P2 + "p(x, v) :- n(x), v = sum k : { e(x, y), k = count : { e(_, z), z < y } }.", {(1, 4), (2, 1), (4, 0)}),
        # groups that the rule itself asks for
        (P2 + "p(x, v) :- e(x, _), v = count : { e(x, _) }.", {(1, 2), (2, 1), (3, 1)}),
        (P2 + "p(x, v) :- e(x, y), y > 0, v = count : { e(x, _) }.", {(1, 2), (2, 1)}),
        (P2 + "p(x, v) :- e(x, y), v = y + count : { e(x, y) }.", {(1, 11), (1, 21), (2, 11), (3, -4)}),
        (P2 + "p(x, v) :- e(x, _), v = count : { e(x, 10) }.", {(1, 1), (2, 1), (3, 0)}),
        (P2 + "p(x, v) :- e(x, 10), v = count : { e(x, 10) }.", {(1, 1), (2, 1)}),
        (P2 + "p(x, v) :- e(x, _), v = count : { e(y, y), y = x }.", {(1, 0), (2, 0), (3, 0)}),
        (P2 + "p(x, v) :- e(x, _), v = count : { e(y, y) }.", {(1, 0), (2, 0), (3, 0)}),
        (P2 + "p(x, v) :- e(_, x), v = count : { e(x, _) }.", {(10, 0), (20, 0), (-5, 0)}),
    ],
)
def test_meaning(engine, rule, expected):
    """Worked out by hand."""
    assert values(rule, engine=engine) == expected


@pytest.mark.parametrize(
    "rule, body",
    [
        ("p(x, v) :- e(x, _), v = count : { e(x, _) }.", "[count : { e(x, _) } by x](x, v)"),
        ("p(x, v) :- e(x, z), v = sum y : { e(x, y) }.", "[sum(y) : { e(x, y) } by x](x, _, _, v)"),
        ("p(x, v) :- e(x, z), n(z), v = count : { e(x, _) }.", "e(x, z), n(z), [count : { e(x, _) } by x](x, v)"),
        ("p(z, v) :- e(x, z), v = count : { e(x, _) }.", "e(x, z), [count : { e(x, _) } by x](x, v)"),
    ],
)
def test_what_a_value_says_is_asked_once(rule, body):
    """No group is empty where the rule asks for a fact of it, and that fact is asked for only where it says more."""
    declared = ".decl e(x:number, y:number)\n.decl n(x:number)\n"
    rules = compile_program(read_text(declared + P2 + rule)).core.rules
    assert [rule_text(r).split(" :- ")[1] for r in rules] == [f"{body}."]


def test_nulls_leave_groups_empty():
    """A fact whose value is null has a group, and nothing to sum."""
    rules = ".decl e(x:number, y:number?)\n.decl p(x:number, v:number)\np(x, v) :- e(x, _), v = sum y : { e(x, y) }."
    m = upheld.materialise(rules, {"e": [(1, 10), (2, None)]})
    assert m["p"].to_set() == {(1, 10), (2, 0)}


def test_aggregates_over_one_relation_share_a_stratum():
    """What is known of the facts that come and go is found once for all of them."""
    rules = P2 + "p(x, v) :- e(x, _), v = count : { e(x, _) }. p(x, v) :- e(x, _), v = sum y : { e(x, y) }."
    core = compile_program(read_text(f".decl e(x:number, y:number)\n.decl n(x:number)\n{rules}")).core
    assert [len(s.aggregations) for s in stratify(core) if s.aggregations] == [2]


@pytest.mark.parametrize("engine", ENGINES)
def test_many_facts(engine):
    """Groups of one column with close values are numbered by these, and others by hashing; floats are added exactly."""
    chance = random.Random(5)
    rows = [
        (i, chance.choice((i % 70, 10**12 * (i % 70))), chance.choice((0.1, -1e300, 1e300, 5e-324)))
        for i in range(9000)
    ]
    rules = ".decl w(i:number, g:number, x:float)\n.decl s(g:number, n:number, x:float)\n"
    rules += "s(g, n, x) :- w(_, g, _), n = count : { w(_, g, _) }, x = sum y : { w(_, g, y) }."
    for some in ([row for row in rows if row[1] < 70], rows):
        m = upheld.materialise(rules, {"w": some}, engine=engine)
        m.update(delete={"w": some[::3]})
        left = [row for k, row in enumerate(some) if k % 3]
        by_group = {g: [x for _, of, x in left if of == g] for g in {g for _, g, _ in left}}
        assert m["s"].to_set() == {(g, len(of), float(sum(map(Fraction, of)))) for g, of in by_group.items()}


def test_sums_of_floats_do_not_read_their_group(monkeypatch):
    """An update of a group looks up its sum, and none of its other facts."""
    rules = ".decl w(g:number, x:float)\n.decl s(g:number, x:float)\ns(g, x) :- w(g, _), x = mean y : { w(g, y) }."
    m = upheld.materialise(rules, {"w": [(g, x / 8) for g in range(2) for x in range(50)]}, engine="memory")
    looked_up = []

    def noted(table, *arguments):
        looked_up.append(table.name)
        return rows_with(table, *arguments)

    monkeypatch.setattr(memory_aggregates, "rows_with", noted)
    m.update(delete={"w": [(0, 0.0)]}, insert={"w": [(0, 100.0)]})
    assert m["s"].to_set() == {(0, (sum(range(50)) / 8 + 100) / 50), (1, sum(range(50)) / 8 / 50)}
    assert looked_up and "w" not in looked_up


@pytest.mark.parametrize("groups", ["", "g, "])
@pytest.mark.parametrize("function", ["count", "sum", "min"])
def test_an_update_computes_no_large_set(function, groups, monkeypatch):
    """Not one of all facts that there are now, in particular, nor one of all facts of the group."""
    target = "" if function == "count" else "y "
    rule = f"s({groups}x) :- w(g, _), x = {function} {target}: {{ w({groups or '_, '}y) }}."
    rules = f".decl w(g:number, y:number)\n.decl s({'g:number, ' if groups else ''}x:number)\n{rule}"
    m = upheld.materialise(rules, {"w": [(g, y) for g in range(3) for y in range(3000)]}, engine="memory")
    m.update(insert={"w": [(0, -1)]})
    sizes = []

    def noted(self, context, rows, bit=None):
        sizes.append(sum(map(len, rows.values())))
        made(self, context, rows, bit)

    made = expressions.Settled.__init__
    monkeypatch.setattr(expressions.Settled, "__init__", noted)
    m.update(insert={"w": [(0, 5000)]}, delete={"w": [(0, 7)]})
    assert sizes and max(sizes) < 20


def test_queries_aggregate():
    m = upheld.materialise("p(1, 5). p(1, 6). p(2, 7).")
    assert m.query("p(x, _), v = sum y : { p(x, y) }").to_set() == {(1, 11), (2, 7)}
    assert m.query("v = count : { p(_, _) }").to_set() == {(3,)}
    assert m.query("2 < count : { p(_, _) }").to_set() == {()}


@pytest.mark.parametrize("engine", ENGINES)
def test_floats_are_summed_exactly(engine):
    """The order of facts, and of updates, does not matter: 0.1 is not lost beside 1e16."""
    rules = ".decl w(i:number, x:float)\n.decl s(x:float)\n.decl m(x:float)\n"
    rules += "s(sum x : { w(_, x) }). m(max x : { w(_, x) })."
    m = upheld.materialise(rules, {"w": [(1, 1e16), (2, 0.1), (3, -1e16)]}, engine=engine)
    assert m["s"].to_set() == {(0.1,)}
    m.update(insert={"w": [(4, 1.7e308), (5, 1.7e308), (6, -1.7e308)]})
    assert m["s"].to_set() == {(1.7e308,)}
    m.update(insert={"w": [(7, math.inf)]})
    assert m["s"].to_set() == m["m"].to_set() == {(math.inf,)}
    m.update(insert={"w": [(8, -math.inf)]})
    ((total,),) = m["s"].to_set()
    assert math.isnan(total)
    m.update(insert={"w": [(9, math.nan)]})
    ((most,),) = m["m"].to_set()
    assert math.isnan(most)  # which is above infinity


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sum_that_does_not_fit(engine):
    """It is an error with the aggregate and the group, and nothing has changed; on the way it may be larger."""
    rules = ".decl e(x:symbol, y:number)\n.decl s(x:symbol, v:number)\ns(x, v) :- e(x, _), v = sum y : { e(x, y) }."
    m = upheld.materialise(rules, {"e": [("a", 2**62), ("b", 1)]}, engine=engine)
    with pytest.raises(EvaluationError) as caught:
        m.update(insert={"e": [("a", 2**62 + 1)]})
    assert caught.value.slugs == ("undefined-result",)
    assert "9223372036854775809 does not fit" in str(caught.value) and 'in the group "a"' in str(caught.value)
    assert m["s"].to_set() == {("a", 2**62), ("b", 1)}
    m.update(insert={"e": [("a", 2**62 + 1), ("a", -2)]})
    assert m["s"].to_set() == {("a", 2**63 - 1), ("b", 1)}


@pytest.mark.parametrize(
    "rule, slug, place",
    [
        (P2 + "p(x, v) :- v = max y : { e(x, y) }.", "unsafe-aggregate", "4:28"),
        (P2 + "p(x, v) :- n(x), v = count : { e(x, z), z < w }.", "unsafe-comparison", "4:45"),
        (P1 + "p(v) :- v = min y : { n(x), x != 1 }.", "unsafe-aggregate", "4:17"),
        (P1 + "p(v) :- v = sum y : { p(y) }.", "aggregate-in-recursion", "4:13"),
        (P2 + "p(x, v) :- n(x), v = count : { p(_, y), y < x }.", "aggregate-in-recursion", "4:22"),
        (P1 + "p(v) :- v = sum y : { q(y) }.", "unknown-relation", "4:23"),
        (P1 + "p(v) :- v = sum x : { n(x), !e(x, y) }.", "unsafe-negation", None),
        (".decl p(v:symbol)\np(v) :- v = count : { n(_) }.", "type-clash", None),
    ],
)
def test_refused(rule, slug, place):
    with pytest.raises(ProgramError) as caught:
        values(rule)
    assert slug in caught.value.slugs
    assert place is None or f"<program>:{place}:" in str(caught.value)


def test_a_sum_of_symbols_is_refused():
    with pytest.raises(ProgramError) as caught:
        upheld.materialise(".decl s(x:symbol)\n.decl p(v:number)\np(v) :- v = max x : { s(x) }.", {"s": []})
    assert "type-clash" in caught.value.slugs


def test_saved_and_restored(tmp_path):
    """A state with aggregates opens, also if variables of the program have other names, and goes on."""
    rules = ".decl e(x:number, y:number)\n.decl p(x:number, v:number)\np(x, v) :- e(x, _), v = sum y : { e(x, y) }."
    m = upheld.materialise(rules, {"e": E["e"]})
    m.save(tmp_path / "state")
    again = upheld.restore(rules.replace("y", "z").replace("z:number", "y:number"), tmp_path / "state")
    again.update(delete={"e": [(1, 10)]})
    assert again["p"].to_set() == {(1, 20), (2, 10), (3, -5)}
