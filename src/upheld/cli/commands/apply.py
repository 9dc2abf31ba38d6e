"""Apply updates to a program, and write its outputs and their changes."""

from __future__ import annotations

import argparse
import sys

import upheld
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.options import add_evaluation, add_files, add_profile, add_program, add_state, program_of
from upheld.cli.outcome import check_state, check_violations, finish
from upheld.cli.progress import commits_line

EXAMPLES = """\
upheld apply reach.dl -F facts --updates updates.txt -D out --changes changes.txt
upheld apply reach.dl --state state --updates monday.csv --source monday
upheld apply reach.dl --state state --retract monday
tail -f log | upheld apply reach.dl -F facts --updates - --changes -
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    updates = command.add_argument_group("updates")
    updates.add_argument(
        "--updates",
        metavar="FILE",
        help="text with updates (- for standard input), a .csv, .tsv or .parquet table, or a folder of tables",
    )
    updates.add_argument(
        "--source",
        metavar="NAME",
        help="the source of the facts of commits that name none; facts are deleted as claims of this source alone",
    )
    updates.add_argument(
        "--retract",
        metavar="NAME",
        help="first delete all facts of a source, but those that another source claims; --updates is not needed then",
    )
    updates.add_argument(
        "--changes",
        metavar="FILE",
        help="write the change of each commit to FILE, or to standard output (-), in which case everything else goes "
        "to standard error",
    )
    updates.add_argument(
        "--keep",
        metavar="DIR",
        help="keep a table of each output in DIR up to date with each commit: Parquet files and a manifest",
    )
    updates.add_argument(
        "--algorithm",
        default="adaptive",
        help="adaptive, ranked, counting, counting-by-rounds, dred, fbf, bf, dred-c, bf-c, rematerialise; "
        "dred-marking and bf-marking, which look at the next commit if it has arrived (default: adaptive)",
    )
    updates.add_argument(
        "--merge-waiting",
        type=int,
        default=1,
        metavar="N",
        help="apply up to N waiting commits as one, with one change; in a file, all commits wait (default: 1)",
    )
    updates.add_argument(
        "--verify",
        action="store_true",
        help="after each commit, compare with a materialisation from scratch and stop if they differ",
    )
    add_files(command, outputs=True)
    add_evaluation(command, decompose=True, threads=True)
    add_state(command)
    add_profile(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    check_violations(options)
    check_state(options)
    with commits_line(shown=options.changes != "-") as (progress, committed):
        # Once `done` has a value, Ctrl-C finds the outputs written.
        options.done = upheld.apply(
            program_of(options),
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
            threads=options.threads,
            confined=options.confined,
            merge_waiting=options.merge_waiting,
            progress=progress,
            committed=committed,
            profile=options.profile,
            on_violation=options.on_violation,
            state=options.state,
            edited=options.edited,
            feed=options.feed,
            source=options.source,
            retract=options.retract,
            keep=options.keep,
        )
    return finish(options, options.done, sys.stderr if options.changes == "-" else sys.stdout)
