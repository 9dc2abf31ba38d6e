"""The operators on classes of equal constants: facts are represented a set at a time, by their codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from upheld.algebra.equality import Classes, Constants, Difference, Overdeletion, RulesOfClasses
from upheld.algebra.expansion import Rows
from upheld.algebra.rounds import ClassesRoundByRound
from upheld.algebra.sets import FactSet
from upheld.compiler.equality.equality import Equality, constant_columns
from upheld.engines.memory.bags.bags import MemoryBag
from upheld.engines.memory.bags.counting import Counts
from upheld.engines.memory.equality.code_sets import CodeSet, connected, is_one, mention, own_codes, spread
from upheld.engines.memory.equality.membership import NOBODY, Flags, Membership
from upheld.engines.memory.equality.shown import changed, expanded
from upheld.engines.memory.joins.batch import pair_room
from upheld.engines.memory.joins.candidates import BEGINNING
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.rounds.classes.code import ClassCodes
from upheld.engines.memory.rounds.classes.connections import Connections
from upheld.engines.memory.rounds.classes.driver import Candidates, ClassRounds, named_set
from upheld.engines.memory.sets.collected import Collected, MadeRows
from upheld.engines.memory.sets.expressions import MemorySet, Settled, load_codes, membership, nothing, own_set
from upheld.engines.memory.sets.truth_tables import NOTHING, Truth
from upheld.engines.memory.storage.arrays import Rows as RowNumbers
from upheld.engines.memory.storage.arrays import each_once
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.values import Value

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
        membership = self.classes.membership
        if not len(self._losers):
            return
        joined: dict[int, Codes] = {}
        order = np.argsort(self._winners, kind="stable")
        winners, starts = np.unique(self._winners[order], return_index=True)
        losers = np.split(self._losers[order], starts[1:])
        for winner, mine in zip(winners.tolist(), losers, strict=True):
            joined[winner] = membership.together(np.append(mine, winner))
        membership.set(joined)


class MemoryClasses(ClassesRoundByRound):
    """The classes of a materialisation; `membership` has the members of each."""

    def __init__(self, matcher: Matcher, equality: Equality):
        self.matcher, self.context, self.equality = matcher, matcher.context, equality
        self._code = self.context.codec.encode_one(equality.value, "term")
        self._home = self.context.tables[equality.predicate]
        self.membership = Membership(self.context, self._code)
        codes = ClassCodes(matcher, equality)
        self._rounds, self._connections = ClassRounds(codes), Connections(codes)

    # -- facts ---------------------------------------------------------------------------------------------------------

    def represent(self, facts: FactSet) -> Settled:
        settled = own_set(facts).settled()
        if not self.membership.classes:
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
        self.membership.catch_up()
        changed = np.zeros(len(rows), np.bool_)
        columns = constant_columns(table.types)
        for column in columns:
            codes = table.rows[rows, column]
            changed |= self.membership.now[codes] != codes
        made = table.rows[rows[changed]]
        for column in columns:
            made[:, column] = self.membership.now[made[:, column]]
        return changed, made

    def rewritten(self, facts: FactSet) -> MemoryBag:
        if not self.membership.classes:
            return MemoryBag(self.matcher, counts={})
        counts: Counts = {}
        for table, rows in own_set(facts).settled().listed():
            made = self._represented(table, rows)[1]
            if len(made):
                codes = np.ascontiguousarray(made.T, np.int64)
                load_codes(self.context, (table, codes))
                # Numbers of rows are sorted many times faster than rows.
                counts[table] = np.unique(
                    table.find(codes, len(made), np.arange(table.arity), NOBODY), return_counts=True
                )
        return MemoryBag(self.matcher, counts=counts)

    def apart(self, facts: FactSet) -> Settled:
        return self._equalities(facts, lambda left, right: left != right)

    def several(self, facts: FactSet) -> Settled:
        return self._equalities(facts, lambda left, right: (left == right) & self.membership.has_several[left])

    def plain(self, facts: FactSet) -> Settled:
        settled = own_set(facts).settled()
        if not self.membership.classes:
            return settled
        chosen = ((table, rows[~self.membership.special(table, rows, NOBODY)]) for table, rows in settled.listed())
        return Settled(self.context, {table: rows for table, rows in chosen if len(rows)})

    def _equalities(self, facts: FactSet, chosen: Callable[[Codes, Codes], Flags]) -> Settled:
        """Return the equalities of a set whose two sides pass a test."""
        table = self.context.tables[self.equality.predicate]
        rows = own_set(facts).settled().of(table)
        rows = rows[table.rows[rows, self.equality.column] == self._code]
        self.membership.catch_up()
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
            listed = ((table, rows[mention(table, rows, wanted)]) for table, rows in facts.listed())
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
        if not self.membership.classes:
            return CodeSet(NOBODY)
        self.membership.catch_up()
        settled = own_set(facts).settled()
        columns = (table.rows[rows, i] for table, rows in settled.listed() for i in constant_columns(table.types))
        large = (codes[self.membership.has_several[codes]].astype(np.int64) for codes in columns)
        return CodeSet(np.unique(np.concatenate([NOBODY, *large])))

    # -- expansions ----------------------------------------------------------------------------------------------------

    def expansions(self, normal: FactSet, facts: FactSet) -> Settled:
        if not self.membership.classes:
            return own_set(normal & facts).settled()
        self.membership.catch_up()
        if isinstance(facts, Settled) and not (isinstance(normal, Settled) and normal.count() < facts.count()):
            return self._represented_in(normal, facts)
        settled, truth = own_set(normal).settled(), membership(facts)
        hits: dict[Table, RowNumbers] = {}
        many: dict[Table, RowNumbers] = {}
        for table, rows in settled.listed():
            values = table.rows[rows].astype(np.int64)
            columns = constant_columns(table.types)
            few = self._combinations(values, columns, self.membership.of) <= _MOST_FORMED
            formed, _ = spread(values[few], columns, self.membership.has_several, self.membership.of)
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
            several = self.membership.has_several[values[:, column]]
            distinct, which = np.unique(values[several, column], return_inverse=True)
            numbers[several] *= np.array([len(classes(c)) for c in distinct.tolist()])[which]
        return numbers

    def _least_mentioned(self, table: Table, rows: RowNumbers) -> Codes:
        """Return for each row the representative of several constants whose class the fewest explicit facts mention."""
        codes = table.rows[rows][:, list(constant_columns(table.types))].astype(np.int64)
        distinct, which = np.unique(codes, return_inverse=True)
        most = np.iinfo(np.int64).max
        mentions = [
            self.membership.mentions[self.membership.classes[c]].sum() if self.membership.has_several[c] else most
            for c in distinct.tolist()
        ]
        least = np.array(mentions, np.int64)[which].reshape(codes.shape).argmin(axis=1)
        return codes[np.arange(len(codes)), least]

    def covered(self, normal: FactSet, facts: FactSet, by: Classes) -> Settled:
        assert isinstance(by, MemoryClasses), "classes of another engine"
        if not self.membership.classes:
            return own_set(normal & facts).settled()
        self.membership.catch_up()
        by.membership.catch_up()
        settled, truth = own_set(normal).settled(), membership(facts)

        @cache
        def parts(representative: int) -> Codes:
            """Return the representatives of the parts of a class."""
            return np.unique(by.membership.now[self.membership.of(representative)])

        hits: dict[Table, RowNumbers] = {}
        many: dict[Table, tuple[RowNumbers, npt.NDArray[np.float64]]] = {}
        for table, rows in settled.listed():
            values = table.rows[rows].astype(np.int64)
            columns = constant_columns(table.types)
            numbers = self._combinations(values, columns, parts)
            few = numbers <= _MOST_FORMED
            formed, of = spread(values[few], columns, self.membership.has_several, parts)
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
            values[:, columns] = self.membership.now[values[:, columns]]
            at, counts = np.unique(_find(table, values), return_counts=True)
            number_of = dict(zip(at.tolist(), counts.tolist(), strict=True))
            chosen = np.array([number_of.get(row, 0) for row in rows.tolist()]) == numbers
            if chosen.any():
                others[table] = rows[chosen]
        return own_set(covered | Settled(self.context, others)).settled()

    def _by_reading(self, table: Table, columns: Sequence[int], wanted: Codes) -> RowNumbers:
        self.membership.catch_up()
        is_wanted = np.zeros(len(self.membership.now), np.bool_)
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
        return CodeSet(np.sort(self.membership.together(own_codes(representatives))))

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
                    self.membership.count(table.rows[rows, column], sign)

    def mentions(self, constants: Constants) -> Codes:
        """Return how often explicit facts mention each of some constants."""
        self.membership.catch_up()
        return self.membership.mentions[own_codes(constants)]

    def counted(self, loops: FactSet) -> Settled:
        return self._equalities(loops, lambda left, right: (left == right) & (self.membership.mentions[left] > 0))

    def loops(self, constants: Constants) -> Settled:
        codes = own_codes(constants)
        rows = np.empty((self._home.arity, len(codes)), np.int64)
        rows[list(self.equality.sides)], rows[self.equality.column] = codes, self._code
        return load_codes(self.context, (self._home, rows))

    def joining(self, equalities: FactSet) -> MemoryJoining:
        left, right = self._pairs(equalities)
        self.membership.catch_up()
        codes, groups = connected(self.membership.now[left], self.membership.now[right])
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        losers, winners = [], []
        for group in np.split(codes[order], starts[1:]) if len(codes) else ():
            texts = self.context.codec.decode(group, "term")
            least = min(range(len(group)), key=lambda i: self.equality.order(texts[i]))
            losers.append(np.delete(group, least))
            winners.append(np.full(len(group) - 1, group[least]))
        return MemoryJoining(self, np.concatenate([NOBODY, *losers]), np.concatenate([NOBODY, *winners]))

    def torn(self, representatives: Constants, equalities: FactSet) -> CodeSet:
        codes, groups = connected(*self._pairs(equalities))
        loose = (c for c in own_codes(representatives).tolist() if not is_one(self.membership.of(c), codes, groups))
        return CodeSet(np.fromiter(loose, np.int64))

    def loose(self, representatives: Constants, facts: FactSet, rules: RulesOfClasses) -> Constants:
        codes = own_codes(representatives)
        loose = self._which_are_loose(codes, own_set(facts), rules)
        return super().loose(representatives, facts, rules) if loose is None else CodeSet(codes[loose])

    def _which_are_loose(self, codes: Codes, facts: MemorySet, rules: RulesOfClasses) -> Flags | None:
        """Return which representatives are loose; None if operators have to find out."""
        self.membership.catch_up()
        classes = [self.membership.of(c) for c in codes.tolist()]
        return self._connections.loose(classes, self.membership.now, facts, rules)

    def split(self, representatives: Constants, by: Classes | None = None) -> None:
        assert by is None or isinstance(by, MemoryClasses), "classes of another engine"
        if by is not None:
            by.membership.catch_up()
        for representative in own_codes(representatives).tolist():
            members = self.membership.of(representative)
            self.membership.leave_alone(representative)
            if by is not None:
                parts = {c: by.membership.of(c) for c in np.unique(by.membership.now[members]).tolist()}
                self.membership.set({c: part for c, part in parts.items() if len(part) > 1})

    def split_all(self) -> None:
        for representative in list(self.membership.classes):
            self.membership.leave_alone(representative)

    def representatives(self, values: Sequence[Value]) -> list[Value]:
        codes = self.context.codec.encode(values, "term")
        self.membership.catch_up()
        return self.context.codec.decode(self.membership.now[codes], "term")

    def class_of(self, value: Value) -> list[Value]:
        code = self.context.codec.encode_one(value, "term")
        self.membership.catch_up()
        members = self.membership.of(int(self.membership.now[code]))
        return sorted(self.context.codec.decode(members, "term"), key=self.equality.order)

    # -- rounds --------------------------------------------------------------------------------------------------------

    def overdelete(
        self, delta: FactSet, N: FactSet, M: FactSet, over: Overdeletion, most: int
    ) -> tuple[FactSet, FactSet]:
        self.membership.catch_up()
        candidates = [own_set(facts).settled() for facts in (delta, N, M)]
        left = self._rounds.overdelete(candidates, over, most, (self.membership.has_several, self.membership.mentions))
        return super().overdelete(delta, N, M, over, most) if left is None else self._without_firm(left, over)

    def _without_firm(self, left: Candidates, over: Overdeletion) -> tuple[FactSet, FactSet]:
        """Return candidates by rules and by reflexivity, without the equalities of classes that are not loose."""
        by_reflexivity, side = left.by_reflexivity, self.equality.sides[0]
        if len(by_reflexivity):
            classes = [self.membership.classes[c] for c in self._home.rows[by_reflexivity, side].tolist()]
            starts = np.cumsum([0, *map(len, classes[:-1])])
            mentions = np.minimum.reduceat(self.membership.mentions[np.concatenate(classes)], starts)
            by_reflexivity = by_reflexivity[mentions <= 0]
        rows = np.union1d(left.by_rules, by_reflexivity)
        codes = self._home.rows[rows, side].astype(np.int64)
        loose = self._which_are_loose(codes, own_set(over.explicit), over.rules)
        if loose is None:
            loose = np.ones(len(rows), np.bool_)
        P = over.P
        P |= self._of_home(rows[~loose])
        return left.others | self._of_home(rows[loose]), nothing(self.context)

    def _of_home(self, rows: RowNumbers) -> Settled:
        return Settled(self.context, {self._home: rows} if len(rows) else {})

    def rederive(self, heads: FactSet, rules: RulesOfClasses, I: FactSet, D: FactSet) -> FactSet:
        derived = self._rounds.rederive(own_set(heads).settled(), rules, named_set(I), named_set(D))
        return super().rederive(heads, rules, I, D) if derived is None else derived

    def insert(self, delta: FactSet, rules: RulesOfClasses, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        left = self._rounds.insert(own_set(delta), rules, named_set(I), named_set(D), named_set(A))
        return super().insert(delta, rules, I, D, A) if left is None else left

    # -- what is shown -------------------------------------------------------------------------------------------------

    def remember(self) -> None:
        self.membership.remember()

    def difference(self) -> Difference:
        touched = self.membership.touched()
        return Difference(CodeSet(np.unique(touched.before)), CodeSet(np.unique(touched.now)))

    def memberships(self, predicate: str) -> tuple[Settled, Settled]:
        touched, table = self.membership.touched(), self.context.tables[predicate]
        moved = touched.before != touched.now

        def others(representatives: Codes) -> Settled:
            chosen = moved & (representatives != touched.codes)
            rows = np.stack([representatives[chosen], touched.codes[chosen]])
            return load_codes(self.context, (table, rows))

        return others(touched.before), others(touched.now)

    def expanded(self, facts: FactSet, predicate: str) -> Rows:
        table = self.context.tables[predicate]
        return expanded(self.context.codec.reading, self.membership, table, own_set(facts).of(table))

    def changed(self, gone: FactSet, came: FactSet, predicate: str) -> tuple[Rows, Rows]:
        table = self.context.tables[predicate]
        rows = own_set(gone).of(table), own_set(came).of(table)
        return changed(self.context.codec.reading, self.membership, table, rows)


def _find(table: Table, values: Codes) -> RowNumbers:
    """Return the number of each row of codes in a table, or -1."""
    return table.find(np.ascontiguousarray(values.T), len(values), np.arange(table.arity), NOBODY)
