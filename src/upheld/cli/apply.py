"""Derive what follows, apply the transactions of an update file one by one, and write the outputs and what changed."""

from __future__ import annotations

import argparse
import sys

import upheld
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.options import add_confined, add_decompose, add_engine, add_equality, add_facts, add_output, add_program
from upheld.cli.outcome import add_fail_on_violation, check_violations, finish
from upheld.cli.progress import commits_line


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    command.add_argument(
        "--updates",
        required=True,
        metavar="FILE",
        help="a text of updates (- for standard input), a .csv, .tsv or .parquet table of them, or a folder of tables",
    )
    add_facts(command)
    add_output(command)
    add_fail_on_violation(command)
    command.add_argument(
        "--changes",
        metavar="FILE",
        help="write what each commit changes in the outputs to this file, or - to print it; then all else that is "
        "printed goes to standard error",
    )
    command.add_argument(
        "--algorithm",
        default="adaptive",
        help="adaptive (default), ranked, counting, dred, fbf, bf, dred-c, bf-c, rematerialise, or with --look-ahead "
        "dred-marking or bf-marking",
    )
    add_engine(command)
    command.add_argument(
        "--verify",
        action="store_true",
        help="compute everything from nothing after each commit, and stop if it differs",
    )
    add_decompose(command)
    add_equality(command)
    command.add_argument(
        "--look-ahead",
        action="store_true",
        help="make each commit with a look at the next one, if it has arrived, to undo at once what that undoes",
    )
    command.add_argument(
        "--merge-waiting",
        type=int,
        default=1,
        metavar="N",
        help="make up to N commits that have arrived as one, with one change; those of a file have all arrived",
    )
    add_confined(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    check_violations(options)
    with commits_line(shown=options.changes != "-") as (progress, committed):
        # Once `done` has a value, Ctrl-C finds the outputs written.
        options.done = upheld.apply(
            options.program,
            options.updates,
            options.facts,
            options.output,
            changes=sys.stdout if options.changes == "-" else options.changes,
            verify=options.verify,
            engine=options.engine,
            algorithm=options.algorithm,
            decompose=options.decompose,
            equality=options.equality,
            limits=limits_of(options),
            confined=options.confined,
            look_ahead=options.look_ahead,
            merge_waiting=options.merge_waiting,
            progress=progress,
            committed=committed,
        )
    return finish(options, options.done, sys.stderr if options.changes == "-" else sys.stdout)
