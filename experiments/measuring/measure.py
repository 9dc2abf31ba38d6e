"""Measuring: one process a group of cells, one line of JSON a cell, and what is there is not measured again.

python -m experiments.measuring.measure      # reads a request from standard input; `run` starts it
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from threading import Event, Thread
from typing import Any

import upheld
from experiments.catalogue import experiment_named
from experiments.measuring.spending import seconds_of
from experiments.registry import Cell, Experiment, Measured, Settings
from upheld.base.errors import Problem, UsageError
from upheld.engines import THREADS
from upheld.engines.memory.kernels.jit import compile_kernels

#: CPU seconds after which a process is stopped. The next cell and all others of its name are given up.
PATIENCE = {"tiny": 600.0, "small": 600.0, "default": 900.0, "paper": 7200.0}

#: Seconds between two looks at what a process has used.
LOOK = 0.5

#: Called with the cells that are done, all cells, and the group that is measured now.
Progress = Callable[[int, int, str], None]


# -- the process that measures -----------------------------------------------------------------------------------------


def main() -> None:
    """Measure the cells of a request, and print a line for each."""
    import warnings

    warnings.simplefilter("ignore", upheld.UpheldWarning)
    compile_kernels()  # or small sizes would measure plain Python
    request = json.load(sys.stdin)
    experiment = experiment_named(request["id"])
    assert experiment.measure is not None, "an experiment without measurements of its own is never requested"
    cells = [Cell(**cell) for cell in request["cells"]]
    for cell, values in experiment.measure(Settings.from_dict(request["settings"]), cells):
        print(json.dumps({"cell": asdict(cell), **values}), flush=True)


# -- the process that starts them --------------------------------------------------------------------------------------


def folder_of(results: Path, settings: Settings, id: str) -> Path:
    return results / settings.size / id


def load(folder: Path) -> Measured:
    """Return the cells that a folder holds. A line that a kill has cut short is not one of them."""
    file = folder / "cells.jsonl"
    if not file.exists():
        return Measured()
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    return Measured(json.loads(line) for line in lines if line.endswith("\n"))


def wanted(experiment: Experiment, settings: Settings) -> list[Cell]:
    """Return the cells of an experiment that the settings choose."""
    cells = experiment.cells(settings)
    rows = list(dict.fromkeys(cell.row for cell in cells))
    if unknown := [row for row in settings.only if row not in rows]:
        problem = Problem(
            "unknown-row", f"`{experiment.id}` has no row `{unknown[0]}`", note=f"its rows are {', '.join(rows)}"
        )
        raise UsageError(problem)
    return [cell for cell in cells if not settings.only or cell.row in settings.only]


def run(experiment: Experiment, settings: Settings, results: Path, progress: Progress | None = None) -> Measured:
    """Measure the cells that are missing, append each to `cells.jsonl`, and return all."""
    folder = folder_of(results, settings, experiment.id)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "cells.jsonl"
    _drop_unfinished_line(file)
    cells = wanted(experiment, settings)
    there = load(folder)
    missing = [cell for cell in cells if cell not in there]
    done, began = len(cells) - len(missing), os.getloadavg()
    if missing:
        _write_machine(folder, settings, began)
    for _, some in groupby(missing, key=lambda cell: [getattr(cell, name) for name in experiment.process]):
        asked = list(some)
        while asked:
            if progress:
                progress(done, len(cells), asked[0].name)
            left = _measure(experiment, settings, asked, file)
            done += len(asked) - len(left)
            asked = left
    if progress:
        progress(done, len(cells), "")
    if missing:
        _write_machine(folder, settings, began)  # again, with the load at the end
    return load(folder)


def _write_machine(folder: Path, settings: Settings, began: tuple[float, float, float]) -> None:
    (folder / "machine.json").write_text(json.dumps(machine(settings, began), indent=1) + "\n", encoding="utf-8")


def _drop_unfinished_line(file: Path) -> None:
    """Cut off a line that has no end, which a process leaves that is killed while it writes."""
    if file.exists() and not (text := file.read_bytes()).endswith(b"\n"):
        file.write_bytes(text[: text.rfind(b"\n") + 1])


def _measure(experiment: Experiment, settings: Settings, cells: list[Cell], file: Path) -> list[Cell]:
    """Measure cells in a process of their own, and return those that it did not come to in time.

    The cell that it was at, and others of the same name, are recorded as stopped.
    """
    request = {"id": experiment.id, "settings": settings.to_dict(), "cells": [asdict(cell) for cell in cells]}
    patience = PATIENCE[settings.size]
    late: list[bool] = []
    ended, began = Event(), time.monotonic()
    with file.open("a", encoding="utf-8") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "experiments.measuring.measure"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
            # One thread, as the engines of the papers, which are compared by time.
            env={**os.environ, THREADS: "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None

        def watch() -> None:
            while not ended.wait(LOOK):
                # Only Linux says what another process has used; elsewhere the clock must do.
                used = seconds_of(process.pid) if Path("/proc").exists() else time.monotonic() - began
                if used >= patience:
                    late.append(True)
                    process.kill()
                    return

        watcher = Thread(target=watch)
        watcher.start()
        measured = set()
        try:
            # A process that has ended reads no request; its exit code says more than the broken pipe.
            with suppress(BrokenPipeError), process.stdin as asked:
                json.dump(request, asked)
            for line in process.stdout:
                if not line.endswith("\n"):
                    break
                out.write(line)
                out.flush()
                measured.add(Cell(**json.loads(line)["cell"]))
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            ended.set()
            watcher.join()
            process.stdout.close()
        if not late and code != 0:
            raise UsageError(
                Problem(
                    "failed-experiment",
                    f"measuring {cells[len(measured)].name} of `{experiment.id}` failed",
                    note=f"its process ended with code {code}; its messages are above",
                )
            )
        left = [cell for cell in cells if cell not in measured]
        stopped = [cell for cell in left if cell.name == left[0].name]
        out.writelines(json.dumps({"cell": asdict(cell), "stopped": patience}) + "\n" for cell in stopped)
        return [cell for cell in left if cell not in stopped]


def machine(settings: Settings, began: tuple[float, float, float]) -> dict[str, Any]:
    """Return what the numbers depend on: machine, versions, settings, and the load when they were measured."""
    cpuinfo = Path("/proc/cpuinfo")
    models = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    model = next((line.partition(":")[2].strip() for line in models if line.startswith("model name")), "")
    programs = "published rule sets" if settings.programs else "generated"
    chosen = {"size": settings.size, "seeds": settings.seeds, "programs": programs}
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": model or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("upheld", "numpy", "numba")},
        "commit": _commit(),
        "measure": "CPU seconds of the process; on Spark, of all processes. The load says what else the machine did.",
        "load": [round(load, 2) for load in (*began[:1], *os.getloadavg()[:1])],
        "settings": chosen,
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """Return the commit of the code, marked if files were changed since; nothing where it is installed without one."""
    asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:  # no git
        return ""


if __name__ == "__main__":
    main()
