"""R9: a state of many facts with a log of changes opens in seconds, and a second writer is told of the first.

The cases of this goal are the facts of the state.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from functools import partial

import pytest

import upheld
from tests.reliability.programme import Run, goal
from upheld.materialisation.lifecycle import draft_of
from upheld.store.versions import Store

PROGRAM = """
.decl works(person:number, team:symbol)
.decl lead(team:symbol, person:number)
.decl reports(person:number, to:number)
reports(x, y) :- works(x, t), lead(t, y).
"""

#: Seconds of processor time that opening may take. (Other processes do not lengthen that.)
_MOST_SECONDS = 10

#: Versions after the first one, each with a change.
_CHANGES = 50


@goal("R9", "a million facts with a log of changes open in 10 s", sample=20_000, full=1_000_000)
def recovery(run: Run) -> None:
    folder = tempfile.mkdtemp()
    try:
        facts = _build(folder, run.size // 2)
        run.case("open", partial(_open, folder, facts, run), count=run.size)
        run.case("a second writer", partial(_second_writer, folder))
    finally:
        shutil.rmtree(folder)


def _build(folder: str, people: int) -> int:
    """Save people and changes of their teams, and return the number of facts."""
    teams = max(1, people // 100)
    works = [(person, f"team {person % teams}") for person in range(people)]
    lead = [(f"team {team}", team) for team in range(teams)]
    m = upheld.materialise(PROGRAM, {"works": works, "lead": lead})
    m.save(folder)
    store = Store.open(folder)
    for number in range(_CHANGES):
        moved = range(number * 10, number * 10 + 10)
        change = m.update(
            delete={"works": [works[person] for person in moved]},
            insert={"works": [(person, f"team {(person + 1) % teams}") for person in moved]},
        )
        draft_of(m, store, change).commit()
    return sum(len(m[name]) for name in m.relations)


def _open(folder: str, facts: int, run: Run) -> None:
    began, processor = time.perf_counter(), time.process_time()
    m = upheld.restore(PROGRAM, folder)
    found = sum(len(m[name]) for name in m.relations)
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    run.figures |= {"facts": found, "versions": Store.open(folder).version}
    run.figures |= {"seconds to open": round(seconds, 2), "processor seconds to open": round(processor, 2)}
    assert found == facts
    assert processor < _MOST_SECONDS, f"{processor:.1f} s"


def _second_writer(folder: str) -> None:
    first, second = (upheld.restore(PROGRAM, folder) for _ in range(2))
    first.update(insert={"works": [(-1, "team 0")]})
    second.update(insert={"works": [(-2, "team 0")]})
    first.save(folder)
    with pytest.raises(upheld.UpheldError, match="state-changed"):
        second.save(folder)
    assert (-1, "team 0") in upheld.restore(PROGRAM, folder)["works"].to_set()
