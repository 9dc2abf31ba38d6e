"""Explain why a fact holds, or why it does not."""

from __future__ import annotations

import argparse

import upheld
from upheld.base.errors import FactsError, Problem, UsageError
from upheld.cli.limits import add_limits
from upheld.cli.loading import materialised, restored
from upheld.cli.options import add_evaluation, add_files, add_program
from upheld.cli.outcome import NOTHING_HOLDS, SUCCESS

EXAMPLES = """\
upheld explain reach.dl -F facts 'path("a", "d")'
upheld explain reach.dl -F facts 'path("d", "a")' --depth 3
upheld explain reach.dl -F facts 'path("a", "d")' --when --updates updates.txt
upheld explain reach.dl 'path("a", "d")' --when --state state
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
    explanation.add_argument(
        "--when",
        action="store_true",
        help="print in which updates the fact appeared and vanished, and why: the updates of --updates, which are "
        "applied here and nowhere else, or of the feed of --state",
    )
    explanation.add_argument(
        "--updates",
        metavar="FILE",
        help="for --when: text with updates (- for standard input), a .csv, .tsv or .parquet table, or a folder of "
        "tables",
    )
    explanation.add_argument(
        "--state", metavar="DIR", help="explain the facts of the state saved in DIR, and read no facts files"
    )
    add_files(command)
    add_evaluation(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    if options.when or options.updates is not None:
        return _history(options)
    with materialised(options) if options.state is None else restored(options) as m:
        explanation = m.explain(options.fact)
    print(explanation.to_json() if options.json else explanation.to_text(options.depth or None))
    return SUCCESS if explanation.holds else NOTHING_HOLDS


def _history(options: argparse.Namespace) -> int:
    """Print when a fact appeared and vanished."""
    if not options.when or (options.updates is None) == (options.state is None):
        there, missing = (
            ("--when", "either `--updates FILE` or `--state DIR`") if options.when else ("--updates", "`--when`")
        )
        hint = "`upheld apply` applies updates; `upheld explain` without both options explains the facts there are"
        raise UsageError(Problem("bad-argument", f"`{there}` needs {missing}", place=there, hint=hint))
    history = _of_feed(options) if options.updates is None else _of_updates(options)
    print(history.to_json() if options.json else history.to_text(options.depth or None))
    return SUCCESS if history.holds else NOTHING_HOLDS


def _of_feed(options: argparse.Namespace) -> upheld.FactHistory:
    with restored(options) as m:
        history = m.history(options.fact)
    if history.since_version is None:
        note = "a state keeps the updates between its versions if it was saved with a feed"
        hint = "save it with `feed=True`, or run `upheld apply --state DIR --feed`; history begins there"
        raise FactsError(Problem("no-feed", "this state keeps no feed", place=options.state, note=note, hint=hint))
    return history


def _of_updates(options: argparse.Namespace) -> upheld.FactHistory:
    """Apply updates, and return the history of the fact in all of them, however many there are."""
    with materialised(options, "adaptive") as m:
        first = m.explain(options.fact)
        changes = (m.update(u.insert, u.delete, replace=u.replace) for u in upheld.read_updates(options.updates, m))
        events = tuple(event for change in changes if (event := m.event(change, options.fact)) is not None)
    holds = events[-1].appeared if events else first.holds
    return upheld.FactHistory(first.fact, first.shortened, holds, first.holds, 1, events)


def _levels(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of levels: use for example 5, or 0 for all")
    return int(text)
