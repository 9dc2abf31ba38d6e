"""Closed strata (see `joins.closed`), which each task maintains by itself: one exchange for all their rounds.

Tasks count rounds, ranks and derivations by themselves, and agree on them at the end. The ranks of a closed stratum are
compared within one task only, so tasks need not agree on more than the highest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet
from upheld.algebra.work import WorkDone
from upheld.base.statistics import Statistics, current_phase
from upheld.compiler.strata import Stratification, Stratum
from upheld.engines.memory.counters.numbers import MemoryRanks
from upheld.engines.memory.rounds.strata.small_strata import MOST_SEEDS
from upheld.engines.memory.sets.expressions import MemorySet
from upheld.engines.spark.context import Context
from upheld.engines.spark.joins.plans import Target, Views
from upheld.engines.spark.sets.sets import Bound, PartitionedSet, at_home, own_named, own_set
from upheld.language.core import Atom, Rule

#: How many times as large the strata may be that a kernel maintains in a task: the operators would exchange.
_TIMES = 8


class Work(NamedTuple):
    """The work of a task by itself: rule instances by phase and rule, facts by phase, and rounds.

    `derivations` has the change of the sum of each stratum, and `top` is the highest rank.
    """

    instances: Counter[tuple[str, int]]
    facts: Counter[str]
    rounds: int
    derivations: Counter[int]
    top: int


class Alone:
    """Maintains closed strata of ranked support in one task, with its own ranks."""

    def __init__(self, context: Context, ranks: MemoryRanks):
        self.context, self.ranks = context, ranks
        ranks.strata.part, ranks.strata.times = (context.wire.me, context.wire.parts), _TIMES
        self._closed: ClosedStrata | None = None

    def closed(self, strata: Stratification) -> ClosedStrata:
        """Return which strata are closed."""
        if self._closed is None or self._closed.strata is not strata:
            self._closed = ClosedStrata(strata, self.context.views)
        return self._closed

    def reached(self, strata: Stratification, E_minus: FactSet, E_plus: FactSet) -> Sequence[Stratum] | None:
        """Return the strata that a small update may reach; None if it is not small, or one of them is not closed."""
        minus, plus = own_set(E_minus), own_set(E_plus)
        if minus.counts is None or plus.counts is None or minus.count() + plus.count() > MOST_SEEDS:
            return None
        return self.closed(strata).reached(minus.bound | plus.bound)

    def maintain(
        self, strata: Stratification, E_minus: FactSet, E_plus: FactSet, I: FactSet, D: FactSet, A: FactSet
    ) -> bool:
        """Maintain all strata that an update reaches, or leave everything as it was; return whether it was done."""
        context, reached = self.context, self.reached(strata, E_minus, E_plus)
        assert reached is not None, "an update of closed strata"
        minus, plus = (own_set(facts).completed().local for facts in (E_minus, E_plus))
        going, coming = own_named(D), own_named(A)
        for named in (going, coming):
            named.about_to_change()
        with context.local.attempt() as attempt:
            before = self._begin(reached)
            due = Reached(strata, minus, plus, going.local, coming.local)
            sets = minus, plus, own_set(I).local, going.local, coming.local
            is_done = next(iter(self.ranks.through(due, *sets)), None) is None
            work = self._work(strata, before)
            note = is_done, work, going.local.predicates(), coming.local.predicates()
            _, notes = context.wire.exchange("closed strata", None, note)
            is_done = all(done for done, *_ in notes)
            if not is_done:
                attempt.undo()
        if is_done:
            going.bound = going.bound.union(*(gone for _, _, gone, _ in notes))
            coming.bound = coming.bound.union(*(new for *_, new in notes))
            self._agree(strata, work, [theirs for _, theirs, *_ in notes])
        return is_done

    def follow(
        self,
        operator: str,
        delta: FactSet,
        s: Stratum,
        into: Sequence[FactSet],
        round: Callable[[MemorySet], MemorySet],
        enough: int,
    ) -> PartitionedSet:
        """Make all rounds of a closed stratum that follow from a set, and return the facts of the round after them.

        `round` makes one or several rounds from some facts, which it puts into some sets, and returns the facts of the
        next one. It is the last one if more derivations than enough have changed.
        """
        context, strata, facts = self.context, s.stratification, own_set(delta).local
        heads = frozenset(rule.head.predicate for rule in s.recursive)
        for named in map(own_named, into):
            named.about_to_change()
            named.bound |= heads | own_set(delta).bound
        before = self._begin([s])
        while facts and abs(self.ranks.derivations(s) - before[s]) <= enough:
            facts = round(facts).settled()
            if facts:
                context.local.meter.round(facts.count())
                context.meter.look()
        work = self._work(strata, before)
        _, notes = context.wire.exchange(operator, None, work)
        self._agree(strata, work, notes, current_phase.get())
        return at_home(context, facts, heads)

    # -- what tasks agree on -------------------------------------------------------------------------------------------

    def _begin(self, strata: Iterable[Stratum]) -> dict[Stratum, int]:
        """Begin to count anew, and return the sums of strata before."""
        meter = self.context.local.meter
        meter.done, meter.statistics = WorkDone(), Statistics()
        return {s: self.ranks.derivations(s) for s in strata}

    def _work(self, strata: Stratification, before: Mapping[Stratum, int]) -> Work:
        """Return the work since it was begun."""
        meter, numbers = self.context.local.meter, self.closed(strata).numbers
        instances, facts = Counter[tuple[str, int]](), Counter[str]()
        for (phase, rule), work in meter.done.by_rule().items():
            if rule is None:
                facts[phase] += work.facts
            elif work.instances:
                instances[phase, numbers[rule]] += work.instances
        changed = {s.index: self.ranks.derivations(s) - derivations for s, derivations in before.items()}
        derivations = Counter({index: change for index, change in changed.items() if change})
        return Work(instances, facts, meter.statistics.rounds, derivations, self.ranks.top)

    def _agree(self, strata: Stratification, mine: Work, works: Sequence[Work], phase: str | None = None) -> None:
        """Take over what all tasks have done. It belongs to a phase, by default to the one that tasks know."""
        top = max(work.top for work in works)
        if top > self.ranks.top:
            self.ranks.raise_top(top)
        changes = Counter[int]()
        for work in works:
            changes.update(work.derivations)
        for index, change in sorted(changes.items()):
            if other := change - mine.derivations[index]:
                self.ranks.change_sum(strata.strata[index - 1], other)
        self._tell_meter(self.closed(strata).rules, works, phase)

    def _tell_meter(self, rules: Sequence[Rule], works: Sequence[Work], phase: str | None) -> None:
        meter, outer = self.context.meter, current_phase.get()
        instances, facts = Counter[tuple[str, int]](), Counter[str]()
        for work in works:
            instances.update({(phase or mine, k): count for (mine, k), count in work.instances.items()})
            facts.update({phase or mine: count for mine, count in work.facts.items()})
        rounds = max(work.rounds for work in works)
        try:
            for name in sorted({*facts, *(mine for mine, _ in instances)}):
                current_phase.set(name)
                numbers = sorted(k for mine, k in instances if mine == name)
                meter.instances_together([rules[k] for k in numbers], [instances[name, k] for k in numbers])
                meter.round(facts[name], rounds)
                rounds = 0
        finally:
            current_phase.set(outer)


#: Sets of predicates whose strata are kept.
_MOST_KEPT = 256


class ClosedStrata:
    """Which strata of a stratification are closed."""

    def __init__(self, strata: Stratification, views: Views):
        self.strata, self._views = strata, views
        self._closed: dict[int, bool] = {}
        self._reached: dict[Bound, Sequence[Stratum] | None] = {}
        #: All rules, and the numbers by which tasks name them.
        self.rules = [rule for s in strata for rule in s.rules]
        self.numbers = {rule: k for k, rule in enumerate(self.rules)}

    def reached(self, bound: Bound) -> Sequence[Stratum] | None:
        """Return the strata that a change of facts of some predicates may reach; None if one of them is not closed."""
        if bound not in self._reached:
            if len(self._reached) == _MOST_KEPT:
                self._reached.clear()
            self._reached[bound] = self._reach(bound)
        return self._reached[bound]

    def _reach(self, bound: Bound) -> Sequence[Stratum] | None:
        strata = self.strata
        by_index: dict[int, Stratum] = {}
        due = strata.holding({c for predicate in bound for c in strata.classes_of(predicate)})
        while due:
            s = strata.strata[due.pop() - 1]
            if not self.is_closed(s):
                return None
            by_index[s.index] = s
            due |= strata.reading(s.classes) - by_index.keys()
        return [by_index[index] for index in sorted(by_index)]

    def is_closed(self, s: Stratum) -> bool:
        """Return whether a stratum is closed. One without rules is: its facts come with all their copies."""
        if s.index not in self._closed:
            others = bool(s.aggregations or s.classings)
            self._closed[s.index] = not others and all(self._stays(rule) for rule in s.rules)
        return self._closed[s.index]

    def _stays(self, rule: Rule) -> bool:
        head, views = rule.head, self._views
        if rule.builtins or not head.terms or views.has_copies(head.predicate):
            return False
        home = Target.of_atom(head, 0).key
        return all(self._is_at(atom, home) for atom in (*rule.positive, *rule.negative))

    def _is_at(self, atom: Atom, home: str) -> bool:
        """Return whether the owner of a value has all facts that an atom may match."""
        if atom.predicate in self._views.replicated:
            return True
        columns = (c for c in range(len(atom.terms)) if self._views.has(atom.predicate, c))
        return any(Target.of_atom(atom, column).key == home for column in columns)
