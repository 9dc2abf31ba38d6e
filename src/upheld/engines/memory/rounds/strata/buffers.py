"""The arrays that a kernel fills while it goes from stratum to stratum."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.encoder import Numbers
from upheld.engines.memory.rounds.strata import changes
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.rounds.strata.code import StrataCode

#: Lines of a log before the next one is begun, and of queues before they are made larger.
_LOG, _QUEUE = 1 << 16, 1 << 15

Lines = npt.NDArray[np.int32]

#: The state in which an update begins.
_FIRST_STATE: Numbers = np.zeros(sr.STRATA_STATE, np.int64)
_FIRST_STATE[sr.STAGE] = sr.SEEDING
_FIRST_STATE[[sr.FIRST_GROWN_TABLE, sr.FIRST_GROWN_INDEX, sr.FIRST_MET]] = r.NOBODY


class Buffers:
    """The arrays of the updates of a code, one after the other: seeds, queues, the log, due strata and the state."""

    def __init__(self, code: StrataCode) -> None:
        self._code = code
        self.going, self.coming = np.empty((_QUEUE, 2), np.int32), np.empty((_QUEUE, 2), np.int32)
        self.picked, self.changed = (
            np.empty((sr.MOST_PICKED, 2), np.int32),
            np.empty((2 * _QUEUE, sr.CHANGED_FIELDS), np.int32),
        )
        self.wanted: Lines = np.empty((sr.MOST_WANTED, 1), np.int32)
        self.log = np.empty((_LOG, sr.UNDO_FIELDS), np.int32)
        self.asked: Numbers = np.empty((64, sr.ASKED_VALUES + 4), np.int64)
        self.seeds: Numbers = np.empty((64, sr.SEED_FIELDS), np.int64)
        self.lines: Numbers = np.empty((256, sr.LINE_VALUES + 4), np.int64)
        self.due: Numbers = np.empty(len(code.lines), np.int64)
        self.done: Numbers = np.empty((len(code.lines), 2), np.int64)
        self.state = _FIRST_STATE.copy()

    @property
    def queues(self) -> tuple[Lines, Lines, Lines, Lines, Lines]:
        return self.going, self.coming, self.picked, self.changed, self.wanted

    @property
    def facts(self) -> tuple[Numbers, Numbers, Numbers]:
        return self.asked, self.seeds, self.lines

    def begin(self, most: int, part: tuple[int, int]) -> Numbers:
        """Clear the lines that the update before has left, and no others; return the state of the next update.

        most   derivations that a call handles in a stratum, in deletion and in insertion
        part   the part of all heads that are kept, and how many parts there are
        """
        last = self.state
        if last[sr.SEEDED] or last[sr.AT_CHANGED] or last[sr.DUE]:
            changes.clear_lines(self._code.lines, self._code.links, self.due, self.seeds, self.changed, last)
        self.state = state = _FIRST_STATE.copy()
        state[sr.MOST], state[sr.PART], state[sr.PARTS] = most, *part
        return state

    def make_room(self) -> None:
        """Make room for the facts of one more stratum."""
        state = self.state
        more = 4 * int(state[sr.MOST]) + 4 * int(state[sr.SEEDS])
        self.going = _with_room(self.going, int(state[sr.AT_GOING]), more)
        self.coming = _with_room(self.coming, int(state[sr.AT_COMING]), more)
        self.changed = _with_room(self.changed, int(state[sr.AT_CHANGED]), more)

    def make_room_for_asked(self, count: int, width: int) -> None:
        """Make room for some facts of an update, with this many numbers for the widest of them."""
        self.asked = _with_shape(self.asked, count, width)

    def make_room_for_lines(self, count: int, arity: int) -> None:
        """Make room for the lines of a change, of tables with this many columns at most."""
        self.lines = _with_shape(self.lines, count, sr.LINE_VALUES + arity)

    def make_room_for_seeds(self, count: int) -> None:
        """Make room for some facts to begin with behind those that are there."""
        begin = int(self.state[sr.SEEDS])
        if begin + count > len(self.seeds):
            seeds = np.empty((2 * (begin + count), sr.SEED_FIELDS), np.int64)
            seeds[:begin] = self.seeds[:begin]
            self.seeds = seeds

    def new_log(self) -> Lines:
        """Return another log, with room for at least one stratum."""
        return np.empty(
            (max(_LOG, 16 * int(self.state[sr.MOST]) + 4 * int(self.state[sr.SEEDS])), sr.UNDO_FIELDS), np.int32
        )


def _with_room(queue: Lines, used: int, more: int) -> Lines:
    if used + more <= len(queue):
        return queue
    larger = np.empty((2 * used + more, queue.shape[1]), np.int32)
    larger[:used] = queue[:used]
    return larger


def _with_shape(numbers: Numbers, count: int, width: int) -> Numbers:
    """Return an array with room for this many lines of this width, and the lines of another."""
    lines, fields = numbers.shape
    if count <= lines and width <= fields:
        return numbers
    larger = np.empty((2 * count if count > lines else lines, max(width, fields)), np.int64)
    larger[:lines, :fields] = numbers
    return larger
