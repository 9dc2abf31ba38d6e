"""The work of runs by phase and rule: instances considered, facts found, and seconds."""

from __future__ import annotations

from collections.abc import Mapping

from upheld.dataclass import dataclass
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

#: A piece of work: its phase, the instances of each rule that it applied, the facts found, and its seconds.
Piece = tuple[str, Mapping[Rule, int], int, float]


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
        """Note a piece of work. Its rules share the time by their instances; the last one has found the facts."""
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
        for phase, instances, facts, seconds in pieces:
            total = sum(instances.values())
            for rule, count in instances.items():
                work = self.of(phase, rule)
                work.instances += count
                work.seconds += seconds * count / total
            if facts or not instances:
                of_phase = self.of(phase, None)
                of_phase.facts += facts
                if instances:
                    work.facts += facts
                else:
                    of_phase.seconds += seconds
