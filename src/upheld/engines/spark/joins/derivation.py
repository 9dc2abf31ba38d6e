"""The set that `derive` returns, computed when somebody asks for its facts, or before a set that it reads changes."""

from __future__ import annotations

from collections.abc import Sequence

from upheld.algebra.sets import FactSet
from upheld.engines.memory.sets.expressions import MemorySet
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.context import Context
from upheld.engines.spark.joins.arrivals import Arrivals
from upheld.engines.spark.joins.matching import Matching
from upheld.engines.spark.joins.plans import Kind
from upheld.engines.spark.joins.reach import Sets
from upheld.engines.spark.joins.results import heads
from upheld.engines.spark.sets.sets import Bound, NamedSet, PartitionedSet, own_set
from upheld.language.core import Rule


class Derivation(PartitionedSet):
    """The heads that `derive` speaks of. When they are computed does not depend on who holds them.

    Without the facts of a named set they are another derivation, which does not look at these facts: as in the memory
    engine a derivation is computed once, by itself or as part of that.
    """

    def __init__(
        self,
        context: Context,
        matching: Matching,
        rules: Sequence[Rule],
        sets: Sets,
        kind: Kind,
        bound: Bound,
        reject: NamedSet | None = None,
    ):
        self._work: tuple[Matching, Sequence[Rule], Sets, Kind] | None = matching, rules, sets, kind
        self._reject = reject
        self._computed: MemorySet | None = None
        self.context, self.bound, self.counts = context, bound, None
        self.whole = context.wire.members == 1
        context.put_off.append(self)

    @property
    def local(self) -> MemorySet:  # type: ignore[override]
        """The heads at home in this task."""
        self.compute()
        assert self._computed is not None, "a derivation is settled once; settle it by itself to use it twice"
        return self._computed

    def here(self) -> dict[Table, Rows]:
        return dict(self.local.listed())  # heads are at home where they are taken

    def compute(self) -> None:
        """Derive what was put off."""
        if self._work is not None:
            matching, rules, sets, kind = self._take()
            arrivals = Arrivals(self.context, None if self._reject is None else self._reject.local)
            matching.forwards("derive", rules, sets, kind, heads, arrivals=arrivals)
            self._computed, self._reject = arrivals.facts, None

    def _take(self) -> tuple[Matching, Sequence[Rule], Sets, Kind]:
        assert self._work is not None, "a derivation that is computed"
        work, self._work = self._work, None
        if self in self.context.put_off:
            self.context.put_off.remove(self)
        return work

    def __sub__(self, other: FactSet) -> PartitionedSet:
        right = own_set(other)
        if self._work is None or self._reject is not None or not isinstance(right, NamedSet):
            return super().__sub__(right)
        matching, rules, sets, kind = self._take()
        return Derivation(self.context, matching, rules, sets, kind, self.bound, right)
