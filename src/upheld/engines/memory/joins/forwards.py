"""Instances of rules from facts forwards: from all facts, or from changed ones of one atom at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Protocol

import numpy as np

from upheld.algebra.meter import Reports
from upheld.compiler.hypertrees.jointree import Tree
from upheld.compiler.strata import Stratum
from upheld.engines.memory.bytecode.encoder import Start
from upheld.engines.memory.joins.batch import Join, Sink, row_of
from upheld.engines.memory.joins.bulk_copy import Copying
from upheld.engines.memory.joins.sinks import HeadSink
from upheld.engines.memory.joins.strategies import Delta, is_reducible, run_delta
from upheld.engines.memory.joins.threads.rule_groups import Job
from upheld.engines.memory.plans.delta_index import Occurrence
from upheld.engines.memory.plans.plan import HEIGHT, LOWEST, AtomStep, Literal, Place, Plan
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.truth_tables import selected
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Atom, Rule

#: Makes what takes the bindings of a plan, given the table it begins with and the number of rows.
MakeSink = Callable[[Plan, Table | None, int], Sink]


class Plans(Protocol):
    """Makes the plans of rules, and keeps them: the `Matcher`."""

    context: Context

    def plan(
        self,
        rule: Rule,
        kind: tuple[object, ...],
        start: tuple[str, ...],
        literals: Callable[[], list[Literal]],
        needed: Sequence[str] | None = None,
    ) -> Plan: ...

    def join(
        self, plan: Plan, where: Where, sink: Sink, rank: str | None = None, reports: Reports | None = None
    ) -> Join: ...

    def tree(self, rule: Rule) -> Tree | None: ...


class Forwards:
    """One forward run: how the atoms of its rules are matched."""

    def __init__(
        self,
        plans: Plans,
        where: Where,
        sink: MakeSink,
        ranked: tuple[str, Stratum] | None,
        whole: bool,
        with_rows: bool,
        joined: Callable[[Join], None] | None = None,
    ):
        self.plans, self.where, self.sink, self.whole, self.with_rows = plans, where, sink, whole, with_rows
        self.rank = ranked[0] if ranked is not None else None
        self.ranked_in = ranked[1] if ranked is not None else None
        #: The kind of plans of this run; with a rule and the first atom it determines a plan.
        self.kind = (where.own is not None, self.ranked_in is not None, whole, with_rows)
        self.reports: Reports = plans.context.meter
        self._joined = joined

    def reporting_to(self, reports: Reports) -> Forwards:
        """Return this run with what its rules report going there."""
        if reports is self.reports:
            return self
        result = copy(self)
        result.reports = reports
        return result

    @property
    def may_copy(self) -> bool:
        """Whether rules that copy rows may run together: not if all variables are asked for, or other facts matched."""
        return not self.whole and self.where.own is None

    def from_copied(self, copying: Copying, rows: Rows, is_ranked: bool) -> None:
        """As `from_positive`, for the single atoms of rules that copy rows."""
        table = copying.table
        rows = selected(table, rows, self.where[Place.P])
        if len(rows):
            plan = copying.ranked_plan if self.rank else copying.plan
            join = self._join(plan, table, len(rows))
            run_delta(Delta(self, join, table, rows, self.rank if is_ranked else None, copying=copying))
            self._has_run(join)

    def from_all(self, rule: Rule) -> None:
        start = (HEIGHT,) if self.rank else ()
        plan = self._plan(rule, "all", 0, start)
        if plan.after_first is not None:
            first = plan.steps[0]
            assert isinstance(first, AtomStep), "a plan that begins with the rows of an atom"
            rows = self.where.rows(first.source, first.place)
            self._run(plan.after_first, "all", rule.positive.index(first.atom), first.atom, first.table, rows, None)
        else:
            join = self._join(plan, None, 0)
            join.run(np.full((len(start), 1), LOWEST, np.int64), 1)
            self._has_run(join)

    def from_positive(self, rule: Rule, i: int, table: Table, rows: Rows) -> None:
        """Query (156): atom i is the first one in X."""
        own = self.where.stratum is not None and i in self.where.stratum.own(rule)
        rows = selected(table, rows, self.where[Place.OWN if own else Place.P])
        ranked = self.ranked_in is not None and i in self.ranked_in.own(rule)
        self._from_rows(rule, "via", i, rule.positive[i], table, rows, self.rank if ranked else None)

    def from_negated(self, rule: Rule, i: int, table: Table, rows: Rows) -> None:
        """Query (157): no positive atom is in X, and negated atom i is the first one in Y."""
        rows = selected(table, rows, ~self.where[Place.N])
        self._from_rows(rule, "via not", i, rule.negative[i], table, rows, None)

    def start(self, rule: Rule, i: int) -> Start:
        """Return the plan that `from_positive` follows."""
        atom = rule.positive[i]
        literal = self._positive(rule, i, Place.P)
        return Start(self._plan_from(rule, "via", i, atom), atom, literal.place, literal.ranked)

    def start_negated(self, rule: Rule, i: int) -> Start:
        """Return the plan that `from_negated` follows."""
        atom = rule.negative[i]
        return Start(self._plan_from(rule, "via not", i, atom), atom, None, False)

    @property
    def starting(self) -> dict[str, Callable[[Occurrence], Start]]:
        """Functions that return the plans of `from_positive` and `from_negated`."""
        return {"positive": self._start_positive, "negated": self._start_negated}

    def _start_positive(self, occurrence: Occurrence) -> Start:
        return self.start(occurrence.rule, occurrence.position)

    def _start_negated(self, occurrence: Occurrence) -> Start:
        return self.start_negated(occurrence.rule, occurrence.position)

    def _from_rows(self, rule: Rule, kind: str, i: int, atom: Atom, table: Table, rows: Rows, rank: str | None) -> None:
        if len(rows):
            self._run(self._plan_from(rule, kind, i, atom), kind, i, atom, table, rows, rank)

    def _plan_from(self, rule: Rule, kind: str, i: int, atom: Atom) -> Plan:
        start = [*dict.fromkeys(atom.variables())]
        if self.with_rows and kind == "via":
            start.append(row_of(i))
        if self.rank:
            start.append(HEIGHT)
        return self._plan(rule, kind, i, tuple(start))

    def _run(self, plan: Plan, kind: str, i: int, atom: Atom, table: Table, rows: Rows, rank: str | None) -> None:
        """Send the bindings that an atom, the one at i, has to rows of its table through a plan."""
        join = self._join(plan, table, len(rows))
        run_delta(Delta(self, join, table, rows, rank, atom, kind, i))
        self._has_run(join)

    def _has_run(self, join: Join) -> None:
        if self._joined is not None:
            self._joined(join)

    def _join(self, plan: Plan, table: Table | None, rows: int) -> Join:
        """Return a run of a plan that begins with this many rows of a table."""
        sink = self.sink(plan, table, rows)
        if isinstance(sink, HeadSink):
            sink.reporting_to(self.reports)
        return self.plans.join(plan, self.where, sink, self.rank, self.reports)

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def job_from_all(self, rule: Rule) -> Job:
        """Return a later run of `from_all`. Its plan is made now, and the sets that it reads have their bits."""
        plan, rows = self._plan(rule, "all", 0, ()), 1
        if plan.after_first is not None:
            first = plan.steps[0]
            assert isinstance(first, AtomStep), "a plan that begins with the rows of an atom"
            plan, rows = plan.after_first, first.source.n
        return self._job(plan, "all", rows, lambda run: run.from_all(rule))

    def job_from(self, kind: str, atom: tuple[Occurrence, Table, Rows]) -> Job:
        """As `job_from_all`, for `from_positive` or, of the kind `negated`, `from_negated`."""
        occurrence, table, rows = atom
        rule, i = occurrence.rule, occurrence.position
        if kind == "positive":
            plan = self._plan_from(rule, "via", i, rule.positive[i])
            return self._job(plan, "via", len(rows), lambda run: run.from_positive(rule, i, table, rows))
        plan = self._plan_from(rule, "via not", i, rule.negative[i])
        return self._job(plan, "via not", len(rows), lambda run: run.from_negated(rule, i, table, rows))

    def _job(self, plan: Plan, kind: str, rows: int, run: Callable[[Forwards], None]) -> Job:
        for place in (*plan.places, Place.N if kind == "via not" else Place.P):
            self.where[place]
        is_reduced = is_reducible(self, plan, rows, kind)
        return Job(plan, rows, is_reduced, lambda reports: run(self.reporting_to(reports)))

    @property
    def context(self) -> Context:
        return self.plans.context

    def tree(self, rule: Rule) -> Tree | None:
        return self.plans.tree(rule)

    def others(self, delta: Delta) -> dict[int, Literal]:
        i = delta.position
        places = {
            k: Place.P_NOT_X if delta.kind == "via" and k < i else Place.P
            for k in range(len(delta.rule.positive))
            if k != i
        }
        return {k: self._positive(delta.rule, k, place) for k, place in places.items()}

    def _plan(self, rule: Rule, kind: str, i: int, start: tuple[str, ...]) -> Plan:
        return self.plans.plan(
            rule, (kind, i, *self.kind), start, lambda: list(self._literals(rule, kind, i)),
            self._needed(rule),
        )  # fmt: skip

    def _needed(self, rule: Rule) -> tuple[str, ...] | None:
        """Return the variables that bindings have at the end, or None for the variables of the head."""
        rows = tuple(map(row_of, range(len(rule.positive)))) if self.with_rows else ()
        return (*rule.variables(), *rows) if self.whole else None

    def _literals(self, rule: Rule, kind: str, i: int) -> Iterator[Literal]:
        """Yield where the atoms are matched beside the one that a plan begins with."""
        for k in range(len(rule.positive)):
            if kind == "all" or (kind == "via" and k > i):
                yield self._positive(rule, k, Place.P)
            elif kind == "via not" or k < i:
                yield self._positive(rule, k, Place.P_NOT_X)
        for k, atom in enumerate(rule.negative):
            if kind != "via not" or k > i:
                yield Literal(atom, Place.N)
            elif k < i:
                yield Literal(atom, Place.N_OR_Y)

    def _positive(self, rule: Rule, i: int, place: Place) -> Literal:
        if self.where.stratum is not None and i in self.where.stratum.own(rule):
            place = place.within_own
        ranked = self.ranked_in is not None and i in self.ranked_in.own(rule)
        return Literal(rule.positive[i], place, ranked, row_of(i) if self.with_rows else None)


def no_sink(plan: Plan, start: Table | None, work: int) -> Sink:
    raise AssertionError("a run that only makes plans")
