"""The operators of the algebra in one of several tasks that run in step."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from upheld.algebra.engine import Attempt
from upheld.algebra.meter import Meter
from upheld.algebra.sets import FactSet, Own
from upheld.data.columns import Columns
from upheld.engines.memory.storage.codec import Codes, is_text
from upheld.engines.partitioned.bags import PartitionedBag, PartitionedInstances
from upheld.engines.partitioned.codec import replaced
from upheld.engines.partitioned.context import Context
from upheld.engines.partitioned.matching import Matching, Results, Sets
from upheld.engines.partitioned.numbers import PartitionedNumbers, PartitionedRanks
from upheld.engines.partitioned.plans import Kind, Views
from upheld.engines.partitioned.search import PartitionedSearch
from upheld.engines.partitioned.sets import NamedSet, PartitionedSet, at_home, nothing, own_set
from upheld.engines.partitioned.trace import PartitionedTrace
from upheld.engines.partitioned.wire import Wire
from upheld.language.core import Core, Rule
from upheld.language.values import Value


class PartitionedEngine:
    """The facts of one program, as one of several tasks has them."""

    name = "partitioned"

    def __init__(self, core: Core, wire: Wire, meter: Meter | None = None, replicated: Iterable[str] = ()):
        self.meter = meter or Meter()
        self.context = Context(wire, core, self.meter, Views(replicated))
        self.context.engine = weakref.proxy(self)
        self.matching = Matching(self.context)
        self.matching.declare(core.rules)

    # -- sets ----------------------------------------------------------------------------------------------------------

    @property
    def nothing(self) -> PartitionedSet:
        return nothing(self.context)

    def named(self, name: str) -> NamedSet:
        return NamedSet(self.context, name)

    def load(self, predicate: str, rows: Iterable[tuple[Value, ...]]) -> PartitionedSet:
        return self.load_all({predicate: rows})

    def load_all(self, facts: Mapping[str, Iterable[tuple[Value, ...]]]) -> PartitionedSet:
        """The facts that the tasks are given, each some of them or all; all tasks name the same predicates."""
        context = self.context
        codes = {predicate: self._encoded(predicate, rows) for predicate, rows in facts.items()}
        texts = {p: [c for c, type in enumerate(context.local.tables[p].types) if is_text(type)] for p in codes}
        if any(texts.values()):
            agreed = context.agree_on_texts()
            for predicate, columns in texts.items():
                for column in columns:
                    codes[predicate][:, column] = replaced(codes[predicate][:, column], agreed)
        outbox = context.outbox()
        for predicate, mine in codes.items():
            context.home_of(outbox, predicate, mine)
        came, _ = context.wire.exchange("load", outbox)
        return at_home(context, context.entered({}, context.arrived(came)), frozenset(facts))

    def _encoded(self, predicate: str, rows: Iterable[tuple[Value, ...]]) -> Codes:
        """Return the codes of facts, a row for each."""
        context = self.context
        types = context.local.tables[predicate].types
        if isinstance(rows, Columns):
            codes = context.codec.encode_columns(rows).T
        else:
            listed = list(rows)
            codes = context.codec.encode_rows(listed, types).T.reshape(len(listed), len(types))
        return np.ascontiguousarray(codes)

    def settle(self, facts: FactSet) -> PartitionedSet:
        mine = own_set(facts)
        if mine.counts is None or not mine.whole or isinstance(mine, NamedSet):
            mine = mine.settled("settle")
        self.meter.round(mine.count())
        return mine

    # -- derivations ---------------------------------------------------------------------------------------------------

    def derive(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
        heads: FactSet | None,
        own: Own | None,
    ) -> PartitionedSet:
        sets, matching = _sets(P, N, via, via_not, own), self.matching
        kind = Kind("via", own=own.stratum if own else None)
        if heads is None:
            results = matching.forwards("derive", rules, sets, kind, matching.heads)
        else:
            kind = kind._replace(begin="heads")
            results = matching.backwards("derive heads", rules, own_set(heads), sets, kind, matching.heads)
        return self._entered(rules, results)

    def _entered(self, rules: Sequence[Rule], results: Results) -> PartitionedSet:
        if not results.came:
            return self.nothing
        arrived = self.context.arrived(results.came)
        bound = frozenset(rule.head.predicate for rule in rules)
        return at_home(self.context, self.context.entered({}, arrived), bound)

    def derive_bag(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> PartitionedBag:
        sets = _sets(P, N, via, via_not)
        heads = self.matching.reach(rules, sets, None, Kind("via")).heads
        if not heads:
            return PartitionedBag(self.context, heads, {})
        return PartitionedBag(self.context, heads, derivation=(self.matching, rules, sets))

    def instances(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
        own: Own | None = None,
    ) -> PartitionedInstances:
        matching = self.matching
        kind = Kind("via", own=own.stratum if own else None, whole=True)
        results = matching.forwards("instances", rules, _sets(P, N, via, via_not, own), kind, matching.instances)
        return self._instances(rules, results)

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> PartitionedInstances:
        matching = self.matching
        kind = Kind("heads", whole=True)
        results = matching.backwards("supports", rules, own_set(H), _sets(P, N), kind, matching.instances)
        return self._instances(rules, results)

    def _instances(self, rules: Sequence[Rule], results: Results) -> PartitionedInstances:
        groups = self.matching.instances_of(rules, results)
        return PartitionedInstances(self.context, rules if results.came else (), groups, results.instances)

    def search(self, rules: Sequence[Rule]) -> PartitionedSearch:
        return PartitionedSearch(self.context, self.matching, rules)

    def bag(self, facts: FactSet) -> PartitionedBag:
        mine = own_set(facts)
        counts = {table: (rows, np.ones(len(rows), np.int64)) for table, rows in mine.here().items()}
        return PartitionedBag(self.context, mine.bound, counts)

    # -- state beside sets ---------------------------------------------------------------------------------------------

    def numbers(self, name: str) -> PartitionedNumbers:
        return PartitionedNumbers(self.context, name)

    def ranks(self) -> PartitionedRanks:
        return PartitionedRanks(self.context)

    def trace(self) -> PartitionedTrace:
        return PartitionedTrace(self.context)

    # -- transactions --------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block that is atomic in all tasks: if it fails in one of them, all undo it."""
        try:
            with self.context.local.transaction(), self.context.wire.in_step():
                yield
                self.context.compute_all()
        finally:
            self.context.put_off.clear()

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        with self.context.local.attempt() as attempt:
            yield attempt


def _sets(
    P: FactSet, N: FactSet, via: FactSet | None = None, via_not: FactSet | None = None, own: Own | None = None
) -> Sets:
    return Sets(
        own_set(P),
        own_set(N),
        None if via is None else own_set(via),
        None if via_not is None else own_set(via_not),
        None if own is None else (own.stratum, own_set(own.facts)),
    )
