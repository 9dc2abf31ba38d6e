"""Run a job on Spark: read its sources, derive what follows, fill its sinks, and report."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import upheld
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.progress import stage_lines


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("job", type=Path, help="a TOML file with [program], [[source]], [[sink]] and [run]")
    command.add_argument("--json", action="store_true", help="print the report as JSON")
    command.add_argument(
        "--memory", metavar="SIZE", help="the memory of Spark's Java, such as 4g, where a session is started"
    )
    command.add_argument("--cores", type=int, metavar="N", help="the cores of a session that is started")
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    job = upheld.Pipeline.from_file(options.job, limits=limits_of(options), memory=options.memory, cores=options.cores)
    with stage_lines() as progress:
        report = job.run(progress=progress).report
    print(json.dumps(report.to_dict(), indent=2) if options.json else report.to_text())
    return 0
