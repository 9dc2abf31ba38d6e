"""Rounds of equality by rewriting that are small, many of them in one call of a kernel.

A round by the operators of `algebra` takes a millisecond or more however few its facts are. The kernels do the same for
facts that change no class. Rounds that are too large for them, rules that do more than match facts, and what concerns a
class are left to the operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from upheld.algebra.equality import Overdeletion, RulesOfClasses
from upheld.algebra.sets import FactSet
from upheld.engines.memory.context import Context
from upheld.engines.memory.joins.matching import Matcher, Where
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.plans.plan import Literal, Place
from upheld.engines.memory.rounds.bytecode import (
    MOST_HANDLED,
    Bench,
    Columns,
    Numbers,
    RoundCode,
    Start,
    by_table,
    without_choices,
)
from upheld.engines.memory.rounds.classes import kernel
from upheld.engines.memory.rounds.classes.records import (
    BY_REFLEXIVITY,
    BY_RULE,
    BY_RULES,
    HOLDS,
    OUT_KIND,
    STATE_FIELDS,
    SURE,
)
from upheld.engines.memory.rounds.driver import MOST_STARTS
from upheld.engines.memory.rounds.records import (
    BEGIN,
    END,
    LOGGED,
    OUTCOME,
    QUEUE_ROW,
    QUEUE_TABLE,
    ROUNDS,
    UNCOUNTED,
    WANTED,
)
from upheld.engines.memory.sets.collected import never_counted
from upheld.engines.memory.sets.expressions import MemorySet, Settled, nothing, own_set
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.truth_tables import Spelling, Truth
from upheld.engines.memory.storage.arrays import FLAGS, Rows, each_once
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Rule
from upheld.language.equality.equality import Equality, constant_columns
from upheld.runtime.interruptions import uninterrupted

#: Facts that a call begins with at most.
MOST_FACTS = 1 << 13

_EVERYTHING: Truth = np.ones(1 << 16, np.bool_)
_NO_COLUMNS = Columns()

#: The arrays of classes that kernels read: whether a constant represents several, and how often it is mentioned.
Constants = tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]


class ClassCode(RoundCode):
    """The rules of a program with equality: from changed facts, and from heads to the explicit facts they follow from.

    `equality`, `columns` and `reflexive` are as the kernels read them.
    """

    def __init__(
        self,
        context: Context,
        equality: Equality,
        rules: RulesOfClasses,
        starts: Sequence[Start],
        backwards: Sequence[Start],
    ):
        heads = [context.tables[rule.head.predicate] for rule in rules.all]
        home = context.tables[equality.predicate]
        super().__init__(starts, [*heads, home], context.tables, context.codec, backwards)
        same_as = context.codec.encode_one(equality.value, "term")
        self.equality: Numbers = np.array([self.numbers[home], equality.column, same_as, *equality.sides], np.int64)
        self.columns = np.zeros((len(self.tables), self.arity), np.bool_)
        for t, table in enumerate(self.tables):
            self.columns[t, list(constant_columns(table.types))] = True
        of_reflexivity = set(map(id, rules.reflexivity))
        self.reflexive = np.array([id(rule) in of_reflexivity for rule in self.rules], np.bool_)
        #: The plans before this one are those from changed facts.
        self.forward = len(starts)
        self.plans = self.table_lines, self.index_lines, self.code, self.begins, self.backward


class ClassRounds:
    """The plans of rules as numbers, made when they are first asked for, and the arrays of the kernels."""

    def __init__(self, matcher: Matcher, equality: Equality):
        self.matcher, self.context, self._equality = matcher, matcher.context, equality
        self._codes: dict[int, tuple[Sequence[Rule], ClassCode | None]] = {}
        self._edition = matcher.edition
        self._bench = Bench()

    def overdelete(
        self, candidates: Sequence[MemorySet], over: Overdeletion, most: int, constants: Constants
    ) -> tuple[MemorySet, MemorySet] | None:
        """Go through rounds as `Classes.overdelete` does; None if the first one is not small."""
        D, P = named_set(over.D), named_set(over.P)
        facts = [list(some.listed()) for some in candidates]
        count = sum(some.count() for some in candidates)
        code = self._code(over.rules, [pair for some in facts for pair in some]) if count <= most else None
        if code is None:
            return None
        for named in (D, P):
            self.context.pending.before_change(named)
        with self.context.bits.evaluating():
            left: Spelling = ("-", own_set(over.I).spelling(), D.bit)
            call = Call(self.context, code, self._bench, min(most, MOST_HANDLED) + count)
            call.begin(*facts)
            return call.overdelete(left, own_set(over.explicit).spelling(), D, P, constants)

    def insert(self, delta: MemorySet, rules: RulesOfClasses, I: Named, D: Named, A: Named) -> MemorySet | None:
        """Go through rounds as `Classes.insert` does; None if the first one is not small."""
        facts = list(delta.listed())
        code = self._code(rules, facts)
        if code is None:
            return None
        self.context.pending.before_change(A)
        with self.context.bits.evaluating():
            call = Call(self.context, code, self._bench, MOST_HANDLED + delta.count())
            call.begin(facts)
            return call.insert(("|", ("-", I.bit, D.bit), A.bit), A)

    def _code(self, rules: RulesOfClasses, facts: Sequence[tuple[Table, Rows]]) -> ClassCode | None:
        """Return the code of rules for some facts, if these are few and no rule does more than match."""
        if sum(len(rows) for _, rows in facts) > MOST_FACTS:
            return None
        if self._edition != self.matcher.edition:  # codes of constants may have changed
            self._codes.clear()
            self._edition = self.matcher.edition
        known, code = self._codes.get(id(rules.all), ((), None))
        if known is not rules.all or (code is not None and code.is_stale()):
            code = self._new_code(rules)
            self._codes[id(rules.all)] = rules.all, code
        if code is None or not all(table in code.numbers for table, rows in facts if len(rows)):
            return None
        self._bench.make_room(code)
        return code

    def _new_code(self, rules: RulesOfClasses) -> ClassCode | None:
        if sum(len(rule.positive) for rule in rules.all) > MOST_STARTS:
            return None
        nothing_new = nothing(self.context)
        where = Where(self.context, nothing_new, nothing_new, via=nothing_new)
        starts = [
            self.matcher.start(rule, i, False, where, None) for rule in rules.all for i in range(len(rule.positive))
        ]
        backwards = [self._from_explicit(rule) for rule in rules.written]
        if not all(start.is_simple for start in starts + backwards):
            return None
        return ClassCode(self.context, self._equality, rules, starts, backwards)

    def _from_explicit(self, rule: Rule) -> Start:
        """Return a plan that looks for the explicit facts from which a rule derives a head."""
        variables = tuple(dict.fromkeys(rule.head.variables()))
        body = [Literal(atom, Place.OWN) for atom in rule.positive]
        plan = self.matcher.plan(rule, ("from explicit",), variables, lambda: body)
        return Start(without_choices(plan), rule.head, None, False)


class Call:
    """Some rounds: the facts they begin with, and what they have done so far."""

    def __init__(self, context: Context, code: ClassCode, bench: Bench, most: int):
        self.context, self.code, self.bench = context, code, bench
        self.queue = np.empty((most, 2), np.int32)
        self.met: Numbers = np.zeros(len(code.rules), np.int64)
        self.state: Numbers = np.zeros(STATE_FIELDS, np.int64)

    def begin(self, *facts: Sequence[tuple[Table, Rows]]) -> None:
        """Put lists of facts into the queue."""
        end = 0
        self._ends = []
        for some in facts:
            for table, rows in some:
                self.queue[end : end + len(rows), QUEUE_TABLE] = self.code.numbers[table]
                self.queue[end : end + len(rows), QUEUE_ROW] = rows
                end += len(rows)
            self._ends.append(end)
        self.state[END] = end

    def overdelete(
        self, left: Spelling, explicit: Spelling, D: Named, P: Named, constants: Constants
    ) -> tuple[MemorySet, MemorySet] | None:
        """Put facts into D and P, and return the candidates that are left, by rules and by reflexivity.

        None if there was no round: then D is as it was, and facts that hold are in P.
        """
        context, code, state = self.context, self.code, self.state
        out = np.empty((len(self.queue) + MOST_HANDLED, 3), np.int32)
        with context.new_bit("round") as bit:
            places: dict[Place | None, Spelling] = {Place.P: ("|", left, bit), Place.P_NOT_X: left, Place.OWN: explicit}
            truths = self._truths(places, explicit, ("|", D.bit, P.bit))
            bits = np.array([1 << bit, 1 << D.bit, 1 << P.bit], np.int64)
            try:
                code.look_up(_NO_COLUMNS)
                state[SURE], state[BY_RULES], state[END] = self._ends
                kernel.overdelete_rounds(
                    code.plans, truths, self.bench.arrays, self.queue, out, self.met, state, bits,
                    (code.equality, code.columns, *constants, code.reflexive),
                )  # fmt: skip
                if state[OUTCOME] == UNCOUNTED:
                    raise never_counted(code.tables[int(state[WANTED])].name)
                begin, end, listed = int(state[BEGIN]), int(state[END]), out[: state[LOGGED]]
                holding, by_rules, by_reflexivity = (
                    self._facts(listed[listed[:, OUT_KIND] == kind]) for kind in (HOLDS, BY_RULE, BY_REFLEXIVITY)
                )
                self._clear(self.queue[begin:end], D)  # a round that was too large
                self._put_into(D, self._facts(self.queue[:begin]))
                self._put_into(P, holding)
            except BaseException:
                self._clear(self.queue[: state[END]], D)
                self._clear(out[: state[LOGGED]], P)
                raise
        context.bits.give_back(bit)
        self._report(code.forward, "check", begin)
        # A class may lose several derivations.
        N, M = ([(table, each_once(rows)) for table, rows in facts] for facts in (by_rules, by_reflexivity))
        left_over = self._facts(self.queue[begin:end])
        return None if left_over and not begin else (self._set(left_over + N), self._set(M))

    def insert(self, there: Spelling, A: Named) -> MemorySet | None:
        """Put the facts, and what is new, into A; return the facts to go on with, None if there was no round."""
        context, code, state = self.context, self.code, self.state
        with context.new_bit("round") as bit:
            truths = self._truths({Place.P: there, Place.P_NOT_X: ("-", there, bit)}, there)
            bits = np.array([1 << bit, 1 << A.bit], np.int64)
            try:
                while True:
                    code.look_up(_NO_COLUMNS)
                    kernel.insert_rounds(
                        code.plans, truths, self.bench.arrays, self.queue, self.met, state, bits, code.equality
                    )
                    if not code.take_over_rows(state):
                        break
                begin, end = int(state[BEGIN]), int(state[END])
                self._put_into(A, self._facts(self.queue[:begin]))
            except BaseException:
                self._clear(self.queue[: state[END]], A)
                with uninterrupted():
                    for table in code.heads:
                        table.mend()
                raise
        context.bits.give_back(bit)
        self._report(code.forward, None, begin)
        return self._set(self._facts(self.queue[begin:end])) if state[ROUNDS] else None

    def _truths(self, places: Mapping[Place | None, Spelling], *others: Spelling) -> Numbers:
        """Return the addresses of the truth tables of the places of the code, and of other sets behind them."""
        truths = self.context.truths
        self._held = [truths[places[place]] if place in places else _EVERYTHING for place in self.code.places]
        self._held += [truths[spelling] for spelling in others]
        return np.array([address_of(truth) for truth in self._held], np.int64)

    def _report(self, forward: int, other_phase: str | None, facts: int) -> None:
        """Report to the meter what was done: the plans from `forward` on belong to another phase."""
        meter, rules = self.context.meter, self.code.rules
        for some, phase in ((slice(0, forward), None), (slice(forward, None), other_phase)):
            met = np.flatnonzero(self.met[some]).tolist()
            meter.instances_together([rules[some][k] for k in met], self.met[some][met].tolist(), phase)
        if self.state[ROUNDS]:
            meter.round(facts, int(self.state[ROUNDS]))

    # -- facts ---------------------------------------------------------------------------------------------------------

    def _facts(self, pairs: npt.NDArray[np.int32]) -> list[tuple[Table, Rows]]:
        return by_table(self.code.tables, pairs) if len(pairs) else []

    def _put_into(self, named: Named, facts: Sequence[tuple[Table, Rows]]) -> None:
        for table, rows in facts:
            named.has_taken(table, rows)

    def _clear(self, pairs: npt.NDArray[np.int32], named: Named) -> None:
        """Clear the bit of a set in facts that it does not know of."""
        with uninterrupted():
            for table, rows in self._facts(pairs):
                flag_kernels.clear_bits(table.flags, rows, FLAGS(~(1 << named.bit) & 0xFFFF))

    def _set(self, facts: Sequence[tuple[Table, Rows]]) -> MemorySet:
        """Return a set of facts, each of which is listed once."""
        listed: dict[Table, Rows] = {}
        for table, rows in facts:
            listed[table] = np.concatenate([listed[table], rows]) if table in listed else rows
        return Settled(self.context, listed) if listed else nothing(self.context)


def named_set(facts: FactSet) -> Named:
    assert isinstance(facts, Named), "a set that changes has a name"
    return facts
