"""Compile what a program needs ahead of its first run.

It materialises the facts, rehearses updates and questions, and writes nothing but the cache of compiled kernels,
which later runs on this machine read.
"""

from __future__ import annotations

import argparse

from upheld.cli.limits import add_limits
from upheld.cli.loading import materialised
from upheld.cli.options import add_evaluation, add_files, add_program
from upheld.cli.outcome import SUCCESS

EXAMPLES = """\
upheld warm reach.dl -F facts
upheld warm reach.dl -F facts --algorithm dred
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    updates = command.add_argument_group("updates")
    updates.add_argument("--algorithm", default="adaptive", help="algorithm of the updates (default: adaptive)")
    add_files(command)
    add_evaluation(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    with materialised(options, options.algorithm) as m:
        m.warm()
    return SUCCESS
