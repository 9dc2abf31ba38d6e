"""What every test shares: how hard Hypothesis looks, and where the kept cases lie."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.cases import ABSENT, CASES
from tests.helpers.sizes import ALL, usually
from upheld.engines.memory.kernels.jit import compile_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from upheld import SparkEngine

# Tests on Spark are short: compiling what they run for speed took half of their CPU time. Java reads this at its start.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Deadlines and slow-data checks measure the machine and its other work rather than the code under test. A program with
# facts and updates takes many random choices: that is no sign of a mistake either.
_UNFIT = [HealthCheck.too_slow, HealthCheck.data_too_large]
_COMMON = settings(deadline=None, suppress_health_check=_UNFIT, print_blob=True)

# Where a verdict is wanted on one change, the examples are the same each time; elsewhere each run looks at new ones.
settings.register_profile("default", _COMMON, max_examples=usually(15, 40), derandomize=bool(os.environ.get("CI")))
# For a second look at what has been looked at well: the kernels once more, in slower modes.
settings.register_profile("quick", _COMMON, max_examples=usually(5, 15))
# For a night: pytest --hypothesis-profile=soak
settings.register_profile("soak", _COMMON, max_examples=20_000)
settings.load_profile("default")

# Spark compiles each plan to Java: for the few rows of a test that takes longer than to interpret the plan. Two
# partitions show what six do. `make test-all` runs compiled plans, and as many partitions as users have.
_FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}


# Otherwise kernels are plain Python in the first tests of a process and compiled in the others, whichever those are.
# Tests of plain Python have processes of their own (tests/engines/memory/kernels).
compile_kernels()


def pytest_runtest_setup() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` in every test: a Spark session of the process handles it in its own way."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its length: names of a megabyte went through the pipes of pytest-xdist and into the log."""
    return f"{argname} of {len(val)} characters" if isinstance(val, str) and len(val) > 400 else None


#: The test that compiles most kernels, and tests on Spark that need few: at the same time in two processes.
_FIRST = ("tests/cli/test_cli.py::test_demo", "tests/pipeline/sources/", "tests/pipeline/test_dictionary.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked `exhaustive`, unless everything is to run, and put some tests first.

    With an empty cache, processes that need a kernel at the same time all compile it. This took half a minute in the
    process of Spark, in each of its Python workers, and in the process of the other tests.
    """
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))
    left = [] if ALL else [item for item in items if item.get_closest_marker("exhaustive")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]


def pytest_collection_finish() -> None:
    """Spare the garbage collector all that was imported: a full collection took long and found nothing there."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of kept cases; a test that asks for it is skipped where there is none."""
    if CASES is None:
        pytest.skip(ABSENT)
    return CASES


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The one local Spark session of the test run; a module that asks for it has `xdist_group("spark")` as its mark."""
    from upheld.engines.spark.session import spark_session

    session = spark_session(memory="1g", cores=3)
    for name, value in usually(_FOR_FEW_ROWS, {}).items():
        session.conf.set(name, value)
    return session


@pytest.fixture
def spark_engine(spark: SparkSession) -> Callable[..., SparkEngine]:
    """Return a function that makes engines on the session of the test run."""
    import upheld

    def make(**options: object) -> SparkEngine:
        return upheld.SparkEngine(spark, **options)

    return make
