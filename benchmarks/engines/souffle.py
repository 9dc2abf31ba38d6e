"""Derive a workload with Soufflé's compiled mode. Compiling is not timed; loading is timed by a program without rules.

python -m benchmarks.engines.souffle FOLDER BYTES [THREADS]
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure.spending import Measurement, Spent, asked, limit_memory
from benchmarks.workloads.rulesets import read_program


def compiled(program: Path, made: Path, threads: int) -> Path:
    subprocess.run(["souffle", "-w", f"-j{threads}", "-o", str(made), str(program)], check=True, stdout=sys.stderr)
    return made


def run(binary: Path, folder: Path, limit: int, threads: int) -> tuple[Spent, int, str]:
    """Return what a run took, its peak of memory, and what it printed."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed:
        command = [str(binary), f"-j{threads}", "-F", str(folder), "-D", "."]
        process = subprocess.Popen(command, stdout=printed, preexec_fn=lambda: limit_memory(limit))
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        assert status == 0, f"the program of Soufflé ended with status {status}"
        printed.seek(0)
        return Spent(wall, used.ru_utime + used.ru_stime), _bytes(used), printed.read()


def _bytes(used: resource.struct_rusage) -> int:
    return used.ru_maxrss if sys.platform == "darwin" else used.ru_maxrss * 1024


def main() -> None:
    folder, limit, threads = asked()
    program = folder / "program.dl"
    text = program.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        only_loading = Path(scratch) / "loading.dl"
        inputs = read_program(text).inputs
        kept = [line for line in text.splitlines() if line.startswith((".decl", ".input"))]
        only_loading.write_text("\n".join(kept + [f".printsize {n}" for n in inputs]) + "\n", encoding="utf-8")
        binary = compiled(program, Path(scratch) / "program", threads)
        loader = compiled(only_loading, Path(scratch) / "loader", threads)
        run(binary, folder / "tiny", limit, threads)
        loading, _, read = run(loader, folder, limit, threads)
        total, peak, printed = run(binary, folder, limit, threads)
    sizes = re.findall(r"^(\w+)\t(\d+)$", read + printed, re.M)
    said = subprocess.run(["souffle", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    Measurement(
        total=total,
        loading=loading,
        peak=peak,
        # A relation that is both read and derived is told twice, with its full size last.
        facts={name: int(size) for name, size in sizes if int(size)},
        version=found.group() if found else "unknown",
    ).tell()


if __name__ == "__main__":
    main()
