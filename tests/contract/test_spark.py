"""The Spark engine goes through the contract: each law in several tasks, which are threads."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest

from tests.contract import test_counters, test_equality, test_equality_rounds, test_sets
from tests.contract.laws import EqualitySetting, EquivalenceSetting, Law, Setting, laws_of
from tests.engines.spark.helpers.tasks import Task
from tests.engines.spark.helpers.threads import in_threads
from tests.helpers.programs.strategies import Case, random_case
from tests.helpers.sizes import exhaustive, usually

LAWS: dict[str, Law] = laws_of(test_sets) | laws_of(test_counters)


def hold_in_threads(law: Law, case: Case, r: Random, parts: int, replicated: frozenset[str]) -> None:
    in_threads(parts, lambda wire: law(Setting(Task(wire, replicated), case, deepcopy(r))))


@pytest.mark.parametrize("parts", [pytest.param(1, marks=exhaustive), pytest.param(2, marks=exhaustive), 3])
@pytest.mark.parametrize("name", LAWS)
def test_law(name: str, parts: int) -> None:
    """Each law holds in every task, and all tasks see the same."""
    r = Random(f"{name} {parts}")
    for _ in range(usually(1, 20)):
        case = random_case(r)
        replicated = frozenset(f"r{i}" for i in range(5) if r.random() < 0.15)
        state = Random(r.random())
        hold_in_threads(LAWS[name], case, state, parts, replicated)


LAWS_OF_EQUALITY = laws_of(test_equality) | laws_of(test_equality_rounds)


@pytest.mark.parametrize("parts", [pytest.param(1, marks=exhaustive), pytest.param(2, marks=exhaustive), 3])
@pytest.mark.parametrize("name", LAWS_OF_EQUALITY)
def test_law_of_equality(name: str, parts: int) -> None:
    """So do the laws of classes of equal constants, and of equivalences."""
    law = LAWS_OF_EQUALITY[name]
    setting_of = EqualitySetting if law.__annotations__["s"] == "EqualitySetting" else EquivalenceSetting
    for seed in range(usually(1, 30)):
        in_threads(parts, lambda wire, seed=seed: law(setting_of(Task(wire), Random(seed))))
