"""Facts with multiplicities, and rule instances with their bodies: all at the homes of the facts, or of the heads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from upheld.algebra.instances import RuleInstance
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.compiler.strata import Stratum
from upheld.engines.memory.bags.bags import Group, MemoryBag, MemoryInstances
from upheld.engines.memory.bags.counting import Counting, Counts
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.sets.bits import WIDEST
from upheld.engines.memory.sets.collected import Collected
from upheld.engines.memory.sets.expressions import Settled, narrow
from upheld.engines.memory.sets.truth_tables import NOTHING
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.context import Context
from upheld.engines.spark.joins.arrivals import Arrivals
from upheld.engines.spark.joins.matching import Matching
from upheld.engines.spark.joins.plans import Kind
from upheld.engines.spark.joins.reach import Sets
from upheld.engines.spark.joins.results import Results, heads, ranked_heads
from upheld.engines.spark.owners import Values
from upheld.engines.spark.sets.sets import Bound, PartitionedSet, at_home, own_set
from upheld.engines.spark.tasks.wire import Parcel
from upheld.language.core import Atom, Fact, Rule


class PartitionedBag:
    """Facts with multiplicities, each at its home.

    A bag of derivations is not computed before it must be: most are counted somewhere else as they come home.
    """

    def __init__(
        self,
        context: Context,
        bound: Bound,
        counts: Counts | None = None,
        derivation: tuple[Matching, Sequence[Rule], Sets] | None = None,
    ):
        self.context, self.bound, self._counts, self._derivation = context, bound, counts, derivation
        if derivation is not None:
            context.put_off.append(self)

    def compute(self) -> None:
        """Count what was put off."""
        if self._derivation is not None:
            matching, rules, sets = self._take()
            results = matching.forwards("derive_bag", rules, sets, Kind("via"), heads)
            self._counts = _counted(self.context, results)

    def _take(self) -> tuple[Matching, Sequence[Rule], Sets]:
        assert self._derivation is not None, "a bag that is computed"
        derivation, self._derivation = self._derivation, None
        if self in self.context.put_off:
            self.context.put_off.remove(self)
        return derivation

    @property
    def counts(self) -> Counts:
        """Distinct rows and their multiplicities, for each table."""
        self.compute()
        assert self._counts is not None, "a bag that is used up"
        return self._counts

    def multiplicity(self) -> int:
        """Return the sum of all multiplicities at home in this task, of a bag that is computed; 0 if it is not."""
        return sum(int(numbers.sum()) for _, numbers in (self._counts or {}).values())

    def count_in(self, counting: Counting) -> tuple[PartitionedSet, int | None]:
        """Count the facts of the bag, which is used up, and return them and how many derivations all tasks counted.

        How many is None where it takes an exchange to know.
        """
        context = self.context
        if self._derivation is not None:
            matching, rules, sets = self._take()
            column, stratum = counting.ranked or (None, None)
            end = heads if column is None else ranked_heads
            kind, arrivals = Kind("via", ranked_in=stratum), Arrivals(context, counting=counting)
            results = matching.forwards("derive_bag", rules, sets, kind, end, column, arrivals)
            return at_home(context, arrivals.facts, self.bound), results.instances
        assert self._counts is not None, "a bag that is used up"
        with context.memory.new_bit("counted") as bit:
            collected = Collected(context.memory, bit)
            for table, (rows, numbers) in self._counts.items():
                counting.add_counts(table, rows, numbers)
                collected.take(table, rows, NOTHING)
            facts = at_home(context, Settled(context.memory, collected.rows(), bit), self.bound)
        return facts, None

    def __iadd__(self, other: Bag) -> Self:
        mine = MemoryBag(self.context.matcher, self.counts)
        mine += own_bag(other).local()
        return self._became(mine, other)

    def __isub__(self, other: Bag) -> Self:
        mine = MemoryBag(self.context.matcher, self.counts)
        mine -= own_bag(other).local()
        return self._became(mine, other)

    def _became(self, mine: MemoryBag, other: Bag) -> Self:
        self._counts, self.bound = mine.counts, self.bound | own_bag(other).bound
        return self

    def local(self) -> MemoryBag:
        """Return what is at home in this task."""
        return MemoryBag(self.context.matcher, dict(self.counts))

    def facts(self) -> PartitionedSet:
        return at_home(self.context, self.local().facts(), self.bound)

    def items(self) -> Iterator[tuple[Fact, int]]:
        listed = ((table, table.rows[rows], (numbers,)) for table, (rows, numbers) in self.counts.items())
        return ((fact, n) for fact, (n,) in gathered(self.context, "items of a bag", listed))


def _counted(context: Context, results: Results) -> Counts:
    """Return the facts that have come home, and how often each has come."""
    arrived: dict[Table, list[Values]] = {}
    for table, codes in context.arrived(results.came):
        arrived.setdefault(table, []).append(codes)
    context.entered({}, ((table, codes) for table, parts in arrived.items() for codes in parts))
    counts: Counts = {}
    for table, parts in arrived.items():
        rows, numbers = np.unique(found_rows(table, np.concatenate(parts)), return_counts=True)
        counts[table] = rows, numbers
    return counts


def found_rows(table: Table, codes: Values) -> Rows:
    """Return the rows that facts are in a table, or -1."""
    B = np.ascontiguousarray(codes.T, np.int64)
    return table.find(B, len(codes), np.arange(table.arity), np.empty(0, np.int64))


def gathered(
    context: Context, operator: str, facts: Iterable[tuple[Table, Values, tuple[npt.NDArray[np.integer], ...]]]
) -> Iterator[tuple[Fact, tuple[int, ...]]]:
    """Yield facts from all tasks, each with its numbers. All readers get them all."""
    parcels: list[Parcel] = [(table.name, codes, *numbers) for table, codes, numbers in facts]
    came, _ = context.wire.exchange(operator, context.wire.read_by(parcels))
    for theirs in came:
        for name, codes, *numbers in theirs:
            rows = context.codec.decode_rows(codes, context.local.tables[name].types)
            for row, mine in zip(rows, zip(*(n.tolist() for n in numbers), strict=True), strict=True):
                yield (name, row), mine


class PartitionedInstances:
    """Rule instances at the homes of their heads. `size` is their number in all tasks, None while nobody has asked."""

    def __init__(self, context: Context, rules: Sequence[Rule], groups: Iterable[Group], size: int | None = None):
        self.context, self.size = context, size
        #: The rules that may have instances in some task.
        self.rules = tuple(dict.fromkeys(rules))
        self.local = MemoryInstances(context.matcher, groups)

    @property
    def groups(self) -> list[Group]:
        return self.local.groups

    def __len__(self) -> int:
        if self.size is None:
            _, notes = self.context.wire.exchange("number of instances", None, len(self.local))
            self.size = sum(notes)
        return self.size

    def __iter__(self) -> Iterator[RuleInstance]:
        """The instances of all tasks. All readers get them all."""
        numbers = {rule: k for k, rule in enumerate(self.rules)}
        parcels: list[Parcel] = [(numbers[group.rule], group.B) for group in self.groups]
        came, _ = self.context.wire.exchange("instances", self.context.wire.read_by(parcels))
        groups = [Group(self.rules[k], B) for theirs in came for k, B in theirs]
        return iter(MemoryInstances(self.context.matcher, groups))

    def __or__(self, other: Instances) -> PartitionedInstances:
        right = own_instances(other)
        return PartitionedInstances(self.context, (*self.rules, *right.rules), (self.local | right.local).groups)

    def heads(self) -> PartitionedSet:
        return at_home(self.context, self.local.heads(), self._bound)

    @property
    def _bound(self) -> Bound:
        return frozenset(rule.head.predicate for rule in self.rules)

    def bag(self) -> PartitionedBag:
        return PartitionedBag(self.context, self._bound, self.local.bag().counts)

    def bodies(self, stratum: Stratum | None = None) -> PartitionedSet:
        def atoms(rule: Rule) -> Sequence[Atom]:
            return rule.positive if stratum is None else [rule.positive[i] for i in stratum.own(rule)]

        bound = frozenset(atom.predicate for rule in self.rules for atom in atoms(rule))
        if not bound:
            return at_home(self.context, self.context.local.nothing, bound)
        outbox = self.context.outbox()
        for group in self.groups:
            for atom in atoms(group.rule):
                self.context.home_of(outbox, atom.predicate, codes_of(self.context, group, atom))
        came, _ = self.context.wire.exchange("bodies", outbox)
        return at_home(self.context, self.context.entered({}, self.context.arrived(came)), bound)

    def partition(self, facts: FactSet) -> tuple[PartitionedInstances, PartitionedInstances]:
        some, others = [], []
        for group, atoms in zip(self.groups, _membership(self, own_set(facts)), strict=True):
            has = np.zeros(len(group), np.bool_)
            for (inside,) in atoms[: len(group.rule.positive)]:
                has |= inside
            some.append(group.chosen(has))
            others.append(group.chosen(~has))
        return self.chosen(some), self.chosen(others)

    def chosen(self, groups: Iterable[Group]) -> PartitionedInstances:
        """Return some of the instances."""
        return PartitionedInstances(self.context, self.rules, groups)


def codes_of(context: Context, group: Group, atom: Atom) -> Values:
    """Return the facts that an atom is under the bindings of instances."""
    terms, constants = context.matcher.planner.kept_terms(atom, group.rule.variables())
    codes = np.empty((len(group), len(atom.terms)), np.int64)
    row_kernels.make_rows(group.B, len(group), terms, constants, codes)
    return codes


#: Answers what is asked of rows of a table, which are -1 where there is no such fact: some numbers for each.
Answer = Callable[[Table, Rows], Codes]


def ask(
    context: Context, operator: str, asked: Sequence[tuple[str, Values]], answer: Answer, width: int
) -> list[Codes]:
    """Return what the homes of facts answer: for each array of facts, `width` numbers of each. Two exchanges."""
    outbox = context.outbox()
    places: list[list[tuple[int, npt.NDArray[np.int64]]]] = [[] for _ in outbox]
    for k, (predicate, codes) in enumerate(asked):
        for task, mine in context.owners.split(context.owners.homes(predicate, codes)):
            outbox[task].append((predicate, codes[mine]))
            places[task].append((k, mine))
    came, _ = context.wire.exchange(operator, outbox)
    answers = context.outbox()
    for task, parcels in enumerate(came):
        for predicate, codes in parcels:
            table = context.local.tables[predicate]
            answers[task].append((answer(table, found_rows(table, codes)),))
    replies, _ = context.wire.exchange(f"{operator}: answers", answers)
    numbers_of = [np.empty((width, len(codes)), np.int64) for _, codes in asked]
    for task, parcels in enumerate(replies):
        for (numbers,), (k, mine) in zip(parcels, places[task], strict=True):
            numbers_of[k][:, mine] = numbers
    return numbers_of


def hold(instances: PartitionedInstances, P: PartitionedSet, N: PartitionedSet) -> list[npt.NDArray[np.bool_]]:
    """Return for each group of instances which of them have all positive atoms in one set and no negated in another."""
    holding = []
    for group, atoms in zip(instances.groups, _membership(instances, P, N), strict=True):
        holds = np.ones(len(group), np.bool_)
        for k, (inside, excluded) in enumerate(atoms):
            holds &= inside if k < len(group.rule.positive) else ~excluded
        holding.append(holds)
    return holding


def _membership(instances: PartitionedInstances, *sets: PartitionedSet) -> list[list[npt.NDArray[np.bool_]]]:
    """Return for each group of instances and each atom of their bodies which of its facts are in each of some sets."""
    memory, local = instances.context.memory, [facts.local for facts in sets]
    if sum(facts.width for facts in local) > WIDEST:
        narrow(local)
    asked = [(atom.predicate, codes_of(instances.context, g, atom)) for g in instances.groups for atom in g.rule.atoms]
    answers: Iterator[Codes] = iter(())
    with memory.bits.evaluating():
        truths = [memory.truths[facts.spelling()] for facts in local]

        def answer(table: Table, rows: Rows) -> Codes:
            there, flags = rows >= 0, table.flags[rows]
            return np.stack([there & truth[flags] for truth in truths]).astype(np.int64)

        if any(rule.atoms for rule in instances.rules):
            answers = iter(ask(instances.context, "facts of bodies", asked, answer, len(sets)))
    return [[next(answers).astype(np.bool_) for _ in group.rule.atoms] for group in instances.groups]


def own_bag(bag: Bag) -> PartitionedBag:
    assert isinstance(bag, PartitionedBag), "a bag of another engine"
    return bag


def own_instances(instances: Instances) -> PartitionedInstances:
    assert isinstance(instances, PartitionedInstances), "instances of another engine"
    return instances
