"""Aggregates over rows of a table: only the groups of rows that have gone or come are looked at.

Counts and sums are corrected by what has gone and come: sums of floats are kept exactly, and rounded from there. A
least or greatest value is looked for again if it has gone itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from upheld.algebra.aggregates import overflow
from upheld.algebra.sets import FactSet
from upheld.engines.memory.joins.batch import rows_with
from upheld.engines.memory.kernels import aggregates as kernels
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import Settled, load_codes, membership, nothing, own_set
from upheld.engines.memory.storage.arrays import Rows, slots_for
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Aggregation
from upheld.language.terms.aggregates import corrected, of_count
from upheld.language.types.aggregates import COLUMNS, aggregated, fitting, is_of_terms, mean
from upheld.language.types.columns import ColumnType
from upheld.language.types.exact_sums import ExactSum
from upheld.language.types.functors import Undefined
from upheld.language.values import Value

Numbers = npt.NDArray[np.int64]

_FEW_GROUPS = 1024
#: Rows from which on groups are numbered by the values of their column, and the longest range of these values, as a
#: multiple of the rows.
_MANY_ROWS, _DENSE = 4096, 4
#: Groups whose sums of floats are computed at once.
_SUMS_AT_ONCE = 4096
#: Where the columns of sums are among what is kept for a group, the number of its rows being the first.
_EXACT, _SUM, _MEAN = 1, 2, 3
_SIGN = np.int64(-(1 << 63))
_GREATEST = np.iinfo(np.int64).max


class Groups(NamedTuple):
    """Groups of rows: the values that each has in the columns of the groups, and the group of each row."""

    keys: Codes
    of_gone: Numbers
    of_came: Numbers

    def __len__(self) -> int:
        return len(self.keys)


class Before(NamedTuple):
    """The numbers that groups had: whether they had some, the numbers (0 if not), and the rows that say so."""

    there: npt.NDArray[np.bool_]
    numbers: Codes
    rows: Rows


class MemoryAggregate:
    """The values of an aggregate, as rows of a table."""

    def __init__(self, context: Context, aggregation: Aggregation):
        self.context, self.aggregation = context, aggregation
        self._body, self._values = context.tables[aggregation.body], context.tables[aggregation.relation]
        self._width = len(aggregation.groups)

    def changed(self, gone: FactSet, came: FactSet, held: FactSet, now: FactSet) -> tuple[Settled, Settled]:
        return self.entered(*self.results(gone, came, held, now))

    def results(self, gone: FactSet, came: FactSet, held: FactSet, now: FactSet) -> tuple[Rows, Codes]:
        """Return the rows of values that are removed, and the codes of values to be added, a row for each."""
        gone_rows, came_rows = own_set(gone).of(self._body), own_set(came).of(self._body)
        if not len(gone_rows) and not len(came_rows):
            return gone_rows[:0], np.empty((0, self._values.arity), np.int64)
        groups = self._groups(gone_rows, came_rows)
        before = self._before(groups, held)
        match self.aggregation.function:
            case "COUNT":
                there, numbers = self._counts_as_terms(groups, before)
            case _ if is_of_terms(self.aggregation.function):
                there, numbers = self._of_terms(groups, before, gone_rows, came_rows, now)
            case "count":
                there, numbers = self._counts(groups, before)
            case "min" | "max":
                there, numbers = self._extremes(groups, before, gone_rows, came_rows, now)
            case _ if self.aggregation.type == "float":
                there, numbers = self._sums_of_floats(groups, before, gone_rows, came_rows)
            case _:
                there, numbers = self._sums(groups, before, gone_rows, came_rows)
        different = (there != before.there) | (numbers != before.numbers).any(axis=1)
        left, come = before.rows[different[before.there]], different & there
        return np.sort(left), np.concatenate([groups.keys[come], numbers[come]], axis=1)

    def entered(self, left: Rows, come: Codes) -> tuple[Settled, Settled]:
        """Return the values removed and added, of which the latter become rows of the table."""
        removed = Settled(self.context, {self._values: left} if len(left) else {})
        added = load_codes(self.context, (self._values, come.T)) if len(come) else nothing(self.context)
        return removed, added

    # -- groups --------------------------------------------------------------------------------------------------------

    def _groups(self, gone: Rows, came: Rows) -> Groups:
        """Return the groups of the rows that have gone and come."""
        rows = came if not len(gone) else gone if not len(came) else np.concatenate([gone, came])
        numbers = np.zeros(len(rows), np.int64)
        if not self._width:
            keys = np.empty((1, 0), np.int64)
        elif (dense := self._dense_groups(rows, numbers)) is not None:
            keys = dense
        else:
            keys = self._hashed_groups(rows, numbers)
        return Groups(keys, numbers[: len(gone)], numbers[len(gone) :])

    def _dense_groups(self, rows: Rows, numbers: Numbers) -> Codes | None:
        """Number the groups of rows by an array over the range of their values, if that range is short."""
        if self._width > 1 or len(rows) < _MANY_ROWS:
            return None
        (column,) = self.aggregation.groups
        least, most = map(int, kernels.bounds(self._body.rows, rows, column))
        extent = most - least + 1
        if extent > _DENSE * len(rows):
            return None
        keys, slots = np.empty((min(extent, len(rows)), 1), np.int64), np.full(extent, -1, np.int32)
        return keys[: kernels.number_dense_groups(self._body.rows, rows, column, least, slots, keys, numbers)]

    def _hashed_groups(self, rows: Rows, numbers: Numbers) -> Codes:
        columns = np.array(self.aggregation.groups, np.int64)
        keys = np.empty((_FEW_GROUPS, self._width), np.int64)
        slots = np.full(slots_for(len(keys)), -1, np.int32)
        known = at = 0
        while True:
            at, known = kernels.number_groups(self._body.rows, rows, at, columns, slots, keys, known, numbers)
            if at == len(rows):
                return keys[:known]
            keys = np.concatenate([keys, np.empty_like(keys)])
            slots = np.full(slots_for(len(keys)), -1, np.int32)
            hashing.rehash(keys, 0, known, slots)

    def _before(self, groups: Groups, held: FactSet) -> Before:
        """Return the numbers that a set has for groups. Its rows are in the order of the groups."""
        there = np.zeros(len(groups), np.bool_)
        numbers = np.zeros((len(groups), len(COLUMNS[self.aggregation.function])), np.int64)
        places, rows = self._rows_of(self._values, tuple(range(self._width)), groups.keys, held)
        order = np.argsort(places)
        places, rows = places[order], rows[order]
        there[places] = True
        numbers[places] = self._values.rows[rows, self._width :]
        return Before(there, numbers, rows)

    def _rows_of(self, table: Table, columns: tuple[int, ...], keys: Codes, facts: FactSet) -> tuple[Numbers, Rows]:
        """Return the rows of a set that belong to groups, each with its group."""
        if columns:
            return rows_with(table, columns, keys, membership(facts))
        rows = own_set(facts).of(table)
        return np.zeros(len(rows), np.int64), rows

    def _target(self, rows: Rows) -> Codes:
        assert self.aggregation.target is not None, "an aggregate without a target"
        values = np.empty(len(rows), np.int64)
        kernels.values_of(self._body.rows, rows, self.aggregation.target, values)
        return values

    # -- functions -----------------------------------------------------------------------------------------------------

    def _counts(self, groups: Groups, before: Before) -> tuple[npt.NDArray[np.bool_], Codes]:
        numbers = before.numbers.copy()
        counts = np.ascontiguousarray(numbers[:, 0])
        kernels.count_groups(groups.of_gone, -1, counts)
        kernels.count_groups(groups.of_came, 1, counts)
        numbers[:, 0] = counts
        return counts > 0, numbers

    def _counts_as_terms(self, groups: Groups, before: Before) -> tuple[npt.NDArray[np.bool_], Codes]:
        there, numbers = self._counts(groups, before)
        different, places = np.unique(numbers[:, 0], return_inverse=True)
        terms = [of_count(n)[-1] for n in different.tolist()]
        numbers[:, 1] = np.where(there, self.context.codec.encode(terms, "term")[places], 0)
        return there, numbers

    def _of_terms(
        self, groups: Groups, before: Before, gone: Rows, came: Rows, now: FactSet
    ) -> tuple[npt.NDArray[np.bool_], Codes]:
        """Return what a function of terms keeps: what it kept is corrected, or the group is looked at again."""
        function, codec = self.aggregation.function, self.context.codec
        types = [self._values.types[self._width + c] for c in range(before.numbers.shape[1])]
        results: list[tuple[Value, ...] | None] = [None] * len(groups)
        left, come = self._by_group(groups.of_gone, gone), self._by_group(groups.of_came, came)
        held = codec.decode_rows(before.numbers[before.there], types)
        for group, values in zip(np.flatnonzero(before.there).tolist(), held, strict=True):
            results[group] = corrected(function, values, left.get(group, ()), come.get(group, ()))
        again = np.array([group for group, row in enumerate(results) if row is None], np.int64)
        if len(again):
            places, rows = self._rows_of(self._body, self.aggregation.groups, groups.keys[again], now)
            for place, terms in self._by_group(places, rows).items():
                results[int(again[place])] = aggregated(function, self.aggregation.type, terms)
        there = np.array([row is not None for row in results], np.bool_)
        numbers = np.zeros_like(before.numbers)
        numbers[there] = codec.encode_rows((row for row in results if row is not None), types).T
        return there, numbers

    def _by_group(self, groups: Numbers, rows: Rows) -> dict[int, list[str]]:
        """Return the terms that rows have, by group."""
        terms: dict[int, list[str]] = {}
        for group, term in zip(groups.tolist(), self.context.codec.decode(self._target(rows), "term"), strict=True):
            terms.setdefault(group, []).append(term)  # type: ignore[arg-type]
        return terms

    def _sums(self, groups: Groups, before: Before, gone: Rows, came: Rows) -> tuple[npt.NDArray[np.bool_], Codes]:
        there, numbers = self._counts(groups, before)
        unsigned, held = self.aggregation.type == "unsigned", before.numbers[:, _SUM]
        # An unsigned number is the signed one of its bits, and 2 ** 63 more than that with the first bit the other way.
        high, low = held >> 32, held & 0xFFFFFFFF
        if unsigned:
            high &= 0xFFFFFFFF
        for of, rows, sign in ((groups.of_gone, gone, -1), (groups.of_came, came, 1)):
            values = self._target(rows)
            kernels.sum_groups(of, values, sign, high, low)
            if unsigned:
                kernels.count_groups(of[values < 0], sign << 32, high)
        high += low >> 32
        low &= 0xFFFFFFFF
        least, most = (0, 0xFFFFFFFF) if unsigned else (-(1 << 31), (1 << 31) - 1)
        beyond = np.flatnonzero(there & ((high < least) | (high > most)))
        if not len(beyond) and isinstance(self.aggregation.type, ColumnType):
            lowest, highest = self.aggregation.type.bounds
            sums = (high << 32) | low
            beyond = np.flatnonzero(there & ((sums < lowest) | (sums > highest)))
        if len(beyond):
            self._refuse((int(high[beyond[0]]) << 32) + int(low[beyond[0]]), groups.keys[beyond[0]])
        numbers[:, _EXACT] = np.where(there, self.context.codec.encode_one("", "symbol"), 0)
        numbers[:, _SUM] = np.where(there, (high << 32) | low, 0)
        if self.aggregation.function == "mean":
            self._add_means(numbers, there)
        return there, numbers

    def _add_means(self, numbers: Codes, there: npt.NDArray[np.bool_]) -> None:
        sums = self.context.codec.decode(numbers[there, _SUM], self.aggregation.type)
        means = [
            mean(sum, count, self.aggregation.type) for sum, count in zip(sums, numbers[there, 0].tolist(), strict=True)
        ]
        numbers[:, _MEAN] = 0
        numbers[there, _MEAN] = np.array(means, np.float64).view(np.int64)

    def _refuse(self, sum: int, key: Codes) -> None:
        types = [self._body.types[column] for column in self.aggregation.groups]
        group = self.context.codec.decode_rows(key.reshape(1, -1), types)[0]
        try:
            fitting(sum, self.aggregation.type)
        except Undefined as e:
            raise overflow(self.aggregation, str(e), group) from None

    def _sums_of_floats(
        self, groups: Groups, before: Before, gone: Rows, came: Rows
    ) -> tuple[npt.NDArray[np.bool_], Codes]:
        there, numbers = self._counts(groups, before)
        codec, held = self.context.codec, np.flatnonzero(before.there).tolist()
        texts = codec.decode(before.numbers[held, _EXACT], "symbol")
        exact = {group: ExactSum.read(str(text)) for group, text in zip(held, texts, strict=True)}
        for of, rows, sign in ((groups.of_gone, gone, -1), (groups.of_came, came, 1)):
            for group, sum in self._exact_sums(of, rows):
                exact[group] = exact.get(group, ExactSum()).plus(sum, sign)
        sums = [exact[group] for group in np.flatnonzero(there).tolist()]
        numbers[:, [_EXACT, _SUM]] = 0
        numbers[there, _EXACT] = codec.encode([sum.text() for sum in sums], "symbol")
        numbers[there, _SUM] = np.array([sum.rounded() for sum in sums], np.float64).view(np.int64)
        if self.aggregation.function == "mean":
            self._add_means(numbers, there)
        return there, numbers

    def _exact_sums(self, groups: Numbers, rows: Rows) -> Iterator[tuple[int, ExactSum]]:
        """Yield the groups of some rows, each with the exact sum of the floats of its rows."""
        order = np.argsort(groups, kind="stable")
        different, places = np.unique(groups[order], return_inverse=True)
        codes = self._target(rows[order])
        for first in range(0, len(different), _SUMS_AT_ONCE):
            some = different[first : first + _SUMS_AT_ONCE]
            begin, end = np.searchsorted(places, (first, first + len(some)))
            sums = np.zeros((len(some), kernels.KEPT), np.int64)
            kernels.sum_floats(places[begin:end] - first, codes[begin:end], sums)
            limbs, rest = sums[:, : kernels.LIMBS - 1].astype("<u4"), sums[:, kernels.LIMBS - 1 :].tolist()
            for group, low, (high, *others) in zip(some.tolist(), limbs, rest, strict=True):
                units = int.from_bytes(low.tobytes(), "little") + (high << 32 * (kernels.LIMBS - 1))
                yield group, ExactSum(units, *others)

    def _extremes(
        self, groups: Groups, before: Before, gone: Rows, came: Rows, now: FactSet
    ) -> tuple[npt.NDArray[np.bool_], Codes]:
        least = np.where(before.there, self._keys(before.numbers[:, 0]), _GREATEST)
        there = before.there.copy()
        lost = np.zeros(len(groups), np.bool_)
        gone_keys = self._keys(self._target(gone))
        lost[groups.of_gone[gone_keys == least[groups.of_gone]]] = True
        again = np.flatnonzero(lost)
        if len(again):
            places, rows = self._rows_of(self._body, self.aggregation.groups, groups.keys[again], now)
            rest = np.full(len(again), _GREATEST, np.int64)
            kernels.least_of_groups(places, self._keys(self._target(rows)), rest)
            least[again] = rest
            there[again] = np.bincount(places, minlength=len(again)) > 0
        kernels.least_of_groups(groups.of_came, self._keys(self._target(came)), least)
        there[groups.of_came] = True
        return there, np.where(there, self._codes(least), 0).reshape(-1, 1)

    def _keys(self, codes: Codes) -> Codes:
        """Return numbers in the order of the values that codes stand for, or of the greatest one first."""
        if self.aggregation.type == "unsigned":
            codes = codes ^ _SIGN
        elif self.aggregation.type == "float":  # negative ones have their first bit set, and the rest the other way
            codes = np.where(codes < 0, ~codes ^ _SIGN, codes)
        return ~codes if self.aggregation.function == "max" else codes

    def _codes(self, keys: Codes) -> Codes:
        """Return the codes that such numbers stand for: all that `_keys` does, it does the other way round as well."""
        keys = ~keys if self.aggregation.function == "max" else keys
        if self.aggregation.type == "unsigned":
            return keys ^ _SIGN
        return np.where(keys < 0, ~keys ^ _SIGN, keys) if self.aggregation.type == "float" else keys
