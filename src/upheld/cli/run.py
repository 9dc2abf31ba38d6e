"""Derive what follows from a program and its facts files, and write its outputs, as `souffle` does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import upheld
from upheld.cli.decomposing import add_decompose
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.progress import progress_line


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("program", type=Path, help="a .dl or .dlog file, or the rule set rdfs or owl2rl")
    command.add_argument(
        "-F",
        "--facts",
        metavar="PATH",
        help="where the facts files are (default: .); for .dlog, an RDF file or a folder of them",
    )
    command.add_argument(
        "-D",
        "--output",
        default=".",
        metavar="PATH",
        help="where outputs go, or - to print them (default: .); for .dlog, an RDF file for all triples",
    )
    command.add_argument("--engine", default="memory", help="memory (default), or reference, which is slow and plain")
    add_decompose(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        done = upheld.run(
            options.program,
            options.facts,
            options.output,
            engine=options.engine,
            decompose=options.decompose,
            limits=limits_of(options),
            progress=progress,
        )
    for warning in done.warnings:
        print(warning, file=sys.stderr)
    print(done.printed, end="")
    return 0
