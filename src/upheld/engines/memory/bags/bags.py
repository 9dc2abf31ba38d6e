"""Facts with multiplicities, and rule instances with their bodies."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from upheld.algebra.instances import RuleInstance
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.compiler.strata import Stratum
from upheld.engines.memory.bags.counting import Counts, counted, numbers_of, scratch
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.joins.sinks import fitted, made_rows
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.plans.plan import LOWEST
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.sets.expressions import MemorySet, Settled, membership
from upheld.engines.memory.sets.truth_tables import NOTHING, Truth, are_in
from upheld.engines.memory.storage.arrays import Rows, each_once, slots_for
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Atom, Fact, Rule


class MemoryBag:
    """For each table distinct rows and their multiplicities, none of them zero.

    A bag of derivations is not computed before it must be: most are counted somewhere else as they are found.
    """

    def __init__(
        self,
        matcher: Matcher,
        counts: Counts | None = None,
        derivation: tuple[Sequence[Rule], Where] | None = None,
        facts: MemorySet | None = None,
    ):
        self.matcher = matcher
        self._counts, self.derivation, self._facts = counts, derivation, facts
        #: Whether what was put off is still to be done when a set changes.
        self.pending = counts is None
        if self.pending:
            matcher.context.pending.bags.append(weakref.ref(self))

    def is_void(self) -> bool:
        """Return whether the bag is known to be empty."""
        return not self._counts and self.derivation is None and (self._facts is None or self._facts.is_void())

    @property
    def width(self) -> int:
        """At most how many sets an evaluation of the bag reads."""
        if self.derivation is not None:
            return self.derivation[1].width
        return self._facts.width if self._facts is not None else 0

    def operands(self) -> list[MemorySet]:
        """Return the sets that the bag is to be computed from."""
        if self.derivation is not None:
            return self.derivation[1].sets
        return [self._facts] if self._facts is not None else []

    @property
    def counts(self) -> Counts:
        return self.compute() if self._counts is None else self._counts

    def compute(self) -> Counts:
        """Count what was put off."""
        if self.derivation is not None:
            self._counts, self.derivation = counted(self.matcher, *self.derivation), None
        else:
            assert self._facts is not None, "a bag that is used up"
            self._counts = {t: (r, np.ones(len(r), np.int64)) for t, r in self._facts.listed() if len(r)}
            self._facts = None
        self.pending = False
        return self._counts

    def take(self) -> MemoryBag:
        """Return the bag for one last use, which will see to it that it is computed in time."""
        self.pending = False
        return self

    def __iadd__(self, other: Bag) -> Self:
        return self._add(other, 1)

    def __isub__(self, other: Bag) -> Self:
        return self._add(other, -1)

    def _add(self, other: Bag, sign: int) -> Self:
        mine = self.counts
        for table, (rows, counts) in own_bag(other).counts.items():
            before = mine.get(table)
            if before is not None:
                rows, counts = np.concatenate([before[0], rows]), np.concatenate([before[1], sign * counts])
                rows, inverse = np.unique(rows, return_inverse=True)
                summed = np.zeros(len(rows), np.int64)
                np.add.at(summed, inverse, counts)
                counts = summed
            else:
                counts = sign * counts
            mine[table] = (rows[counts != 0], counts[counts != 0])
        return self

    def facts(self) -> Settled:
        return Settled(self.matcher.context, {t: rows[counts > 0] for t, (rows, counts) in self.counts.items()})

    def items(self) -> Iterable[tuple[Fact, int]]:
        for table, (rows, counts) in self.counts.items():
            decoded = self.matcher.context.codec.decode_rows(table.rows[rows], table.types)
            for row, count in zip(decoded, counts.tolist(), strict=True):
                yield (table.name, row), count


@dataclass(frozen=True, eq=False)
class Group:
    """Instances of one rule: a column of B for each, with the values of all variables of the rule."""

    rule: Rule
    B: Codes
    #: The rows that atoms of the rule are, as far as they have been asked for: a fact keeps its row. Atoms go by
    #: identity, as 0.0 and -0.0 are equal and make different facts.
    _rows: dict[int, Rows] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.B.shape[1]

    def chosen(self, which: npt.NDArray[np.bool_]) -> Group:
        known = {atom: rows[which] for atom, rows in self._rows.items()}
        return Group(self.rule, self.B.compress(which, 1), known)

    def rows(self, matcher: Matcher, atom: Atom) -> Rows:
        """Return the row that an atom of the rule is under each binding."""
        rows = self._rows.get(id(atom))
        if rows is None:
            rows = self._rows[id(atom)] = matcher.find(atom, self.rule.variables(), self.B)
        return rows

    def head_rows(self, matcher: Matcher) -> tuple[Table, Rows]:
        return matcher.context.tables[self.rule.head.predicate], self.rows(matcher, self.rule.head)

    def highest(self, matcher: Matcher, column: str, stratum: Stratum) -> Codes:
        """Return for each instance the highest number in a column that a fact of its body in the stratum has."""
        highest = np.full(len(self), LOWEST, np.int64)
        for i in stratum.own(self.rule):
            atom = self.rule.positive[i]
            numbers = matcher.context.tables[atom.predicate].column(column)
            count_kernels.raise_to(self.rows(matcher, atom), numbers, highest)
        return highest

    def meet(self, matcher: Matcher, truth: Truth) -> npt.NDArray[np.bool_]:
        """Return which instances have a positive atom in a set."""
        meet = np.zeros(len(self), np.bool_)
        for atom in self.rule.positive:
            meet |= truth[matcher.context.tables[atom.predicate].flags[self.rows(matcher, atom)]]
        return meet

    def hold(self, matcher: Matcher, positive: Truth, negative: Truth) -> npt.NDArray[np.bool_]:
        """Return which instances have all positive atoms in one set and no negated one in another."""
        hold = np.ones(len(self), np.bool_)
        for atom in self.rule.positive:
            flag_kernels.narrow(self.rows(matcher, atom), matcher.context.tables[atom.predicate].flags, positive, hold)
        for atom in self.rule.negative:
            rows = matcher.find_all(atom, self.rule.variables(), self.B)
            hold &= ~are_in(matcher.context.tables[atom.predicate], rows, negative)
        return hold


class MemoryInstances:
    """Rule instances as bindings of all variables of their rules."""

    def __init__(
        self, matcher: Matcher, groups: Iterable[Group], *, may_repeat: bool = False, listed_once: bool = False
    ):
        self.matcher = matcher
        #: Whether no other list of the same agenda has one of the instances, so that a union of lists has each once.
        self.listed_once = listed_once
        self._groups = [g for g in groups if len(g)]
        #: Whether an instance may be in several groups. A union is made of instances that differ when somebody looks.
        self._may_repeat = may_repeat

    @property
    def groups(self) -> list[Group]:
        """The instances by rule; a rule may have several groups."""
        if self._may_repeat:
            by_rule: dict[Rule, list[Group]] = {}
            for group in self._groups:
                by_rule.setdefault(group.rule, []).append(group)
            self._groups, self._may_repeat = [union(groups) for groups in by_rule.values()], False
        return self._groups

    @property
    def at_most(self) -> int:
        """The number of instances, or more if some may be the same."""
        return sum(map(len, self._groups))

    def __iter__(self) -> Iterator[RuleInstance]:
        for group in self.groups:
            types = self.matcher.variable_types(group.rule)
            names = group.rule.variables()
            columns = [self.matcher.context.codec.decode(c, types[v]) for v, c in zip(names, group.B, strict=True)]
            for values in zip(*columns, strict=True) if columns else [()] * len(group):
                yield RuleInstance(group.rule, tuple(values))

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    def __or__(self, other: Instances) -> MemoryInstances:
        others = own_instances(other)
        once = self.listed_once and others.listed_once
        groups = (*self._groups, *others._groups)
        return MemoryInstances(self.matcher, groups, may_repeat=not once, listed_once=once)

    def partition(self, facts: FactSet) -> tuple[MemoryInstances, MemoryInstances]:
        truth = membership(facts)
        meet = [group.meet(self.matcher, truth) for group in self.groups]
        having = [group.chosen(which) for group, which in zip(self.groups, meet, strict=True)]
        others = [group.chosen(~which) for group, which in zip(self.groups, meet, strict=True)]
        return MemoryInstances(self.matcher, having), MemoryInstances(self.matcher, others)

    def heads(self) -> Settled:
        # Not looked for, as bodies are: heads may be facts that are in no table yet.
        return Settled(self.matcher.context, {t: rows for t, (rows, _) in self._counted_heads().items()})

    def bodies(self, stratum: Stratum | None = None) -> Settled:
        if stratum is None:
            return self._facts((g, atom) for g in self.groups for atom in g.rule.positive)
        return self._facts((g, g.rule.positive[i]) for g in self.groups for i in stratum.own(g.rule))

    def bag(self) -> MemoryBag:
        return MemoryBag(self.matcher, self._counted_heads())

    def _counted_heads(self) -> Counts:
        """Return the heads, each with the number of its instances; those not in a table are entered."""
        context, planner = self.matcher.context, self.matcher.planner
        with scratch(context) as (collected, counting):
            for group in self.groups:
                terms, constants = planner.kept_terms(group.rule.head, group.rule.variables())
                table = context.tables[group.rule.head.predicate]
                heads = fitted(table, made_rows(table, terms, constants, group.B, len(group), wide=True))
                counting.add_rows(collected, table, heads, NOTHING, None)
            return numbers_of(collected, counting)

    def _facts(self, atoms: Iterable[tuple[Group, Atom]]) -> Settled:
        rows: dict[Table, list[Rows]] = {}
        for group, atom in atoms:
            rows.setdefault(self.matcher.context.tables[atom.predicate], []).append(group.rows(self.matcher, atom))
        return Settled(self.matcher.context, {t: each_once(np.concatenate(parts)) for t, parts in rows.items()})


def union(groups: Sequence[Group]) -> Group:
    """Return the instances of several groups of one rule, each once, with the rows that are known of all of them."""
    together = groups[0]
    if len(groups) > 1:
        known = set.intersection(*(set(group._rows) for group in groups))
        rows = {atom: np.concatenate([group._rows[atom] for group in groups]) for atom in known}
        together = Group(together.rule, np.concatenate([group.B for group in groups], axis=1), rows)
    first = np.empty(len(together), np.bool_)
    # Half empty at least: a slot that is taken costs a look at another binding.
    row_kernels.first_of_each(together.B, np.full(slots_for(2 * len(together)), -1, np.int32), first)
    return together if first.all() else together.chosen(first)


def own_bag(bag: Bag) -> MemoryBag:
    assert isinstance(bag, MemoryBag), "a bag of another engine"
    return bag


def own_instances(instances: Instances) -> MemoryInstances:
    assert isinstance(instances, MemoryInstances), "instances of another engine"
    return instances
