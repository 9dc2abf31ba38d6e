"""The experiments on Spark: tables of papers 1 and 2 by the Spark engine, and the modes of a pipeline."""

from __future__ import annotations

import pytest

from experiments.catalogue import experiments
from experiments.measuring.measure import wanted
from experiments.measuring.spending import processor_time
from experiments.papers.spark import MODES
from experiments.registry import Measured, Settings
from tests.helpers.sizes import exhaustive

pytestmark = pytest.mark.xdist_group("spark")
TINY = Settings("tiny")


@pytest.mark.parametrize("id", [pytest.param("p1-table3-spark", marks=exhaustive), "p2-table1-spark"])
def test_updates_on_spark(spark, id):
    """A cell has CPU seconds of all processes, and the derivations of the memory engine."""
    experiment = experiments()[id]
    cells = wanted(experiment, TINY)[:1]
    measured = Measured({"cell": vars(cell), **values} for cell, values in experiment.measure(TINY, cells))
    table = experiment.table(measured)
    assert table.title.endswith("on Spark")
    alone = experiments()[id.removesuffix("-spark")]
    assert cells[0] in wanted(alone, TINY)
    in_memory = Measured({"cell": vars(cell), **values} for cell, values in alone.measure(TINY, cells))
    name = "delete.total"
    assert measured.numbers(name, row=cells[0].row) == in_memory.numbers(name, row=cells[0].row)
    assert measured.numbers("delete.cpu", row=cells[0].row)[0] > 0


def test_modes_of_a_pipeline(spark):
    """Every mode derives the same facts, and has columns of its own."""
    experiment = experiments()["spark-modes"]
    cells = wanted(experiment, TINY)
    assert [cell.way for cell in cells] == list(MODES)
    chosen = [cell for cell in cells if cell.way in ("memory", "driver")]
    measured = Measured({"cell": vars(cell), **values} for cell, values in experiment.measure(TINY, chosen))
    assert len(set(measured.numbers("materialised", row="closure"))) == 1
    assert {"CPU memory", "wall driver"} <= set(experiment.table(measured).columns)


def test_the_clock_of_processes_goes_on():
    before = processor_time()
    assert sum(range(200_000)) and processor_time() >= before
