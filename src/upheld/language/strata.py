"""Stratification over atoms that share an instance (paper 1, section 3).

Atoms of one predicate may lie in different strata as long as no fact is an instance of both: with a single predicate
for RDF triples, anything coarser would refuse good programs. There are three stratifications. In each of them, atoms
that no rule derives are in stratum 1.

- `granular`: every strongly connected component of the rules is a stratum.
- `levels`: a component is one stratum above the highest that it depends on, so that components which do not depend on
  each other share a stratum (paper 1, section 10.1).
- `coarsest`: a new stratum only where negation requires one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeVar

from upheld.errors import Problem, ProgramError, UsageError, nearest, quote
from upheld.language.core import Aggregation, Atom, Classing, Core, Fact, Rule
from upheld.language.core_text import atom_text, with_prefixes
from upheld.language.syntax.ast import Constant, Variable
from upheld.language.values import Value
from upheld.runtime.collector import collector_paused
from upheld.source import Span

#: The class of facts that are instances of no atom of a program. They are in the first stratum.
UNSPOKEN = -1

#: The pattern of an atom: for each position, the value of a constant or the number of a variable.
Pattern = tuple[str, tuple[tuple[str, Value | int], ...]]


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
        others = [*(c.relation for c in self.classings), *(a.body for a in self.aggregations)]
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
            if _is_instance(values, pattern):
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
            is_whole = any(_is_unconstrained(pattern) for pattern, _ in patterns)
            result[predicate] = frozenset(classes if is_whole else classes | {UNSPOKEN})
        return result

    def class_of_fact(self, fact: Fact) -> int:
        """Return the class of a fact: that of the atoms it is an instance of."""
        predicate, values = fact
        return next((self.classes[p] for p, _ in self.patterns(predicate) if _is_instance(values, p)), UNSPOKEN)

    def sole_stratum(self, predicate: str) -> int | None:
        """Return the one stratum of all facts of a predicate, or None if it has several."""
        return self._sole_strata.get(predicate, 1)

    @cached_property
    def _sole_strata(self) -> dict[str, int | None]:
        sole: dict[str, int | None] = {}
        for predicate, patterns in self._by_predicate.items():
            levels = {level for _, level in patterns}
            if not any(_is_unconstrained(pattern) for pattern, _ in patterns):
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

    def exchanged(self, rules: Mapping[Rule, Rule | None]) -> Stratification:
        """Return the same strata with other rules in the place of some, or none.

        Only rules whose atoms have the strata of those that they replace may come in.
        """
        result = Stratification([], self.classes, self._levels, self._by_predicate)
        for s in self.strata:
            recursive, nonrecursive = s.recursive, s.nonrecursive
            if not rules.keys().isdisjoint(s.rules):
                now = [new for rule in s.rules if (new := rules.get(rule, rule)) is not None]
                own = {rule: any(self.level(atom) == s.index for atom in rule.positive) for rule in now}
                recursive, nonrecursive = (tuple(r for r in now if own[r] is leans) for leans in (True, False))
            result.strata.append(Stratum(s.index, recursive, nonrecursive, result, s.classings, s.aggregations))
        return result

    def patterns(self, predicate: str) -> list[tuple[Pattern, int]]:
        """Return the patterns of a predicate with their strata; no fact matches two of different strata."""
        return self._by_predicate.get(predicate, [])


def pattern_of(atom: Atom) -> Pattern:
    numbers: dict[str, int] = {}
    terms: list[tuple[str, Value | int]] = []
    for term in atom.terms:
        if isinstance(term, Constant):
            terms.append(("=", term.value))
        else:
            terms.append(("?", numbers.setdefault(term.name, len(numbers))))
    return atom.predicate, tuple(terms)


def share_an_instance(one: Atom, other: Atom) -> bool:
    """Return whether some fact is an instance of both atoms, with their variables renamed apart."""
    return one.predicate == other.predicate and _unify(pattern_of(one), pattern_of(other))


@collector_paused()
def stratify(core: Core, stratification: str = "granular", also: Sequence[Rule] = ()) -> Stratification:
    """Return a stratification by its name; a `ProgramError` shows the cycle if the program has none.

    The strata are those that the rules `also` would lead to as well, but have none of these.
    """
    levels_of = _STRATIFICATIONS.get(stratification)
    if levels_of is None:
        raise UsageError(
            Problem(
                "unknown-stratification",
                f"{quote(stratification)} is not a value of `stratification`",
                note=f"it must be one of {', '.join(map(quote, _STRATIFICATIONS))}",
                hint=nearest(stratification, tuple(_STRATIFICATIONS)),
            )
        )
    depending = (*_depending(core), *also)
    patterns = _patterns(depending)
    classes = _share_instances(list(dict.fromkeys(patterns.values())))
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
    components = _components(nodes, depends)
    _refuse_negation_in_cycle(core, components, depends)
    aggregated = {classes[pattern_of(_values_depend(a, core).head)] for a in core.aggregations}
    level = _apart(levels_of(components, depends, derived), aggregated)
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
        aggregations_of[result.level(_values_depend(aggregation, core).head)].append(aggregation)
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
    aggregations = (_values_depend(aggregation, core) for aggregation in core.aggregations)
    return (*core.rules, *map(_members_depend, core.classings), *aggregations)


def _members_depend(classing: Classing) -> Rule:
    """Return a rule that says what the classes of an equivalence depend on. It derives nothing."""
    value, other, number = map(Variable, ("value", "other", "class"))
    return Rule(classing.member(value, number), (Atom(classing.relation, (value, other)),))


def _values_depend(aggregation: Aggregation, core: Core) -> Rule:
    """Return a rule that says what the values of an aggregate depend on: on all of it. It derives nothing."""

    def any_fact(name: str) -> Atom:
        return Atom(name, tuple(map(Variable, core.predicates[name].columns)))

    return Rule(any_fact(aggregation.relation), (), (any_fact(aggregation.body),))


def _columns_from(rule: Rule, columns: set[tuple[str, int]]) -> list[int]:
    """Return the columns of the head whose variable stands in one of these columns of a positive atom."""
    names = {
        term.name
        for atom in rule.positive
        for column, term in enumerate(atom.terms)
        if isinstance(term, Variable) and (atom.predicate, column) in columns
    }
    return [at for at, term in enumerate(rule.head.terms) if isinstance(term, Variable) and term.name in names]


# -- atoms that share an instance -------------------------------------------------------------------------------------


def classes_of_atoms(core: Core) -> dict[Pattern, int]:
    """Return for the pattern of each atom of a program a number, the same for those that have a common instance."""
    return _share_instances(list(dict.fromkeys(_patterns(_depending(core)).values())))


def _patterns(rules: tuple[Rule, ...]) -> dict[int, Pattern]:
    """Return the pattern of each atom of some rules, by the identity of the atom."""
    return {id(atom): pattern_of(atom) for rule in rules for atom in (rule.head, *rule.atoms)}


def _share_instances(patterns: list[Pattern]) -> dict[Pattern, int]:
    """Return a number for each pattern such that patterns with a common instance have the same one.

    Patterns are compared shape against shape: two without repeated variables have a common instance if their
    constants agree where both have one, so one look into a hash table finds all partners of a pattern.
    """
    parent = list(range(len(patterns)))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    simple = [has_distinct_variables(p) for p in patterns]
    shapes: dict[tuple[str, frozenset[int]], list[int]] = defaultdict(list)
    for i, (predicate, terms) in enumerate(patterns):
        shapes[predicate, frozenset(p for p, (kind, _) in enumerate(terms) if kind == "=")].append(i)
    by_predicate: dict[str, list[tuple[frozenset[int], list[int]]]] = defaultdict(list)
    for (predicate, constants), members in shapes.items():
        by_predicate[predicate].append((constants, members))
    for groups in by_predicate.values():
        if len(groups) == 1 and len(groups[0][1]) == 1:
            continue
        for a, (constants_a, members_a) in enumerate(groups):
            for constants_b, members_b in groups[a:]:
                common = sorted(constants_a & constants_b)
                buckets: dict[tuple[object, ...], list[int]] = defaultdict(list)
                for i in members_a:
                    buckets[tuple(patterns[i][1][p] for p in common)].append(i)
                for j in members_b:
                    bucket = buckets.get(tuple(patterns[j][1][p] for p in common), [])
                    for i in bucket:
                        if find(i) != find(j) and _unify(patterns[i], patterns[j]):
                            parent[find(i)] = find(j)
                    if simple[j]:  # it met every simple one in the bucket: one of them now stands for all
                        met = [i for i in bucket if simple[i]]
                        bucket[:] = met[:1] + [i for i in bucket if not simple[i]]
    return {pattern: find(i) for i, pattern in enumerate(patterns)}


def _unify(one: Pattern, other: Pattern) -> bool:
    """Return whether some fact is an instance of both patterns, with their variables renamed apart."""
    value: dict[tuple[int, Value | int], tuple[int, Value | int]] = {}

    def resolve(side: int, term: tuple[str, Value | int]) -> tuple[int, Value | int]:
        key = (-1, term[1]) if term[0] == "=" else (side, term[1])
        while key in value:
            key = value[key]
        return key

    for a, b in zip(one[1], other[1], strict=True):
        left, right = resolve(0, a), resolve(1, b)
        if left == right:
            continue
        if left[0] == -1 and right[0] == -1:
            return False
        if left[0] == -1:
            left, right = right, left
        value[left] = right
    return True


def _is_instance(values: tuple[Value, ...], pattern: Pattern) -> bool:
    binding: dict[Value | int, Value] = {}
    for value, (kind, term) in zip(values, pattern[1], strict=True):
        expected = term if kind == "=" else binding.setdefault(term, value)
        if expected != value and expected is not value:  # the one NaN of facts equals itself
            return False
    return True


def has_distinct_variables(pattern: Pattern) -> bool:
    names = [number for kind, number in pattern[1] if kind == "?"]
    return len(set(names)) == len(names)


def _is_unconstrained(pattern: Pattern) -> bool:
    return all(kind == "?" for kind, _ in pattern[1]) and has_distinct_variables(pattern)


# -- components and levels --------------------------------------------------------------------------------------------

#: Whether it is through negation, and the rule and body atom that make it.
Dependency = tuple[bool, Rule, Atom]
#: For each class of atoms, the classes its rules look at.
Dependencies = dict[int, dict[int, Dependency]]


def _components(nodes: list[int], depends: Dependencies) -> list[list[int]]:
    """Return the strongly connected components, each after those it depends on (Tarjan's algorithm, iterative)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    components: list[list[int]] = []
    for start in nodes:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        stack.append(start)
        on_stack.add(start)
        work = [(start, iter(sorted(depends.get(start, ()))))]
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(depends.get(target, ())))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    components.append(component)
    return components


