"""Applying updates: a program's outputs, brought up to date transaction by transaction."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TextIO
from urllib.parse import quote as escaped

from upheld.base.errors import (
    FactsError,
    Problem,
    UpheldError,
    UsageError,
    VerificationFailed,
    is_path,
    is_whole,
    quote,
    require,
)
from upheld.base.limits import Limits, given_limits, within
from upheld.compiler.lints.programs import some
from upheld.facts.change import Change
from upheld.facts.columns import Row
from upheld.facts.relation import Relation, encoded
from upheld.facts.updatefiles import STDIN, ChangeFile, Update, transaction_text, updates_of
from upheld.language.ast import Program
from upheld.language.core import Predicate
from upheld.language.types.columns import ColumnType
from upheld.maintain.registry import MARKING
from upheld.materialisation.build import materialise_core
from upheld.materialisation.constraints import REPORT
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.progress import ProgressGiven
from upheld.materialisation.reports.verification import Compared
from upheld.materialisation.updates.sources import SOURCE, is_source
from upheld.materialisation.updates.stream import Arrivals, Present
from upheld.runs.run import Job, Run, check_feed, check_paths, check_profile


def read_updates(updates: object, m: Materialisation) -> Iterator[Update]:
    """Yield the transactions of an update file, with facts that fit the relations of a materialisation.

    Files are read lazily. An error reports everything that is wrong in the rest of the file.

    Args:
        updates: Path of a text file, of a `.csv`, `.tsv` or `.parquet` table, or of a folder with a table per relation;
            `-` for text on standard input; a pandas DataFrame, an Arrow table, or a dictionary of tables by relation.
        m: The materialisation that the updates are for.

    >>> import pandas, upheld
    >>> rules = ".decl edge(x:symbol, y:symbol) .decl path(x:symbol, y:symbol) path(x, y) :- edge(x, y)."
    >>> m = upheld.materialise(rules, {"edge": [("a", "b")]})
    >>> table = pandas.DataFrame({"operation": ["+", "-"], "commit": [1, 2], "x": ["b", "a"], "y": ["c", "b"]})
    >>> for update in upheld.read_updates({"edge": table}, m):
    ...     change = m.update(insert=update.insert, delete=update.delete, replace=update.replace)
    ...     print(update, change.inserted["path"].to_rows(), change.deleted["path"].to_rows())
    <Update 1: +1 edge> [('b', 'c')] []
    <Update 2: -1 edge> [] [('a', 'b')]
    """
    require(hasattr(m, "relations"), "m", "an `upheld.Materialisation`", m)
    relations = (m[name] for name in m.relations)
    return updates_of(updates, {r.name: Predicate(r.name, r.columns, r.stored_types) for r in relations})


def apply(
    program: str | Path | Program,
    updates: object,
    facts: str | Path | None = None,
    output: str | Path = ".",
    *,
    changes: str | Path | TextIO | None = None,
    verify: bool = False,
    engine: str = "memory",
    algorithm: str = "adaptive",
    decompose: str = "auto",
    equality: str = "off",
    limits: Limits | None = None,
    threads: int | None = None,
    merge_waiting: int = 1,
    progress: ProgressGiven = None,
    committed: Callable[[Update, Change], None] | None = None,
    confined: bool = False,
    profile: str | Path | None = None,
    on_violation: str | None = None,
    state: str | Path | None = None,
    edited: bool = False,
    source: str | None = None,
    retract: str | None = None,
    keep: str | Path | None = None,
    feed: bool = False,
) -> Run:
    """Materialise a program, apply a file or stream of updates, and write its outputs, as `upheld apply` does.

    A transaction that fails is rolled back, no outputs are written, and `changes` has the transactions before it.

    Args:
        program: As for `materialise`.
        updates: As for `read_updates`. Files are checked completely first, and read again while they are applied; a
            pipe is read once. None if there is only a source to retract.
        facts: As for `run`.
        output: As for `run`.
        changes: File for the change of each transaction in the output relations, or in all relations if the program has
            no outputs. It is an update file itself.
        verify: Compare with a materialisation from scratch after each transaction; a difference is an error.
        engine: As for `materialise`.
        algorithm: As for `materialise`.
        decompose: As for `materialise`.
        equality: As for `materialise`.
        limits: As for `materialise`; the materialisation and each transaction have them separately.
        threads: As for `materialise`.
        merge_waiting: Apply up to this many transactions that have arrived as one; in a file, all have arrived.
        progress: As for `materialise`.
        committed: Function that is called with each `Update` and its `Change`.
        confined: As for `run`.
        profile: As for `run`.
        on_violation: As for `run`. A transaction that is refused ends the run, as one that fails.
        state: As for `run`.
        edited: As for `run`.
        source: Source of the facts of transactions that name none: see `Materialisation.update`.
        retract: Source to retract first, in a transaction of its own: see `Materialisation.retract`.
        keep: Folder for a table of each output relation, as by `Materialisation.keep`, which each transaction brings up
            to date; of all relations if the program has no outputs.
        feed: Have `state` keep a feed from now on, as by `Materialisation.save`. If it has none yet, a version is saved
            before the updates, so that the feed has all of them.
    """
    check_paths(output, facts=facts, profile=profile, state=state, keep=keep)
    for name, truth in (("verify", verify), ("edited", edited)):
        require(isinstance(truth, bool), name, "True or False", truth)
    for name, value in (("source", source), ("retract", retract)):
        require(value is None or is_source(value), name, f"{SOURCE}, or None", value)
    require(is_whole(merge_waiting, 1), "merge_waiting", "a whole number of at least 1", merge_waiting)
    require(committed is None or callable(committed), "committed", "a function, or None", committed)
    is_file = changes is None or is_path(changes) or hasattr(changes, "write")
    require(is_file, "changes", "a path, an open text file, or None", changes)
    if updates is None and retract is None:
        hint = "name a file of updates (`--updates`), or a source to retract (`--retract`)"
        raise UsageError(Problem("no-updates", "there are neither updates nor a source to retract", hint=hint))
    check_feed(feed, state)
    with within(given_limits(limits, "apply")):
        job = Job.of(program, engine, decompose, equality, confined, on_violation, threads)
    predicates = {p.name: p for p in job.compiled.core.predicates.values() if not p.hidden}
    outputs = job.outputs or tuple(predicates)
    job.check_output(output)
    check_profile(profile)
    if isinstance(updates, str | os.PathLike) and Path(updates) == STDIN and (relation := job.standard_input):
        message = f"the updates and the facts of {quote(relation)} cannot both be read from standard input"
        raise UsageError(Problem("same-file", message, hint="read one of them from a file"))
    change_file = None
    if changes is not None:
        if isinstance(changes, str | os.PathLike):
            _check_changes(Path(changes), updates, job, facts, output)
        change_file = ChangeFile(changes)
    # Nobody knows when more will come through a pipe: to wait for it takes no time of what the limits allow.
    while_reading = limits if limits is None or _lasts(updates) else replace(limits, seconds=None)

    def transactions() -> Iterator[Update]:
        return _with_source(updates_of({} if updates is None else updates, predicates), source)

    if _lasts(updates):
        with within(limits):
            for _ in transactions():
                pass
    with job.opened(facts, algorithm=algorithm, limits=limits, progress=progress, state=state, edited=edited) as m:
        if keep is not None:
            for name in outputs:
                m.keep(name, Path(keep) / escaped(name, safe=""))
        if feed and m._past.feed is None:
            job.saved(m, state, feed)
        oracle = _Oracle(job, m) if verify else None
        taken: deque[Update] = deque()
        with change_file or nullcontext():
            if retract is not None:
                change = m.retract(retract)
                if oracle is not None:
                    oracle.check([Update({}, {}, 0, "retract", retract=retract)], m, change)
                if change_file is not None:
                    change_file.write(_text_of(change, outputs))
            noted = _noted(transactions(), taken, while_reading)
            arriving = _arriving(noted, updates, algorithm in MARKING or merge_waiting > 1)
            stream = m.stream(arriving, merge_waiting=merge_waiting)
            while True:
                try:
                    following = next(stream, None)
                except UpheldError as error:
                    if not taken:  # all were made, so it is the source that has failed
                        raise
                    raise type(error)([_failed(taken[0]), *error.problems]) from None
                if following is None:
                    break
                change = following
                made = [taken.popleft() for _ in change.updates]
                if oracle is not None:
                    oracle.check(made, m, change)
                if change_file is not None:
                    together = f"// commits {made[0].number} to {made[-1].number} as one\n" if len(made) > 1 else ""
                    change_file.write(together + _text_of(change, outputs))
                if committed is not None:
                    for update in made:
                        committed(update, change)
        version = job.saved(m, state, feed)
        done = replace(job.write(m, output, facts, changes=change_file is not None), version=version)
        if profile is not None:
            m.profile().save(profile)
    return replace(done, warnings=(*some(job.lints), *done.warnings))


def _arriving(source: Iterator[Update], updates: object, ahead: bool) -> Iterable[Update]:
    """Return transactions as what knows which of them have arrived, if anybody asks."""
    if _lasts(updates):
        return Present(source)
    return Arrivals(source) if ahead else source


def _with_source(updates: Iterator[Update], source: str | None) -> Iterator[Update]:
    """Return updates, those that name no source with this one."""
    if source is None:
        return updates
    return (u if u.source is not None or u.retract is not None else replace(u, source=source) for u in updates)


def _noted(updates: Iterator[Update], taken: deque[Update], limits: Limits | None) -> Iterator[Update]:
    """Yield updates, each read within limits, and add each to those that were taken."""
    while True:
        with within(limits):
            update = next(updates, None)
        if update is None:
            return
        taken.append(update)
        yield update


def _check_changes(changes: Path, updates: object, job: Job, facts: str | Path | None, output: str | Path) -> None:
    """Refuse a file for changes that is the one with the updates, one of facts, or an output."""
    over = []
    if isinstance(updates, str | os.PathLike) and os.path.realpath(changes) == os.path.realpath(updates):
        over.append("the updates")
    over += ["facts"] if job.reads(changes, facts) else []
    over += ["an output"] if job.writes(changes, output) else []
    if over:
        message = f"the changes would be written over {' and '.join(over)}"
        hint = "name another file for the changes"
        raise FactsError(Problem("same-file", message, place=str(changes), hint=hint))


def _text_of(change: Change, outputs: Sequence[str]) -> str:
    """Return the change of the outputs as a transaction of an update file."""
    return transaction_text(_chosen(change.deleted, outputs), _chosen(change.inserted, outputs))


def _chosen(relations: Mapping[str, Relation], names: Sequence[str]) -> list[Relation]:
    return [relations[name] for name in names]


def _lasts(updates: object) -> bool:
    """Return whether updates can be read more than once."""
    if isinstance(updates, str | os.PathLike):
        return Path(updates) != STDIN and (Path(updates).is_file() or Path(updates).is_dir())
    return True


def _failed(update: Update) -> Problem:
    message = f"commit {update.number} could not be applied"
    note = "the commit was rolled back and no outputs were written; the file of changes has the commits before it"
    return Problem("failed-commit", message, place=update.place, note=note)


# -- verification -----------------------------------------------------------------------------------------------------


class _Oracle:
    """The facts that a materialisation should have, recomputed from the explicit facts after each update.

    It computes with the engine of the run, but in a new instance for each update: what it has in common with the
    maintained state is how rules are joined, and nothing that is kept from one update to the next. The reference
    engine would have less in common, and would take minutes for what other engines do in a second.
    """

    def __init__(self, job: Job, m: Materialisation):
        core = job.compiled.core
        # Facts of the program are explicit facts, which updates may delete.
        self._core, self._job = replace(core, facts=frozenset()), job
        self._claims = _Claims.of(m)
        self._facts = {name: m[name].stored_set() for name in m.relations}

    def check(self, made: Sequence[Update], m: Materialisation, change: Change) -> None:
        """Apply updates here, and raise what differs in the materialisation and in the change it has reported."""
        for update in made:
            self._claims.apply(update, {name: m[name].coded for name in m.relations})
        explicit = self._claims.explicit()
        new = materialise_core(
            self._core,
            explicit.items(),
            engine=self._job.engine,
            algorithm="rematerialise",
            decompose=self._job.decompose,
            equality=self._job.equality,
            on_violation=REPORT,
        )
        before, self._facts = self._facts, {name: new[name].stored_set() for name in m.relations}
        names, update = m.relations, made[-1]
        compared = (
            Compared("explicit facts", [m.explicit(name) for name in names], explicit),
            Compared("facts", [m[name] for name in names], self._facts, new._explained),
            Compared("reported insertions", [change.inserted[name] for name in names], _minus(self._facts, before)),
            Compared("reported deletions", [change.deleted[name] for name in names], _minus(before, self._facts)),
        )
        problems = [p for some in compared for p in some.problems(f"after commit {update.number}", update.place)]
        if problems:
            raise VerificationFailed(problems)


class _Claims:
    """The sources of each explicit fact, None for the unnamed one, by relation: a plain model of what updates mean."""

    def __init__(self, claims: dict[str, dict[Row, set[str | None]]]):
        self._claims = claims

    @classmethod
    def of(cls, m: Materialisation) -> _Claims:
        """Return the sources of the explicit facts of a materialisation."""
        rows = {name: m.explicit(name).stored_set() for name in m.relations}
        return cls({name: {row: set(m._sources.of((name, row))) or {None} for row in rows[name]} for name in rows})

    def explicit(self) -> _Rows:
        return {name: set(rows) for name, rows in self._claims.items()}

    def apply(self, update: Update, coded: Mapping[str, Mapping[int, ColumnType]]) -> None:
        """Change the claims as a transaction does."""
        gone, new, whole = (
            {name: set(encoded(rows, coded[name])) for name, rows in side.items()}
            for side in (update.delete, update.insert, update.replace)
        )
        for name, rows in self._claims.items():
            claimed = {row for row in rows if update.source is None or update.source in rows[row]}
            if name in whole:
                gone[name], new[name] = claimed - whole[name], whole[name] - claimed
            if update.retract is not None:
                gone[name] = {row for row in rows if update.retract in rows[row]}
        for name, lost in gone.items():
            for row in lost & self._claims[name].keys():
                claims = self._claims[name][row]
                source = update.source or update.retract
                claims -= claims if source is None else {source}
                if not claims:
                    del self._claims[name][row]
        for name, won in new.items():
            for row in won:
                self._claims[name].setdefault(row, set()).add(update.source)


_Rows = dict[str, set[Row]]


def _minus(facts: _Rows, others: _Rows) -> _Rows:
    return {name: rows - others[name] for name, rows in facts.items()}
