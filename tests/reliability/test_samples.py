"""Every goal of the reliability programme holds on a sample."""

from __future__ import annotations

import subprocess
from functools import partial

import pytest

from tests.reliability.mutants import ROOT, mutants
from tests.reliability.programme import Goal, Run, goals, run


@pytest.mark.parametrize("id", [goal.id for goal in goals().values() if goal.sample])
def test_a_sample_of_the_goal_has_no_failures(id: str) -> None:
    goal = goals()[id]
    result = run(goal, goal.sample)
    assert result.failures == [] and result.made >= 1


def test_a_case_that_raises_is_a_failure() -> None:
    def refuse_two(number: int) -> None:
        assert number != 2, "two"

    def attack(run: Run) -> None:
        for number in run.cases():
            run.case(f"case {number}", partial(refuse_two, number))

    result = run(Goal("R0", "itself", attack, 1, 1), 5)
    assert (result.made, result.failed) == (5, 1)
    assert result.failures[0]["case"] == "case 2"


def test_all_failures_have_a_name() -> None:
    """Tracebacks of the first few are enough, but each can be run again."""

    def attack(run: Run) -> None:
        for number in run.cases():
            run.case(f"case {number}", partial(int, "no number"))

    result = run(Goal("R0", "itself", attack, 1, 1), 12)
    assert [failure["case"] for failure in result.failures] == [f"case {number}" for number in range(12)]
    assert sum("traceback" in failure for failure in result.failures) == 5
    assert all("ValueError" in failure["error"] for failure in result.failures)


def test_one_case_can_be_run_again() -> None:
    ran: list[int] = []

    def attack(run: Run) -> None:
        for number in run.cases():
            run.case(f"case {number}", partial(ran.append, number))

    run(Goal("R0", "itself", attack, 1, 1), 5, only="case 3")
    assert ran == [3]


def test_planted_bugs_can_be_planted() -> None:
    """Each patch applies to the code as it is, and names tests that exist; if not, it is to be written anew."""
    planted = mutants()
    assert len(planted) >= 40
    for mutant in planted:
        check = subprocess.run(["git", "apply", "--check", str(mutant.patch)], cwd=ROOT, capture_output=True, text=True)
        assert check.returncode == 0, check.stderr
        files = [test.partition("::")[0] for test in mutant.tests if test.startswith("tests/")]
        assert files and all((ROOT / file).is_file() for file in files)
