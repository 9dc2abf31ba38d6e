"""Materialise a program and write its outputs, as `souffle` does."""

from __future__ import annotations

import argparse
import sys

import upheld
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.options import add_evaluation, add_files, add_profile, add_program, add_state, program_of
from upheld.cli.outcome import check_state, check_violations, finish

EXAMPLES = """\
upheld run reach.dl -F facts -D out
upheld run owl2rl -F data.ttl -D closure.nt
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    add_files(command, outputs=True)
    add_evaluation(command, decompose=True, threads=True)
    add_state(command)
    add_profile(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    check_violations(options)
    check_state(options)
    # Once `done` has a value, Ctrl-C finds the outputs written.
    options.done = upheld.run(
        program_of(options),
        options.facts,
        options.output,
        engine=options.engine,
        decompose=options.decompose,
        equality=options.equality,
        limits=limits_of(options),
        threads=options.threads,
        confined=options.confined,
        progress=sys.stderr.isatty(),
        profile=options.profile,
        on_violation=options.on_violation,
        state=options.state,
        edited=options.edited,
        feed=options.feed,
    )
    return finish(options, options.done, sys.stdout)
