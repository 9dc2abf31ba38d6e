"""The work of runs by phase and rule: instances considered, facts found, and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from upheld.base.statistics import DEFAULT_PHASE
from upheld.language.core import Rule

#: Pieces of work that are kept one by one before they are summed up.
_MOST_PIECES = 1 << 10


@dataclass(slots=True)
class Work:
    """Rule instances considered, facts found, and seconds."""

    instances: int = 0
    facts: int = 0
    seconds: float = 0.0

    def add(self, other: Work) -> None:
        """Add other work to this."""
        self.instances += other.instances
        self.facts += other.facts
        self.seconds += other.seconds


#: Work by phase and rule. Work on sets, such as the facts that rounds find, has no rule.
WorkByRule = dict[tuple[str, Rule | None], Work]

#: The phases of the work that a kernel does for strata, the last one of work that belongs to no rule.
PHASES = "deletion", "insertion", DEFAULT_PHASE

#: Work that a kernel has done for strata: the rules of its plans; for each plan that found derivations its number, and
#: how many it found in deletion and in insertion; the facts found in each of `PHASES`; and the seconds of all.
Piece = tuple[Sequence[Rule], Sequence[Sequence[int]], Sequence[int], float]


class WorkDone:
    """The work of one run, or of several. Pieces are summed up when somebody looks, or when there are many.

    To sum up the pieces of a small update at once took a fifth of it: here a thousand of them take a millisecond.
    """

    __slots__ = ("_pieces", "_sums")

    def __init__(self) -> None:
        self._sums: WorkByRule = {}
        self._pieces: list[Piece] = []

    def of(self, phase: str, rule: Rule | None) -> Work:
        """Return the work of a rule in a phase, to add to."""
        work = self._sums.get((phase, rule))
        if work is None:
            work = self._sums[phase, rule] = Work()
        return work

    def note(self, piece: Piece) -> None:
        """Note a piece of work. Its rules share the time by their instances; the last ones have found the facts."""
        self._pieces.append(piece)

    def add(self, other: WorkDone) -> None:
        """Add the work of another run to this."""
        self._pieces += other._pieces
        for (phase, rule), work in other._sums.items():
            self.of(phase, rule).add(work)
        if len(self._pieces) > _MOST_PIECES:
            self._sum_up()

    def by_rule(self) -> WorkByRule:
        """Return the work by phase and rule."""
        self._sum_up()
        return self._sums

    def _sum_up(self) -> None:
        pieces, self._pieces = self._pieces, []
        for rules, met, facts, seconds in pieces:
            total = sum(deletion + insertion for _, deletion, insertion in met)
            if not total:
                self.of(DEFAULT_PHASE, None).seconds += seconds
            for k, phase in enumerate(PHASES):
                work: Work | None = None
                for plan, *counts in met if k < 2 else ():
                    if count := counts[k]:
                        work = self.of(phase, rules[plan])
                        work.instances += count
                        work.seconds += seconds * count / total
                if facts[k]:
                    self.of(phase, None).facts += facts[k]
                    if work is not None:
                        work.facts += facts[k]