def _granular(components: list[list[int]], depends: Dependencies, derived: set[int]) -> dict[int, int]:
    level: dict[int, int] = {}
    top = 1
    for component in components:
        if any(c in derived for c in component):
            top += 1
            level.update(dict.fromkeys(component, top))
        else:
            level.update(dict.fromkeys(component, 1))
    return level


def _by_levels(components: list[list[int]], depends: Dependencies, derived: set[int]) -> dict[int, int]:
    level: dict[int, int] = {}
    for component in components:
        members = set(component)
        if members.isdisjoint(derived):
            level.update(dict.fromkeys(component, 1))
        else:
            below = (level[target] for c in component for target in depends.get(c, ()) if target not in members)
            level.update(dict.fromkeys(component, 1 + max(below, default=1)))
    return level


def _coarsest(components: list[list[int]], depends: Dependencies, derived: set[int]) -> dict[int, int]:
    level: dict[int, int] = {}
    for component in components:
        members = set(component)
        below = [
            level[target] + negated
            for c in component
            for target, (negated, _, _) in depends.get(c, {}).items()
            if target not in members
        ]
        level.update(dict.fromkeys(component, max(below, default=1)))
    return level


def _apart(level: dict[int, int], aggregated: set[int]) -> dict[int, int]:
    """Return levels by which values of aggregates are below all else of their level, which may depend on them."""
    if not aggregated:
        return level
    ordered = {at: number for number, at in enumerate(sorted({(n, c not in aggregated) for c, n in level.items()}), 1)}
    return {c: ordered[n, c not in aggregated] for c, n in level.items()}


