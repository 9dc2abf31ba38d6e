"""A program with its facts, materialised."""

from __future__ import annotations

import argparse
import sys

import upheld
from upheld.cli.limits import limits_of
from upheld.cli.options import program_of


def materialised(options: argparse.Namespace, algorithm: str = "rematerialise") -> upheld.Materialisation:
    """Return the materialisation that the options describe; progress is shown on a terminal.

    The default algorithm is for one question: it keeps nothing for updates.
    """
    return upheld.load(
        program_of(options),
        options.facts,
        engine=options.engine,
        equality=options.equality,
        algorithm=algorithm,
        limits=limits_of(options),
        confined=options.confined,
        progress=sys.stderr.isatty(),
        on_violation="report",  # a question about violations has an answer
    )


def restored(options: argparse.Namespace) -> upheld.Materialisation:
    """Return the materialisation that the state of the options has; progress is shown on a terminal."""
    return upheld.restore(
        program_of(options),
        options.state,
        engine=options.engine,
        equality=options.equality,
        limits=limits_of(options),
        confined=options.confined,
        progress=sys.stderr.isatty(),
        on_violation="report",
    )
