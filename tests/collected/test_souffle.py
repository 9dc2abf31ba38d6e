"""Soufflé's own tests: what runs there gives the same files here, and what is refused there is refused here.

`souffle_refused.tsv` names the cases that need a feature Upheld refuses so far, with the slug of the refusal. The list
can only shrink: a case on it that passes, or fails for another reason, fails its test.
"""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest

import upheld
from tests.helpers.cases import CASES, requires_cases
from tests.helpers.runs import run
from tests.helpers.sizes import exhaustive
from upheld.engines import ENGINES
from upheld.language.syntax import parser

pytestmark = requires_cases

RUN = sorted(p.name for p in (CASES / "souffle" / "run").iterdir()) if CASES else []
REJECT = sorted(p.name for p in (CASES / "souffle" / "reject").iterdir()) if CASES else []

with open(Path(__file__).with_name("souffle_refused.tsv"), encoding="utf-8", newline="") as f:
    REFUSED = {line["case"]: line["slug"] for line in csv.DictReader(f, delimiter="\t")}

#: Cases without an end in sight are stopped early; every other case stays far below.
LIMITS = upheld.Limits(facts=500_000)

#: Cases whose mistake is in the facts: the place of the error is in a facts file.
ABOUT_FACTS_FILES = {"semantic_load2", "semantic_load4"}

#: Lines that Soufflé names and Upheld does not, with the reason.
TOLD_ELSEWHERE = {
    "semantic_error_deduce_type": {5},  # a variable of two types, told at its other place and at both declarations
    "semantic_recursive_unions2": {22},  # an alias of a faulty type, which is told where it is declared
}


#: Cases that take the reference engine ten seconds each, or a maintained materialisation as long.
LONG = {"example_tak", "example_tic-tac-toe", "evaluation_cprog4"}


def program_in(folder: Path) -> Path:
    (program,) = folder.glob("*.dl")
    return program


def lines(path: Path) -> set[str]:
    return set(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    "case, engine",
    [
        pytest.param(case, engine, marks=[exhaustive] if case in LONG and engine == "reference" else [])
        for case in RUN
        if case not in REFUSED
        for engine in ENGINES
    ],
)
def test_run(cases, engine, case, tmp_path):
    """Every expected file is written, with the expected lines."""
    folder = cases / "souffle" / "run" / case
    run(program_in(folder), folder / "facts", tmp_path, engine=engine, limits=LIMITS)
    expected = {p.name: lines(p) for p in folder.glob("*.csv")}
    assert expected, "a case that expects nothing"
    assert {name: lines(tmp_path / name) for name in expected} == expected


@pytest.mark.parametrize("case", REFUSED)
def test_refused(cases, case, tmp_path):
    """A case on the list is refused for the reason the list gives, and writes nothing."""
    folder = cases / "souffle" / "run" / case
    with pytest.raises(upheld.UpheldError) as refusal:
        run(program_in(folder), folder / "facts", tmp_path, limits=upheld.Limits(facts=20_000))
    assert set(refusal.value.slugs) == {REFUSED[case]}
    assert os.listdir(tmp_path) == []


def test_list_of_refused_cases(cases):
    """The list names cases that exist."""
    assert set(REFUSED) <= set(RUN)


@pytest.mark.parametrize("case", REJECT)
def test_reject(cases, case, tmp_path, monkeypatch):
    """What Soufflé refuses is refused, with a place: a line and column, or a facts file."""
    monkeypatch.setattr(parser, "PROBLEM_LIMIT", 1_000)  # so that lines after the first twenty problems are compared
    folder = cases / "souffle" / "reject" / case
    program = program_in(folder)
    with pytest.raises(upheld.UpheldError) as refusal:
        run(program, folder / "facts", tmp_path)
    for problem in refusal.value.problems:
        if case in ABOUT_FACTS_FILES:
            assert problem.place
            assert problem.place.startswith(str(folder / "facts"))
        else:
            assert problem.span
            assert str(problem).startswith(f"{program}:{problem.span.line}:{problem.span.column}: error: ")
    told = {problem.span.line for problem in refusal.value.problems if problem.span}
    told_there = {int(n) for n in re.findall(r"[Ee]rror.* at line (\d+)", next(folder.glob("*.err")).read_text())}
    assert told_there - told == TOLD_ELSEWHERE.get(case, set())
    assert os.listdir(tmp_path) == []
