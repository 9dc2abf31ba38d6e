"""Materialise a program and write its outputs, as `souffle` does."""

from __future__ import annotations

import argparse
import sys

from upheld.base.limits import within
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.loading import loaded, project_of
from upheld.cli.options import add_evaluation, add_files, add_profile, add_program, add_state
from upheld.cli.outcome import finish

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
    limits = limits_of(options)
    with within(limits):
        project = project_of(options, limits)
        algorithm = "rematerialise" if options.state is None else "adaptive"  # nothing is updated unless it is saved
        with loaded(project, options, algorithm, limits, sys.stderr.isatty()) as m:
            return finish(options, project, m, sys.stdout)
