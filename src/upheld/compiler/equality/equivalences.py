"""Equivalences (`eqrel`) held by classes: a fact for each value and its class, in the place of one for each pair.

Facts of the relation itself are those that were given or that rules derive. They *connect* values, and the classes are
what is connected: `members` has for each value that some fact connects the number of its class. An atom of a body holds
of two values just if they are members of one class, so it becomes two atoms with the class between them. One that is
negated does not hold if its first value is in no class, or its second one is not in that of the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Builtin, Classing, Core, CoreTerm, Predicate, Rule
from upheld.language.substitution import substitute_atom
from upheld.language.values import Value


def by_classes(core: Core) -> Core:
    """Return a program that asks for the classes of its equivalences in the place of their pairs.

    Rules that hold for every equivalence are left out.
    """
    classings = tuple(Classing(name, f"${name} class", f"${name} value") for name in core.equivalences)
    members = {
        c.members: Predicate(c.members, ("value", "class"), (core.predicates[c.relation].types[0], "number"), True)
        for c in classings
    }
    known = replace(core, predicates={**core.predicates, **members}, classings=classings, by_pairs=core)
    return asking_for_classes(known, known)


def asking_for_classes(core: Core, of: Core) -> Core:
    """Return a program, such as a query, that asks for the classes of another one, or its own."""
    apart = _Apart({classing.relation: classing for classing in of.classings})
    rules = [part for rule in core.rules for part in apart.rule(rule)]
    predicates = dict(core.predicates)
    for classing in of.classings:
        if classing.relation in apart.negated and classing.values not in of.predicates:
            type = of.predicates[classing.members].types[0]
            predicates[classing.values] = Predicate(classing.values, ("value",), (type,), hidden=True)
            value = Variable("value")
            rules.append(Rule(Atom(classing.values, (value,)), (classing.member(value, Variable("class")),)))
    return replace(core, predicates=predicates, rules=tuple(rules))


def binding_as_written(
    rule: Rule, binding: Mapping[str, Value], by_relation: Mapping[str, Classing]
) -> tuple[Rule, dict[str, Value]]:
    """Return the original of a transformed rule, and a binding of it that derives the same fact."""
    whole, filled = rule.whole, dict(binding)
    for group in _Apart(by_relation).groups(whole):
        known = [t.value if isinstance(t, Constant) else filled.get(t.name) for t in group.terms]
        value = next(v for v in known if v is not None)
        filled.update({t.name: value for t in group.terms if isinstance(t, Variable) and t.name not in filled})
    return whole, filled


@dataclass
class _Group:
    """Terms of a rule that atoms of one equivalence say are of one class."""

    classing: Classing
    terms: dict[CoreTerm, None]


class _Apart:
    """Takes rules apart that ask for equivalences; `negated` has those that a rule negates."""

    def __init__(self, by_relation: Mapping[str, Classing]):
        self._by_relation = by_relation
        self.negated: set[str] = set()

    def rule(self, rule: Rule) -> Iterator[Rule]:
        """Yield the rules that come to what a rule says; none if it follows from what equivalences are."""
        asked = {atom.predicate for atom in rule.atoms} & self._by_relation.keys()
        if not asked:
            yield rule
            return
        groups = self.groups(rule)
        head = rule.head
        for group in groups:
            if head.predicate == group.classing.relation and group.terms.keys() >= set(head.terms):
                return
        plain = tuple(atom for atom in rule.positive if atom.predicate not in self._by_relation)
        others: list[Atom | Builtin] = [*plain, *rule.negative, *rule.builtins]
        used = {name for part in others for name in part.variables()}
        in_groups = Counter(t.name for group in groups for t in group.terms if isinstance(t, Variable))
        used |= {name for name, times in in_groups.items() if times > 1}
        head = self._connecting(head, groups, used)
        used |= set(head.variables())
        members = tuple(
            group.classing.member(term, Variable(f"class {number}"))
            for number, group in enumerate(groups)
            for term in _needed(group, used)
        )
        for positive, negative in self._negations(rule):
            yield replace(
                rule, head=head, positive=(*plain, *members, *positive), negative=negative, part_of=rule.whole
            )

    def groups(self, rule: Rule) -> list[_Group]:
        """Return the terms that the body of a rule says are of one class, by class."""
        groups: list[_Group] = []
        for atom in rule.positive:
            classing = self._by_relation.get(atom.predicate)
            if classing is None:
                continue
            mine = _Group(classing, dict.fromkeys(atom.terms))
            for group in list(groups):
                if group.classing is classing and not mine.terms.keys().isdisjoint(group.terms):
                    mine.terms = {**group.terms, **mine.terms}
                    groups.remove(group)
            groups.append(mine)
        return groups

    def _connecting(self, head: Atom, groups: Sequence[_Group], used: set[str]) -> Atom:
        """Return a head with another of the same class for what only the head uses.

        To connect all members of a class with something is to connect one of them.
        """
        by: dict[str, CoreTerm] = {}
        for group in groups:
            others = [t for t in group.terms if not isinstance(t, Variable) or t.name in used]
            if others and group.classing.relation == head.predicate:
                by.update({t.name: others[0] for t in group.terms if isinstance(t, Variable) and t.name not in used})
        return substitute_atom(head, by) if by else head

    def _negations(self, rule: Rule) -> Iterator[tuple[tuple[Atom, ...], tuple[Atom, ...]]]:
        """Yield the atoms that a rule must have, and those it must negate, for what it negates not to hold."""
        ways: list[list[tuple[tuple[Atom, ...], Atom]]] = []
        for number, atom in enumerate(rule.negative):
            classing = self._by_relation.get(atom.predicate)
            if classing is None:
                ways.append([((), atom)])
                continue
            self.negated.add(atom.predicate)
            left, right = atom.terms
            in_none: tuple[tuple[Atom, ...], Atom] = (), Atom(classing.values, (left,))
            if left == right:
                ways.append([in_none])
            else:
                number_of_left = Variable(f"class of {number}")
                ways.append(
                    [in_none, ((classing.member(left, number_of_left),), classing.member(right, number_of_left))]
                )
        for way in product(*ways):
            yield tuple(atom for positive, _ in way for atom in positive), tuple(negative for _, negative in way)


def _needed(group: _Group, used: set[str]) -> list[CoreTerm]:
    """Return the terms of a group that something else depends on, or one of it if nothing does: a class has members."""
    needed = [t for t in group.terms if not isinstance(t, Variable) or t.name in used]
    return needed or list(group.terms)[:1]
