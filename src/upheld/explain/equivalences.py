"""Proofs where equivalences are held by classes.

E, I     explicit facts; the materialisation, with the members of classes
K        derived facts that are known to follow, with the classes that they and explicit facts make

All is derived once more, a round at a time. The facts that a round adds to K have derivations from earlier facts, so
going back through the rounds from the goal, every fact takes one of these, and nothing rests on itself. The proof
that two values are equivalent is the links on a shortest path from one to the other, among the links of K at that time.

A rule that asks for classes is shown as it was written: what it does not ask for is any member of a class, so the same
as the one it does ask for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from upheld.algebra.engine import Engine
from upheld.algebra.instances import RuleInstance
from upheld.algebra.sets import Bag, FactSet, bag, derive, settle, supports
from upheld.compiler.equality.equivalences import binding_as_written
from upheld.compiler.strata import Stratification, Stratum
from upheld.language.core import Core, Fact
from upheld.language.values import Value


class Round(NamedTuple):
    """The additions of a round to K: facts, and changed memberships of classes."""

    facts: Bag
    left: Bag
    come: Bag


@dataclass
class Proved:
    """The derivations of a proof, and what of it holds because a relation is an equivalence."""

    by_rule: dict[Fact, RuleInstance] = field(default_factory=dict)
    by_equality: dict[Fact, Sequence[Fact]] = field(default_factory=dict)


class ClassProver:
    """Looks for proofs in a materialisation that holds equivalences by classes."""

    def __init__(self, engine: Engine, core: Core, strata: Stratification, E: FactSet, I: FactSet):
        self._core, self._strata, self._E, self._I, self._engine = core, strata, E, I, engine
        self._classings = {classing.relation: classing for classing in core.classings}
        self._K = engine.named("known")
        self._wanted: set[Fact] = set()
        self._proved = Proved()

    def holds(self, fact: Fact) -> bool:
        return self._connected(fact, self._I) if fact[0] in self._classings else self._is_in(fact, self._I)

    def prove(self, goal: Fact) -> Proved:
        """Return a proof of a fact that holds."""
        rounds: list[Round] = []
        for s in self._strata:
            if self._derived(goal):
                break
            self._saturate(s, rounds, goal)
        self._want(goal)
        K = self._K
        for last in reversed(rounds):
            facts = last.facts.facts()
            K -= last.come.facts()
            K |= last.left.facts()
            K -= facts
            for fact, _ in list(bag(settle(self._loaded(self._wanted) & facts)).items()):
                self._wanted.discard(fact)
                self._derive(fact)
        assert not self._wanted, "a fact that holds and has no proof"
        return self._proved

    # -- forwards ------------------------------------------------------------------------------------------------------

    def _saturate(self, s: Stratum, rounds: list[Round], goal: Fact) -> None:
        """Add to K what a stratum derives, until it has the goal."""
        E, K, I, engine = self._E, self._K, self._I, self._engine
        links: FactSet = E | K
        N = derive(s.rules, E | K, I)
        while not self._derived(goal):
            delta = settle(N - (E | K))
            facts = bag(delta)
            K |= delta
            connecting = settle(delta | links)
            for classing in s.classings:
                left, come = engine.equivalence(classing).join(connecting, K)
                rounds.append(Round(facts, bag(left), bag(come)))
                facts = bag(engine.nothing)
                K -= left
                K |= come
                delta = settle(delta | come)
            if not s.classings:
                rounds.append(Round(facts, bag(engine.nothing), bag(engine.nothing)))
            if not delta:
                break
            links = engine.nothing
            N = derive(s.recursive, E | K, I, via=delta)
        for classing in s.classings:  # under the numbers of I from now on, which is what rules negate
            mine, theirs = (engine.load(classing.members, facts.rows(classing.members)) for facts in (K, I))
            rounds.append(Round(bag(engine.nothing), bag(mine), bag(theirs)))
            K -= mine
            K |= theirs

    def _derived(self, goal: Fact) -> bool:
        known = self._E | self._K
        return self._connected(goal, known) if goal[0] in self._classings else self._is_in(goal, known)

    # -- backwards -----------------------------------------------------------------------------------------------------

    def _derive(self, fact: Fact) -> None:
        """Take a derivation of a fact from K."""
        found = supports(self._core.rules, self._loaded([fact]), self._E | self._K, self._I)
        instance = next(iter(found))
        assert isinstance(instance, RuleInstance), "an instance without its binding"
        rule, binding = binding_as_written(instance.rule, instance.binding, self._classings)
        written = RuleInstance(rule, tuple(binding[name] for name in rule.variables()))
        self._proved.by_rule[fact] = written
        for body in written.body:
            self._want(body)

    def _want(self, fact: Fact) -> None:
        """Have a fact proved that explicit facts and K say holds.

        A way is looked for each time that it takes: what was found when K had more may rest on what is to be proved.
        """
        if fact in self._wanted or self._is_in(fact, self._E):
            return
        if fact[0] not in self._classings or self._is_in(fact, self._K):
            self._wanted.add(fact)
            return
        links = self._way(fact)
        self._proved.by_rule.pop(fact, None)
        self._proved.by_equality[fact] = links
        for link in links:
            self._want(link)

    def _way(self, pair: Fact) -> list[Fact]:
        """Return the links on a shortest way from one value to another that is equivalent."""
        relation, (start, end) = pair
        known = self._E | self._K
        about = self._engine.load(relation, [(start, start)])
        around = settle(self._engine.equivalence(self._classings[relation]).around(about, known))
        links: dict[Value, list[tuple[Value, Fact]]] = defaultdict(list)
        for row in sorted(around.rows(relation)):
            links[row[0]].append((row[1], (relation, row)))
            links[row[1]].append((row[0], (relation, row)))
        if start == end:
            return [links[start][0][1]]
        came: dict[Value, tuple[Value, Fact]] = {}
        waiting = deque([start])
        while end not in came:
            value = waiting.popleft()
            for other, link in links[value]:
                if other != start and other not in came:
                    came[other] = value, link
                    waiting.append(other)
        way: list[Fact] = []
        while end != start:
            end, link = came[end]
            way.append(link)
        return way[::-1]

    # -- sets ----------------------------------------------------------------------------------------------------------

    def _connected(self, pair: Fact, facts: FactSet) -> bool:
        relation, (left, right) = pair
        return right in self._engine.equivalence(self._classings[relation]).class_of(left, facts)

    def _is_in(self, fact: Fact, facts: FactSet) -> bool:
        return bool(settle(self._loaded([fact]) & facts))

    def _loaded(self, facts: Iterable[Fact]) -> FactSet:
        result = self._engine.named("loaded")
        rows: dict[str, list[tuple[Value, ...]]] = defaultdict(list)
        for predicate, row in facts:
            rows[predicate].append(row)
        for predicate, mine in rows.items():
            result |= self._engine.load(predicate, mine)
        return result
