"""Rules with each constant replaced by its representative: pi(Π) and Γ of Motik et al. 2015 (paper 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from upheld.algebra.equality import Classes, RulesOfClasses
from upheld.compiler.equality.equality import CONSTANTS, Equality
from upheld.language.ast import Constant
from upheld.language.core import Atom, Core, Rule
from upheld.language.values import Value


class RewrittenRules:
    """Rules with each constant replaced by its representative, as it was when `follow` was called last.

    `all` has the rules of reflexivity as well, whose one constant is equality. `written` has none replaced, and
    `equalities` are the written rules that can derive an equality.
    """

    def __init__(self, rules: Sequence[Rule], reflexivity: Sequence[Rule]):
        self.now, self.reflexivity = tuple(rules), tuple(reflexivity)
        self.written, self.all = self.now, self.now + self.reflexivity
        self.equalities = tuple(rule for rule in self.written if Equality().may_be(rule.head))
        self._constants = [constants_of(rule) for rule in rules]
        self._vocabulary = list({c: None for constants in self._constants for c in constants})
        self._last: dict[Value, Value] = {c: c for c in self._vocabulary}
        # Each rule is made once and reused: engines have plans and indexes for it.
        self._made: dict[tuple[int, tuple[Value, ...]], Rule] = {}
        self._all: dict[tuple[Value, ...], tuple[Rule, ...]] = {tuple(self._vocabulary): self.all}

    @cached_property
    def twin(self) -> RewrittenRules:
        """The same rules, to follow other classes."""
        twin = RewrittenRules(self.written, self.reflexivity)
        twin._made, twin._all = self._made, self._all
        return twin

    @property
    def listed(self) -> RulesOfClasses:
        """The rules as they are now. Engines know them by the identity of these tuples."""
        return RulesOfClasses(self.all, self.now, self.reflexivity, self.written, self.equalities)

    def follow(self, pi: Classes) -> tuple[Rule, ...]:
        """Bring the rules up to date with the classes, and return those that have changed."""
        by = dict(zip(self._vocabulary, pi.representatives(self._vocabulary), strict=True))
        changed = {c for c, r in by.items() if r != self._last[c]}
        self._last = by
        if not changed:
            return ()
        rules, fresh = list(self.now), []
        for i, constants in enumerate(self._constants):
            if not changed.isdisjoint(constants):
                rules[i] = self._rewritten(i, by)
                fresh.append(rules[i])
        self.all = self._all.setdefault(tuple(by.values()), (*rules, *self.reflexivity))
        self.now = self.all[: len(rules)]
        return tuple(fresh)

    def _rewritten(self, i: int, by: dict[Value, Value]) -> Rule:
        rule, key = self.written[i], (i, tuple(by[c] for c in self._constants[i]))
        if key[1] == self._constants[i]:
            return rule
        if key not in self._made:
            self._made[key] = rewritten_rule(rule, by)
        return self._made[key]


def represented(core: Core, pi: Classes) -> Core:
    """Return a program, such as a query, whose rules speak of representatives."""
    constants = list({c for rule in core.rules for c in constants_of(rule)})
    by = dict(zip(constants, pi.representatives(constants), strict=True))
    return replace(core, rules=tuple(rewritten_rule(rule, by) for rule in core.rules))


def constants_of(rule: Rule) -> tuple[Value, ...]:
    """Return the constants of a rule that may equal others, each once."""
    atoms = (rule.head, *rule.atoms)
    terms = (t for atom in atoms for t in atom.terms if isinstance(t, Constant) and t.type in CONSTANTS)
    return tuple(dict.fromkeys(t.value for t in terms))


def rewritten_rule(rule: Rule, by: dict[Value, Value]) -> Rule:
    head, *body = (_replaced(atom, by) for atom in (rule.head, *rule.positive))
    negative = tuple(_replaced(atom, by) for atom in rule.negative)
    return replace(rule, head=head, positive=tuple(body), negative=negative)


def _replaced(atom: Atom, by: dict[Value, Value]) -> Atom:
    terms = tuple(
        replace(t, value=by[t.value]) if isinstance(t, Constant) and t.type in CONSTANTS else t for t in atom.terms
    )
    return Atom(atom.predicate, terms)
