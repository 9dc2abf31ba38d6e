"""Rounds of equality by rewriting that are small, many of them in one call of a kernel.

A round by the operators of `algebra` takes a millisecond or more however few its facts are. The kernels do the same for
facts that change no class. Rounds that are too large for them, rules that do more than match facts, and what concerns a
class are left to the operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from upheld.algebra.equality import Overdeletion, RulesOfClasses
from upheld.algebra.sets import FactSet
from upheld.base.interruptions import uninterrupted
from upheld.engines.memory.bytecode import many_rules
from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.encoder import MOST_HANDLED, Bench, Columns, Numbers, by_table
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.plans.plan import Place
from upheld.engines.memory.rounds.classes import kernel
from upheld.engines.memory.rounds.classes import records as cr
from upheld.engines.memory.rounds.classes.code import ClassCode, ClassCodes
from upheld.engines.memory.sets.collected import never_counted
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import NO_ROWS, MemorySet, Settled, nothing, own_set
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.truth_tables import EVERYTHING, Spelling
from upheld.engines.memory.storage.arrays import FLAGS, Rows, each_once
from upheld.engines.memory.storage.table import Table

#: Facts that a call begins with at most.
MOST_FACTS = 1 << 14

_NO_COLUMNS = Columns()

#: The arrays of classes that kernels read: whether a constant represents several, and how often it is mentioned.
Constants = tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]


class Candidates(NamedTuple):
    """Facts of a round that is too large, and the equalities of classes of several constants, as rows."""

    others: MemorySet
    by_rules: Rows
    by_reflexivity: Rows


class ClassRounds:
    """Calls the kernels, if facts are few and no rule does more than match."""

    def __init__(self, codes: ClassCodes):
        self._codes, self.context = codes, codes.matcher.context

    def overdelete(
        self, candidates: Sequence[MemorySet], over: Overdeletion, most: int, constants: Constants
    ) -> Candidates | None:
        """Go through rounds as `Classes.overdelete` does; None if the first one is not small."""
        D, P = named_set(over.D), named_set(over.P)
        facts = [list(some.listed()) for some in candidates]
        count = sum(some.count() for some in candidates)
        code = self._codes.overdeletion(over.rules) if count <= min(most, MOST_FACTS) else None
        if code is None or not code.knows(table for some in facts for table, _ in some):
            return None
        for named in (D, P):
            self.context.pending.before_change(named)
        with self.context.bits.evaluating():
            left: Spelling = ("-", own_set(over.I).spelling(), D.bit)
            call = Call(self.context, code, self._codes.bench, min(most, MOST_HANDLED) + count)
            call.begin(*facts)
            return call.overdelete(left, own_set(over.explicit).spelling(), D, P, constants)

    def rederive(self, heads: MemorySet, rules: RulesOfClasses, I: Named, D: Named) -> MemorySet | None:
        """Return what `Classes.rederive` does; None if the heads are not few."""
        facts = list(heads.listed())
        code = self._codes.rederivation(rules) if heads.count() <= MOST_FACTS else None
        if code is None or not code.knows(table for table, _ in facts):
            return None
        with self.context.bits.evaluating():
            call = Call(self.context, code, self._codes.bench, heads.count())
            return call.rederive(facts, ("-", I.bit, D.bit))

    def insert(self, delta: MemorySet, rules: RulesOfClasses, I: Named, D: Named, A: Named) -> MemorySet | None:
        """Go through rounds as `Classes.insert` does; None if the first one is not small."""
        facts = list(delta.listed())
        code = self._codes.insertion(rules) if delta.count() <= MOST_FACTS else None
        if code is None or not code.knows(table for table, _ in facts):
            return None
        self.context.pending.before_change(A)
        with self.context.bits.evaluating():
            call = Call(self.context, code, self._codes.bench, MOST_HANDLED + delta.count())
            call.begin(facts)
            return call.insert(("|", ("-", I.bit, D.bit), A.bit), A)


class Call:
    """Some rounds: the facts they begin with, and what they have done so far."""

    def __init__(self, context: Context, code: ClassCode, bench: Bench, most: int):
        self.context, self.code, self.bench = context, code, bench
        self.queue = np.empty((most, 2), np.int32)
        self.met: Numbers = np.zeros(len(code.rules), np.int64)
        self.state: Numbers = np.zeros(cr.STATE_FIELDS, np.int64)

    def begin(self, *facts: Sequence[tuple[Table, Rows]]) -> None:
        """Put lists of facts into the queue."""
        end = 0
        self._ends = []
        for some in facts:
            for table, rows in some:
                self.queue[end : end + len(rows), r.QUEUE_TABLE] = self.code.numbers[table]
                self.queue[end : end + len(rows), r.QUEUE_ROW] = rows
                end += len(rows)
            self._ends.append(end)
        self.state[r.END] = end

    def overdelete(
        self, left: Spelling, explicit: Spelling, D: Named, P: Named, constants: Constants
    ) -> Candidates | None:
        """Put facts into D and P, and return the candidates that are left.

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
                state[cr.SURE], state[cr.BY_RULES], state[r.END] = self._ends
                kernel.overdelete_rounds(
                    code.plans, truths, self.bench.arrays, self.queue, out, self.met, state, bits,
                    (code.equality, code.columns, *constants, code.reflexive),
                )  # fmt: skip
                if state[r.OUTCOME] == r.UNCOUNTED:
                    raise never_counted(code.tables[int(state[r.WANTED])].name)
                begin, end, listed = int(state[r.BEGIN]), int(state[r.END]), out[: state[r.LOGGED]]
                holding, by_rules, by_reflexivity = (
                    self._facts(listed[listed[:, cr.OUT_KIND] == kind])
                    for kind in (cr.HOLDS, cr.BY_RULE, cr.BY_REFLEXIVITY)
                )
                self._clear(self.queue[begin:end], D)  # a round that was too large
                self._put_into(D, self._facts(self.queue[:begin]))
                self._put_into(P, holding)
            except BaseException:
                self._clear(self.queue[: state[r.END]], D)
                self._clear(out[: state[r.LOGGED]], P)
                raise
        context.bits.give_back(bit)
        self._report(code.forward, "check", begin)
        if begin < end and not begin:
            return None
        # A class may lose several derivations.
        N, M = (each_once(rows[0][1]) if rows else NO_ROWS for rows in (by_rules, by_reflexivity))
        return Candidates(self._set(self._facts(self.queue[begin:end])), N, M)

    def rederive(self, facts: Sequence[tuple[Table, Rows]], left: Spelling) -> MemorySet | None:
        """Return the facts that a rule derives from a set; None if too many rows were looked at."""
        context, code = self.context, self.code
        self.begin(facts)
        truths, out, tasks = self._truths({Place.P: left}), np.empty_like(self.queue), self._tasks(facts)
        met: Numbers = np.zeros(len(tasks), np.int64)
        with context.new_bit("derived") as bit:
            code.look_up(_NO_COLUMNS)
            tables, indexes, plans, _, _ = code.plans
            count, is_done = many_rules.find_derivable(
                tables, indexes, plans, truths, self.bench.arrays, self.queue, tasks, met, 1 << bit, out
            )
            derived = Settled(context, dict(self._facts(out[:count])), bit)
        some = np.flatnonzero(met)
        rules = [code.rules[plans[at + r.PLAN_RULE]] for at in tasks[some, r.TASK_PLAN].tolist()]
        context.meter.instances_together(rules, met[some].tolist())
        return derived if is_done else None

    def _tasks(self, facts: Sequence[tuple[Table, Rows]]) -> Numbers:
        """Return the plans that begin with heads, each with its part of the queue, which has only these facts."""
        code, end, tasks = self.code, 0, []
        for table, rows in facts:
            t, begin, end = code.numbers[table], end, end + len(rows)
            tasks += [(at, begin, end) for at in code.code[code.backward[t] : code.backward[t + 1]].tolist()]
        return np.array(tasks, np.int64).reshape(-1, r.TASK_END + 1)

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
                begin, end = int(state[r.BEGIN]), int(state[r.END])
                self._put_into(A, self._facts(self.queue[:begin]))
            except BaseException:
                self._clear(self.queue[: state[r.END]], A)
                with uninterrupted():
                    for table in code.heads:
                        table.mend()
                raise
        context.bits.give_back(bit)
        self._report(code.forward, None, begin)
        return self._set(self._facts(self.queue[begin:end])) if state[r.ROUNDS] else None

    def _truths(self, places: Mapping[Place | None, Spelling], *others: Spelling) -> Numbers:
        """Return the addresses of the truth tables of the places of the code, and of other sets behind them."""
        truths = self.context.truths
        self._held = [truths[places[place]] if place in places else EVERYTHING for place in self.code.places]
        self._held += [truths[spelling] for spelling in others]
        return np.array([address_of(truth) for truth in self._held], np.int64)

    def _report(self, forward: int, other_phase: str | None, facts: int) -> None:
        """Report to the meter what was done: the plans from `forward` on belong to another phase."""
        meter, rules = self.context.meter, self.code.rules
        for some, phase in ((slice(0, forward), None), (slice(forward, None), other_phase)):
            met = np.flatnonzero(self.met[some]).tolist()
            meter.instances_together([rules[some][k] for k in met], self.met[some][met].tolist(), phase)
        if self.state[r.ROUNDS]:
            meter.round(facts, int(self.state[r.ROUNDS]))

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
