"""The history of a fact over a file of updates."""

from __future__ import annotations

from pathlib import Path

from upheld.arguments import PATH_OR_NONE, checked
from upheld.language.syntax.ast import Program
from upheld.materialisation.progress import ProgressGiven
from upheld.materialisation.reports.history import FactHistory
from upheld.runs.apply import read_updates
from upheld.runs.run import load
from upheld.runtime.limits import Limits


@checked(facts=PATH_OR_NONE)
def history(
    program: str | Path | Program,
    fact: str,
    updates: object,
    facts: str | Path | None = None,
    *,
    engine: str = "memory",
    equality: str = "off",
    limits: Limits | None = None,
    progress: ProgressGiven = None,
    confined: bool = False,
) -> FactHistory:
    """Materialise a program, apply all updates, and return when a fact appeared and vanished, and why.

    It reports all updates, however many there are. `Materialisation.history` has the history of one in memory.

    Args:
        program: As for `materialise`.
        fact: The fact as text.
        updates: As for `read_updates`.
        facts: As for `run`.
        engine: As for `materialise`.
        equality: As for `materialise`.
        limits: As for `materialise`; the materialisation and each transaction have them separately.
        progress: As for `materialise`.
        confined: As for `run`.
    """
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
        goal, prefixes = m._compile_fact(fact, None)
        first = m._explain(goal, prefixes)
        events = []
        for update in read_updates(updates, m):
            event = m._event_of(goal, prefixes, m.update(update.insert, update.delete, replace=update.replace))
            if event is not None:
                events.append(event)
        holds = events[-1].appeared if events else first.holds
    return FactHistory(goal, first.shortened, holds, first.holds, 1, tuple(events))
