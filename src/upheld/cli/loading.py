"""A program with its facts, materialised for one question."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

import upheld
from upheld.cli.limits import limits_of
from upheld.cli.options import program_of
from upheld.cli.progress import progress_line


@contextmanager
def materialised(options: argparse.Namespace) -> Iterator[upheld.Materialisation]:
    """Give the materialisation that the options describe; progress is shown until the block ends."""
    with progress_line() as progress:
        yield upheld.load(
            program_of(options),
            options.facts,
            engine=options.engine,
            equality=options.equality,
            algorithm="rematerialise",  # nothing will be updated
            limits=limits_of(options),
            confined=options.confined,
            progress=progress,
        )
