"""The option `decompose`: which rules it takes apart, and that nobody sees it but in the time it takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import assume, given

import upheld
from tests.helpers.programs.strategies import cyclic_cases
from tests.helpers.streams.streams import NAMES
from upheld.cli import main
from upheld.compiler.compile import compile_program
from upheld.engines import ENGINES
from upheld.language.syntax.files import read_text
from upheld.materialisation.build import materialise_core
from upheld.materialisation.materialisation import Materialisation

PC = "pc(x, y) :- cw(x, z1), ca(x, z2), pc(z1, y), pc(z2, y)."
DECLARED = "".join(f".decl {name}(x:symbol, y:symbol)\n" for name in ("cw", "ca", "pc")) + PC


def collaborators(n: int, k: int) -> dict[str, list[tuple[str, str]]]:
    """The facts of section 3 of the paper."""
    pairs = [(i, i * k + j, j) for i in range(n) for j in range(1, k + 1)]
    return {
        "cw": [(f"a{i}", f"b{m}") for i, m, _ in pairs] + [(f"a{n}", "a2")],
        "ca": [(f"a{i}", f"c{m}") for i, m, _ in pairs] + [(f"a{n}", "a3")],
        "pc": [(f"{z}{m}", f"d{j}") for z in "bc" for _, m, j in pairs],
    }


def nodes(m: Materialisation) -> list[set[tuple[object, ...]]]:
    """The rows of each hidden relation."""
    return [set(m._state.I.rows(p.name)) for p in m._core.predicates.values() if p.hidden]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("decompose", ["never", "always"])
@pytest.mark.parametrize("guarded", ["y < 6, w = range(0, y)", "w = range(0, y), y < 6", "w = range(0, y), !huge(y)"])
def test_a_guard_comes_before_what_it_guards(engine, decompose, guarded):
    """A computation runs only where the comparisons hold that need no more than it does, decomposed or not."""
    rules = "".join(f".decl {name}(x:number, y:number)\n" for name in ("cw", "ca", "p", "q"))
    rules += f".decl huge(x:number) .decl r(x:number)\nr(w) :- cw(x, z1), ca(x, z2), p(z1, y), q(z2, y), {guarded}."
    square = [(x, y) for x in range(3) for y in range(3)]
    facts = {"cw": square, "ca": square, "p": square, "q": square, "huge": [2**40]}
    within = upheld.Limits(seconds=20)
    m = upheld.materialise(rules, facts, engine=engine, decompose=decompose, limits=within)
    m.update(insert={"p" if "huge" in guarded else "q": [(1, 2**40)]})
    assert m["r"].to_set() == {(0,), (1,)}


# -- the paper's examples ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", NAMES)
def test_examples_1_to_3(engine, algorithm):
    """What the two nodes hold after materialising, after adding two facts, and after deleting one."""
    n, k = 8, 10
    m = upheld.materialise(DECLARED, collaborators(n, k), engine=engine, algorithm=algorithm, decompose="always")
    everyone = {(f"a{i}", f"d{j}") for i in range(n + 1) for j in range(1, k + 1)}
    assert nodes(m) == [everyone, everyone]
    assert m["pc"].to_set() == everyone | set(collaborators(n, k)["pc"])
    change = m.update(insert={"cw": [(f"a{n}", "a4")], "ca": [(f"a{n}", "a5")]})
    assert repr(change) == "<Change +1 ca, +1 cw>" and nodes(m) == [everyone, everyone]
    change = m.update(delete={"ca": [(f"a{n}", "a3")]})
    assert repr(change) == "<Change -1 ca>" and nodes(m) == [everyone, everyone]
    change = m.update(delete={"ca": [(f"a{n}", "a5")]})
    last = {(f"a{n}", f"d{j}") for j in range(1, k + 1)}
    assert change.deleted["pc"].to_set() == last
    assert nodes(m) == [everyone, everyone - last]


def test_section_3_is_taken_apart_once_that_pays():
    """With few facts, rules are left as they stand; with more, two nodes take n * k rows each, and not n * k * k."""
    assert nodes(upheld.materialise(DECLARED, collaborators(10, 5))) == []
    n, k = 40, 40
    m = upheld.materialise(DECLARED, collaborators(n, k))
    assert [len(rows) for rows in nodes(m)] == [(n + 1) * k] * 2
    assert sum(m.statistics.instances.values()) <= 3 * (n + 1) * k
    assert nodes(upheld.materialise(DECLARED, collaborators(n, k), decompose="never")) == []


# -- nobody sees it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_nodes_are_hidden(engine):
    """Relations, changes, queries and proofs are those of the rules as they stand."""
    facts = collaborators(8, 10)
    one, other = (upheld.materialise(DECLARED, facts, engine=engine, decompose=mode) for mode in ("always", "never"))
    assert len(nodes(one)) == 2 and nodes(other) == []
    assert one.relations == other.relations and one.facts() == other.facts() and repr(one) == repr(other)
    assert str(one.explain("pc", ("a8", "d1"))) == str(other.explain("pc", ("a8", "d1")))
    assert str(one.explain("pc", ("a8", "d99"))) == str(other.explain("pc", ("a8", "d99")))
    assert one.query('pc("a8", y)').to_set() == other.query('pc("a8", y)').to_set()
    changes = [m.update(delete={"ca": [("a8", "a3"), ("a1", "c14")]}) for m in (one, other)]
    assert repr(changes[0]) == repr(changes[1])
    assert [r.name for r in changes[0].deleted.not_empty()] == ["ca", "pc"]
    assert set(changes[0].deleted) == set(one.relations)


@pytest.mark.parametrize("engine", ENGINES)
def test_acyclic_rules_along_their_join_tree(engine):
    """`all` makes a relation of each atom of an acyclic rule, shared by rules; a single atom is left as it stands."""
    rules = """
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    two(x, z) :- edge(x, y), edge(y, z), x < z.
    """
    facts = {"edge": [(1, 2), (2, 3), (3, 1)]}
    m = upheld.materialise(rules, facts, engine=engine, decompose="all")
    plain = upheld.materialise(rules, facts, engine=engine, decompose="always")
    assert [str(rule) for rule in m._core.rules] == [
        "path(x, y) :- edge(x, y).",
        "path(x, z) :- [x0, x1: path(x0, x1)](x, y), [x0, x1: edge(x0, x1)](y, z).",
        "two(x, z) :- [x0, x1: edge(x0, x1)](x, y), [x0, x1: edge(x0, x1)](y, z), x < z.",
        "[x0, x1: path(x0, x1)](x0, x1) :- path(x0, x1).",
        "[x0, x1: edge(x0, x1)](x0, x1) :- edge(x0, x1).",
    ]
    assert nodes(plain) == [] and m.facts() == plain.facts()
    assert repr(m.update(delete={"edge": [(3, 1)]})) == repr(plain.update(delete={"edge": [(3, 1)]}))
    assert m.facts() == plain.facts() and str(m.explain("path", (1, 3))) == str(plain.explain("path", (1, 3)))


def test_errors_show_the_rule_as_it_stands():
    """Those of a rule without a result, and of a limit that is reached in a node."""
    square = "p(x, y) :- a(x, u), b(u, y), a(y, v), b(v, x), 1 / x > 0."
    facts = {"a": [(0, 1), (2, 1)], "b": [(1, 2), (1, 0)]}
    with pytest.raises(upheld.UpheldError) as refused:
        upheld.materialise(square, facts, decompose="always")
    assert "division by zero in `p(x, y) :- a(x, u), b(u, y), a(y, v), b(v, x), 1 / x > 0.`" in str(refused.value)
    with pytest.raises(upheld.UpheldError) as stopped:
        upheld.materialise(PC, collaborators(8, 10), decompose="always", limits=upheld.Limits(facts=400))
    assert f"while applying `{PC}`" in str(stopped.value)


def test_unknown_mode():
    with pytest.raises(upheld.UpheldError) as refused:
        upheld.materialise("p(1).", decompose="alway")
    assert refused.value.slugs == ("unknown-decomposition",) and "did you mean `always`" in str(refused.value)


@given(cyclic_cases())
def test_engines_know_the_same_of_facts(case):
    """How many facts have the constants of an atom, and how many values there are in each column."""
    core = compile_program(read_text(case.program)).core
    try:
        memory, reference = (materialise_core(core, case.facts.items(), engine=engine) for engine in ENGINES)
    except upheld.UpheldError:  # a rule without a result
        assume(False)
    atoms = [atom for rule in core.rules for atom in rule.positive]
    assert memory._state.I.profiles(atoms) == reference._state.I.profiles(atoms)


# -- what is told of it ------------------------------------------------------------------------------------------------


def test_plans_draw_the_tree():
    m = upheld.materialise(DECLARED, collaborators(40, 40))
    rule, why, *tree = m.plans().splitlines()[:4]
    assert rule == PC
    assert re.fullmatch(r"  a cycle of width 2, decomposed: about [\d,]+ rows instead of [\d,]+", why)
    assert tree == [
        "    (x, z1, y) from cw(x, z1), pc(z1, y): about 1,640 rows",
        "      (x, z2, y) from ca(x, z2), pc(z2, y): about 1,640 rows",
    ]


def test_plans_draw_join_trees():
    rules, facts = "path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2)], "path": [(0, 1)]}
    m = upheld.materialise(rules, facts, decompose="all")
    rule, why, *tree = m.plans().splitlines()[:4]
    assert rule == "path(x, z) :- path(x, y), edge(y, z)."
    assert why == "  acyclic, decomposed: 2 nodes along its join tree"
    assert [line.partition(":")[0].strip() for line in tree] == ["(x, y) from path(x, y)", "(y, z) from edge(y, z)"]


def told(rules: str, facts: dict[str, list[tuple[int, int]]]) -> str:
    """What is told of a program with one rule, which is not decomposed."""
    m = upheld.materialise(rules, facts)
    assert nodes(m) == []
    rule, why, again = m.plans().splitlines()[:3]
    assert rule == again == rules
    return why


def test_plans_tell_why_not():
    """Few facts, few rows, a single node that is best, and a gain that is too small to pay."""
    square, triangle = "p(x, y) :- e(x, u), e(u, y), f(y, v), f(v, x).", "p(x) :- e(x, y), e(y, z), e(z, x)."
    ring, thin = ([(i, (i + d) % 500) for i in range(500) for d in range(1, n)] for n in (12, 7))
    path = [(i, i + 1) for i in range(600)]
    assert told(square, {"e": path[:5], "f": path[:5]}) == "  a cycle, not decomposed: there are few facts, 10"
    why = told(square, {"e": path, "f": path})
    assert re.fullmatch(r"  a cycle, not decomposed: its joins have few rows, about [\d,]+", why)
    assert "width 2, not decomposed: joined as it stands it takes the fewest rows" in told(triangle, {"e": ring})
    assert told(square, {"e": thin, "f": thin}).endswith("times fewer would")


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    """`run` and `apply` write the same whatever is decomposed; `check --plans` tells what is."""
    monkeypatch.chdir(tmp_path)
    directives = ".input cw\n.input ca\n.input pc\n.output pc\n"
    Path("pc.dl").write_text(DECLARED.replace(PC, directives + PC), encoding="utf-8")
    for name, rows in collaborators(8, 10).items():
        Path(f"{name}.facts").write_text("".join(f"{x}\t{y}\n" for x, y in rows), encoding="utf-8")
    Path("updates").write_text('-ca("a8", "a3").\ncommit.\n', encoding="utf-8")

    def printed(*arguments: str) -> str:
        assert main([*arguments, "pc.dl", "--decompose", mode]) == 0
        return capsys.readouterr().out

    outputs = set()
    for mode in ("never", "auto", "always", "all"):
        drawn = printed("check", "--plans", "-F", ".")
        assert ("(x, z1, y) from cw(x, z1), pc(z1, y)" in drawn) == (mode in ("always", "all"))
        run, apply = printed("run", "-D", "-"), printed("apply", "--updates", "updates", "--changes", "-", "--verify")
        assert '-pc("a8", "d1").' in apply
        outputs.add((run, apply))
    assert len(outputs) == 1
