"""Rules by several threads: rules with different heads enter facts into different tables, so they may run at once.

The rules of a round are cut into turns, in which no rule reads a table that another one enters facts into. In a turn,
the rules with one head are a group. Groups run side by side, and the rules of a group one after the other: a table
gets its rows in the order of the rules, as with one thread. All plans of a turn are made before a rule runs, for any
number of threads: plans depend on the indexes there are. The rules note what the meter is to know, and it gets that in
the order of the rules when the turn ends.

Some rules run after the groups, by themselves: a rule that computes values may fail or make texts, a reduction marks
rows of tables that others read, and a choice between atoms may turn an index that others read into one of another kind,
in which rows have another order. A group that makes up most of a turn has all threads for itself, which then take
chunks of its rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from upheld.algebra.meter import Meter, Reports
from upheld.base.threads import Threads, Work
from upheld.engines.memory.joins.threads import chunks
from upheld.engines.memory.kernels.jit import compile_kernels
from upheld.engines.memory.plans.plan import AtomStep, BuiltinStep, ChoiceStep, Plan, Step
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Apply, Rule

#: Bindings for each rule of a turn, the largest group left out, from which on groups are run side by side. A rule with
#: fewer takes most of its time as Python code, for which threads would wait for each other.
FEWEST_BINDINGS = 1 << 15

#: Changed facts of a round from which on its rules are cut into turns.
FEWEST_FACTS = 1 << 12

T = TypeVar("T")

#: An index, by the table or part that has it and by its columns.
Index = tuple[Table | Part, tuple[int, ...]]


class Job(NamedTuple):
    """A rule to be run from rows of one of its atoms, at most `rows` of them."""

    plan: Plan
    rows: int
    #: Whether the run may try a semijoin reduction.
    may_be_reduced: bool
    run: Callable[[Reports], None]

    @property
    def rule(self) -> Rule:
        return self.plan.rule

    @property
    def read(self) -> set[Index]:
        """The indexes that the run reads as they are."""
        atoms = (step for step in self.plan.steps if isinstance(step, AtomStep))
        return {(step.source, step.known) for step in atoms if step.known and not step.filters}

    @property
    def made_blocks(self) -> set[Index]:
        """The indexes that choices of the run may turn into blocks."""
        choices = [step for step in self.plan.steps if isinstance(step, ChoiceStep)]
        joined = {(join.source, join.known) for step in choices for join, _ in step.ways}
        met = {
            (join.source, (column,))
            for step in choices
            for (join, _), column in zip(step.ways, step.columns, strict=True)
        }
        return joined | met

    @property
    def work(self) -> float:
        """The bindings that the run is expected to handle, and the rows that it enters into new indexes."""
        new = sum(source.n for source, columns in self.read | self.made_blocks if columns not in source.indexes)
        return self.rows * self.plan.expected_bindings + new

    @property
    def may_run_beside(self) -> bool:
        """Whether the run cannot fail, and writes only into the table of its heads."""
        return not self.may_be_reduced and all(map(_only_looks, self.plan.steps))


def _only_looks(step: Step) -> bool:
    """Return whether a step looks up facts, or compares values that are there."""
    if isinstance(step, BuiltinStep):
        return chunks.only_reads(step) and not any(isinstance(a, Apply) for a in step.builtin.arguments)
    return True


def have_several_heads(rules: Iterable[Rule]) -> bool:
    """Return whether rules derive facts of several relations. Where all facts are triples, none runs beside another."""
    return len({rule.head.predicate for rule in rules}) > 1


def turns(items: Iterable[T], rule_of: Callable[[T], Rule]) -> Iterator[list[T]]:
    """Cut what is to be done for rules into turns: none reads a table that another one of its turn writes.

    Where it makes a difference, things stay in order: those with the same head, and a reader and a writer.
    """
    result: defaultdict[int, list[T]] = defaultdict(list)
    #: The last turn in which a relation is written, and in which it is read.
    written: defaultdict[str, int] = defaultdict(lambda: -1)
    read: defaultdict[str, int] = defaultdict(lambda: -1)
    for item in items:
        rule = rule_of(item)
        head, body = rule.head.predicate, {atom.predicate for atom in (*rule.positive, *rule.negative)}
        turn = max(0, written[head], read[head] + 1, *(written[name] + 1 for name in body))
        written[head] = turn
        for name in body:
            read[name] = max(read[name], turn)
        result[turn].append(item)
    return (result[turn] for turn in range(len(result)))


def run_turn(threads: Threads, meter: Meter, jobs: Sequence[Job]) -> None:
    """Run the rules of a turn."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for k, job in enumerate(jobs):
        groups[job.rule.head.predicate].append(k)
    beside = list(_groups_beside(jobs, groups.values()))
    chosen = sorted(k for group in beside for k in group)
    if threads.count > 1 and _pays(jobs, beside):
        _run_beside(threads, meter, jobs, beside)
    else:
        for k in chosen:
            jobs[k].run(meter)
    for k in sorted(set(range(len(jobs))).difference(chosen)):
        jobs[k].run(meter)


