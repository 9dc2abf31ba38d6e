"""Spark goes through the contract: each law once, on a program of its own."""

from __future__ import annotations

from random import Random

import pytest

from tests.contract import test_counters, test_equality, test_sets
from tests.contract.laws import EqualitySetting, EquivalenceSetting, Law, Setting, laws_of
from tests.helpers.sizes import exhaustive
from tests.helpers.strategies import random_case

pytestmark = pytest.mark.xdist_group("spark")

#: Transactions are undone at many points of each program, which takes Spark minutes; `test_faults` fails its updates.
LAWS: dict[str, Law] = laws_of(test_sets) | laws_of(test_counters)
del LAWS["test_transaction"], LAWS["test_attempt"]


@pytest.mark.parametrize("name", LAWS)
def test_law(name: str, spark_engine) -> None:
    """Each law holds on Spark, where small sets are in the driver and others in DataFrames."""
    r = Random(name)
    LAWS[name](Setting(spark_engine(small=30), random_case(r), r))


LAWS_OF_EQUALITY = laws_of(test_equality)


@exhaustive
@pytest.mark.parametrize("name", LAWS_OF_EQUALITY)
def test_law_of_equality(name: str, spark_engine) -> None:
    """So do the laws of classes and equivalences; `engines/spark/test_equality` compares each operator in any case."""
    law = LAWS_OF_EQUALITY[name]
    setting_of = EqualitySetting if law.__annotations__["s"] == "EqualitySetting" else EquivalenceSetting
    law(setting_of(spark_engine(small=10), Random(name)))
