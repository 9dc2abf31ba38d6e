"""The meter of an engine: counts the work of a run, and stops it at its limits."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from upheld.algebra.work import Work, WorkDone
from upheld.base.errors import LimitReached, Problem, quote
from upheld.base.limits import Budget, Limits, enter_budget, leave_budget, open_budget
from upheld.base.statistics import DEFAULT_PHASE, Statistics, current_phase
from upheld.language.core import Rule

#: Told now and then how far a run has come, and which rule keeps it busy.
Watcher = Callable[[Statistics, Rule | None], None]


#: The facts of a piece of work that has found none.
_NO_FACTS = (0, 0, 0)


class Reports(Protocol):
    """Takes what a rule reports while it runs: the meter, or notes for it."""

    def instances(self, rule: Rule, count: int = 1) -> None:
        """Note that instances of a rule were considered."""

    def limit_facts(self, facts: int) -> None:
        """Note that a set that is being derived has this many facts so far."""

    def look(self, rule: Rule | None = None) -> None:
        """Stop the run if it has used up its time or memory."""


class Meter:
    """Counts the work of one run, calls a watcher ten times a second, and stops it at its limits."""

    _TELL_EVERY = 0.1

    #: Looking at the clock and at memory costs about a microsecond, an instance in Python not much more.
    _LOOK_EVERY = 4096

    def __init__(self, limits: Limits | None = None):
        self.limits = limits or Limits()
        self.statistics = Statistics()
        self._started = time.monotonic()
        #: The budget that the run counts against, which may have begun before it: with the reading of files.
        self._budget = Budget(self.limits)
        self._since_look = 0
        self.watcher: Watcher | None = None
        #: Called at the end of each run, whether it has succeeded or not.
        self.ended: Callable[[Statistics], None] | None = None
        #: The work of the run by phase and rule. The time between two reports is the time of the second one.
        self.done = WorkDone()
        self._reported = self._started
        #: The work of the rule that was reported last, to whose stratum the facts of a round belong, and of the last
        #: rule for each relation: strata may have their rounds together.
        self._last: Work | None = None
        self._last_for: dict[str, Work] = {}
        #: Whether the rules may go on for ever, asked when a limit is reached.
        self.may_grow: Callable[[], bool] = lambda: False
        self._told = 0.0
        #: Instances by rule since the last round ended, to name the rule that keeps a run going.
        self._busy: Counter[Rule] = Counter()
        self._latest: Counter[Rule] = Counter()
        #: The rule that was being applied at the last looks, and since when.
        self._at: Rule | None = None
        self._at_since = 0.0

    @contextmanager
    def run(self) -> Iterator[Statistics]:
        """Start counting afresh; the statistics of the run are complete when the block ends."""
        self.statistics = Statistics()
        self._started = self._reported = time.monotonic()
        self.done, self._last, self._last_for = WorkDone(), None, {}
        self._busy.clear()
        self._latest.clear()
        self._at = None
        statistics = self.statistics
        # An interruption just before or after a procedure may have left its phase behind.
        outer = current_phase.get()
        current_phase.set(DEFAULT_PHASE)
        outer_budget = open_budget()
        try:
            budget = self._budget = enter_budget(self.limits)
            outer_stop, budget.stop = budget.stop, self._exceeded
            try:
                yield statistics
            finally:
                budget.stop = outer_stop
        finally:
            leave_budget(outer_budget)
            current_phase.set(outer)
            self.done.note(((), (), _NO_FACTS, self._lap()))
            statistics.seconds = self._reported - self._started
            if self.ended is not None:
                self.ended(statistics)

    def shared(self, threads: int) -> None:
        """Note that a piece of work was shared by this many threads."""
        self.statistics.threads = max(self.statistics.threads, threads)

    def instances(self, rule: Rule, count: int = 1) -> None:
        """Note that instances of a rule were considered."""
        phase = current_phase.get()
        self.statistics.instances[phase] += count
        self._busy[rule] += count
        work = self._last = self._last_for[rule.head.predicate] = self._report(phase, rule)
        work.instances += count
        self.tried(rule, count)

    def instances_together(self, rules: Sequence[Rule], counts: Sequence[int], phase: str | None = None) -> None:
        """Note that instances of several rules were considered in one piece of work; they share its time.

        The phase is the one of the procedure at work, unless it is given.
        """
        if not rules:
            return
        phase, spent, total = phase or current_phase.get(), self._lap(), sum(counts)
        self.statistics.instances[phase] += total
        busy, last_for, work_of = self._busy, self._last_for, self.done.of
        for rule, count in zip(rules, counts, strict=True):
            busy[rule] = busy.get(rule, 0) + count  # `+=` calls a method of `Counter` for a rule that is new
            work = last_for[rule.head.predicate] = work_of(phase, rule)
            work.instances += count
            work.seconds += spent * count / total
        self._last = work
        self.tried(rules[-1], total)

    def _lap(self) -> float:
        """Return the seconds since the last report."""
        now = time.monotonic()
        spent, self._reported = now - self._reported, now
        return spent

    def _report(self, phase: str, rule: Rule | None) -> Work:
        """Return the work of a rule in a phase, which the time since the last report belongs to."""
        work = self.done.of(phase, rule)
        work.seconds += self._lap()
        return work

    def strata(self, rules: Sequence[Rule], met: Sequence[Sequence[int]], facts: Sequence[int], rounds: int) -> None:
        """Note the rounds that a kernel has made in strata; see `Piece` for the rules, what they met, and the facts."""
        statistics, limits, instances = self.statistics, self.limits, self.statistics.instances
        self.done.note((rules, met, facts, self._lap()))
        for _, deletion, insertion in met:
            if deletion:
                instances["deletion"] = instances.get("deletion", 0) + deletion
            if insertion:
                instances["insertion"] = instances.get("insertion", 0) + insertion
            self._since_look += deletion + insertion
        before = statistics.rounds
        statistics.rounds, statistics.facts = before + rounds, statistics.facts + sum(facts)
        if (
            statistics.rounds >> 6 != before >> 6
            or self.watcher is not None
            or self._since_look >= self._LOOK_EVERY
            or (limits.facts is not None and statistics.facts > limits.facts)
            or (limits.rounds is not None and statistics.rounds > limits.rounds)
        ):
            for plan, deletion, insertion in met:
                self._busy[rules[plan]] += deletion + insertion
            self._check_rounds()
            self.look(self._busiest())

    def tried(self, rule: Rule, count: int) -> None:
        """Note that facts were tried for a body atom of a rule: a join that finds nothing is stopped as well."""
        self._since_look += count
        if self._since_look >= self._LOOK_EVERY:
            self.look(rule)

    def limit_facts(self, facts: int) -> None:
        """Note that a set that is being derived has this many facts so far: a round may be too large to finish."""
        if self.limits.facts is not None and facts > self.limits.facts:
            self._stop("facts", f"{self.limits.facts} facts")

    def round(self, facts: int, rounds: int = 1, by_relation: Callable[[], Mapping[str, int]] | None = None) -> None:
        """Note that one or several rounds ended, which found this many new facts together.

        `by_relation` counts the facts of each relation; it is asked if several rules were at work.
        """
        statistics = self.statistics
        statistics.rounds += rounds
        statistics.facts += facts
        self._report(current_phase.get(), None).facts += facts
        if self._last is not None:
            if by_relation is None or len(self._busy) < 2:
                self._last.facts += facts
            else:
                for relation, count in by_relation().items():
                    self._last_for.get(relation, self._last).facts += count
        if self._busy:
            self._latest, self._busy = self._busy, Counter()
        self._check_rounds()
        if statistics.rounds % 64 == 0 or self.watcher is not None:
            self.look()

    def _check_rounds(self) -> None:
        """Stop the run if there were too many rounds, or facts."""
        statistics, limits = self.statistics, self.limits
        if limits.rounds is not None and statistics.rounds > limits.rounds:
            self._stop("rounds", f"{limits.rounds} rounds")
        if limits.facts is not None and statistics.facts > limits.facts:
            self._stop("facts", f"{limits.facts} facts")

    def look(self, rule: Rule | None = None) -> None:
        """Stop the run if it has used up its time or memory. For engines to call within long work on a rule."""
        self._since_look = 0
        now = time.monotonic()
        if rule is not self._at:
            self._at, self._at_since = rule, now
        if self.watcher is not None and now - self._told > self._TELL_EVERY:
            self._told = now
            self.statistics.seconds = now - self._started
            self.watcher(self.statistics, self._busiest())
        self._check()

    def _check(self) -> None:
        exceeded = self._budget.exceeded(self.limits)
        if exceeded is not None:
            self._exceeded(*exceeded)

    def _exceeded(self, limit: str, amount: str) -> None:
        self._stop(limit, amount, self._lasting(time.monotonic()))

    def _lasting(self, now: float) -> Rule | None:
        """Return the rule that has taken most of the run so far at one go, if there is one."""
        return self._at if 2 * (now - self._at_since) > now - self._started else None

    def _stop(self, limit: str, amount: str, rule: Rule | None = None) -> None:
        rule = rule or self._busiest() or self._at
        note, hint = "the run was rolled back", f"raise the limit on {limit}"
        if self.may_grow():
            note = f"recursion through arithmetic may never end; {note}"
            hint = f"bound the rule with a comparison, or {hint}"
        where = f" while applying {quote(rule.whole)}" if rule else ""
        raise LimitReached(
            Problem(
                "limit-reached",
                f"the run reached its limit of {amount}{where}",
                rule.span if rule else None,
                note=note,
                hint=hint,
            )
        )

    def _busiest(self) -> Rule | None:
        busy = self._busy or self._latest
        return max(busy, key=lambda r: busy[r]) if busy else None