def _groups_beside(jobs: Sequence[Job], groups: Iterable[list[int]]) -> Iterator[list[int]]:
    """Yield the groups that may run at once."""
    some = [group for group in groups if all(jobs[k].may_run_beside for k in group)]
    if not any(job.plan.has_choices for job in jobs):
        yield from some
        return
    readers = Counter(index for group in some for index in set().union(*(jobs[k].read for k in group)))
    for group in some:
        blocks = set().union(*(jobs[k].made_blocks for k in group))
        read = set().union(*(jobs[k].read for k in group))
        if all(readers[index] == (index in read) for index in blocks):
            yield group


def _work(jobs: Sequence[Job], group: Sequence[int]) -> float:
    return sum(jobs[k].work for k in group)


def _pays(jobs: Sequence[Job], groups: Sequence[Sequence[int]]) -> bool:
    """Return whether to run groups of rules side by side."""
    work = sorted(_work(jobs, group) for group in groups)
    return sum(work[:-1]) >= FEWEST_BINDINGS * sum(map(len, groups))


def _run_beside(threads: Threads, meter: Meter, jobs: Sequence[Job], groups: Sequence[Sequence[int]]) -> None:
    """Run groups of rules side by side, those first that take long."""
    compile_kernels()
    notes = {k: _Notes(meter) for group in groups for k in group}
    share = sum(_work(jobs, group) for group in groups) / threads.count

    def run(group: Sequence[int]) -> None:
        try:
            for k in group:
                jobs[k].run(notes[k])
        except _TooMany:
            pass  # for the meter to say, unless a rule before this one has found too many facts as well

    def task(group: Sequence[int]) -> Callable[[Work], None]:
        def do(work: Work) -> None:
            with threads.apart():
                for k in group:
                    notes[k].tick = lambda rule: work.tick()
                run(group)

        return do

    def has_threads_for_itself(group: Sequence[int]) -> bool:
        return _work(jobs, group) > share and any(chunks.pays(threads, jobs[k].plan, jobs[k].rows) for k in group)

    large = [group for group in groups if has_threads_for_itself(group)]
    small = [group for group in groups if group not in large]
    threads.run([task(group) for group in sorted(small, key=lambda group: -_work(jobs, group))], meter.look)
    for group in large:
        run(group)
    _hand_over(meter, [(jobs[k].rule, notes[k]) for k in sorted(notes)])


class _TooMany(Exception):
    """More facts were found than the run may find."""


class _Notes:
    """The reports of a rule, noted for the meter."""

    def __init__(self, meter: Meter):
        self._most = meter.limits.facts
        #: Looks at limits, or ends the run if nobody waits for it.
        self.tick: Callable[[Rule | None], None] = meter.look
        self.met = self.facts = 0

    def instances(self, rule: Rule, count: int = 1) -> None:
        self.met += count

    def limit_facts(self, facts: int) -> None:
        self.facts = facts
        if self._most is not None and facts > self._most:
            raise _TooMany

    def look(self, rule: Rule | None = None) -> None:
        self.tick(rule)


def _hand_over(meter: Meter, noted: Sequence[tuple[Rule, _Notes]]) -> None:
    """Let the meter know what rules have noted, up to the first that found too many facts."""
    most = meter.limits.facts
    end = next((k for k, (_, notes) in enumerate(noted) if most is not None and notes.facts > most), len(noted))
    met = [(rule, notes.met) for rule, notes in noted[: end + 1] if notes.met]
    meter.instances_together([rule for rule, _ in met], [count for _, count in met])
    if end < len(noted):
        meter.limit_facts(noted[end][1].facts)
