"""Explain a fact: its shortest proof, or what each rule that could derive it is missing."""

from __future__ import annotations

import argparse
from pathlib import Path

import upheld
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.progress import progress_line


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("program", type=Path, help="a .dl or .dlog file, or the rule set rdfs or owl2rl")
    command.add_argument("fact", help="a relation with a constant for each column, as rules are written")
    command.add_argument(
        "-F",
        "--facts",
        metavar="PATH",
        help="where the facts files are (default: .); for .dlog, an RDF file or a folder of them",
    )
    command.add_argument("--json", action="store_true", help="print the explanation as JSON, always all of it")
    command.add_argument(
        "--depth", type=_levels, default=20, metavar="N", help="show so many levels of a proof, 0 for all (default: 20)"
    )
    command.add_argument("--engine", default="memory", help="memory (default), or reference, which is slow and plain")
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        m = upheld.load(
            options.program, options.facts, engine=options.engine, limits=limits_of(options), progress=progress
        )
        explanation = m.explain(options.fact)
    print(explanation.to_json() if options.json else explanation.to_text(options.depth or None))
    return 0


def _levels(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of levels: use for example 5, or 0 for all")
    return int(text)
