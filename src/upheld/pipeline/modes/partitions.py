"""One part of a program by its pivots, derived by the memory engine in a task of Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import field

import numpy as np
import pyarrow as pa

from upheld.base.dataclass import dataclass
from upheld.base.errors import UpheldError
from upheld.base.limits import Limits
from upheld.engines.spark.packing import packed, unpacked
from upheld.facts.columns import Texts
from upheld.facts.relation import Relation, arrow_texts
from upheld.language.core import Core, Predicate
from upheld.materialisation.build import materialise_core
from upheld.materialisation.constraints import REPORT
from upheld.pipeline.layouts import ARROW_TYPES, Codec
from upheld.pipeline.modes.driver import columns_of
from upheld.pipeline.modes.slots import Slots
from upheld.pipeline.modes.task_output import NOTE, Piece

#: Rows that go back to Spark at a time.
_BATCH = 1 << 16


@dataclass(frozen=True)
class Outcome:
    """The status of a partition: counts of explicit facts and of facts of partitioned relations, or its error."""

    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    rounds: int = 0
    #: Facts touched.
    facts: int = 0
    error: UpheldError | None = None


def outcome_of(data: bytes) -> Outcome:
    """Return the outcome that a part of ours has told."""
    outcome = pickle.loads(data)
    assert isinstance(outcome, Outcome), "a note that is none"
    return outcome


@dataclass(frozen=True)
class Part:
    """The common input of all partitions; `derive` applies the rules to the rows of one."""

    core: Core
    limits: Limits
    #: The relations whose facts come with a part.
    given: tuple[str, ...]
    arriving: Slots
    #: The relations whose facts leave a part.
    wanted: tuple[str, ...]
    #: The relations whose facts a partition counts.
    counted: tuple[str, ...]
    whole: dict[str, pa.Table]
    #: The rows of each part, if the driver has them all; else they come from Spark.
    dealt: tuple[pa.Table, ...] = ()

    def derive_dealt(self, number: int) -> Iterator[Piece]:
        """Yield what follows from the facts of the part with a number."""
        return self.derive(self.dealt[number].to_batches())

    def derive(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        """Yield what follows from the facts of a part, and a note."""
        arriving = [batch for batch in batches if batch.num_rows]
        if not arriving:
            return
        arrived = pa.Table.from_batches(arriving)
        tables = [(name, self.arriving.take(k, arrived)) for k, name in enumerate(self.given)]
        tables += self.whole.items()
        facts = [(name, columns_of(self.core.predicates[name].types, table)) for name, table in tables]
        try:
            m = materialise_core(
                self.core,
                [(name, columns) for name, columns in facts if len(columns)],
                engine="memory",
                algorithm="rematerialise",  # nothing will be updated, so no bookkeeping is begun
                limits=self.limits,
                threads=1,  # Spark has a task for each core
                on_violation=REPORT,  # the driver asks for the violations of all parts together
            )
        except UpheldError as error:
            yield NOTE, pickle.dumps(Outcome(error=error))
            return
        for k, name in enumerate(self.wanted):
            for data in packed(table_of(self.core.predicates[name], m[name]), _BATCH):
                yield k, data
        sizes = {name: (len(m.explicit(name)), len(m[name])) for name in self.counted}
        yield NOTE, pickle.dumps(Outcome(sizes, m.statistics.rounds, m.statistics.facts))


def facts_in(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the facts that are packed in `data`."""
    for batch in batches:
        for data in batch.column(0):
            yield from unpacked(data.as_buffer()).to_batches()


def table_of(predicate: Predicate, relation: Relation) -> pa.Table:
    """Return the facts of a relation, in some order, as they stand in DataFrames of the Spark engine."""
    codec, columns = Codec(predicate), relation.unordered
    if columns is None or not predicate.types:
        return codec.layout.arrow(map(codec.encode, relation))
    arrays = [
        arrow_texts(values.compact())
        if isinstance(values, Texts)
        else pa.array(values.view(np.int64) if type == "unsigned" else values, ARROW_TYPES[stored])
        for values, type, stored in zip(columns.columns, predicate.types, codec.layout.types)
    ]
    return pa.Table.from_arrays(arrays, list(codec.layout.names))
