"""Equivalences held by classes: what users see is what the rules of an equivalence say."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

import upheld
from tests.helpers.streams.eqrel_streams import LEVELS, check_stream, opened, random_eqrel_case, recomputed
from tests.helpers.streams.equality_streams import after_failures
from upheld.base.errors import UsageError
from upheld.cli import main
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.engines import ENGINES
from upheld.engines.reference.classes import connected
from upheld.explain import Proof
from upheld.maintain.registry import ALGORITHMS
from upheld.materialisation.materialisation import Materialisation

#: Streams come in blocks, so that test processes can share them.
BLOCKS, STREAMS = 4, 10

#: Assignments make variables aliases; so do stores to and loads from a field of aliases, as Steensgaard has it.
STEENSGAARD = """
.decl assign(to:symbol, from:symbol)
.decl store(base:symbol, field:symbol, from:symbol)
.decl load(to:symbol, base:symbol, field:symbol)
.decl alias(x:symbol, y:symbol) eqrel
.decl apart(x:symbol, y:symbol)
alias(x, x) :- assign(x, _); assign(_, x).
alias(x, y) :- assign(x, y).
alias(to, from) :- store(p, f, from), alias(p, q), load(to, q, f).
apart(x, y) :- assign(x, _), assign(y, _), !alias(x, y).
"""


# -- recomputation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_equals_recomputation(engine, block):
    """Facts, changes and counts agree after every update, by whichever algorithm, strata and decomposition."""
    algorithms = sorted(ALGORITHMS)
    for seed in range(block * STREAMS, (block + 1) * STREAMS):
        case = random_eqrel_case(seed)
        algorithm = "adaptive" if seed % 2 else algorithms[seed // 2 % len(algorithms)]
        decompose = "always" if seed % 5 == 0 else "auto"
        m = opened(case, engine, algorithm, stratification=STRATIFICATIONS[seed % 3], decompose=decompose)
        for _ in check_stream(case, m):
            pass


#: `f` holds itself up through classes of `e`, which a decomposed rule has the numbers of in its nodes.
HELD_UP = """
.decl r(x:number)
.decl b(x:number)
.decl c(x:number)
.decl e(x:number, y:number) eqrel
.decl f(x:number, y:number) eqrel
f(x, x) :- r(x).
f(n1, n0) :- e(n1, n2), e(n3, n4), e(n0, n4), !b(n1), f(n3, n2), e(n0, n1).
e(w, n0) :- c(w), r(n0).
r(4) :- f(3, _).
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_nodes_forget_former_numbers(engine, algorithm):
    """Where classes become one, nodes of decomposed rules hold the number of the one class alone."""
    facts = {"e": [(-1, 9), (4, 0)], "r": [9]}
    m = upheld.materialise(HELD_UP, facts, engine=engine, algorithm=algorithm, equality="rewrite", decompose="always")
    assert any(decision.decomposed for decision in m._decisions)
    m.update(insert={"e": [(9, 4)]})
    assert len(m["f"]) == 16
    assert "r(9)  explicit" in str(m.explain("f", (0, -1)))
    assert len(m.update(delete={"r": [9]}).deleted["f"]) == 16
    assert not m["f"] and not m.explain("f", (9, 9)).holds


def test_classes_beside_a_search_for_proofs():
    """A stratum with classes comes right after one whose facts bf-c has looked for proofs of: both hold many sets."""
    case = random_eqrel_case(134, updates=6)
    for _ in check_stream(case, opened(case, "memory", "bf-c", decompose="always")):
        pass


@pytest.mark.parametrize("engine", ENGINES)
def test_decomposed_rules_equal_recomputation(engine):
    """Rules whose nodes hold numbers of classes agree with recomputation after every update, and have proofs."""
    algorithms = sorted(ALGORITHMS)
    for seed in range(10, 20):
        case = random_eqrel_case(seed, cyclic=True)
        algorithm = algorithms[seed % len(algorithms)]
        m = opened(case, engine, algorithm, stratification=STRATIFICATIONS[seed % 3], decompose="always")
        for _ in check_stream(case, m):
            for name, row in sorted((p, row) for p in "ef" for row in m[p])[:2]:
                check_proof(m, m.explain(name, row).proof)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failing_update_changes_nothing(engine):
    """Whichever set it fails at; and the next one is right."""
    m = upheld.materialise(STEENSGAARD, pointers(), engine=engine, equality="rewrite")
    before = m.facts()

    def unchanged() -> None:
        assert m.facts() == before

    update = {"delete": {"assign": [("a", "b")]}, "insert": {"assign": [("p", "r"), ("d", "e")]}}
    after_failures(m, update, unchanged)  # type: ignore[arg-type]
    explicit = {name: m.explicit(name).to_set() for name in m.relations}
    assert m.facts() == upheld.materialise(STEENSGAARD, explicit, engine="reference").facts()


