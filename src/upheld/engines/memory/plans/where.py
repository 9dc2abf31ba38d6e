"""Where the atoms of rules are matched: which facts an instance may have in its body."""

from __future__ import annotations

import numpy as np

from upheld.algebra.sets import FactSet, Own
from upheld.engines.memory.plans.plan import Place
from upheld.engines.memory.sets.bits import WIDEST
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import MemorySet, narrow, own_set
from upheld.engines.memory.sets.truth_tables import Spelling, Truth, selected
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import Table


class Where(dict[Place, Truth]):
    """Where atoms are matched: the truth tables of the sets that plans speak of, made when a step asks for one.

    As a context it is an evaluation, in which these sets keep their bits.
    """

    def __init__(
        self,
        context: Context,
        P: FactSet,
        N: FactSet,
        via: FactSet | None = None,
        via_not: FactSet | None = None,
        own: Own | None = None,
    ):
        super().__init__()
        self.context = context
        self.P, self.N = own_set(P), own_set(N)
        self.via = own_set(via) if via is not None else None
        self.via_not = own_set(via_not) if via_not is not None else None
        self.own = own_set(own.facts) if own is not None else None
        self.stratum = own.stratum if own is not None else None
        #: At most how many sets an evaluation reads. Summed up by hand: a loop takes a microsecond for each derivation.
        self.width = self.P.width + self.N.width
        if self.via is not None:
            self.width += self.via.width
        if self.via_not is not None:
            self.width += self.via_not.width
        if self.own is not None:
            self.width += self.own.width

    @property
    def sets(self) -> list[MemorySet]:
        """The sets that atoms are matched in."""
        return [s for s in (self.P, self.N, self.via, self.via_not, self.own) if s is not None]

    def __enter__(self) -> Where:
        if self.width > WIDEST:
            narrow(self.sets)
        self._evaluation = self.context.bits.evaluating()
        self._evaluation.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._evaluation.__exit__(*error)

    def __missing__(self, place: Place) -> Truth:
        truth = self[place] = self.context.truths[self._spelling(place)]
        return truth

    def _spelling(self, place: Place) -> Spelling:
        if place is Place.N:
            return self.N.spelling()
        if place is Place.N_OR_Y:
            assert self.via_not is not None, "a place that no plan speaks of"
            return ("|", self.N.spelling(), self.via_not.spelling())
        facts = self.own if place.is_own else self.P
        assert facts is not None, "a place that no plan speaks of"
        if place in (Place.P, Place.OWN) or self.via is None:
            return facts.spelling()
        return ("-", facts.spelling(), self.via.spelling())

    def rows(self, source: Table | Part, place: Place) -> Rows:
        """Return the rows of a table or a part that are in the set of a place."""
        if isinstance(source, Part):
            return selected(source.table, source.listed(), self[place])
        return selected(source, np.arange(source.n, dtype=np.int32), self[place])
