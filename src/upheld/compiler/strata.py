"""Stratification over atoms that share an instance (paper 1, section 3).

Atoms of one predicate may lie in different strata as long as no fact is an instance of both: with a single predicate
for RDF triples, anything coarser would refuse good programs. There are three stratifications. In each of them, atoms
that no rule derives are in stratum 1.

- `granular`: every strongly connected component of the rules is a stratum; aggregates over one relation share one.
- `levels`: a component is one stratum above the highest that it depends on, so that components which do not depend on
  each other share a stratum (paper 1, section 10.1).
- `coarsest`: a new stratum only where negation requires one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeVar

from upheld.base.errors import check_choice
from upheld.base.interruptions import collector_paused
from upheld.compiler.dependencies import LEVELS, Dependency, apart, components_of, refuse_negation_in_cycle
from upheld.language.ast import Variable
from upheld.language.atom_patterns import (
    Pattern,
    is_instance,
    is_unconstrained,
    pattern_of,
    patterns_of,
    share_instances,
)
from upheld.language.core import Aggregation, Atom, Classing, Core, Fact, Rule

#: The class of facts that are instances of no atom of a program. They are in the first stratum.
UNSPOKEN = -1

F = TypeVar("F", covariant=True)


class Stratified(Protocol[F]):
    """A set of facts that can be restricted to a stratum."""

    def in_stratum(self, stratum: Stratum) -> F: ...


@dataclass(frozen=True, eq=False)
class Stratum:
    """The rules of a stratum. `recursive` ones have a positive body atom in the stratum itself."""

    index: int
    recursive: tuple[Rule, ...]
    nonrecursive: tuple[Rule, ...]
    stratification: Stratification = field(repr=False)
    #: Equivalences whose classes belong to this stratum.
    classings: tuple[Classing, ...] = ()
    #: Aggregates whose values are the facts of this stratum. It has no rules then.
    aggregations: tuple[Aggregation, ...] = ()

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        return self.nonrecursive + self.recursive

    @cached_property
    def linear(self) -> tuple[Rule, ...]:
        """The recursive rules with one positive atom in the stratum."""
        return tuple(rule for rule in self.recursive if len(self.own(rule)) == 1)

    @cached_property
    def nonlinear(self) -> tuple[Rule, ...]:
        """The recursive rules with several positive atoms in the stratum."""
        return tuple(rule for rule in self.recursive if len(self.own(rule)) > 1)

    @cached_property
    def reads(self) -> frozenset[int]:
        """The classes of the atoms in the bodies of the rules, and of facts that connect values or are aggregated."""
        of = self.stratification
        bodies = {of.class_of(a) for rule in self.rules for a in rule.atoms}
        aggregated = (name for a in self.aggregations for name in (a.body, a.guard) if name is not None)
        others = [*(c.relation for c in self.classings), *aggregated]
        return frozenset(bodies.union(*map(of.classes_of, others)))

    @cached_property
    def looked_at(self) -> tuple[str, ...]:
        """The predicates of the positive atoms in the bodies of the rules."""
        return tuple(dict.fromkeys(a.predicate for rule in self.rules for a in rule.positive))

    @cached_property
    def has_negation(self) -> bool:
        """Whether a rule has a negated atom."""
        return any(rule.negative for rule in self.rules)

    @cached_property
    def derives_pairs(self) -> bool:
        """Whether all heads of rules have two arguments."""
        return all(len(rule.head.terms) == 2 for rule in self.rules)

    @cached_property
    def classes(self) -> frozenset[int]:
        """The classes of facts in this stratum."""
        return self.stratification.classes_in(self.index)

    @cached_property
    def holds(self) -> frozenset[str]:
        """The predicates that have facts in this stratum, but for those that no atom of a program speaks of."""
        return self.stratification.predicates_in(self.index)

    @cached_property
    def numbered(self) -> tuple[Rule, ...]:
        """The rules whose heads hold numbers of the classes of this stratum, as nodes of decomposed rules may."""
        columns = {(classing.members, 1) for classing in self.classings}
        result: dict[Rule, None] = {}
        while True:
            more = [r for r in self.recursive if r not in result and _columns_from(r, columns)]
            if not more:
                return tuple(result)
            result.update(dict.fromkeys(more))
            columns.update((r.head.predicate, column) for r in more for column in _columns_from(r, columns))

    def own(self, rule: Rule) -> tuple[int, ...]:
        """Return the positions of the positive atoms of one of the rules that belong to this stratum."""
        result = self._own.get(rule)
        if result is None:
            level = self.stratification.level
            result = tuple(i for i, a in enumerate(rule.positive) if level(a) == self.index)
            self._own[rule] = result
        return result

    @cached_property
    def _own(self) -> dict[Rule, tuple[int, ...]]:
        return {}

    def out(self, facts: Stratified[F]) -> F:
        """Return the facts that belong to this stratum (Out of the paper)."""
        return facts.in_stratum(self)


class Whole(Stratum):
    """Rules as one stratum that all facts belong to."""

    def own(self, rule: Rule) -> tuple[int, ...]:
        return tuple(range(len(rule.positive)))


@dataclass(frozen=True, eq=False)
class Stratification:
    """The strata of a program, lowest first; `stratum_of` places facts, `level` places atoms.

    Atoms that share an instance make a class, and so do their instances: all of it is in one stratum.
    """

    strata: list[Stratum]
    #: The class of each pattern.
    classes: dict[Pattern, int]
    _levels: dict[Pattern, int]
    _by_predicate: dict[str, list[tuple[Pattern, int]]]

    def __iter__(self) -> Iterator[Stratum]:
        return iter(self.strata)

    def __len__(self) -> int:
        return len(self.strata)

    @cached_property
    def with_rules(self) -> tuple[Stratum, ...]:
        """The strata that have rules."""
        return tuple(s for s in self.strata if s.rules)

    def reading(self, classes: Iterable[int]) -> set[int]:
        """Return the strata with an atom of one of some classes in a body."""
        return {index for c in classes for index in self._readers.get(c, ())}

    @cached_property
    def _readers(self) -> dict[int, list[int]]:
        readers: dict[int, list[int]] = defaultdict(list)
        for s in self.strata:
            for c in s.reads:
                readers[c].append(s.index)
        return dict(readers)

    def holding(self, classes: Iterable[int]) -> set[int]:
        """Return the strata that facts of some classes belong to."""
        return {self._levels_of_classes[c] for c in classes}

    @cached_property
    def _levels_of_classes(self) -> dict[int, int]:
        return {c: level for level, classes in self._classes_by_level.items() for c in classes}

    def has(self, atom: Atom) -> bool:
        """Return whether an atom is one of the program."""
        return pattern_of(atom) in self._levels

    def level(self, atom: Atom) -> int:
        """Return the stratum of an atom of the program."""
        return self._levels[pattern_of(atom)]

    def stratum_of(self, fact: Fact) -> int:
        """Return the stratum of a fact: that of the atoms it is an instance of, or the first."""
        predicate, values = fact
        for pattern, level in self._by_predicate.get(predicate, ()):
            if is_instance(values, pattern):
                return level
        return 1

    def class_of(self, atom: Atom) -> int:
        """Return the class of an atom of the program."""
        return self.classes[pattern_of(atom)]

    def classes_in(self, index: int) -> frozenset[int]:
        """Return the classes of facts in a stratum."""
        return frozenset(self._classes_by_level[index])

    @cached_property
    def _classes_by_level(self) -> dict[int, set[int]]:
        result: dict[int, set[int]] = defaultdict(set, {1: {UNSPOKEN}})
        for pattern, level in self._levels.items():
            result[level].add(self.classes[pattern])
        return result

    def classes_of(self, predicate: str) -> frozenset[int]:
        """Return the classes that facts of a predicate may have."""
        return self._classes_by_predicate.get(predicate, frozenset((UNSPOKEN,)))

    @cached_property
    def _classes_by_predicate(self) -> dict[str, frozenset[int]]:
        result = {}
        for predicate, patterns in self._by_predicate.items():
            classes = {self.classes[pattern] for pattern, _ in patterns}
            is_whole = any(is_unconstrained(pattern) for pattern, _ in patterns)
            result[predicate] = frozenset(classes if is_whole else classes | {UNSPOKEN})
        return result

    def class_of_fact(self, fact: Fact) -> int:
        """Return the class of a fact: that of the atoms it is an instance of."""
        predicate, values = fact
        return next((self.classes[p] for p, _ in self.patterns(predicate) if is_instance(values, p)), UNSPOKEN)

    def sole_stratum(self, predicate: str) -> int | None:
        """Return the one stratum of all facts of a predicate, or None if it has several."""
        return self._sole_strata.get(predicate, 1)

    @cached_property
    def _sole_strata(self) -> dict[str, int | None]:
        sole: dict[str, int | None] = {}
        for predicate, patterns in self._by_predicate.items():
            levels = {level for _, level in patterns}
            if not any(is_unconstrained(pattern) for pattern, _ in patterns):
                levels.add(1)
            sole[predicate] = levels.pop() if len(levels) == 1 else None
        return sole

    def predicates_in(self, index: int) -> frozenset[str]:
        """Return the predicates that have facts in a stratum, but in the first those that no atom speaks of."""
        return frozenset(self._predicates_by_level[index])

    @cached_property
    def _predicates_by_level(self) -> dict[int, set[str]]:
        result: dict[int, set[str]] = defaultdict(set)
        for predicate, patterns in self._by_predicate.items():
            for _, level in patterns:
                result[level].add(predicate)
            if self.sole_stratum(predicate) is None:
                result[1].add(predicate)
        return result

    @property
    def levels(self) -> Mapping[Pattern, int]:
        """The stratum of each pattern."""
        return self._levels

    @cached_property
    def joined(self) -> Stratification:
        """The strata, with those that do not depend on each other as one: a program is materialised by these.

        Strata are joined that have rules, or explicit facts alone. One with classes or aggregates stays by itself.
        """
        place: dict[int, tuple[int, int]] = {}
        for s in self.strata:
            below = (place[index][0] for index in self.holding(s.reads) if index != s.index)
            depth = 1 + max(below, default=1 if s.rules else 0)
            is_special = s.index == 1 or s.classings or s.aggregations
            place[s.index] = (depth, s.index if is_special else 0 if s.rules else -1)
        # The first stratum stays the first: it has the facts that no atom speaks of.
        places = sorted(set(place.values()), key=lambda one: (one[1] != 1, one))
        if len(places) == len(self.strata):
            return self
        numbered = {one: number for number, one in enumerate(places, 1)}
        number = {index: numbered[one] for index, one in place.items()}
        levels = {pattern: number[index] for pattern, index in self._levels.items()}
        by_predicate = {p: [(one, levels[one]) for one, _ in patterns] for p, patterns in self._by_predicate.items()}
        result = Stratification([], self.classes, levels, by_predicate)
        members: dict[int, list[Stratum]] = defaultdict(list)
        for s in self.strata:
            members[number[s.index]].append(s)
        for index in range(1, len(places) + 1):
            mine = members[index]
            recursive = tuple(rule for s in mine for rule in s.recursive)
            nonrecursive = tuple(rule for s in mine for rule in s.nonrecursive)
            joined = Stratum(index, recursive, nonrecursive, result, mine[0].classings, mine[0].aggregations)
            result.strata.append(joined)
        return result

    def exchanged(self, rules: Mapping[Rule, Rule | None]) -> Stratification:
        """Return the same strata with other rules in the place of some, or none, and without guards of aggregates.

        Only rules whose atoms have the strata of those that they replace may come in.
        """
        result = Stratification([], self.classes, self._levels, self._by_predicate)
        for s in self.strata:
            recursive, nonrecursive = s.recursive, s.nonrecursive
            if not rules.keys().isdisjoint(s.rules):
                now = [new for rule in s.rules if (new := rules.get(rule, rule)) is not None]
                own = {rule: any(self.level(atom) == s.index for atom in rule.positive) for rule in now}
                recursive, nonrecursive = (tuple(r for r in now if own[r] is leans) for leans in (True, False))
            aggregations = tuple(replace(a, guard=None) for a in s.aggregations)
            result.strata.append(Stratum(s.index, recursive, nonrecursive, result, s.classings, aggregations))
        return result

    def left_over(self) -> dict[Pattern, int]:
        """Return the patterns of removed rules, with their strata, as far as these place facts by themselves."""
        own = {pattern_of(atom) for s in self.strata for rule in s.rules for atom in (rule.head, *rule.atoms)}
        whole = {pattern[0] for pattern in own if is_unconstrained(pattern)}
        for s in self.strata:
            whole |= {name for a in s.aggregations for name in (a.relation, a.body)}
            whole |= {name for c in s.classings for name in (c.relation, c.members, c.values)}
        return {p: n for p, n in self._levels.items() if n > 1 and p not in own and p[0] not in whole}

    def patterns(self, predicate: str) -> list[tuple[Pattern, int]]:
        """Return the patterns of a predicate with their strata; no fact matches two of different strata."""
        return self._by_predicate.get(predicate, [])


def check_stratification(stratification: str) -> None:
    """Refuse a value of `stratification` that is not one of `LEVELS`."""
    check_choice(stratification, "stratification", LEVELS, slug="unknown-stratification")


@collector_paused()
def stratify(core: Core, stratification: str = "granular", also: Sequence[Rule] = ()) -> Stratification:
    """Return a stratification by its name; a `ProgramError` shows the cycle if the program has none.

    The strata are those that the rules `also` would lead to as well, but have none of these.
    """
    check_stratification(stratification)
    depending = (*_depending(core), *also)
    patterns = patterns_of(depending)
    classes = share_instances(list(dict.fromkeys(patterns.values())))
    depends: dict[int, dict[int, Dependency]] = defaultdict(dict)
    derived: set[int] = set()
    for rule in depending:
        head = classes[patterns[id(rule.head)]]
        derived.add(head)
        for negated, body in ((False, rule.positive), (True, rule.negative)):
            for atom in body:
                target = classes[patterns[id(atom)]]
                if negated or target not in depends[head]:
                    depends[head][target] = (negated, rule, atom)
    nodes = sorted(set(classes.values()))
    components = components_of(nodes, depends)
    refuse_negation_in_cycle(core, components, depends)
    aggregated = {classes[pattern_of(values_depend(a, core).head)]: a.body for a in core.aggregations}
    level = apart(LEVELS[stratification](components, depends, derived), aggregated)
    levels = {pattern: level[c] for pattern, c in classes.items()}
    by_predicate: dict[str, list[tuple[Pattern, int]]] = defaultdict(list)
    for pattern, index in levels.items():
        by_predicate[pattern[0]].append((pattern, index))
    result = Stratification([], classes, levels, dict(by_predicate))
    rules_of: dict[int, list[Rule]] = defaultdict(list)
    for rule in core.rules:
        rules_of[levels[patterns[id(rule.head)]]].append(rule)
    aggregations_of: dict[int, list[Aggregation]] = defaultdict(list)
    for aggregation in core.aggregations:
        aggregations_of[result.level(values_depend(aggregation, core).head)].append(aggregation)
    for index in range(1, max(level.values(), default=1) + 1):
        recursive: list[Rule] = []
        nonrecursive: list[Rule] = []
        for rule in rules_of[index]:
            leans_on_own = any(levels[patterns[id(atom)]] == index for atom in rule.positive)
            (recursive if leans_on_own else nonrecursive).append(rule)
        classings = tuple(c for c in core.classings if result.level(_members_depend(c).head) == index)
        aggregations = tuple(aggregations_of[index])
        result.strata.append(Stratum(index, tuple(recursive), tuple(nonrecursive), result, classings, aggregations))
    return result


def _depending(core: Core) -> tuple[Rule, ...]:
    """Return the rules that say what atoms depend on."""
    aggregations = (values_depend(aggregation, core) for aggregation in core.aggregations)
    return (*core.rules, *map(_members_depend, core.classings), *aggregations)


def _members_depend(classing: Classing) -> Rule:
    """Return a rule that says what the classes of an equivalence depend on. It derives nothing."""
    value, other, number = map(Variable, ("value", "other", "class"))
    return Rule(classing.member(value, number), (Atom(classing.relation, (value, other)),))


def values_depend(aggregation: Aggregation, core: Core) -> Rule:
    """Return a rule that says what the values of an aggregate depend on: on all of it. It derives nothing."""

    def any_fact(name: str) -> Atom:
        return Atom(name, tuple(map(Variable, core.predicates[name].columns)))

    guards = () if aggregation.guard is None else (any_fact(aggregation.guard),)
    return Rule(any_fact(aggregation.relation), guards, (any_fact(aggregation.body),))


def _columns_from(rule: Rule, columns: set[tuple[str, int]]) -> list[int]:
    """Return the columns of the head whose variable stands in one of these columns of a positive atom."""
    names = {
        term.name
        for atom in rule.positive
        for column, term in enumerate(atom.terms)
        if isinstance(term, Variable) and (atom.predicate, column) in columns
    }
    return [at for at, term in enumerate(rule.head.terms) if isinstance(term, Variable) and term.name in names]


def classes_of_atoms(core: Core) -> dict[Pattern, int]:
    """Return for the pattern of each atom of a program a number, the same for those that have a common instance."""
    return share_instances(list(dict.fromkeys(patterns_of(_depending(core)).values())))
