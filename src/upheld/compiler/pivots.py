"""Pivots: columns by which a program falls into parts that know nothing of each other.

Where each rule that derives `path` has the same variable in the first column of `path` in its head and wherever `path`
stands in its body, a proof of `path(a, ...)` uses facts `path(a, ...)` only. So facts of `path` may be parted by their
first column in any way, and each part be derived for itself, beside all facts of the other relations.

Relations have one of three roles:

- *parted*, by the column that is their pivot;
- *whole*: each part has all of their facts; none of these depends on a parted relation;
- *gathered*: what all parts derive of them makes the relation, which no rule uses any more.

A rule keeps to one part if the pivots of all parted atoms, its head included, are one term. A rule without a positive
parted atom would be applied in all parts: a guard, an atom that holds for the pivots of the part, keeps it to one.

A constraint is a rule whose head no rule uses: it is checked in the parts, and its violations are parted or gathered.

The values of an aggregate over a parted relation are parted if the pivot is one of the variables that make its groups:
then each group is in one part. The values of an aggregate over a whole relation are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from upheld.base.dataclass import dataclass
from upheld.base.errors import quote
from upheld.language.ast import Constant, Variable
from upheld.language.core import Aggregation, Atom, Core, CoreTerm, Predicate, Rule, unnamed_columns


@dataclass(frozen=True)
class Obstacle:
    """Why a program has no pivots: the rule that leaves its part, and how."""

    rule: Rule | None
    why: str


@dataclass(frozen=True)
class Pivots:
    """A program in parts.

    `columns` has the pivot of each parted relation. `before` applies rules to whole relations, once for all parts;
    `within` does so in each part, where facts of whole relations are given.
    """

    columns: dict[str, int]
    gathered: frozenset[str]
    before: Core
    within: Core
    #: The guards of rules within parts, by the type of their values: relations that hold for the pivots of the part.
    guards: dict[str, str]
    #: Where pivots come from that no parted fact has: columns of whole relations, and constants.
    sources: frozenset[tuple[str, int]]
    constants: frozenset[Constant]

    @property
    def whole(self) -> frozenset[str]:
        """The whole relations that parts look at."""
        used = {atom.predicate for rule in self.within.rules for atom in rule.atoms}
        return frozenset(used - self.columns.keys() - set(self.guards.values()))

    @property
    def in_driver(self) -> frozenset[str]:
        """The relations that are known before there are parts."""
        used = {atom.predicate for rule in self.before.rules for atom in (rule.head, *rule.atoms)}
        aggregated = {name for a in self.before.aggregations for name in (a.relation, a.body)}
        return (self.whole | used | aggregated) - self.gathered

    @property
    def is_recursive_before(self) -> bool:
        """Whether recursion is left to what is done once for all parts."""
        return bool(_recursive(self.before))


def find_pivots(core: Core) -> Pivots | Obstacle:
    """Return a program in parts, with as many recursive relations parted as can be, or what is in the way."""
    rules = (*core.rules, *(_rule_of(aggregation, core) for aggregation in core.aggregations))
    # Parts for a constraint alone would have all else derived before them.
    heads = dict.fromkeys(rule.head.predicate for rule in core.rules)
    derived = [name for name in heads if not (core.predicates[name].hidden and core.predicates[name].constraint)]
    recursive = list(_recursive(core))
    aggregated = {aggregation.relation: aggregation for aggregation in core.aggregations}
    roles = _Roles(core, rules, aggregated, _users(rules), {}, frozenset())
    obstacle: Obstacle | None = None
    for name in [*recursive, *(name for name in derived if name not in recursive)]:
        if roles.is_whole(name):
            for column in range(core.predicates[name].arity):
                found = roles.with_pivot(name, column)
                if isinstance(found, _Roles):
                    roles = found
                    break
                obstacle = obstacle or found
    if not roles.columns:
        return obstacle or Obstacle(None, "no rule derives facts that have a column")
    return roles.spread().program()


@dataclass(frozen=True)
class _Roles:
    """The parted relations with their pivots, and the gathered ones; all others are whole."""

    core: Core
    #: The rules of the program, and one for each aggregate that says what its values depend on.
    rules: tuple[Rule, ...]
    aggregated: dict[str, Aggregation]
    users: dict[str, list[Rule]]
    columns: dict[str, int]
    gathered: frozenset[str]

    def is_whole(self, name: str) -> bool:
        return name not in self.columns and name not in self.gathered

    def pivot(self, rule: Rule) -> CoreTerm | None:
        """Return the term that is the pivot of a rule that keeps to one part; None if its head and body are whole."""
        return next((term for term in self._pivots(rule)), None)

    def _pivots(self, rule: Rule) -> Iterator[CoreTerm]:
        for atom in (rule.head, *rule.atoms):
            if atom.predicate in self.columns:
                yield atom.terms[self.columns[atom.predicate]]

    def with_pivot(self, name: str, column: int) -> _Roles | Obstacle:
        """Return these roles with one more relation parted, and with it all that depend on it."""
        columns, gathered = {**self.columns, name: column}, set(self.gathered)
        todo = [name]
        while todo:
            changed = todo.pop()
            for rule in self.users.get(changed, ()):
                head = rule.head.predicate
                if head in gathered:
                    continue
                pivot = next(atom.terms[columns[changed]] for atom in rule.atoms if atom.predicate == changed)
                places = [i for i, term in enumerate(rule.head.terms) if term == pivot]
                if head not in columns and places:
                    columns[head] = places[0]
                    todo.append(head)
                elif columns.get(head) not in places:
                    if head in self.aggregated:
                        return self._over_parts(head)
                    if head in self.users or head == name:
                        kept = f"its body has {_shown(pivot)} in column {columns[changed] + 1} of {changed}"
                        return Obstacle(rule, f"{kept}, and its head does not keep that")
                    columns.pop(head, None)
                    gathered.add(head)
        roles = replace(self, columns=columns, gathered=frozenset(gathered))
        return next((o for rule in self.rules if (o := roles.obstacle(rule))), roles)

    def _over_parts(self, values: str) -> Obstacle:
        return Obstacle(None, f"{quote(self.aggregated[values].text)} may aggregate over all parts")

    def obstacle(self, rule: Rule) -> Obstacle | None:
        """Return how a rule leaves its part, if it does."""
        pivots = dict.fromkeys(self._pivots(rule))
        if not pivots:
            return None
        if rule.head.predicate in self.aggregated and (len(pivots) > 1 or not self._is_parted(rule)):
            return self._over_parts(rule.head.predicate)
        if self.is_whole(rule.head.predicate):
            return Obstacle(rule, f"{rule.head.predicate} would have to be known to all parts, and its body is not")
        if len(pivots) > 1:
            return Obstacle(rule, f"it joins parts: {' and '.join(map(_shown, pivots))} stand where one term should")
        (pivot,) = pivots
        bound = isinstance(pivot, Constant) or any(pivot in atom.terms for atom in rule.positive)
        return None if bound else Obstacle(rule, f"it computes {_shown(pivot)}, so any part may derive it")

    def _is_parted(self, rule: Rule) -> bool:
        """Return whether all atoms of a rule are of parted relations."""
        return all(atom.predicate in self.columns for atom in (rule.head, *rule.atoms))

    def spread(self) -> _Roles:
        """Return these roles with relations parted that need not be whole, since rules ask them for pivots only."""
        roles: _Roles = self
        while True:
            for name in self.core.predicates:
                if roles.is_whole(name) and (column := roles._pivot_asked_of(name)) is not None:
                    more = replace(roles, columns={**roles.columns, name: column})
                    if not any(map(more.obstacle, self.rules)):
                        roles = more
                        break
            else:
                return roles

    def _pivot_asked_of(self, name: str) -> int | None:
        """Return a column of a whole relation in which all rules that use it have their pivots."""
        columns = set(range(self.core.predicates[name].arity))
        if name not in self.users:
            return None
        for rule in self.users[name]:
            pivot, atoms = self.pivot(rule), [atom for atom in rule.atoms if atom.predicate == name]
            columns = {i for i in columns if all(atom.terms[i] == pivot for atom in atoms)}
        return min(columns, default=None)

    def program(self) -> Pivots:
        """Return the program in parts."""
        before: list[Rule] = []
        within: list[Rule] = []
        guards: dict[str, str] = {}
        sources: set[tuple[str, int]] = set()
        constants: set[Constant] = set()
        for rule in self.core.rules:
            pivot = self.pivot(rule)
            if pivot is None:
                before.append(rule)
            elif any(atom.predicate in self.columns for atom in rule.positive):
                within.append(rule)
            else:
                if isinstance(pivot, Constant):
                    constants.add(pivot)
                    type = pivot.type
                else:
                    name, column = _place(pivot, rule)
                    sources.add((name, column))
                    type = self.core.predicates[name].types[column]
                guard = guards.setdefault(type, f"pivot of type {type}")
                within.append(replace(rule, positive=(Atom(guard, (pivot,)), *rule.positive)))
        # Relations that a pass has made are looked at like all others, from outside of parts.
        core = replace(self.core, facts=frozenset(), aggregations=())
        aggregations = self.aggregated.values()
        parted = tuple(a for a in aggregations if a.relation in self.columns)
        whole = tuple(a for a in aggregations if a.relation not in self.columns)
        predicates = {name: replace(predicate, hidden=False) for name, predicate in core.predicates.items()}
        known = {guard: Predicate(guard, ("pivot",), (type,)) for type, guard in guards.items()}
        return Pivots(
            self.columns,
            self.gathered,
            replace(core, rules=tuple(before), predicates=predicates, aggregations=whole),
            replace(core, rules=tuple(within), predicates={**predicates, **known}, aggregations=parted),
            guards,
            frozenset(sources),
            frozenset(constants),
        )


def _place(variable: Variable, rule: Rule) -> tuple[str, int]:
    """Return a column of a positive atom that has a variable."""
    return next((a.predicate, i) for a in rule.positive for i, term in enumerate(a.terms) if term == variable)


def _rule_of(aggregation: Aggregation, core: Core) -> Rule:
    """Return a rule that says which facts the value of a group depends on. It derives nothing."""
    columns = tuple(map(Variable, unnamed_columns(core.predicates[aggregation.body].arity)))
    arity = core.predicates[aggregation.relation].arity - len(aggregation.groups)
    values = (Variable(f"value {number}") for number in range(arity))
    head = Atom(aggregation.relation, (*(columns[group] for group in aggregation.groups), *values))
    return Rule(head, (Atom(aggregation.body, columns),))


def _users(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """Return for each relation the rules that look at it."""
    users: dict[str, list[Rule]] = {}
    for rule in rules:
        for name in {atom.predicate for atom in rule.atoms}:
            users.setdefault(name, []).append(rule)
    return users


def _recursive(core: Core) -> list[str]:
    """Return the relations whose facts may depend on others of the same relation, in the order of the program."""
    users = _users(core.rules)

    def depends_on_itself(name: str) -> bool:
        found: set[str] = set()
        todo = [name]
        while todo:
            heads = {rule.head.predicate for rule in users.get(todo.pop(), ())}
            todo += heads - found
            found |= heads
        return name in found

    return [name for name in dict.fromkeys(rule.head.predicate for rule in core.rules) if depends_on_itself(name)]


def _shown(term: CoreTerm) -> str:
    return term.name if isinstance(term, Variable) else repr(term.value)
