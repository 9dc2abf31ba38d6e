"""The history of a fact over a file of updates, or over the feed of a saved state."""

from __future__ import annotations

from pathlib import Path

from upheld.base.errors import Problem, UsageError
from upheld.base.limits import Limits
from upheld.language.ast import Program
from upheld.materialisation.build import restore
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.persistence.feeds import no_feed
from upheld.materialisation.progress import ProgressGiven
from upheld.materialisation.reports.history import FactHistory
from upheld.runs.apply import read_updates
from upheld.runs.run import check_paths, load


def history(
    program: str | Path | Program,
    fact: str,
    updates: object = None,
    facts: str | Path | None = None,
    *,
    engine: str = "memory",
    equality: str = "off",
    limits: Limits | None = None,
    progress: ProgressGiven = None,
    confined: bool = False,
    state: str | Path | None = None,
) -> FactHistory:
    """Return when a fact appeared and vanished, and why: in a file of updates, or in the feed of a saved state.

    It reports all updates, however many there are. `Materialisation.history` has the history of one in memory.

    Args:
        program: As for `materialise`.
        fact: The fact as text.
        updates: As for `read_updates`. The program is materialised, and all of them are applied.
        facts: As for `run`.
        engine: As for `materialise`.
        equality: As for `materialise`.
        limits: As for `materialise`; the materialisation and each transaction have them separately.
        progress: As for `materialise`.
        confined: As for `run`.
        state: Folder of a saved state that keeps a feed, instead of `updates`. Nothing is changed there.
    """
    check_paths(facts=facts, state=state)
    if (updates is None) == (state is None):
        message = "history is that of `updates`, or that of a `state` with a feed"
        raise UsageError(Problem("bad-argument", message, hint="pass one of them, and not both"))
    if state is not None:
        with restore(
            program,
            state,
            engine=engine,
            equality=equality,
            limits=limits,
            progress=progress,
            confined=confined,
            on_violation="report",
        ) as restored:
            if restored._past.feed is None:
                raise no_feed(str(state))
            return restored.history(fact)
    with load(
        program,
        facts,
        engine=engine,
        equality=equality,
        limits=limits,
        progress=progress,
        confined=confined,
        on_violation="report",
    ) as m:
        return _applied(m, fact, updates)


def _applied(m: Materialisation, fact: str, updates: object) -> FactHistory:
    """Apply updates, and return the history of a fact in them."""
    goal, prefixes = m._compile_fact(fact, None)
    first = m._explain(goal, prefixes)
    events = []
    for update in read_updates(updates, m):
        change = m.update(update.insert, update.delete, replace=update.replace)
        event = m._last_event(goal, prefixes, change)
        if event is not None:
            events.append(event)
    holds = events[-1].appeared if events else first.holds
    return FactHistory(goal, first.shortened, holds, first.holds, 1, tuple(events))