@pytest.mark.parametrize("engine", ENGINES)
def test_streams_look_ahead(engine):
    """What the next update undoes is marked, and all is as if each were made by itself."""
    for seed in range(8):
        case = random_eqrel_case(seed, updates=5)
        algorithm, decompose = ("dred-marking", "bf-marking")[seed % 2], ("auto", "always")[seed // 2 % 2]
        m = opened(case, engine, algorithm, decompose=decompose)
        updates = [{"delete": deleted, "insert": inserted} for deleted, inserted in case.updates]
        updates += [{"delete": u["insert"], "insert": u["delete"]} for u in reversed(updates)]
        for _ in m.stream(updates):
            explicit = {name: m.explicit(name).to_set() for name in LEVELS}
            assert {name: m[name].to_set() for name in LEVELS} == recomputed(case, explicit)  # type: ignore[arg-type]


# -- by hand ----------------------------------------------------------------------------------------------------------


def pointers() -> dict[str, list[tuple[str, ...]]]:
    """Return `*p.f = a; a = b; q = p; c = *q.f; d = *r.f; e = c`."""
    return {
        "assign": [("a", "b"), ("q", "p"), ("e", "c")],
        "store": [("p", "f", "a")],
        "load": [("c", "q", "f"), ("d", "r", "f")],
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_steensgaard(engine):
    """An alias of bases makes what is stored and what is loaded aliases, which may be bases in turn."""
    m = upheld.materialise(STEENSGAARD, pointers(), engine=engine, equality="rewrite")

    def classes() -> set[str]:
        return {"".join(map(str, m.equals(x, "alias"))) for x, _ in m["alias"]}

    assert classes() == {"abce", "pq"}
    assert m["apart"].to_set() == {(x, y) for x, y in [("a", "q"), ("e", "q"), ("q", "a"), ("q", "e")]}
    assert m.unexpanded("alias").to_set() >= {("a", "b"), ("c", "a")}

    change = m.update(insert={"assign": [("r", "p")]})
    assert classes() == {"abcde", "pqr"}
    assert len(change.inserted["alias"]) == (25 - 16) + (9 - 4)
    assert ("d", "b") in change.inserted["alias"] and ("r", "q") in change.inserted["alias"]

    change = m.update(delete={"assign": [("q", "p")]})  # and with it that c is what was stored in p
    assert classes() == {"abd", "ce", "pr"}
    assert ("c", "a") in change.deleted["alias"] and ("e", "d") in change.deleted["alias"]
    assert change.inserted["alias"].to_set() == set()


@pytest.mark.parametrize("engine", ENGINES)
def test_equivalence_that_holds_itself_up(engine):
    """A link that follows only from the class that it holds together goes with the last other one."""
    rules = """
    .decl e(x:number, y:number) eqrel
    .decl p(x:number, y:number)
    e(y, z) :- p(x, y), e(x, y), z = x + 0.
    """
    m = upheld.materialise(rules, {"p": [(1, 2), (2, 1)], "e": [(1, 2), (2, 3)]}, engine=engine, equality="rewrite")
    assert len(m["e"]) == 9
    change = m.update(delete={"e": [(1, 2)]})
    assert m["e"].to_set() == {(2, 2), (2, 3), (3, 2), (3, 3)}
    assert len(change.deleted["e"]) == 5


@pytest.mark.parametrize("engine", ENGINES)
def test_queries(engine):
    """A query asks for pairs as if each of them were there, and may negate them."""
    text = ".decl e(x:symbol, y:symbol) eqrel  .decl p(x:symbol)"
    facts = {"e": [("a", "b"), ("b", "c"), ("d", "d")], "p": ["a", "d", "z"]}
    m = upheld.materialise(text, facts, engine=engine, equality="rewrite")
    assert m.query('e("c", x)').to_set() == {("a",), ("b",), ("c",)}
    assert m.query("p(x), e(x, y), x != y").to_set() == {("a", "b"), ("a", "c")}
    assert m.query('p(x), !e(x, "b")').to_set() == {("d",), ("z",)}
    assert m.query("p(x), !e(x, _)").to_set() == {("z",)}
    assert m.query("e(x, _)").to_set() == {("a",), ("b",), ("c",), ("d",)}
    assert ("a", "c") in m["e"] and ("a", "d") not in m["e"] and ("z", "z") not in m["e"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type, values", [("float", [0.5, float("nan"), -0.0]), ("unsigned", [2**64 - 1, 0, 7])])
def test_values_of_each_type(engine, type, values):
    """Values are told apart as facts are: NaN is itself, and a number is no number of a class."""
    text = f".decl e(x:{type}, y:{type}) eqrel"
    m = upheld.materialise(text, {"e": list(pairwise(values))}, engine=engine, equality="rewrite")
    assert len(m["e"]) == 9 and (values[0], values[2]) in m["e"]
    m.update(delete={"e": [tuple(values[1:])]})
    assert len(m["e"]) == 4 and (values[1], values[0]) in m["e"] and (values[2], values[2]) not in m["e"]
    assert len(m.equals(values[1], "e")) == 2


def test_a_relation_stays_as_it_was():
    """What one has asked for does not change with later updates, though it is made late."""
    for engine in ENGINES:
        m = upheld.materialise(".decl e(x:number, y:number) eqrel", {"e": [(1, 2)]}, engine=engine, equality="rewrite")
        before = m["e"]
        change = m.update(insert={"e": [(2, 3)]})
        later = m.update(delete={"e": [(1, 2)]})
        assert before.to_set() == {(1, 1), (1, 2), (2, 1), (2, 2)}
        assert change.inserted["e"].to_set() == {(1, 3), (2, 3), (3, 1), (3, 2), (3, 3)}
        assert later.deleted["e"].to_set() == {(1, 1), (1, 2), (2, 1), (1, 3), (3, 1)}


# -- explanations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_proof(engine):
    """A pair that no rule has derived holds by the links between its values; rules are shown as they were written."""
    m = upheld.materialise(STEENSGAARD, pointers(), engine=engine, equality="rewrite")
    assert str(m.explain("alias", ("b", "e"))) == (
        """\
alias("b", "e")  by equality
  alias("a", "b")  by <program>:8:1: alias(x, y) :- assign(x, y).
    assign("a", "b")  explicit
  alias("c", "a")  by <program>:9:1: alias(to, from) :- store(p, f, from), alias(p, q), load(to, q, f).
    store("p", "f", "a")  explicit
    alias("p", "q")  by equality
      alias("q", "p")  by <program>:8:1: alias(x, y) :- assign(x, y).
        assign("q", "p")  explicit
    load("c", "q", "f")  explicit
  alias("e", "c")  by <program>:8:1: alias(x, y) :- assign(x, y).
    assign("e", "c")  explicit"""
    )
    why_not = str(m.explain("apart", ("a", "e")))
    assert '!alias("a", "e")  fails: it holds' in why_not
    assert 'alias("a", "d")  fails: no such fact' in str(m.explain("alias", ("d", "a")))


@pytest.mark.parametrize("engine", ENGINES)
def test_proofs_are_right(engine):
    """Every step follows from its premises, and none from itself."""
    for seed in range(12):
        case = random_eqrel_case(seed)
        m = opened(case, engine, "adaptive")
        for deleted, inserted in case.updates[:2]:
            m.update(delete=deleted, insert=inserted)
        facts = sorted((name, row) for name in LEVELS for row in m[name])
        for name, row in Random(seed).sample(facts, min(8, len(facts))):
            proof = m.explain(name, row).proof
            assert proof is not None and proof.steps[0].fact == (name, row)
            check_proof(m, proof)
        for name in LEVELS:
            row = (9,) * len(m[name].columns)
            assert not m.explain(name, row).holds


def check_proof(m: Materialisation, proof: Proof) -> None:
    """Steps come before their premises, are right, and speak of facts that hold."""
    for at, step in enumerate(proof.steps):
        name, row = step.fact
        assert row in m[name]
        assert all(premise > at for premise in step.premises)
        premises = [proof.steps[p].fact for p in step.premises]
        if step.explicit:
            assert row in m.explicit(name)
        elif step.rule is None:
            assert all(premise[0] == name for premise in premises)
            (group,) = connected([row for _, row in premises])  # type: ignore[misc]
            assert {*row} <= {*group}
        else:
            assert step.instance is not None
            body = {(a.predicate, tuple(t.value for t in a.terms)) for a in step.instance.positive}  # type: ignore[union-attr]
            assert body == set(premises)
            assert step.fact == (name, tuple(t.value for t in step.instance.head.terms))  # type: ignore[union-attr]


# -- how it is asked for ----------------------------------------------------------------------------------------------


def test_it_costs_what_is_in_a_class():
    """Facts that are kept are as many as values, whatever the number of pairs; so is what an update looks at."""
    n = 300
    rules = """
    .decl e(x:number, y:number) eqrel
    .decl p(x:number, y:number)
    .decl q(x:number)
    e(x, z) :- e(x, y), p(y, z).
    q(x) :- e(x, _), x > 290.
    """
    facts = {"p": list(pairwise(range(n))), "e": [(0, 0)]}
    m = upheld.materialise(rules, facts, equality="rewrite")
    assert len(m["e"]) == n * n
    assert m.statistics.instances.total() < 5 * n
    change = m.update(insert={"p": [(5, n)]})
    assert len(change.inserted["e"]) == 2 * n + 1 and change.inserted["q"].to_set() == {(n,)}
    assert change.statistics.instances.total() < 20
    change = m.update(delete={"p": [(5, n)]})
    assert len(change.deleted["e"]) == 2 * n + 1


def test_numbers_of_classes_are_given_again():
    """What comes and goes leaves no rows behind."""
    m = upheld.materialise(".decl e(x:number, y:number) eqrel", {"e": list(pairwise(range(20)))}, equality="rewrite")
    table = m._engine.tables["$e class"]  # type: ignore[attr-defined]
    for _ in range(3):
        m.update(delete={"e": [(15, 16)]})
        m.update(insert={"e": [(15, 16)]})
    rows = table.n
    for _ in range(10):
        m.update(delete={"e": [(15, 16)]})
        m.update(insert={"e": [(15, 16)]})
    assert table.n == rows


def test_saved_and_restored(tmp_path):
    m = upheld.materialise(STEENSGAARD, pointers(), equality="rewrite")
    m.update(insert={"alias": [("x", "y")]})
    m.save(tmp_path)
    again = upheld.restore(STEENSGAARD, tmp_path, equality="rewrite")
    assert again.facts() == m.facts()
    with pytest.raises(UsageError, match="other-program"):
        upheld.restore(STEENSGAARD, tmp_path)


def test_commands(tmp_path, capsys):
    """`upheld run` and `upheld apply` write the same either way."""
    (tmp_path / "p.dl").write_text(f"{STEENSGAARD}.input assign, store, load\n.output alias, apart\n")
    for name, rows in pointers().items():
        (tmp_path / f"{name}.facts").write_text("".join("\t".join(row) + "\n" for row in rows))
    (tmp_path / "updates").write_text('-assign("q", "p").\n+alias("x", "y").\ncommit.\n')
    told = []
    for equality in ("off", "axioms", "rewrite"):
        folder = str(tmp_path)
        main(["run", "-F", folder, "-D", "-", "--equality", equality, f"{folder}/p.dl"])
        updates = ["--updates", f"{folder}/updates", "--changes", "-"]
        main(["apply", "-F", folder, "-D", folder, "--equality", equality, f"{folder}/p.dl", *updates])
        told.append((capsys.readouterr().out, (tmp_path / "alias.csv").read_text()))
    assert told[0] == told[1] == told[2]


def test_what_is_refused():
    with pytest.raises(UsageError, match="no-equality"):
        upheld.materialise(".decl e(x:number, y:number)", equality="rewrite")
    m = upheld.materialise(".decl e(x:number, y:number) eqrel .decl p(x:number)", {"e": [(1, 2)]}, equality="axioms")
    assert m.equals(1, "e") == [1, 2]
    with pytest.raises(UsageError, match="no-equality"):
        m.equals(1, "p")
