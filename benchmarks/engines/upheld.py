"""Materialise a workload with Upheld's memory engine, through the public API.

python -m benchmarks.engines.upheld FOLDER BYTES [THREADS [warm]]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import upheld
from benchmarks.measure.spending import Measurement, Spent, asked, limit_memory, peak_memory, spending
from benchmarks.workloads.rulesets import read_program
from upheld.algebra.meter import Meter
from upheld.base.statistics import Statistics
from upheld.engines.memory.kernels.jit import compile_kernels

deriving = Spent()


@contextmanager
def watched(meter: Meter) -> Iterator[Statistics]:
    """Do as `Meter.run` does, and time it: what a materialisation takes besides is loading."""
    with spending() as spent, unwatched(meter) as statistics:
        yield statistics
    deriving.wall, deriving.cpu = spent.wall, spent.cpu


unwatched = Meter.run


def materialise(folder: Path, threads: int) -> upheld.Materialisation:
    program = folder / "program.dl"
    inputs = read_program(program.read_text(encoding="utf-8")).inputs
    files = {name: folder / f"{name}.facts" for name in inputs}
    # No bookkeeping for updates: the other engines keep none. What it costs is measured beside.
    return upheld.materialise(program, files, engine="memory", algorithm="rematerialise", threads=threads)


def counts(m: upheld.Materialisation) -> dict[str, int]:
    """Return the number of facts of each relation, without making Python objects of them."""
    sizes = {name: m._state.I.count(name) for name in m.relations}
    return {name: size for name, size in sizes.items() if size}


def main() -> None:
    compile_kernels()
    Meter.run = watched  # type: ignore[method-assign, assignment]
    folder, limit, threads = asked()
    limit_memory(limit)
    materialise(folder / "tiny", threads)
    if sys.argv[4:] == ["warm"]:
        return
    with spending() as total:
        m = materialise(folder, threads)
    Measurement(
        total=total,
        loading=Spent(total.wall - deriving.wall, total.cpu - deriving.cpu),
        instances=sum(m.statistics.instances.values()),
        peak=peak_memory(),
        facts=counts(m),
        version=upheld.__version__,
        more={"given": m._state.E.count()},
    ).tell()


if __name__ == "__main__":
    main()
