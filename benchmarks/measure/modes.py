"""The constants by which `mode = "auto"` of a pipeline chooses: what each mode costs, in processor seconds.

    python -m benchmarks.measure.modes
    python -m benchmarks.measure.modes --rows 1000000 --closure 3.0 --repeat 5

Each mode begins with few facts, reads rows of numbers and rows of texts from Parquet files without deriving anything,
and derives a closure. Each is the least of several runs, after one that is not counted. Serial is the time of the
driver's Python, parallel that of Java and of Python workers; of the start all is serial. Modes are measured as `auto`
comes to them: facts are read before one is chosen. Partitions are held by two tasks. Writes nothing: it prints the
lines of `upheld/pipeline/modes/choosing.py`, and a table of Markdown.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import upheld
from benchmarks.measure.spark import NODES, edges, parquet
from experiments.measuring.spending import processor_time
from upheld.engines.spark.session import spark_session
from upheld.pipeline import run
from upheld.pipeline.modes.choosing import Cost, Rates
from upheld.pipeline.report import Choice

MODES = ("driver", "distributed")

#: A closure whose heads travel in partitions.
CLOSURE = "path(x, y) :- edge(x, y).\npath(x, z) :- edge(x, y), path(y, z).\n"
NUMBERS = ".decl t(c0:number, c1:number)\n.decl q(x:number, y:number)\nq(x, y) :- t(x, y), x < 0.\n"
TEXTS = '.decl t(c0:symbol, c1:symbol)\n.decl q(x:symbol, y:symbol)\nq(x, y) :- t(x, y), x = "none".\n'

#: Rows for each distinct text.
SHARED = 4

#: Tasks that hold partitions; one more is for reading.
TASKS = 2


@contextmanager
def chosen(mode: str) -> Iterator[None]:
    """A block in which `auto` chooses one mode."""
    with patch.object(run, "choose_mode", lambda *_: (mode, Choice("rules are applied in", mode, "it is measured"))):
        yield


def texts(folder: Path, rows: int) -> str:
    """Write rows of two texts as one Parquet file, and return its path."""
    numbers = np.random.default_rng(3).integers(0, rows // SHARED, (2, rows))
    columns = {f"c{i}": [f"http://example.org/people/person-{n}" for n in column] for i, column in enumerate(numbers)}
    pq.write_table(pa.table(columns), folder / "texts.parquet")
    return str(folder / "texts.parquet")


def derived(spark: SparkSession, program: str, relation: str, path: str) -> int:
    """Run a pipeline and return the number of all its facts."""
    report = upheld.Pipeline(program, {relation: path}, mode="auto").run(spark).report
    return sum(sizes["facts"] for sizes in report.relations.values())


def least(work: partial[int], repeat: int) -> tuple[Cost, int]:
    """Return the least processor time of work, by itself and elsewhere, and the number of its facts."""
    work()
    found: list[Cost] = []
    for _ in range(repeat):
        mine, all_of_it = time.process_time(), processor_time()
        facts = work()
        serial = time.process_time() - mine
        found.append(Cost(serial, processor_time() - all_of_it - serial))
    return min(found, key=sum), facts


def each(took: Cost, start: Cost, amount: int) -> Cost:
    """Return the cost of one of an amount."""
    return Cost(*(max(0.0, all_of_it - few) / amount for all_of_it, few in zip(took, start, strict=True)))


def rates(spark: SparkSession, mode: str, paths: dict[str, str], repeat: int) -> Rates:
    """Measure one mode."""
    with chosen(mode):
        start, _ = least(partial(derived, spark, CLOSURE, "edge", paths["few"]), repeat)
        numbers, rows = least(partial(derived, spark, NUMBERS, "t", paths["numbers"]), repeat)
        row = each(numbers, start, rows)
        coded, rows = least(partial(derived, spark, TEXTS, "t", paths["texts"]), repeat)
        read = Cost(start.serial + rows * row.serial, start.parallel + rows * row.parallel)
        text = each(coded, read, rows // SHARED)
        closed, facts = least(partial(derived, spark, CLOSURE, "edge", paths["edges"]), repeat)
        fact = each(closed, start, facts)
    if mode == "distributed":  # each task has all texts: more tasks do not make it faster
        text = Cost(text.serial + text.parallel / TASKS)
    return Rates(Cost(sum(start)), row, text, fact)


def line(mode: str, measured: Rates) -> str:
    """Return a line of the table of constants."""
    costs = ", ".join(f"Cost({cost.serial:.2g}, {cost.parallel:.2g})" for cost in measured[1:])
    return f'    "{mode}": Rates(Cost({measured.start.serial:.2g}), {costs}),'


def row(mode: str, measured: Rates) -> str:
    """Return a row of the table in Markdown."""
    costs = " | ".join(f"{cost.serial * 1e6:.2f} + {cost.parallel * 1e6:.2f}" for cost in measured[1:])
    return f"| `{mode}` | {measured.start.serial:.2f} | {costs} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000, help="of numbers, and of texts")
    parser.add_argument("--closure", type=float, choices=NODES, default=1.0, help="millions of facts")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    spark = spark_session(memory="2g", cores=TASKS + 1)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = np.random.default_rng(5).integers(0, 1 << 30, (options.rows, 2))
        paths = {
            "few": parquet(folder, "few", edges(0.1)[:50]),
            "numbers": parquet(folder, "numbers", pairs),
            "texts": texts(folder, options.rows),
            "edges": parquet(folder, "edges", edges(options.closure)),
        }
        measured = {mode: rates(spark, mode, paths, options.repeat) for mode in MODES}
    print(f"load average before and after: {load:.1f}; {os.getloadavg()[0]:.1f}")
    print("\n".join(line(mode, found) for mode, found in measured.items()))
    print("| mode | start, s | row of numbers, us | distinct text, us | fact derived, us |\n|---|--:|--:|--:|--:|")
    print("\n".join(row(mode, found) for mode, found in measured.items()))


if __name__ == "__main__":
    main()
