"""Apply updates to a program, and write its outputs and their changes."""

from __future__ import annotations

import argparse
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote as escaped

import upheld
from upheld.base.errors import FactsError, Problem, UpheldError, UsageError, quote
from upheld.base.limits import within
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.loading import loaded, project_of
from upheld.cli.options import add_evaluation, add_files, add_profile, add_program, add_state
from upheld.cli.outcome import finish
from upheld.cli.progress import commits_line

#: Standard input, as the path of a file of updates.
STDIN = Path("-")

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
    if options.updates is None and options.retract is None:
        hint = "name a file of updates (`--updates`), or a source to retract (`--retract`)"
        raise UsageError(Problem("no-updates", "there are neither updates nor a source to retract", hint=hint))
    for option, name in (("--source", options.source), ("--retract", options.retract)):
        if name == "":
            raise UsageError(
                Problem("bad-argument", f"`{option}` needs a name of at least one character", place=option)
            )
    limits = limits_of(options)
    project = project_of(options, limits)
    printed = options.changes == "-"
    changes = _change_file(options, project)
    transactions = Transactions(options, project, limits)
    with ExitStack() as stack:
        with commits_line(shown=not printed) as (progress, committed):
            m = stack.enter_context(loaded(project, options, options.algorithm, limits, progress))
            if options.keep is not None:
                for name in project.outputs or project.relations:
                    m.keep(name, Path(options.keep) / escaped(name, safe=""))
            if options.feed:
                project.save(m, feed=True)  # before the updates, so that the feed has all of them
            with changes or nullcontext() as file:
                for number, change in _changes(options, m, transactions):
                    if file is not None:
                        file.write(change)
                    committed(number)
        to = sys.stderr if printed else sys.stdout
        return finish(options, project, m, to, updated=True, changes=changes is not None)


def _change_file(options: argparse.Namespace, project: upheld.Project) -> upheld.ChangeFile | None:
    """Return the file for changes; refuse one that is the file with the updates, one of facts, or an output."""
    if options.changes is None:
        return None
    path, over = options.changes, []
    if path != "-":
        if options.updates is not None and os.path.realpath(path) == os.path.realpath(options.updates):
            over.append("the updates")
        over += ["facts"] if project.reads(path) else []
        over += ["an output"] if project.writes(path) else []
    if over:
        message = f"the changes would be written over {' and '.join(over)}"
        hint = "name another file for the changes"
        raise FactsError(Problem("same-file", message, place=path, hint=hint))
    return upheld.ChangeFile(sys.stdout if path == "-" else path, project.outputs or None)


class Transactions:
    """The transactions to apply, each read within the limits when it is asked for."""

    def __init__(self, options: argparse.Namespace, project: upheld.Project, limits: upheld.Limits):
        self._updates, self._source = options.updates, options.source
        self._project, self._limits = project, limits
        #: Transactions that were read and not made yet.
        self.taken: deque[upheld.Update] = deque()
        path = Path(options.updates or "")
        if options.updates is not None and path == STDIN and (relation := project.standard_input):
            message = f"the updates and the facts of {quote(relation)} cannot both be read from standard input"
            raise UsageError(Problem("same-file", message, hint="read one of them from a file"))
        #: Whether they can be read more than once.
        self.last = options.updates is None or (path != STDIN and (path.is_file() or path.is_dir()))
        if self.last:  # then all of them are checked first
            with within(limits):
                for _ in self._read():
                    pass

    def _read(self) -> Iterator[upheld.Update]:
        updates = upheld.read_updates({} if self._updates is None else self._updates, self._project)
        if self._source is None:
            return updates
        return (
            u if u.source is not None or u.retract is not None else replace(u, source=self._source) for u in updates
        )

    def __iter__(self) -> Iterator[upheld.Update]:
        updates = self._read()
        # Nobody knows when more will come through a pipe: to wait for it takes no time of what the limits allow.
        limits = self._limits if self.last else replace(self._limits, seconds=None)
        while True:
            with within(limits):
                update = next(updates, None)
            if update is None:
                return
            self.taken.append(update)
            yield update

    def arriving(self, ahead: bool) -> Iterable[upheld.Update]:
        """Return the transactions for a stream, which asks which of them have arrived if it looks ahead."""
        if self.last:
            return self
        return upheld.Arrivals(self) if ahead else iter(self)


def _changes(
    options: argparse.Namespace, m: upheld.Materialisation, transactions: Transactions
) -> Iterator[tuple[int, upheld.Change]]:
    """Apply all transactions; yield the change of each, or of several as one, with their number."""
    check = None
    if options.verify:
        from upheld.testing import Oracle  # which few runs ask for

        check = Oracle(m).check
    if options.retract is not None:
        change = m.retract(options.retract)
        if check is not None:
            check([upheld.Update({}, {}, 0, "retract", retract=options.retract)], change)
        yield 0, change
    ahead = options.merge_waiting > 1 or options.algorithm.endswith("-marking")
    arriving = transactions.arriving(ahead)
    stream = m.stream(arriving, merge_waiting=options.merge_waiting)
    while True:
        try:
            following = next(stream, None)
        except UpheldError as error:
            if not transactions.taken:  # all were made, so it is the source that has failed
                raise
            raise type(error)([_failed(transactions.taken[0]), *error.problems]) from None
        if following is None:
            return
        updates = [transactions.taken.popleft() for _ in following.updates]
        if check is not None:
            check(updates, following)
        yield len(updates), following


def _failed(update: upheld.Update) -> Problem:
    message = f"commit {update.number} could not be applied"
    note = "the commit was rolled back and no outputs were written; the file of changes has the commits before it"
    return Problem("failed-commit", message, place=update.place, note=note)
