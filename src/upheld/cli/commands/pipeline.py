"""Run a job on Spark: read sources, materialise, write sinks."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import upheld
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.progress import Stage, stage_lines


class Report(Protocol):
    """The report of a run or a stream."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_text(self) -> str: ...


EXAMPLES = """\
upheld pipeline job.toml
upheld pipeline job.toml --memory 4g --json
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "job", type=Path, metavar="JOB", help="a TOML file with [program], [[source]], [[sink]], [stream] and [run]"
    )
    spark = command.add_argument_group("Spark session", "Ignored where a session is already active.")
    spark.add_argument("--memory", metavar="SIZE", help="memory of the driver's JVM, such as 4g")
    spark.add_argument("--cores", type=int, metavar="N", help="cores to use (default: all)")
    command.add_argument_group("report").add_argument("--json", action="store_true", help="print the report as JSON")
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    job = upheld.Pipeline.from_file(options.job, limits=limits_of(options), memory=options.memory, cores=options.cores)
    with stage_lines() as progress:
        report = _stream(job, progress) if job.has_stream else job.run(progress=progress).report
    print(json.dumps(report.to_dict(), indent=2) if options.json else report.to_text())
    return 0


def _stream(job: upheld.Pipeline, progress: Callable[[Stage], None] | None) -> Report:
    """Apply updates until there are no more, or until somebody presses Ctrl-C."""
    with job.stream(progress=progress) as stream:
        try:
            stream.wait()
        except KeyboardInterrupt:
            print("stopping ...", file=sys.stderr)
    return stream.report
