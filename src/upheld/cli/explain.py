"""Explain a fact: its shortest proof, or what each rule that could derive it is missing."""

from __future__ import annotations

import argparse

import upheld
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.options import add_confined, add_engine, add_equality, add_facts, add_program
from upheld.cli.outcome import NOTHING_HOLDS, SUCCESS
from upheld.cli.progress import progress_line


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    command.add_argument("fact", help="a relation with a constant for each column, as rules are written")
    add_facts(command)
    command.add_argument("--json", action="store_true", help="print the explanation as JSON, always all of it")
    command.add_argument(
        "--depth", type=_levels, default=20, metavar="N", help="show so many levels of a proof, 0 for all (default: 20)"
    )
    add_engine(command)
    add_equality(command)
    add_confined(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        m = upheld.load(
            options.program,
            options.facts,
            engine=options.engine,
            equality=options.equality,
            limits=limits_of(options),
            confined=options.confined,
            progress=progress,
        )
        explanation = m.explain(options.fact)
    print(explanation.to_json() if options.json else explanation.to_text(options.depth or None))
    return SUCCESS if explanation.holds else NOTHING_HOLDS


def _levels(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of levels: use for example 5, or 0 for all")
    return int(text)
