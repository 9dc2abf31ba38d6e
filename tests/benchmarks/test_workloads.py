"""The rules of workloads mean the same in every language that they are written in."""

from __future__ import annotations

import json
from shutil import which

import numpy as np
import pytest

import upheld
from benchmarks.run import run_module
from benchmarks.workloads import rulesets
from benchmarks.workloads.control_flow import definitions, instructions
from benchmarks.workloads.copies import apart, with_suffix
from benchmarks.workloads.graphs import Workload, components, giant, write_folder
from benchmarks.workloads.relations import materials, star
from benchmarks.workloads.rulesets import Atom, Comparison, Rule, parse_rules, read_program

#: Rules with negation, comparison, arithmetic and texts, with facts for them.
SMALL = {
    "star": Workload(rulesets.STAR, lambda r: star(30, 40, 0.3, r), dict),
    "dataflow": Workload(rulesets.DATAFLOW, lambda r: definitions(3, 9, 4, r), dict),
    "labels": Workload(rulesets.LABELS, lambda r: components(2, r), dict),
    "unreachable": Workload(rulesets.UNREACHABLE, lambda r: instructions(5, 8, 3, r), dict),
    "hops": Workload(rulesets.HOPS, lambda r: giant(30, r), dict),
    "materials": Workload(rulesets.MATERIALS, lambda r: materials(60, r), dict),
    "self": Workload("up(y, x) :- up(x, y).\nlow(x) :- edge(x, _), !up(x, _).", lambda r: giant(5, r), dict),
}


def test_rules_are_parsed():
    """Atoms, negated atoms, comparisons and sums come apart."""
    (rule,) = parse_rules("p(x, n + 1) :- q(x, y), !r(y, _), y < 5, x != y.")
    assert rule == Rule(
        Atom("p", ("x", "n + 1")),
        (Atom("q", ("x", "y")),),
        (Atom("r", ("y", "_")),),
        (Comparison("y", "<", "5"), Comparison("x", "!=", "y")),
    )


def test_components_come_after_what_they_depend_on():
    program = read_program(rulesets.write_program(rulesets.LABELS, ["edge"]))
    assert list(program.components()) == [("link",), ("label",), ("smaller",), ("component",)]
    mutual = "a(x) :- b(x).\nb(x) :- a(x).\nc(x) :- e(x), !a(x)."
    assert list(read_program(rulesets.write_program(mutual, ["e"])).components()) == [("a", "b"), ("c",)]


def test_copies_of_rules_derive_the_same_facts():
    """Copies of a program over parts of facts, without a value in common, derive what the program does of them all."""
    r = np.random.default_rng(1)
    parts = apart([giant(20, r) for _ in range(3)])
    one = upheld.materialise(rulesets.CLOSURE, {"edge": np.concatenate([part["edge"] for part in parts])})
    copies = "".join(with_suffix(rulesets.CLOSURE, f"_{k}") for k in range(3))
    three = upheld.materialise(copies, {f"edge_{k}": part["edge"] for k, part in enumerate(parts)})
    assert set(one["path"]) == set().union(*(three[f"path_{k}"] for k in range(3)))


@pytest.mark.parametrize("name", SMALL)
def test_duckdb_finds_the_same_facts(name, tmp_path):
    """What SQL makes of the rules has as many rows as Upheld derives facts, in every relation."""
    from benchmarks.engines.duckdb import Evaluation

    workload = SMALL[name]
    folder = tmp_path / name
    write_folder(folder, workload.rules, workload.facts(np.random.default_rng(1)))
    evaluation = Evaluation(folder, 1 << 30)
    evaluation.load()
    evaluation.derive()
    files = {relation: folder / f"{relation}.facts" for relation in evaluation.program.inputs}
    m = upheld.materialise(folder / "program.dl", files)
    assert evaluation.counts() == {relation: len(m[relation]) for relation in m.relations if len(m[relation])}


@pytest.mark.skipif(which("souffle") is None, reason="Soufflé is not on the path")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", SMALL)
def test_souffle_finds_the_same_facts(name, threads, tmp_path):
    """The runner compiles and runs the program, and reads the sizes of all relations."""
    workload = SMALL[name]
    folder, facts = tmp_path / name, workload.facts(np.random.default_rng(1))
    write_folder(folder, workload.rules, facts)
    write_folder(folder / "tiny", workload.rules, facts)
    said = run_module("engines.souffle", str(folder), str(1 << 30), str(threads))
    inputs = read_program((folder / "program.dl").read_text("utf-8")).inputs
    m = upheld.materialise(folder / "program.dl", {relation: folder / f"{relation}.facts" for relation in inputs})
    expected = {relation: len(m[relation]) for relation in m.relations if len(m[relation])}
    assert json.loads(said.splitlines()[-1])["facts"] == expected
