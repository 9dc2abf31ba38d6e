"""Classes of equal constants as arrays over their codes, so that facts are represented a set at a time.

A class of several has its members in an array. Arrays of members are never changed, only replaced, so that what was
made from them may be looked at later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from upheld.algebra.equality import Classes, Constants, Difference, Overdeletion, RulesOfClasses
from upheld.algebra.expansion import Blocks, Expansions, Parts, Rows, between, pair_blocks
from upheld.algebra.rounds import ClassesRoundByRound
from upheld.algebra.sets import FactSet
from upheld.engines.memory.counters.bags import MemoryBag
from upheld.engines.memory.counters.counting import Counts
from upheld.engines.memory.equality.code_sets import CodeSet, connected, is_one, own_codes, spread
from upheld.engines.memory.joins.batch import pair_room
from upheld.engines.memory.joins.candidates import BEGINNING
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.rounds.classes.driver import ClassRounds, named_set
from upheld.engines.memory.sets.collected import Collected, MadeRows
from upheld.engines.memory.sets.expressions import Settled, load_codes, membership, nothing, own_set
from upheld.engines.memory.sets.truth_tables import NOTHING, Truth
from upheld.engines.memory.storage.arrays import Rows as RowNumbers
from upheld.engines.memory.storage.arrays import each_once
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.equality.equality import Equality, constant_columns
from upheld.language.values import Value

Flags = npt.NDArray[np.bool_]
_NOBODY: Codes = np.empty(0, np.int64)
_NO_REPEATS = np.empty((0, 2), np.int64)

#: Constants per thousand rows from which on reading a whole table is faster than probing its indexes.
_MANY_FOR_A_THOUSAND = 20
#: Facts with up to this many expansions have them formed and looked up. Expansions of other facts are found by their
#: constants.
_MOST_FORMED = 64


class MemoryJoining:
    """Classes that become one: some representatives, and the one that takes the place of each."""

    def __init__(self, classes: MemoryClasses, losers: Codes, winners: Codes):
        self.classes, self._losers, self._winners = classes, losers, winners

    @property
    def constants(self) -> CodeSet:
        return self.classes.members(CodeSet(np.sort(self._losers)))

    def make(self) -> None:
        classes = self.classes
        if not len(self._losers):
            return
        joined: dict[int, Codes] = {}
        order = np.argsort(self._winners, kind="stable")
        winners, starts = np.unique(self._winners[order], return_index=True)
        losers = np.split(self._losers[order], starts[1:])
        for winner, mine in zip(winners.tolist(), losers, strict=True):
            joined[winner] = classes.together(np.append(mine, winner))
        classes.set(joined)


class MemoryClasses(ClassesRoundByRound):
    """For each code of a text its representative, and for each representative of several constants its class."""

    def __init__(self, matcher: Matcher, equality: Equality):
        self.matcher, self.context, self.equality = matcher, matcher.context, equality
        self._code = self.context.codec.encode_one(equality.value, "term")
        self._now: Codes = _NOBODY
        self._has_several: Flags = np.empty(0, np.bool_)
        self._classes: dict[int, Codes] = {}
        #: How often explicit facts mention each constant.
        self._mentions: Codes = _NOBODY
        #: Constants that got another representative since the classes were remembered, with the one they had.
        self._moved: list[tuple[Codes, Codes]] = []
        #: Whether a constant is among them, or was the representative of one.
        self._is_moved: Flags = np.empty(0, np.bool_)
        self._rounds = ClassRounds(matcher, equality)
        self.context.holders.add(self)

    # -- compaction ----------------------------------------------------------------------------------------------------

    def use(self, codes: Codes) -> Flags:
        """Return which codes are of constants that the classes know of; the others are alone, and stay so if freed."""
        self._catch_up()
        used = (self._mentions[codes] != 0) | self._has_several[codes] | (self._now[codes] != codes)
        return used | self._is_moved[codes] | (codes == self._code)

    # -- who is in which class -----------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Give each constant that has come since the last time a class of its own."""
        count, known = self.context.codec.codes(), len(self._now)
        if count > known:
            more = np.arange(known, max(count, 2 * known))  # codes still to come are singletons as well
            no, mentions = np.zeros(len(more), np.bool_), np.zeros(len(more), np.int64)
            self._now = np.concatenate([self._now, more])
            self._has_several = np.concatenate([self._has_several, no])
            self._is_moved = np.concatenate([self._is_moved, no])
            self._mentions = np.concatenate([self._mentions, mentions])

    def of(self, representative: int) -> Codes:
        """Return the class that a constant represents."""
        found = self._classes.get(representative)
        return np.array([representative], np.int64) if found is None else found

    def set(self, classes: dict[int, Codes]) -> None:
        """Give the members of classes a representative; what they represented before is gone."""
        self._catch_up()
        for representative, members in classes.items():
            before = self._now[members]
            old = {c: self._classes.get(c) for c in {representative, *np.unique(before).tolist()}}
            self._note(members, before, old)
            self._move(members, before)
            self._now[members] = representative
            for c in old:
                self._put(c, None)
            self._put(representative, members if len(members) > 1 else None)

    def _put(self, representative: int, members: Codes | None) -> None:
        self._has_several[representative] = members is not None
        if members is None:
            self._classes.pop(representative, None)
        else:
            self._classes[representative] = members

    def _move(self, members: Codes, before: Codes) -> None:
        """Note that constants get another representative than the one they had before."""
        self._moved.append((members, before))
        self._is_moved[members] = True
        self._is_moved[before] = True

    def _note(self, members: Codes, before: Codes, old: dict[int, Codes | None]) -> None:
        def undo() -> None:
            self._now[members] = before
            for c, mine in old.items():
                self._put(c, mine)

        self.context.journal.note(undo)

    # -- facts ---------------------------------------------------------------------------------------------------------

    def represent(self, facts: FactSet) -> Settled:
        settled = own_set(facts).settled()
        if not self._classes:
            return settled
        parts = [(table, rows, *self._represented(table, rows)) for table, rows in settled.listed()]
        if not any(changed.any() for _, _, changed, _ in parts):
            return settled
        with self.context.new_bit("represented") as bit:
            collected = Collected(self.context, bit)
            for table, rows, changed, made in parts:
                collected.take(table, rows[~changed], NOTHING)
                collected.enter(table, made, NOTHING)
            return Settled(self.context, collected.rows(), bit)

    def _represented(self, table: Table, rows: RowNumbers) -> tuple[Flags, MadeRows]:
        """Return which rows are not normal, and the values of the normal ones that stand for them."""
        self._catch_up()
        changed = np.zeros(len(rows), np.bool_)
        columns = constant_columns(table.types)
        for column in columns:
            codes = table.rows[rows, column]
            changed |= self._now[codes] != codes
        made = table.rows[rows[changed]]
        for column in columns:
            made[:, column] = self._now[made[:, column]]
        return changed, made

    def rewritten(self, facts: FactSet) -> MemoryBag:
        if not self._classes:
            return MemoryBag(self.matcher, counts={})
        counts: Counts = {}
        for table, rows in own_set(facts).settled().listed():
            made = self._represented(table, rows)[1]
            if len(made):
                codes = np.ascontiguousarray(made.T, np.int64)
                load_codes(self.context, (table, codes))
                # Numbers of rows are sorted many times faster than rows.
                counts[table] = np.unique(
                    table.find(codes, len(made), np.arange(table.arity), _NOBODY), return_counts=True
                )
        return MemoryBag(self.matcher, counts=counts)

    def apart(self, facts: FactSet) -> Settled:
        return self._equalities(facts, lambda left, right: left != right)

    def several(self, facts: FactSet) -> Settled:
        return self._equalities(facts, lambda left, right: (left == right) & self._has_several[left])

    def plain(self, facts: FactSet) -> Settled:
        settled = own_set(facts).settled()
        if not self._classes:
            return settled
        chosen = ((table, rows[~self._special(table, rows, _NOBODY)]) for table, rows in settled.listed())
        return Settled(self.context, {table: rows for table, rows in chosen if len(rows)})

    def _equalities(self, facts: FactSet, chosen: Callable[[Codes, Codes], Flags]) -> Settled:
        """Return the equalities of a set whose two sides pass a test."""
        table = self.context.tables[self.equality.predicate]
        rows = own_set(facts).settled().of(table)
        rows = rows[table.rows[rows, self.equality.column] == self._code]
        self._catch_up()
        left, right = self.equality.sides
        rows = rows[chosen(table.rows[rows, left], table.rows[rows, right])]
        return Settled(self.context, {table: rows} if len(rows) else {})

    def _pairs(self, equalities: FactSet) -> tuple[Codes, Codes]:
        table = self.context.tables[self.equality.predicate]
        rows = own_set(equalities).settled().of(table)
        left, right = self.equality.sides
        return table.rows[rows, left].astype(np.int64), table.rows[rows, right].astype(np.int64)

    def mentioning(self, facts: FactSet, constants: Constants) -> Settled:
        wanted = own_codes(constants)
        if not len(wanted):
            return nothing(self.context)
        if isinstance(facts, Settled):
            listed = ((table, rows[self._mention(table, rows, wanted)]) for table, rows in facts.listed())
            return Settled(self.context, {table: rows for table, rows in listed if len(rows)})
        truth = membership(facts)
        result = {}
        for table in self.context.tables.values():
            columns = constant_columns(table.types)
            if columns and table.n:
                many = 1000 * len(wanted) > _MANY_FOR_A_THOUSAND * table.n
                rows = (
                    self._by_reading(table, columns, wanted) if many else self._by_index(table, columns, wanted, truth)
                )
                if many:
                    rows = rows[truth[table.flags[rows]]]
                if len(rows):
                    result[table] = rows
        return Settled(self.context, result)

    def non_singletons(self, facts: FactSet) -> CodeSet:
        if not self._classes:
            return CodeSet(_NOBODY)
        self._catch_up()
        settled = own_set(facts).settled()
        columns = (table.rows[rows, i] for table, rows in settled.listed() for i in constant_columns(table.types))
        large = (codes[self._has_several[codes]].astype(np.int64) for codes in columns)
        return CodeSet(np.unique(np.concatenate([_NOBODY, *large])))

    # -- expansions ----------------------------------------------------------------------------------------------------

    def expansions(self, normal: FactSet, facts: FactSet) -> Settled:
        if not self._classes:
            return own_set(normal & facts).settled()
        self._catch_up()
        if isinstance(facts, Settled) and not (isinstance(normal, Settled) and normal.count() < facts.count()):
            return self._represented_in(normal, facts)
        settled, truth = own_set(normal).settled(), membership(facts)
        hits: dict[Table, RowNumbers] = {}
        many: dict[Table, RowNumbers] = {}
        for table, rows in settled.listed():
            values = table.rows[rows].astype(np.int64)
            columns = constant_columns(table.types)
            few = self._combinations(values, columns, self.of) <= _MOST_FORMED
            formed, _ = spread(values[few], columns, self._has_several, self.of)
            at = _find(table, formed)
            hits[table] = at[(at >= 0) & truth[table.flags[at]]]
            if not few.all():
                many[table] = rows[~few]
        result = Settled(self.context, {table: rows for table, rows in hits.items() if len(rows)})
        if not many:
            return result
        mentioned = np.concatenate([self._least_mentioned(table, rows) for table, rows in many.items()])
        candidates = self.mentioning(facts, self.members(CodeSet(np.unique(mentioned))))
        more = self._represented_in(Settled(self.context, many), candidates)
        return own_set(result | more).settled()

    def _represented_in(self, normal: FactSet, facts: Settled) -> Settled:
        """Return the facts whose representatives are in a set."""
        truth, hits = membership(normal), {}
        for table, rows in facts.listed():
            changed, normal_rows = self._represented(table, rows)
            chosen = truth[table.flags[rows]]
            at = _find(table, normal_rows.astype(np.int64))
            chosen[changed] = (at >= 0) & truth[table.flags[at]]
            if chosen.any():
                hits[table] = rows[chosen]
        return Settled(self.context, hits)

    def _combinations(
        self, values: Codes, columns: Sequence[int], classes: Callable[[int], Codes]
    ) -> npt.NDArray[np.float64]:
        """Return for each row how many rows `_spread` would make of it: a number that may be huge."""
        numbers = np.ones(len(values))
        for column in columns:
            several = self._has_several[values[:, column]]
            distinct, which = np.unique(values[several, column], return_inverse=True)
            numbers[several] *= np.array([len(classes(c)) for c in distinct.tolist()])[which]
        return numbers

    def _least_mentioned(self, table: Table, rows: RowNumbers) -> Codes:
        """Return for each row the representative of several constants whose class the fewest explicit facts mention."""
        codes = table.rows[rows][:, list(constant_columns(table.types))].astype(np.int64)
        distinct, which = np.unique(codes, return_inverse=True)
        most = np.iinfo(np.int64).max
        mentions = [self._mentions[self._classes[c]].sum() if self._has_several[c] else most for c in distinct.tolist()]
        least = np.array(mentions, np.int64)[which].reshape(codes.shape).argmin(axis=1)
        return codes[np.arange(len(codes)), least]

    def covered(self, normal: FactSet, facts: FactSet, by: Classes) -> Settled:
        assert isinstance(by, MemoryClasses), "classes of another engine"
        if not self._classes:
            return own_set(normal & facts).settled()
        self._catch_up()
        by._catch_up()
        settled, truth = own_set(normal).settled(), membership(facts)

        @cache
        def parts(representative: int) -> Codes:
            """Return the representatives of the parts of a class."""
            return np.unique(by._now[self.of(representative)])

        hits: dict[Table, RowNumbers] = {}
        many: dict[Table, tuple[RowNumbers, npt.NDArray[np.float64]]] = {}
        for table, rows in settled.listed():
            values = table.rows[rows].astype(np.int64)
            columns = constant_columns(table.types)
            numbers = self._combinations(values, columns, parts)
            few = numbers <= _MOST_FORMED
            formed, of = spread(values[few], columns, self._has_several, parts)
            at = _find(table, formed)
            missing = np.bincount(of, (at < 0) | ~truth[table.flags[at]], np.count_nonzero(few))
            hits[table] = rows[few][missing == 0]
            if not few.all():
                many[table] = rows[~few], numbers[~few]
        result = Settled(self.context, {table: rows for table, rows in hits.items() if len(rows)})
        return self._with_counted(result, many, facts, by) if many else result

    def _with_counted(
        self,
        covered: Settled,
        many: dict[Table, tuple[RowNumbers, npt.NDArray[np.float64]]],
        facts: FactSet,
        by: MemoryClasses,
    ) -> Settled:
        """Return `covered`, and the facts of `many` whose number is the count of their expansions normal in `by`."""
        others = {}
        expansions = self.expansions(Settled(self.context, {table: rows for table, (rows, _) in many.items()}), facts)
        for table, (rows, numbers) in many.items():
            expansion_rows = expansions.of(table)
            normal = expansion_rows[~by._represented(table, expansion_rows)[0]]
            columns = list(constant_columns(table.types))
            values = table.rows[normal].astype(np.int64)
            values[:, columns] = self._now[values[:, columns]]
            at, counts = np.unique(_find(table, values), return_counts=True)
            number_of = dict(zip(at.tolist(), counts.tolist(), strict=True))
            chosen = np.array([number_of.get(row, 0) for row in rows.tolist()]) == numbers
            if chosen.any():
                others[table] = rows[chosen]
        return own_set(covered | Settled(self.context, others)).settled()

    def _mention(self, table: Table, rows: RowNumbers, wanted: Codes) -> Flags:
        """Return which rows have some of the codes in a column of constants."""
        mention = np.zeros(len(rows), np.bool_)
        for column in constant_columns(table.types):
            mention |= np.isin(table.rows[rows, column], wanted)
        return mention

    def _by_reading(self, table: Table, columns: Sequence[int], wanted: Codes) -> RowNumbers:
        self._catch_up()
        is_wanted = np.zeros(len(self._now), np.bool_)
        is_wanted[wanted] = True
        mentions = np.zeros(table.n, np.bool_)
        for column in columns:
            mentions |= is_wanted[table.rows[: table.n, column]]
        return np.flatnonzero(mentions).astype(np.int32)

    def _by_index(self, table: Table, columns: Sequence[int], wanted: Codes, truth: Truth) -> RowNumbers:
        result: list[RowNumbers] = []
        keys = np.ascontiguousarray(wanted.reshape(-1, 1))
        room = pair_room(len(keys))
        parents, matches = np.empty(room, np.int32), np.empty(room, np.int32)
        for column in columns:
            index = table.index((column,))
            i, on = 0, None
            while i < len(keys):
                i, on, count = index.probe(table, keys, i, on, truth, _NO_REPEATS, parents, matches)
                result.append(matches[:count].copy())
        return each_once(np.concatenate(result))

    # -- classes -------------------------------------------------------------------------------------------------------

    def constants(self, equalities: FactSet) -> CodeSet:
        return CodeSet(np.unique(self._pairs(equalities)[0]))

    def members(self, representatives: Constants) -> CodeSet:
        return CodeSet(np.sort(self.together(own_codes(representatives))))

    def together(self, representatives: Codes) -> Codes:
        """Return the members of classes, in some order."""
        self._catch_up()
        several = self._has_several[representatives]
        classes = (self._classes[c] for c in representatives[several].tolist())
        return np.concatenate([representatives[~several], *classes])

    def mentioned(self, loops: FactSet, facts: FactSet) -> Settled:
        equalities = self._equalities(loops, lambda left, right: left == right)
        home, truth = self.context.tables[self.equality.predicate], membership(facts)
        rows = equalities.of(home)
        wanted = np.ascontiguousarray(home.rows[rows, self.equality.sides[0]].astype(np.int64).reshape(-1, 1))
        missing = np.arange(len(rows))
        for table in self.context.tables.values():
            for column in constant_columns(table.types):
                if not len(missing):
                    break
                # One row of each is enough, however many there are.
                parents, matches = np.empty(len(missing), np.int32), np.empty(len(missing), np.int32)
                cursors, limits = np.full(len(rows), BEGINNING, np.int64), np.ones(len(missing), np.int64)
                found = table.index((column,)).probe_some(
                    table, wanted, missing, limits, cursors, truth, _NO_REPEATS, parents, matches
                )
                missing = np.setdiff1d(missing, parents[:found], assume_unique=True)
        rows = np.delete(rows, missing)
        return Settled(self.context, {home: rows} if len(rows) else {})

    def count(self, gone: FactSet, came: FactSet) -> None:
        for facts, sign in ((gone, -1), (came, 1)):
            for table, rows in own_set(facts).settled().listed():
                for column in constant_columns(table.types):
                    self._count(table.rows[rows, column], sign)

    def _count(self, codes: Codes, sign: int) -> None:
        self._catch_up()
        distinct, numbers = np.unique(codes, return_counts=True)
        before = self._mentions[distinct]

        def undo() -> None:
            self._mentions[distinct] = before

        self.context.journal.note(undo)
        self._mentions[distinct] = before + sign * numbers

    def mentions(self, constants: Constants) -> Codes:
        """Return how often explicit facts mention each of some constants."""
        self._catch_up()
        return self._mentions[own_codes(constants)]

    def counted(self, loops: FactSet) -> Settled:
        return self._equalities(loops, lambda left, right: (left == right) & (self._mentions[left] > 0))

    def loops(self, constants: Constants) -> Settled:
        table, codes = self.context.tables[self.equality.predicate], own_codes(constants)
        rows = np.empty((table.arity, len(codes)), np.int64)
        rows[list(self.equality.sides)], rows[self.equality.column] = codes, self._code
        return load_codes(self.context, (table, rows))

    def joining(self, equalities: FactSet) -> MemoryJoining:
        left, right = self._pairs(equalities)
        self._catch_up()
        codes, groups = connected(self._now[left], self._now[right])
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        losers, winners = [], []
        for group in np.split(codes[order], starts[1:]) if len(codes) else ():
            texts = self.context.codec.decode(group, "term")
            least = min(range(len(group)), key=lambda i: self.equality.order(texts[i]))
            losers.append(np.delete(group, least))
            winners.append(np.full(len(group) - 1, group[least]))
        return MemoryJoining(self, np.concatenate([_NOBODY, *losers]), np.concatenate([_NOBODY, *winners]))

    def torn(self, representatives: Constants, equalities: FactSet) -> CodeSet:
        codes, groups = connected(*self._pairs(equalities))
        loose = (c for c in own_codes(representatives).tolist() if not is_one(self.of(c), codes, groups))
        return CodeSet(np.fromiter(loose, np.int64))

    def split(self, representatives: Constants, by: Classes | None = None) -> None:
        assert by is None or isinstance(by, MemoryClasses), "classes of another engine"
        if by is not None:
            by._catch_up()
        for representative in own_codes(representatives).tolist():
            members = self.of(representative)
            self._leave_alone(representative)
            if by is not None:
                parts = {c: by.of(c) for c in np.unique(by._now[members]).tolist()}
                self.set({c: part for c, part in parts.items() if len(part) > 1})

    def split_all(self) -> None:
        for representative in list(self._classes):
            self._leave_alone(representative)

    def _leave_alone(self, representative: int) -> None:
        members = self._classes.get(representative)
        if members is None:
            return
        before = self._now[members]
        self._note(members, before, {representative: members})
        self._move(members, before)
        self._put(representative, None)
        self._now[members] = members

    def representatives(self, values: Sequence[Value]) -> list[Value]:
        codes = self.context.codec.encode(values, "term")
        self._catch_up()
        return self.context.codec.decode(self._now[codes], "term")

    def class_of(self, value: Value) -> list[Value]:
        code = self.context.codec.encode_one(value, "term")
        self._catch_up()
        return sorted(self.context.codec.decode(self.of(int(self._now[code])), "term"), key=self.equality.order)

    # -- rounds --------------------------------------------------------------------------------------------------------

    def overdelete(
        self, delta: FactSet, N: FactSet, M: FactSet, over: Overdeletion, most: int
    ) -> tuple[FactSet, FactSet]:
        self._catch_up()
        candidates = [own_set(facts).settled() for facts in (delta, N, M)]
        left = self._rounds.overdelete(candidates, over, most, (self._has_several, self._mentions))
        return super().overdelete(delta, N, M, over, most) if left is None else left

    def insert(self, delta: FactSet, rules: RulesOfClasses, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        left = self._rounds.insert(own_set(delta), rules, named_set(I), named_set(D), named_set(A))
        return super().insert(delta, rules, I, D, A) if left is None else left

    # -- what is shown -------------------------------------------------------------------------------------------------

    def remember(self) -> None:
        self._is_moved[np.concatenate([_NOBODY, *(codes for pair in self._moved for codes in pair)])] = False
        self._moved.clear()

    def difference(self) -> Difference:
        touched = self._touched()
        return Difference(CodeSet(np.unique(touched.before)), CodeSet(np.unique(touched.now)))

    def _touched(self) -> Touched:
        """Return the constants of all classes that differ from those remembered."""
        moved, first = np.unique(np.concatenate([_NOBODY, *(c for c, _ in self._moved)]), return_index=True)
        before = np.concatenate([_NOBODY, *(b for _, b in self._moved)])[first]
        differ = before != self._now[moved]
        moved, before = moved[differ], before[differ]
        # The members of classes that a constant joined, and of classes that a constant left.
        beside = self.members(CodeSet(np.union1d(before, self._now[moved]))).codes
        codes = np.union1d(moved, beside)
        then = self._now[codes].copy()
        then[np.searchsorted(codes, moved)] = before
        return Touched(codes, then, self._now[codes].copy())

    def memberships(self, predicate: str) -> tuple[Settled, Settled]:
        touched, table = self._touched(), self.context.tables[predicate]
        moved = touched.before != touched.now

        def others(representatives: Codes) -> Settled:
            chosen = moved & (representatives != touched.codes)
            rows = np.stack([representatives[chosen], touched.codes[chosen]])
            return load_codes(self.context, (table, rows))

        return others(touched.before), others(touched.now)

    def expanded(self, facts: FactSet, predicate: str) -> Rows:
        reading, table = self.context.codec.reading, self.context.tables[predicate]
        rows = own_set(facts).of(table)
        held = table.held()
        special = self._special(table, rows, _NOBODY)
        if not special.any():
            return reading.chosen(held, rows, table.types)
        columns = constant_columns(table.types)
        chosen = table.rows[rows[special]]
        classes = self._classes_in(chosen, columns)
        sizes = np.ones(len(self._now), np.int64)
        for representative, members in classes.items():
            sizes[representative] = len(members)
        count = int(np.count_nonzero(~special)) + int(np.prod([sizes[chosen[:, c]] for c in columns], axis=0).sum())

        def make() -> Parts:
            blocks: Blocks = {
                r: {r: tuple(reading.decode(members, "term"))}
                for r, members in zip(reading.decode(np.array(list(classes)), "term"), classes.values(), strict=True)
            }
            return Parts(
                reading.chosen(held, rows[~special], table.types), reading.decode_rows(chosen, table.types), blocks
            )

        return Expansions(make, count=lambda: count)

    def changed(self, gone: FactSet, came: FactSet, predicate: str) -> tuple[Rows, Rows]:
        reading, table = self.context.codec.reading, self.context.tables[predicate]
        touched, held = self._touched(), table.held()
        rows = [own_set(facts).of(table) for facts in (gone, came)]
        special = [self._special(table, mine, touched.codes) for mine in rows]
        if not any(mine.any() for mine in special):
            return reading.chosen(held, rows[0], table.types), reading.chosen(held, rows[1], table.types)
        both = np.concatenate([held.rows[mine[which]] for mine, which in zip(rows, special, strict=True)])
        classes = self._classes_in(both, constant_columns(table.types))
        others = [(np.full(len(members), r), members) for r, members in classes.items()]

        @cache
        def blocks() -> tuple[Blocks, Blocks]:
            # A class that is as it was is a block; one that is not is several.
            alike = np.concatenate([_NOBODY, *(r for r, _ in others)])
            members = np.concatenate([_NOBODY, *(mine for _, mine in others)])
            fresh = ~np.isin(members, touched.codes)
            alike, members = alike[fresh], members[fresh]
            parts = (touched.codes, members), (touched.before, alike), (touched.now, alike)
            constants, before, now = (reading.decode(np.concatenate(part), "term") for part in parts)
            return pair_blocks(zip(constants, before, now, strict=True))

        def make(side: int) -> Parts:
            mine, which = rows[side], special[side]
            plain = reading.chosen(held, mine[~which], table.types)
            return Parts(plain, reading.decode_rows(held.rows[mine[which]], table.types), blocks()[side])

        return between(lambda: make(0), lambda: make(1))

    def _special(self, table: Table, rows: RowNumbers, touched: Codes) -> Flags:
        """Return which rows have a constant that represents several, or is one of those given."""
        self._catch_up()
        special = self._mention(table, rows, touched) if len(touched) else np.zeros(len(rows), np.bool_)
        for column in constant_columns(table.types):
            special |= self._has_several[table.rows[rows, column]]
        return special

    def _classes_in(self, values: MadeRows, columns: Sequence[int]) -> dict[int, Codes]:
        """Return the classes of several constants whose representatives occur in columns."""
        codes = np.unique(values[:, list(columns)])
        return {c: self._classes[c] for c in codes[self._has_several[codes]].tolist()}


class Touched(NamedTuple):
    """Constants with their representatives of before and of now."""

    codes: Codes
    before: Codes
    now: Codes


def _find(table: Table, values: Codes) -> RowNumbers:
    """Return the number of each row of codes in a table, or -1."""
    return table.find(np.ascontiguousarray(values.T), len(values), np.arange(table.arity), _NOBODY)
