"""Derive what follows from a program and its facts files, and write its outputs, as `souffle` does."""

from __future__ import annotations

import argparse
import sys

import upheld
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.options import add_confined, add_decompose, add_engine, add_equality, add_facts, add_output, add_program
from upheld.cli.outcome import add_fail_on_violation, check_violations, finish
from upheld.cli.progress import progress_line


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    add_facts(command)
    add_output(command)
    add_fail_on_violation(command)
    add_engine(command)
    add_decompose(command)
    add_equality(command)
    add_confined(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    check_violations(options)
    with progress_line() as progress:
        # Once `done` has a value, Ctrl-C finds the outputs written.
        options.done = upheld.run(
            options.program,
            options.facts,
            options.output,
            engine=options.engine,
            decompose=options.decompose,
            equality=options.equality,
            limits=limits_of(options),
            confined=options.confined,
            progress=progress,
        )
    return finish(options, options.done, sys.stdout)
