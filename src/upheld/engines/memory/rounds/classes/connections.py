"""Which classes of equal constants a set of facts connects, in one call of a kernel.

A plan for each rule leads from one side of an equality, a constant, to the constants on the other side; another plan
does so for the equalities of the set. So a class is found to hold together without a look at all facts that mention it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from upheld.algebra.equality import RulesOfClasses
from upheld.engines.memory.bytecode.encoder import Columns
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.plans.plan import Place
from upheld.engines.memory.rounds.classes import connection_kernel
from upheld.engines.memory.rounds.classes.code import ClassCodes
from upheld.engines.memory.sets.expressions import MemorySet
from upheld.engines.memory.sets.truth_tables import EVERYTHING
from upheld.engines.memory.storage.codec import Codes

#: Constants that a call asks for at most.
MOST_MEMBERS = 1 << 16

_NO_COLUMNS = Columns()


class Connections:
    """Asks the kernel, if constants are few and no rule does more than match."""

    def __init__(self, codes: ClassCodes):
        self._codes, self.context = codes, codes.matcher.context
        #: Room for the kernel: a number for each constant.
        self._leaders: Codes = np.empty(0, np.int64)

    def loose(
        self, classes: Sequence[Codes], now: Codes, facts: MemorySet, rules: RulesOfClasses
    ) -> npt.NDArray[np.bool_] | None:
        """Return which classes are loose, as `Classes.loose` does; None if that is left to the operators.

        `now` has the representative of each constant.
        """
        sizes = [len(members) for members in classes]
        code = self._codes.connections(rules) if 0 < sum(sizes) <= MOST_MEMBERS else None
        if code is None:
            return None
        loose, met = np.empty(len(classes), np.bool_), np.zeros(len(code.rules), np.int64)
        if len(self._leaders) < len(now):
            self._leaders = np.empty(len(now), np.int64)
        with self.context.bits.evaluating():
            truth = self.context.truths[facts.spelling()]
            held = [truth if place is Place.OWN else EVERYTHING for place in code.places]
            code.look_up(_NO_COLUMNS)
            is_done = connection_kernel.find_loose(
                code.plans, np.array([address_of(some) for some in held], np.int64), self._codes.bench.arrays,
                np.concatenate(classes), np.cumsum(sizes), loose, met, (now, self._leaders), code.equality,
            )  # fmt: skip
        by_rules = [k for k in np.flatnonzero(met).tolist() if code.rules[k] is not self._codes.identity]
        self.context.meter.instances_together([code.rules[k] for k in by_rules], met[by_rules].tolist(), "check")
        return loose if is_done else None