_STRATIFICATIONS = {"granular": _granular, "levels": _by_levels, "coarsest": _coarsest}
STRATIFICATIONS = tuple(_STRATIFICATIONS)


def _refuse_negation_in_cycle(core: Core, components: list[list[int]], depends: Dependencies) -> None:
    problems = []
    for component in components:
        members = set(component)
        for head in sorted(component):
            for target, (negated, rule, atom) in sorted(depends.get(head, {}).items()):
                if negated and target in members:
                    cycle = [(True, rule, atom), *_path(target, head, members, depends)]
                    aggregated = {a.relation: a for a in core.aggregations}
                    through = [aggregated[r.head.predicate] for _, r, _ in cycle if r.head.predicate in aggregated]
                    cycle = _without_hidden(core, cycle)
                    problem = _aggregate_problem(through[0], cycle) if through else _cycle_problem(core, cycle)
                    problems.append(with_prefixes(problem, core))
                    break
            else:
                continue
            break
    if problems:
        raise ProgramError(problems)


def _path(start: int, end: int, members: set[int], depends: Dependencies) -> list[Dependency]:
    """Return the shortest chain of rules by which `start` depends on `end`."""
    came: dict[int, tuple[int, Dependency] | None] = {start: None}
    frontier = [start]
    while frontier and end not in came:
        reached = []
        for node in frontier:
            for target, dependency in sorted(depends.get(node, {}).items()):
                if target in members and target not in came:
                    came[target] = (node, dependency)
                    reached.append(target)
        frontier = reached
    steps: list[Dependency] = []
    step = came[end]
    while step is not None:
        steps.append(step[1])
        step = came[step[0]]
    return steps[::-1]


