"""Explain why a fact holds, or why it does not."""

from __future__ import annotations

import argparse

from upheld.cli.limits import add_limits
from upheld.cli.loading import materialised
from upheld.cli.options import add_evaluation, add_files, add_program
from upheld.cli.outcome import NOTHING_HOLDS, SUCCESS

EXAMPLES = """\
upheld explain reach.dl -F facts 'path("a", "d")'
upheld explain reach.dl -F facts 'path("d", "a")' --depth 3
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    command.add_argument(
        "fact", metavar="FACT", help="an atom with a constant for each column, in the program's syntax"
    )
    explanation = command.add_argument_group("explanation")
    explanation.add_argument("--json", action="store_true", help="print the whole explanation as JSON")
    explanation.add_argument(
        "--depth",
        type=_levels,
        default=20,
        metavar="N",
        help="print at most N levels of a proof, 0 for all (default: 20)",
    )
    add_files(command)
    add_evaluation(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    with materialised(options) as m:
        explanation = m.explain(options.fact)
    print(explanation.to_json() if options.json else explanation.to_text(options.depth or None))
    return SUCCESS if explanation.holds else NOTHING_HOLDS


def _levels(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of levels: use for example 5, or 0 for all")
    return int(text)
