"""Rules as their author knows them: without the relations that passes have made.

Where a body uses a hidden relation with one rule, the body of that rule takes its place. Where a body negates it, the
one atom that it projects takes its place, with `_` for what is not kept. Relations with several rules, and those that
project more than an atom, are the bodies of `EXISTS`, and are shown by their names, which are the texts of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from upheld.algebra.instances import Binding, RuleInstance, instantiate
from upheld.compiler.equality.equality import TRUTH
from upheld.explain.aggregates import Aggregates, python_values
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Builtin, Core, CoreTerm, Fact, Rule
from upheld.language.core_text import atom_text, with_patterns
from upheld.language.patterns import taken
from upheld.language.substitution import Substitution, substitute_atom, substitute_builtin
from upheld.language.wildcards import PREFIX as WILDCARD


@dataclass(frozen=True, eq=False)
class Part:
    """A hidden atom of a body, and what took its place: its rule, with these terms for its variables."""

    atom: Atom
    unfolded: Unfolded
    by: Substitution


@dataclass(frozen=True, eq=False)
class Unfolded:
    """A rule without hidden relations.

    `rule` can be matched: its positive atoms are not hidden, its negated ones may be. In `shown` none is; variables
    that only a wildcard stands for are in no binding.
    """

    rule: Rule
    shown: Rule
    parts: tuple[Part, ...]

    def binding(self, instance: RuleInstance, chosen: Mapping[Fact, RuleInstance]) -> Binding:
        """Return the binding of `rule` that an instance stands for, with those chosen for its hidden facts."""
        binding = instance.binding
        for part in self.parts:
            inner = part.unfolded.binding(chosen[instantiate(part.atom, instance.binding)], chosen)
            for name, value in inner.items():
                term = part.by[name]
                if isinstance(term, Variable):
                    binding[term.name] = value
        return binding


class Rules:
    """The rules of a program: rules of visible relations, rules of hidden relations, and both unfolded."""

    def __init__(self, core: Core):
        self.predicates = core.predicates
        self.aggregates = Aggregates(core)
        rules_of: dict[str, list[Rule]] = {p.name: [] for p in core.predicates.values() if p.internal}
        for rule in core.rules:
            if rule.head.predicate in rules_of:
                rules_of[rule.head.predicate].append(rule)
        self.visible = tuple(r for r in core.rules if r.head.predicate not in rules_of)
        #: The rules of hidden relations that bodies use; values of aggregates have none.
        self._definitions: dict[str, Rule] = {}
        #: Rules of hidden relations with several rules, which proofs show by their names, as they do visible ones.
        several: list[Rule] = []
        used: set[str] = set()
        asked: set[str] = set()
        pending = list(self.visible)
        while pending:
            rule = pending.pop()
            used.update(atom.predicate for atom in rule.positive)
            for name in {atom.predicate for atom in rule.atoms} & rules_of.keys():
                if name in self.aggregates or name in asked:
                    continue
                asked.add(name)
                pending += rules_of[name]
                if len(rules_of[name]) == 1:
                    (self._definitions[name],) = rules_of[name]
                else:
                    several += rules_of[name]
        #: Rules of hidden relations that represent a part of a body; relations that are only negated have no proofs.
        self.spliced = tuple(r for name, r in self._definitions.items() if name in used)
        self.visible += tuple(rule for rule in several if rule.head.predicate in used)
        self.all = self.visible + self.spliced
        self.place = {rule: i for i, rule in enumerate(core.rules)}
        self._unfolded: dict[Rule, Unfolded] = {}

    def fact_text(self, fact: Fact) -> str:
        """Return a fact as text."""
        predicate, values = fact
        types = self.predicates[predicate].types
        return atom_text(Atom(predicate, tuple(map(Constant, values, types))))

    def values(self, fact: Fact) -> tuple[object, ...]:
        """Return the values of a fact as Python has them."""
        return python_values(fact, self.predicates)

    def bound(self, binding: Binding, rule: Rule) -> dict[str, Constant]:
        """Return a binding of variables of a rule as a substitution of constants, for texts."""
        types = self.types(rule)
        return {name: Constant(value, types.get(name, "symbol")) for name, value in binding.items()}

    def types(self, rule: Rule) -> dict[str, str]:
        """Return the types of the variables of a rule."""
        types = {a.name: b.type for b in rule.builtins for a in b.arguments if isinstance(a, Variable)}
        for atom in (rule.head, *rule.atoms):
            for term, type in zip(atom.terms, self.predicates[atom.predicate].types, strict=True):
                if isinstance(term, Variable):
                    types[term.name] = type
        return types

    def is_hidden(self, fact: Fact) -> bool:
        return fact[0] in self._definitions

    def unfold(self, rule: Rule) -> Unfolded:
        """Return a rule without hidden relations."""
        found = self._unfolded.get(rule)
        if found is None:
            found = self._unfolded[rule] = self._unfold(rule)
        return found

    def _unfold(self, rule: Rule) -> Unfolded:
        names = set(rule.variables())
        positive: list[Atom] = []
        negative, builtins = list(rule.negative), list(rule.builtins)
        parts: list[Part] = []
        for atom in rule.positive:
            if atom.predicate not in self._definitions:
                positive.append(atom)
                continue
            inner = self.unfold(self._definitions[atom.predicate])
            by = _apart(inner.rule, atom, names)
            parts.append(Part(atom, inner, by))
            positive += [substitute_atom(a, by) for a in inner.rule.positive]
            negative += [substitute_atom(a, by) for a in inner.rule.negative]
            builtins += [substitute_builtin(b, by) for b in inner.rule.builtins]
        negative = list(dict.fromkeys(negative))
        whole = replace(
            rule,
            positive=tuple(dict.fromkeys(positive)),
            negative=tuple(negative),
            builtins=tuple(dict.fromkeys(builtins)),
        )
        conditions = [*map(self.shown, whole.positive), *(self.shown(a, negated=True) for a in negative)]
        shown = replace(
            whole,
            positive=tuple(
                a for a in whole.positive if a.predicate not in self.aggregates and a.predicate != TRUTH.name
            ),
            negative=tuple(a for a in map(self._projected, negative) if a.predicate not in self.aggregates),
            builtins=(*(c for c in conditions if isinstance(c, Builtin)), *whole.builtins),
        )
        return Unfolded(whole, shown, tuple(parts))

    def shown(self, atom: Atom, *, negated: bool = False) -> Atom | Builtin:
        """Return what an atom of an unfolded rule, or one that it negates, is to its author."""
        atom = self._projected(atom) if negated else atom
        return self.aggregates.equation(atom, negated) if atom.predicate in self.aggregates else atom

    def _projected(self, atom: Atom) -> Atom:
        """Return the atom that a hidden one under negation stands for; itself if it stands for more than an atom."""
        rule = self._definitions.get(atom.predicate)
        if rule is None or not _is_projection(rule):
            return atom
        by: dict[str, CoreTerm] = {n: Variable(f"{WILDCARD}-{n}") for n in rule.variables()}
        by.update(zip(rule.head.variables(), atom.terms, strict=True))
        return substitute_atom(with_patterns(rule.positive[0], rule.builtins), by)


def _is_projection(rule: Rule) -> bool:
    """Return whether a rule derives what one atom says, without some of its variables or with fields of records."""
    if len(rule.positive) != 1 or rule.negative or not all(isinstance(term, Variable) for term in rule.head.terms):
        return False
    return all(taken(builtin) is not None for builtin in rule.builtins)


def _apart(rule: Rule, atom: Atom, names: set[str]) -> Substitution:
    """Return terms for the variables of a rule that derives an atom; those not in its head get new names."""
    by: dict[str, CoreTerm] = dict(zip(rule.head.variables(), atom.terms, strict=True))
    for name in rule.variables():
        if name not in by:
            fresh = name
            while fresh in names:
                fresh += "'"
            names.add(fresh)
            by[name] = Variable(fresh)
    return by