def _without_hidden(core: Core, cycle: list[Dependency]) -> list[Dependency]:
    """Return the cycle as its author knows it: a dependency on a hidden relation is one on what that stands for."""
    while core.predicates[cycle[0][1].head.predicate].hidden:
        cycle = [cycle[-1], *cycle[:-1]]
    result: list[Dependency] = []
    through: tuple[bool, Rule] | None = None
    for negated, rule, atom in cycle:
        if through:
            negated, rule = negated or through[0], through[1]
        through = (negated, rule) if core.predicates[atom.predicate].hidden else None
        if not through:
            result.append((negated, rule, atom))
    return result


def _cycle_problem(core: Core, cycle: list[Dependency]) -> Problem:
    _, rule, _ = cycle[0]
    texts = [("!" if negated else "") + atom_text(atom) for negated, _, atom in cycle]
    related: list[tuple[str, Span]] = []
    for (_, step, _), text in zip(cycle[1:], texts[1:]):
        if step.span:
            related.append((f"{quote(atom_text(step.head))} depends on {quote(text)}", step.span))
    return Problem(
        "negation-in-recursion",
        f"negation through recursion: {' <- '.join([atom_text(rule.head), *texts])}",
        rule.span,
        related=tuple(related),
        note="the negated relation must be complete before the rule is applied, so it must not depend on the head",
        hint=_way_out(core, rule),
    )


def _aggregate_problem(aggregation: Aggregation, cycle: list[Dependency]) -> Problem:
    texts = [atom_text(cycle[0][1].head), *(atom_text(atom) for _, _, atom in cycle)]
    return Problem(
        "aggregate-in-recursion",
        f"recursion through an aggregate: {' <- '.join(texts)}",
        aggregation.span,
        note="all facts that an aggregate ranges over must be known before it has a value, and so must its groups",
        hint="break the cycle, or aggregate over a relation of a lower stratum",
    )


def _way_out(core: Core, rule: Rule) -> str:
    """Return how to break a cycle through a rule; rules for all properties, as in rule sets, need another way."""
    for_all = any(r.head.predicate == "triple" and isinstance(r.head.terms[1], Variable) for r in core.rules)
    if core.dialect == "dlog" and rule.head.predicate == "triple" and for_all:
        return (
            "rules with a variable as property read and derive every triple; derive a relation of your own instead, "
            "such as `lazy(?x)`, or have `upheld owl` translate the ontology to rules that name their properties"
        )
    return "break the cycle, or negate a relation of a lower stratum"
