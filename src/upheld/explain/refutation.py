"""Why rules do not derive a fact: where each body fails, under the binding that gets furthest.

A body is matched literal by literal, all bindings at once: built-ins as soon as their variables are bound, otherwise
the first atom that shares a variable with what is bound, and negated atoms last. The literal that no binding passes is
the one that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from upheld.algebra.instances import Binding, RuleInstance, evaluate_builtin, is_ready, unify
from upheld.algebra.sets import FactSet, supports
from upheld.explain.explanation import Failure, Literal
from upheld.explain.unfold import Rules, Unfolded
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Builtin, Classing, Fact, Predicate, Rule
from upheld.language.core_text import is_matched, value_text
from upheld.language.expressions import PREFIX as LIFTED
from upheld.language.substitution import Substitution, substitute_atom, substitute_builtin
from upheld.language.types.functors import Undefined
from upheld.language.values import Value
from upheld.language.wildcards import PREFIX as WILDCARD

#: The relation of the bindings that an atom is to be matched with; no dialect lets a user write such a name.
ASKED = "$asked"

#: The variable of the class that two equivalent values are in.
CLASS = "$class"

#: The variable of the value that an aggregate has.
VALUE = "$value"

#: Bindings that are followed; of more, the first ones.
MOST_BINDINGS = 10_000


@dataclass(frozen=True, eq=False)
class _Condition:
    """A literal of a body as it is matched and as it is shown."""

    matched: Atom | Builtin
    shown: Atom | Builtin
    negated: bool = False

    def turn(self, names: set[str]) -> int:
        """Return how soon it is to be matched when these variables are bound, 0 for at once."""
        if isinstance(self.matched, Builtin):
            return 0 if is_ready(self.matched, names) else 4
        if self.negated:
            return 3
        variables = set(self.matched.variables())
        return 1 if not variables or not variables.isdisjoint(names) else 2

    def asks_for(self, fact: Fact, binding: Binding) -> bool:
        """Return whether under a binding it is the atom of a fact."""
        if isinstance(self.matched, Builtin) or self.negated or self.matched.predicate != fact[0]:
            return False
        terms = self.matched.terms
        return all((t.value if isinstance(t, Constant) else binding.get(t.name)) == v for t, v in zip(terms, fact[1]))

    def under(self, by: Substitution) -> Literal:
        if isinstance(self.shown, Builtin):
            return Literal(substitute_builtin(self.shown, by))
        return Literal(substitute_atom(self.shown, by), self.negated)


class Refuter:
    """Tells why facts do not follow in a materialisation."""

    def __init__(self, rules: Rules, I: FactSet, classings: Sequence[Classing] = ()):
        self.rules, self.I, self.engine = rules, I, I.engine
        #: Equivalences that are held by classes.
        self._classings = {classing.relation: classing for classing in classings}

    def refute(self, goal: Fact) -> Iterator[Failure]:
        """Yield for each rule that could derive a fact, and does not, where its body fails."""
        predicate, row = goal
        for rule in self.rules.visible:
            if rule.head.predicate == predicate:
                binding = unify(rule.head, row, {})
                if binding is not None:
                    yield self._failure(self.rules.unfold(rule), binding, goal)

    def _failure(self, unfolded: Unfolded, binding: Binding, goal: Fact) -> Failure:
        rule = unfolded.rule
        types = self.rules.types(rule)
        todo = [
            *(_Condition(a, self.rules.shown(a)) for a in rule.positive),
            *(_Condition(a, self.rules.shown(a, negated=True), True) for a in rule.negative),
            *(_Condition(b, b) for b in rule.builtins),
        ]
        bindings = [binding]
        passed: list[_Condition] = []
        while todo:
            names = set(bindings[0])
            condition = min(todo, key=lambda c: c.turn(names))
            todo.remove(condition)
            extended, because = self._extended(condition, bindings, types)
            if not extended:
                others = [b for b in bindings if not condition.asks_for(goal, b)]
                failure = self._told(unfolded, (others or bindings)[0], passed, condition, because)
                return replace(failure, circular=not others)
            bindings = _ordered(extended, rule)[:MOST_BINDINGS]
            passed.append(condition)
        raise AssertionError("a rule that derives a fact which does not hold")

    def _told(
        self, unfolded: Unfolded, binding: Binding, passed: list[_Condition], failed: _Condition, because: str
    ) -> Failure:
        named = [n for n in unfolded.rule.variables() if n in binding]
        by = self.rules.bound(binding, unfolded.rule)
        return Failure(
            unfolded.shown,
            {n: by[n] for n in named if not n.startswith((WILDCARD, LIFTED))},
            tuple(literal for literal in (condition.under(by) for condition in passed) if not _is_matched(literal)),
            failed.under(by),
            because,
        )

    # -- matching one literal ------------------------------------------------------------------------------------------

    def _extended(
        self, condition: _Condition, bindings: list[Binding], types: dict[str, str]
    ) -> tuple[list[Binding], str]:
        """Return the bindings that pass a literal, and what is wrong with it if there are none."""
        if isinstance(condition.matched, Builtin):
            return _computed(condition.matched, bindings)
        atom = condition.matched
        names = tuple(n for n in dict.fromkeys(atom.variables()) if n in bindings[0])
        found = self._matches(atom, condition.negated, names, bindings, types)
        extended = [{**b, **more} for b in bindings for more in found.get(tuple(b[n] for n in names), ())]
        if condition.negated:
            return extended, "it holds"
        if not extended and atom.predicate in self.rules.aggregates:
            return extended, self._other_value(atom, names, bindings[:1], types)
        return extended, "no such fact" if all(n in names for n in atom.variables()) else "no fact matches"

    def _other_value(self, atom: Atom, names: tuple[str, ...], bindings: list[Binding], types: dict[str, str]) -> str:
        """Return what the value of an aggregate is instead of the one that a binding asks for."""
        value, sought = Variable(VALUE), atom.terms[-1]
        known = tuple(n for n in names if not isinstance(sought, Variable) or n != sought.name)
        any_value = replace(atom, terms=(*atom.terms[:-1], value))
        types = {**types, VALUE: self.rules.predicates[atom.predicate].types[-1]}
        for ways in self._matches(any_value, False, known, bindings, types).values():
            return f"it is {value_text(ways[0][VALUE], types[VALUE])}"
        return self.rules.aggregates.nothing(atom.predicate)

    def _matches(
        self, atom: Atom, negated: bool, names: tuple[str, ...], bindings: list[Binding], types: dict[str, str]
    ) -> dict[tuple[Value, ...], list[Binding]]:
        """Return for values of the variables that are bound the bindings under which an atom holds, or does not."""
        asked = Predicate(ASKED, names, tuple(types[n] for n in names), hidden=True)
        head = Atom(ASKED, tuple(map(Variable, names)))
        rules = list(self._asking(head, atom, negated))
        self.engine.declare(asked)
        try:
            H = self.engine.load(ASKED, {tuple(b[n] for n in names) for b in bindings})
            found: dict[tuple[Value, ...], list[Binding]] = {}
            for instance in islice(supports(rules, H, self.I, self.I), MOST_BINDINGS):
                assert isinstance(instance, RuleInstance), "an instance without its binding"
                binding = {name: value for name, value in instance.binding.items() if name != CLASS}
                found.setdefault(instance.head[1], []).append(binding)
            del H
            return found
        finally:
            self.engine.forget(asked)

    def _asking(self, head: Atom, atom: Atom, negated: bool) -> Iterator[Rule]:
        """Yield the rules that ask whether an atom holds, or does not."""
        classing = self._classings.get(atom.predicate)
        if classing is None:
            yield Rule(head, negative=(atom,)) if negated else Rule(head, positive=(atom,))
            return
        left, right = (classing.member(term, Variable(CLASS)) for term in atom.terms)
        if not negated:
            yield Rule(head, positive=(left, right))
            return
        yield Rule(head, negative=(Atom(classing.values, atom.terms[:1]),))
        yield Rule(head, positive=(left,), negative=(right,))


def _is_matched(literal: Literal) -> bool:
    """Return whether a literal that holds only repeats what the records of the atoms show."""
    return isinstance(literal.of, Builtin) and is_matched(literal.of)


def _computed(builtin: Builtin, bindings: list[Binding]) -> tuple[list[Binding], str]:
    extended: list[Binding] = []
    because = "it is false"
    for binding in bindings:
        try:
            extended += islice(evaluate_builtin(builtin, binding), MOST_BINDINGS)
        except Undefined as e:
            if binding is bindings[0]:
                because = str(e)
    return extended, because


def _ordered(bindings: list[Binding], rule: Rule) -> list[Binding]:
    """Return bindings of the same variables in ascending order, NaN last."""
    names = [n for n in rule.variables() if n in bindings[0]]
    return sorted(bindings, key=lambda b: [(b[n] != b[n], b[n]) for n in names])
