"""Explanations: every step of a proof is right, no proof is lower, and what is said to fail does fail."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

import upheld
from tests.explain.test_truth import check_proof, explain_some
from tests.helpers.programs.strategies import random_case
from tests.helpers.sizes import usually
from upheld.cli import main
from upheld.engines import ENGINES
from upheld.explain import proof, refutation
from upheld.explain.explanation import LEVELS_INDENTED, Explanation, Proof, ProofStep
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Rule
from upheld.language.syntax.files import read_text
from upheld.materialisation.build import materialise

REACH = """\
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
EDGES = {"edge": [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")]}


@pytest.fixture(params=ENGINES)
def engine(request) -> str:
    return request.param


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_proof(engine):
    """The shorter of two ways, with rules, their places, and explicit facts."""
    m = materialise(REACH, EDGES, engine=engine)
    assert str(m.explain("path", ("a", "d"))) == (
        """\
path("a", "d")  by <program>:2:1: path(x, z) :- path(x, y), edge(y, z).
  path("a", "c")  by <program>:1:1: path(x, y) :- edge(x, y).
    edge("a", "c")  explicit
  edge("c", "d")  explicit"""
    )


def test_proof_as_data(engine):
    """The facts of a proof are a list, and premises are places in it."""
    m = materialise(REACH, {"edge": [(1, 2), (2, 3)]}, engine=engine)
    explanation = m.explain("path(1, 3)")
    assert json.loads(explanation.to_json()) == explanation.to_dict()
    assert explanation.to_dict() == {
        "fact": "path(1, 3)",
        "relation": "path",
        "values": [1, 3],
        "holds": True,
        "height": 2,
        "proof": [
            {
                "fact": "path(1, 3)",
                "relation": "path",
                "values": [1, 3],
                "explicit": False,
                "rule": "path(x, z) :- path(x, y), edge(y, z).",
                "place": "<program>:2:1",
                "premises": [1, 3],
                "conditions": [],
            },
            {
                "fact": "path(1, 2)",
                "relation": "path",
                "values": [1, 2],
                "explicit": False,
                "rule": "path(x, y) :- edge(x, y).",
                "place": "<program>:1:1",
                "premises": [2],
                "conditions": [],
            },
            {"fact": "edge(1, 2)", "relation": "edge", "values": [1, 2], "explicit": True},
            {"fact": "edge(2, 3)", "relation": "edge", "values": [2, 3], "explicit": True},
        ],
    }


def test_explicit_fact(engine):
    """An explicit fact needs no proof, also where rules derive it."""
    m = materialise(REACH, {**EDGES, "path": [("a", "d")]}, engine=engine)
    explanation = m.explain("path", ("a", "d"))
    assert str(explanation) == 'path("a", "d")  explicit'
    assert explanation.proof is not None and explanation.proof.height == 0 and len(explanation.proof) == 1


def test_conditions(engine):
    """Negated atoms and built-ins are shown as what they are."""
    m = materialise("q(x + 1, y) :- p(x, y), !r(x), y > 2, z = x * y, z < 9.", {"p": [(1, 3)]}, engine=engine)
    assert str(m.explain("q(2, 3)")) == (
        """\
q(2, 3)  by <program>:1:1: q(x + 1, y) :- p(x, y), !r(x), y > 2, z < 9, z = x * y.
  p(1, 3)  explicit
  !r(1)  does not hold
  3 > 2
  3 < 9
  3 = 1 * 3
  2 = 1 + 1"""
    )
    assert m.explain("q(2, 3)").to_dict()["proof"][0]["conditions"] == [
        "!r(1)",
        "3 > 2",
        "3 < 9",
        "3 = 1 * 3",
        "2 = 1 + 1",
    ]


def test_facts_are_proved_once(engine):
    """A fact that is used again is referred to."""
    m = materialise("b(x) :- a(x). c(x) :- b(x). d(x) :- b(x), c(x), b(x + 0).", {"a": [1]}, engine=engine)
    assert str(m.explain("d(1)")) == (
        """\
d(1)  by <program>:1:29: d(x) :- b(x), c(x), b(x + 0).
  b(1)  by <program>:1:1: b(x) :- a(x).
    a(1)  explicit
  c(1)  by <program>:1:15: c(x) :- b(x).
    b(1)  as above
  b(1)  as above
  1 = 1 + 0"""
    )
    assert len(m.explain("d(1)").to_dict()["proof"]) == 4


def test_hidden_relations_are_not_shown(engine):
    """Parts of a body that passes gave a relation of their own are where they were written."""
    rules = "p(x) :- q(x), r(y, _), s(y), t(_), !u(x, _), !v(_, _). o(x) :- q(x), !p(_)."
    facts = {"q": [1, 2], "r": [(5, 6)], "s": [5], "t": [7], "u": [(2, 2)]}
    m = materialise(rules, facts, engine=engine)
    assert str(m.explain("p(1)")) == (
        """\
p(1)  by <program>:1:1: p(x) :- q(x), r(y, _), s(y), t(_), !u(x, _), !v(_, _).
  q(1)  explicit
  r(5, 6)  explicit
  s(5)  explicit
  t(7)  explicit
  !u(1, _)  does not hold
  !v(_, _)  does not hold"""
    )
    assert str(m.explain("p(2)")) == (
        """\
p(2)  does not hold
  not explicit
  <program>:1:1: p(x) :- q(x), r(y, _), s(y), t(_), !u(x, _), !v(_, _).
    with x = 2, y = 5
    q(2)  holds
    r(5, 6)  holds
    s(5)  holds
    t(7)  holds
    !u(2, _)  fails: it holds"""
    )
    assert "!p(_)  fails: it holds" in str(m.explain("o(1)"))


def test_a_hidden_relation_of_two_rules(engine):
    """Rules that share a part may use other names for what is not in it."""
    rules = "p(x) :- q(x, _), r(_, y), s(y). o(z) :- q(z, _), q(_, z), r(_, y), s(y)."
    m = materialise(rules, {"q": [(1, 1)], "r": [(2, 3)], "s": [3]}, engine=engine)
    for fact, body in (("p(1)", ["q(1, 1)", "r(2, 3)", "s(3)"]), ("o(1)", ["q(1, 1)", "q(1, 1)", "r(2, 3)", "s(3)"])):
        shown = str(m.explain(fact)).splitlines()[1:]
        assert [line.split("  explicit")[0].strip() for line in shown] == body


def test_heights_pass_through_hidden_relations(engine):
    """A part of a body adds no height of its own, so that the one rule with a part is lower than two without."""
    rules = "a(x) :- e(x), f(y, z), g(z). a(x) :- b(x). b(x) :- e(x)."
    m = materialise(rules, {"e": [1], "f": [(2, 3)], "g": [3]}, engine=engine)
    proof = m.explain("a(1)").proof
    assert proof is not None and proof.height == 1


def test_fewest_facts(engine):
    """Of proofs of one height the smallest, whatever the order of rules; of equal ones the first rule's."""
    rules = "p(x) :- a(x), b(x), c(x). p(x) :- d(x). p(x) :- e(x)."
    m = materialise(rules, {name: [1] for name in "abcde"}, engine=engine)
    assert str(m.explain("p(1)")).splitlines()[1:] == ["  d(1)  explicit"]


def test_least_of_many(engine):
    """Equal derivations are told apart by their values."""
    m = materialise("p() :- q(x).", {"q": ["c", "b", "a", "d"]}, engine=engine)
    assert str(m.explain("p()")).splitlines()[1:] == ['  q("a")  explicit']


def test_failures(engine):
    """Each rule that could derive a fact, and where its body fails under the binding that gets furthest."""
    rules = f"{REACH}path(x, 7) :- lone(x).\npath(x, x) :- lone(x), x / 0 > 1."
    m = materialise(rules, {"edge": [(1, 2), (2, 3), (1, 9)], "lone": []}, engine=engine)
    assert str(m.explain("path", (1, 7))) == (
        """\
path(1, 7)  does not hold
  not explicit
  <program>:3:1: path(x, 7) :- lone(x).
    with x = 1
    lone(1)  fails: no such fact
  <program>:2:1: path(x, z) :- path(x, y), edge(y, z).
    with x = 1, y = 2, z = 7
    path(1, 2)  holds
    edge(2, 7)  fails: no such fact
  <program>:1:1: path(x, y) :- edge(x, y).
    with x = 1, y = 7
    edge(1, 7)  fails: no such fact"""
    )
    assert m.explain("path", (1, 7)).to_dict() == {
        "fact": "path(1, 7)",
        "relation": "path",
        "values": [1, 7],
        "holds": False,
        "failures": [
            {
                "rule": "path(x, y) :- edge(x, y).",
                "place": "<program>:1:1",
                "binding": {"x": 1, "y": 7},
                "holds": [],
                "fails": "edge(1, 7)",
                "because": "no such fact",
            },
            {
                "rule": "path(x, z) :- path(x, y), edge(y, z).",
                "place": "<program>:2:1",
                "binding": {"x": 1, "y": 2, "z": 7},
                "holds": ["path(1, 2)"],
                "fails": "edge(2, 7)",
                "because": "no such fact",
            },
            {
                "rule": "path(x, 7) :- lone(x).",
                "place": "<program>:3:1",
                "binding": {"x": 1},
                "holds": [],
                "fails": "lone(1)",
                "because": "no such fact",
            },
        ],
    }


def test_the_binding_that_gets_furthest(engine):
    """One binding passes two atoms, the others one: the third atom is what fails."""
    rules = "goal(x) :- a(x, y), b(y, z), c(z)."
    m = materialise(rules, {"a": [(1, i) for i in range(50)], "b": [(33, 4)], "c": [5]}, engine=engine)
    (failure,) = m.explain("goal(1)").failures
    assert [str(literal) for literal in failure.holds] == ["a(1, 33)", "b(33, 4)"]
    assert str(failure.fails) == "c(4)"


def test_a_fact_no_rule_derives(engine):
    m = materialise(REACH, EDGES, engine=engine)
    assert str(m.explain("edge", ("d", "a"))) == (
        'edge("d", "a")  does not hold\n  not explicit\n  no rule derives such a fact'
    )


def test_builtins_that_fail(engine):
    """A comparison is false; an expression has no result, which is no error where the rest of the body fails."""
    m = materialise(
        "p(x) :- q(x, y), 10 / y > x, !r(y). s(x) :- q(x, _), x > 5.", {"q": [(1, 0)], "r": [0]}, engine=engine
    )
    (failure,) = m.explain("p(1)").failures
    assert str(failure.fails) == "10 / 0 > 1" and "zero" in failure.because
    (failure,) = m.explain("s(1)").failures
    assert (str(failure.fails), failure.because) == ("1 > 5", "it is false")


def test_no_cross_products(engine):
    """A failing body is matched along its variables: a million pairs of b and c are not looked at."""
    rules = "p(x) :- a(x), b(y), c(z), d(x, y, z)."
    numbers = list(range(1000))
    m = materialise(rules, {"a": [1], "b": numbers, "c": numbers, "d": [(1, 5, 1000)]}, engine=engine)
    (failure,) = m.explain("p(1)").failures
    assert [str(literal) for literal in failure.holds] == ["a(1)", "d(1, 5, 1000)", "b(5)"]
    assert str(failure.fails) == "c(1000)"


def test_failures_that_tell_nothing(engine):
    """A rule that needs the fact itself is not shown beside others, and of its bindings another one is taken."""
    rules = "p(x) :- sub(c, d), c = d, p(x). is(x, d) :- sub(c, d), is(x, c). q(x) :- q(x)."
    facts = {"sub": [("boss", "boss"), ("chief", "boss")], "is": [], "p": [], "q": []}
    m = materialise(rules, facts, engine=engine)
    (failure,) = m.explain("is", ("cy", "boss")).failures
    assert str(failure.fails) == 'is("cy", "chief")' and not failure.circular
    (failure,) = m.explain("q", ("cy",)).failures
    assert failure.circular and 'q("cy")  fails' in str(m.explain("q", ("cy",)))


def test_many_failures(engine):
    """The text shows the first ten rules, nearest to the fact first; the JSON has all."""
    rules = "\n".join(f"p(x) :- q(x), r(x, {i})." for i in range(15)) + "p(1) :- s()."
    explanation = materialise(rules, {"q": [1], "r": [], "s": []}, engine=engine).explain("p(1)")
    text = str(explanation).splitlines()
    assert text[2].endswith("p(1) :- s().") and text[-1] == "  6 more rules do not derive it; the JSON has all of them"
    assert len(explanation.to_dict()["failures"]) == 16


def test_rdf(engine):
    """The text has the prefixes of the program and the query; facts are written as the dialect writes them."""
    rules = """
        PREFIX : <https://example.org/>
        :Parent[?x] :- [?x, :child, ?y], NOT :Stranger[?y].
        [:a, :child, :b].
    """
    m = materialise(read_text(rules, "dlog"), engine=engine)
    explanation = m.explain("PREFIX : <https://example.org/> :Parent[:a]")
    assert explanation.holds
    assert "triple(:a, :child, :b)  explicit" in str(explanation)
    assert explanation.to_dict()["values"][0] == "<https://example.org/a>"
    assert not m.explain("PREFIX : <https://example.org/> :Parent[:b]").holds


def test_values_that_json_lacks(engine):
    """NaN and the infinities are texts in JSON."""
    m = materialise("p(x) :- q(x).", {"q": [float("nan"), float("inf"), 1.5]}, engine=engine)
    shown = [json.loads(m.explain("p", (x,)).to_json())["values"] for x in (float("nan"), float("inf"), 1.5)]
    assert shown == [["nan"], ["inf"], [1.5]]


def test_after_updates(engine):
    """What is explained is the present, and explaining changes nothing."""
    m = materialise(REACH, EDGES, engine=engine)
    before = m.facts()
    assert m.explain("path", ("a", "d")).proof.height == 2
    m.update(delete={"edge": [("a", "c")]})
    assert m.explain("path", ("a", "d")).proof.height == 3
    assert not m.explain("edge", ("a", "c")).holds
    m.update(insert={"edge": [("a", "c")]})
    assert m.explain("path", ("a", "d")).proof.height == 2
    assert m.facts() == before


# -- what is asked for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fact, slug, word",
    [
        ('way("a", "b")', "unknown-relation", "`way`"),
        ('pth("a", "b")', "unknown-relation", "did you mean `path`?"),
        ('path("a")', "arity-clash", "2 columns, not 1"),
        ('path("a", 1)', "type-clash", "symbol"),
        ('path("a", x)', "not-a-fact", "`x` is a variable"),
        ('path("a", _)', "not-a-fact", "constant for each"),
        ('!path("a", "b")', "not-a-fact", "this is not a fact"),
        ('path("a", "b"), path("b", "c")', "not-a-fact", "this is not a fact"),
        ('path("a", "b"', "missing-bracket", "`)` is missing"),
        ("", "empty-body", "without a body"),
    ],
)
def test_texts_that_are_no_facts(fact, slug, word):
    m = materialise(REACH, EDGES, engine="reference")
    with pytest.raises(upheld.UpheldError) as refused:
        m.explain(fact)
    assert refused.value.slugs == (slug,)
    assert word in str(refused.value)


@pytest.mark.parametrize(
    "relation, row, slug",
    [
        ("way", ("a", "b"), "unknown-relation"),
        ("path", ("a",), "wrong-arity"),
        ("path", ("a", 1), "ill-typed-value"),
        ("path", ("a", None), "missing-value"),
    ],
)
def test_rows_that_are_no_facts(relation, row, slug):
    m = materialise(REACH, EDGES, engine="reference")
    with pytest.raises(upheld.UpheldError) as refused:
        m.explain(relation, row)
    assert refused.value.slugs == (slug,)


def test_a_text_that_is_several_facts():
    with pytest.raises(upheld.UpheldError) as refused:
        materialise("p(x) :- q(x).", {"q": [1]}, engine="reference").explain("p(range(1, 3))")
    assert refused.value.slugs == ("not-a-fact",)


def test_ways_to_name_a_fact(engine):
    """A text, with expressions or without; a relation and a row; a relation of one column and a value."""
    m = materialise("p(x) :- q(x). z() :- q(_).", {"q": [3]}, engine=engine)
    assert len({str(m.explain(*fact)) for fact in (("p(3)",), ("p(1 + 2).",), ("p", (3,)), ("p", [3]), ("p", 3))}) == 1
    assert str(m.explain("z", ())) == str(m.explain("z()"))


# -- deep and wide ----------------------------------------------------------------------------------------------------


def test_long_chain():
    """A proof of thousands of levels is found and told without recursion."""
    n = 2_000
    m = materialise("reach(0). reach(y) :- reach(x), edge(x, y).", {"edge": [(i, i + 1) for i in range(n)]})
    explanation = m.explain("reach", (n,))
    assert explanation.proof is not None
    assert explanation.proof.height == n
    assert len(explanation.proof) == 2 * n + 1
    shown = explanation.to_text().splitlines()
    assert shown[-1] == f"cut at level 20 of 2,000: {2 * n + 1 - 41:,} of {2 * n + 1:,} facts are not shown"
    assert len(shown) == 42
    assert len(explanation.to_text(depth=3).splitlines()) == 8
    assert len(explanation.to_dict()["proof"]) == 2 * n + 1


def chain(n: int) -> Proof:
    """Return a proof of n levels."""
    rule, head = Rule(Atom("p", (Variable("x"),))), Atom("p", (Constant(0, "number"),))
    steps = [ProofStep(("p", (i,)), f"p({i})", (i,), rule, Rule(head), (i + 1,)) for i in range(n)]
    return Proof((*steps, ProofStep(("p", (n,)), f"p({n})", (n,))))


def test_many_thousands_of_levels():
    """The text of a deep proof grows with its facts: levels beyond some have their number instead of blanks."""
    levels = usually(20_000, 100_000)
    explanation = Explanation(("p", (0,)), "p(0)", (0,), chain(levels))
    assert explanation.proof is not None and explanation.proof.height == levels
    shown = explanation.to_text(depth=None).splitlines()
    assert len(shown) == levels + 1
    assert shown[LEVELS_INDENTED + 1].startswith(f"{'  ' * LEVELS_INDENTED}({LEVELS_INDENTED + 1}) p(")
    assert shown[-1].endswith(f"({levels}) p({levels})  explicit")
    assert len(json.loads(explanation.to_json())["proof"]) == levels + 1


def test_a_cut_fact_may_be_shown_higher_up():
    """What was cut at one place is proved where it is met above the cut."""
    m = materialise("b(x) :- a(x). c(x) :- b(x). d(x) :- c(x), b(x).", {"a": [1]}, engine="reference")
    assert m.explain("d(1)").to_text(depth=2) == (
        """\
d(1)  by <program>:1:29: d(x) :- c(x), b(x).
  c(1)  by <program>:1:15: c(x) :- b(x).
    b(1)  ...
  b(1)  by <program>:1:1: b(x) :- a(x).
    a(1)  explicit"""
    )


def test_cost(monkeypatch):
    """A fact of a closure of a million facts takes no look at most of them."""
    r = Random(1)
    edges = [(r.randrange(1400), r.randrange(1400)) for _ in range(2100)]
    m = materialise(REACH, {"edge": edges})
    assert len(m["path"]) > 500_000
    for row in r.sample(m["path"].to_rows(), 5):
        m.explain("path", row)
        assert m._engine.meter.statistics.instances.total() < 20_000


def test_both_ways_of_a_clique():
    """With a rule for transitivity that uses its relation twice, going only backwards would consider millions."""
    r = Random(1)
    edges = [(i, r.randrange(i)) for i in range(1, 150)]
    m = materialise("s(x, y) :- e(x, y). s(x, y) :- s(y, x). s(x, z) :- s(x, y), s(y, z).", {"e": edges})
    assert len(m["s"]) == 150 * 150
    for row in r.sample(m["s"].to_rows(), 5):
        explanation = m.explain("s", row)
        assert m._engine.meter.statistics.instances.total() < 500_000
        check_proof(m, explanation)


def test_limits_on_facts_and_rounds_are_on_what_is_derived(engine):
    """A materialisation within its limits can be explained within them."""
    n = 30
    limits = upheld.Limits(facts=2 * n + 2, rounds=n + 10)
    program, facts = "reach(0). reach(y) :- reach(x), edge(x, y).", {"edge": [(i, i + 1) for i in range(n)]}
    m = materialise(program, facts, engine=engine, limits=limits)
    assert m.explain("reach", (n,)).proof.height == n
    assert m._engine.meter.limits == limits


def test_limits_on_time():
    """Explaining stops at its limit, and leaves everything as it was."""
    facts = {"edge": [(i, i + 1) for i in range(3000)]}
    m = materialise("reach(0). reach(y) :- reach(x), edge(x, y).", facts)
    m._engine.meter.limits = upheld.Limits(seconds=0.05)
    with pytest.raises(upheld.UpheldError) as stopped:
        m.explain("reach(3000)")
    assert stopped.value.slugs == ("limit-reached",)
    m._engine.meter.limits = upheld.Limits()
    assert m.explain("reach(10)").proof.height == 10
    assert len(m.update(delete={"edge": [(100, 101)]}).deleted["reach"]) == 2900


def test_more_derivations_than_are_looked_at(monkeypatch, engine):
    """Where a fact has very many derivations some are left out, and every fact still has one."""
    monkeypatch.setattr(proof, "MOST_DERIVATIONS", 3)
    monkeypatch.setattr(proof, "MOST_COMPARED", 5)
    monkeypatch.setattr(proof, "BATCH", 4)
    monkeypatch.setattr(proof, "LITTLE", 0)
    monkeypatch.setattr(refutation, "MOST_BINDINGS", 3)
    for seed in range(10):
        explain_some(random_case(Random(seed)), engine)


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("facts").mkdir()
    Path("facts/edge.facts").write_text("a\tb\nb\tc\n")
    path = Path("reach.dl")
    path.write_text(f".decl edge(x:symbol, y:symbol)\n.decl path(x:symbol, y:symbol)\n.input edge\n{REACH}")
    return path


def test_command(program, engine, capsys):
    assert main(["explain", "reach.dl", 'path("a","c")', "-F", "facts", "--engine", engine]) == 0
    assert capsys.readouterr() == (
        """\
path("a", "c")  by reach.dl:5:1: path(x, z) :- path(x, y), edge(y, z).
  path("a", "b")  by reach.dl:4:1: path(x, y) :- edge(x, y).
    edge("a", "b")  explicit
  edge("b", "c")  explicit
""",
        "",
    )


def test_command_for_what_does_not_hold(program, capsys):
    """It is an answer, not an error, with an exit code of its own."""
    assert main(["explain", "reach.dl", 'path("c", "a")', "-F", "facts"]) == 1
    assert capsys.readouterr().out.startswith('path("c", "a")  does not hold\n  not explicit\n')


def test_command_as_json(program, capsys):
    assert main(["explain", "--json", "reach.dl", 'path("a","c")', "-F", "facts"]) == 0
    assert json.loads(capsys.readouterr().out) == upheld.load(program, "facts").explain('path("a","c")').to_dict()


def test_command_to_a_depth(program, capsys):
    for depth, last in (("1", "cut at level 1 of 2: 1 of 4 facts are not shown"), ("0", '  edge("b", "c")  explicit')):
        assert main(["explain", "reach.dl", 'path("a","c")', "-F", "facts", "--depth", depth]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == last
    with pytest.raises(SystemExit):
        main(["explain", "reach.dl", 'path("a","c")', "--depth", "some"])
    assert "`some` is not a number of levels" in capsys.readouterr().err


def test_command_with_a_slip(program, capsys):
    """Errors point at the text of the fact."""
    assert main(["explain", "reach.dl", 'path("a", x)', "-F", "facts"]) == 2
    assert capsys.readouterr().err == (
        """\
<fact>:1:11: error: `x` is a variable [not-a-fact]
  1 | path("a", x)
    |           ^
  note: a fact is a relation with a constant for each of its columns
  hint: quote the name if it is meant as a symbol; queries can have variables
"""
    )


def test_command_under_limits(program, capsys):
    assert main(["explain", "reach.dl", 'path("a","c")', "-F", "facts", "--max-facts", "2"]) == 2
    assert "limit-reached" in capsys.readouterr().err


@pytest.mark.parametrize(
    "body",
    [
        "[?z, :p, ?x], FILTER(?z != :c)",
        "[?z, :p, ?x], [?z, :q, ?y]",
        "[?z, :p, ?x]; [?x, :q, ?z]",
        "[?z, :p, ?x], NOT [?x, :q, ?z]",
    ],
)
def test_bodies_of_exists(body):
    """A body of several literals, or of alternatives, is shown as it is written, whether it holds or not."""
    rules = (
        "PREFIX : <http://e/> "
        f"[?x, :m, ?y] :- [?x, :p, ?y], NOT EXISTS ?z IN ({body}). "
        f"[?x, :n, ?y] :- [?x, :p, ?y], NOT (NOT EXISTS ?z IN ({body}))."
    )
    a, b, c, k, p, q, m, n = (f"<http://e/{name}>" for name in "abckpqmn")
    facts = {"triple": [(a, p, b), (k, p, c), (c, p, b), (k, q, b)]}
    found = upheld.materialise(upheld.parse(rules, dialect="dlog"), facts)
    written = f"[EXISTS ?z IN ({body})]"
    assert f"!{written}(:a" in str(found.explain("triple", (a, m, b)))
    assert "fails: it holds" in str(found.explain("triple", (c, m, b)))
    proof = found.explain("triple", (c, n, b))
    assert proof.holds and "triple(:k, :p, :c)  explicit" in str(proof)
    assert "no" in str(found.explain("triple", (a, n, b)))


def test_negated_aggregate_of_terms():
    rules = "PREFIX : <http://e/> [?x, :m, ?y] :- [?x, :p, ?y], NOT AGGREGATE([?x, :p, ?z] ON ?x BIND MAX(?z) AS ?y)."
    a, b, c, p, m = (f"<http://e/{name}>" for name in "abcpm")
    found = upheld.materialise(upheld.parse(rules, dialect="dlog"), {"triple": [(a, p, b), (a, p, c)]})
    assert ":b != AGGREGATE([?x, :p, ?z] ON ?x BIND MAX(?z) AS ?y)" in str(found.explain("triple", (a, m, b)))


def test_values_of_column_types():
    """Objects and JSON have dates and decimals, not the codes by which engines hold them."""
    program = """
        .decl sale(shop: symbol, day: date, amount: decimal(8, 2))
        .decl total(shop: symbol, day: date, amount: decimal(8, 2))
        total(p, d, s) :- sale(p, d, _), s = sum a : { sale(p, d, a) }.
    """
    day = date(2026, 1, 2)
    m = materialise(program, {"sale": [("a", day, Decimal("1.10")), ("a", day, Decimal("2.30"))]})
    why = m.explain('total("a", "2026-01-02", 3.40)')
    assert why.values == why.proof.steps[0].values == ("a", day, Decimal("3.40"))
    told = why.to_dict()
    assert told["values"] == ["a", "2026-01-02", "3.40"]
    assert told["proof"][1]["value"] == "3.40"
    assert m.explain('total("a", "2026-01-03", 1.0)').to_dict()["values"] == ["a", "2026-01-03", "1.00"]
