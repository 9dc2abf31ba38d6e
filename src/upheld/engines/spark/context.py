"""The state that the parts of a task's engine share: the memory engine with its partition, the wire, the views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from upheld.algebra.meter import Meter
from upheld.algebra.sets import SetEngine
from upheld.engines.memory.engine import MemoryEngine
from upheld.engines.memory.sets.collected import Collected
from upheld.engines.memory.sets.expressions import MemorySet, Settled
from upheld.engines.memory.sets.truth_tables import NOTHING
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.codec import AgreedCodec
from upheld.engines.spark.joins.plans import Views
from upheld.engines.spark.owners import Owners, Values
from upheld.engines.spark.tasks.wire import Outbox, Parcel, Wire
from upheld.language.ast import Constant
from upheld.language.core import Apply, Core, Expression, Rule

#: Facts of one table, an array with a row of codes for each.
Arrived = tuple[Table, Values]


class PutOff(Protocol):
    """Work that is put off until somebody asks for its result, or a set that it reads is about to change."""

    def compute(self) -> None: ...


class Context:
    """One task: its partition in a memory engine, and the way to the other tasks."""

    #: The engine that algorithms hold.
    engine: SetEngine

    def __init__(self, wire: Wire, core: Core, meter: Meter, new_views: Callable[[], Views]):
        self.wire, self.meter, self._new_views = wire, meter, new_views
        self.local = MemoryEngine(core, Meter(), AgreedCodec)
        self.memory, self.matcher = self.local.context, self.local.matcher
        self.owners = Owners(wire.me, wire.parts)
        #: Held on to, so that when it is done does not depend on who else holds it.
        self.put_off: list[PutOff] = []
        #: Rules whose constants have codes.
        self.known_rules: set[Rule] = set()
        self.know(core.rules)

    @cached_property
    def views(self) -> Views:
        """The copies that facts have, unless somebody has set others before they were asked for."""
        return self._new_views()

    @property
    def codec(self) -> AgreedCodec:
        codec = self.local.codec
        assert isinstance(codec, AgreedCodec), "the codec of a task"
        return codec

    def know(self, rules: Iterable[Rule]) -> None:
        """Give the constants of rules their codes, in the same order in all tasks."""
        new = [rule for rule in rules if rule not in self.known_rules]
        self.known_rules.update(new)
        texts = [text for rule in new for text in _texts_of(rule)]
        if texts:
            self.codec.add(texts)

    def outbox(self) -> list[list[Parcel]]:
        return [[] for _ in range(self.wire.members)]

    def agree_on_texts(self) -> Codes:
        """Give all texts that are new to some task their codes; return the codes of those that were new to this one."""
        _, notes = self.wire.exchange("new texts", None, self.codec.new)
        return self.codec.agree(notes)

    def total(self, operator: str, mine: Counter[Any]) -> Counter[Any]:
        """Return the sum over all tasks."""
        _, notes = self.wire.exchange(operator, None, mine)
        return sum(notes, Counter())

    def compute_all(self) -> None:
        """Do what was put off: a set is about to change."""
        while self.put_off:
            self.put_off.pop(0).compute()

    # -- facts -------------------------------------------------------------------------------------------------------

    def at_home(self, facts: MemorySet) -> dict[Table, Rows]:
        """Return the rows of a set that are at home in this task."""
        listed = ((table, self.owners.at_home(table, rows)) for table, rows in facts.listed())
        return {table: rows for table, rows in listed if len(rows)}

    def home_of(self, outbox: Outbox, predicate: str, codes: Values, *beside: Values) -> None:
        """Put facts into the boxes of their homes, with further numbers of each."""
        if self.wire.members == 1:
            outbox[0].append((predicate, codes, *beside))
            return
        if not len(codes):
            return
        if not codes.shape[1]:
            outbox[self.owners.of_name(predicate)].append((predicate, codes, *beside))
            return
        for task, mine, places in self.owners.deal(codes):
            outbox[task].append((predicate, mine, *(numbers[places] for numbers in beside)))

    def arrived(self, came: Outbox) -> Iterator[tuple[Any, ...]]:
        """Yield the tables and facts of parcels, and what else is in them."""
        for parcels in came:
            for predicate, codes, *beside in parcels:
                yield self.local.tables[predicate], codes, *beside

    def gathered(self, operator: str, rows: Mapping[Table, Rows], to: Container[int] | None = None) -> Settled:
        """Return a set of the rows of all tasks, in every member or in some; in the others it is empty."""
        parcels: list[Parcel] = [(table.name, table.rows[some]) for table, some in rows.items()]
        outbox = [parcels if to is None or q in to else [] for q in range(self.wire.members)]
        came, _ = self.wire.exchange(operator, outbox)
        return self.entered({}, self.arrived(came))

    def entered(self, rows: Mapping[Table, Rows], arrived: Iterable[Arrived]) -> Settled:
        """Return a settled set of rows and of facts that have arrived; those not in a table yet are entered."""
        with self.memory.new_bit("entered") as bit:
            collected = Collected(self.memory, bit)
            for table, some in rows.items():
                collected.take(table, some, NOTHING)
            for table, codes in arrived:
                collected.enter(table, fitted(table, codes), NOTHING)
            return Settled(self.memory, collected.rows(), bit)


def fitted(table: Table, codes: Values) -> Values:
    """Return codes as wide as a table's; the table is widened first if one of them asks for it."""
    if codes.dtype == np.int64 and codes.size:
        table.fit(int(codes.min()), int(codes.max()))
    return np.ascontiguousarray(codes, table.rows.dtype)


def _texts_of(rule: Rule) -> Iterator[str]:
    """Yield the texts in a rule."""
    for atom in (rule.head, *rule.positive, *rule.negative):
        yield from (t.value for t in atom.terms if isinstance(t, Constant) and isinstance(t.value, str))
    for builtin in rule.builtins:
        for argument in builtin.arguments:
            yield from _texts_in(argument)


def _texts_in(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Constant) and isinstance(expression.value, str):
        yield expression.value
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from _texts_in(argument)
