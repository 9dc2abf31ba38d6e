"""Why a fact holds: its shortest proof. Why it does not: what is missing, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from upheld.algebra.engine import Engine
from upheld.algebra.instances import RuleInstance, instantiate
from upheld.algebra.meter import Meter
from upheld.algebra.sets import FactSet
from upheld.base.statistics import phase
from upheld.compiler.equality.equality import TRUTH
from upheld.compiler.strata import Stratification
from upheld.explain.aggregates import Aggregates
from upheld.explain.equality import Kept, prove
from upheld.explain.equivalences import ClassProver
from upheld.explain.explanation import Explanation, Failure, Proof, ProofStep
from upheld.explain.proof import Prover
from upheld.explain.refutation import Refuter
from upheld.explain.unfold import Rules
from upheld.language.core import Core, Fact, Rule
from upheld.language.substitution import substitute_rule

__all__ = ["Aggregates", "Explainer", "Explanation", "Failure", "Kept", "Proof", "ProofStep"]


class Explainer:
    """Explains facts of the materialisations of one program."""

    def __init__(self, core: Core):
        self.rules = Rules(core)

    @phase("explanation")
    def explain(self, goal: Fact, E: FactSet, I: FactSet) -> Explanation:
        """Return why a fact is in the materialisation I of the explicit facts E, or why not."""
        prover = Prover(self.rules, E | self.rules.aggregates.values(I), I)
        text, values = self.rules.fact_text(goal), self.rules.values(goal)
        with _limited_in_time_and_memory(I.engine.meter):
            if prover.holds(goal):
                return Explanation(goal, text, values, self._proof(goal, prover.prove(goal), I))
            return Explanation(goal, text, values, None, tuple(Refuter(self.rules, I).refute(goal)))

    @phase("explanation")
    def explain_rewritten(self, goal: Fact, kept: Kept, core: Core) -> Explanation:
        """Return why a fact holds or not where one constant stands for several: `core` speaks of those alone."""
        text, values = self.rules.fact_text(goal), self.rules.values(goal)
        with _limited_in_time_and_memory(kept.I.engine.meter):
            if kept.holds(goal):
                proved = prove(kept, goal)
                proof = self._proof(goal, proved.by_rule, kept.I, proved.by_equality, kept.aggregates)
                return Explanation(goal, text, values, proof)
            return Explanation(goal, text, values, None, tuple(Refuter(Rules(core), kept.I).refute(kept.normal(goal))))

    @phase("explanation")
    def explain_classes(
        self, engine: Engine, goal: Fact, core: Core, strata: Stratification, E: FactSet, I: FactSet
    ) -> Explanation:
        """Return why a fact holds or not where a program holds equivalences by classes."""
        prover = ClassProver(engine, core, strata, E | self.rules.aggregates.values(I), I)
        text, values = self.rules.fact_text(goal), self.rules.values(goal)
        with _limited_in_time_and_memory(engine.meter):
            if prover.holds(goal):
                proved = prover.prove(goal)
                return Explanation(goal, text, values, self._proof(goal, proved.by_rule, I, proved.by_equality))
            return Explanation(goal, text, values, None, tuple(Refuter(self.rules, I, core.classings).refute(goal)))

    def _proof(
        self,
        goal: Fact,
        chosen: Mapping[Fact, RuleInstance],
        I: FactSet,
        by_equality: Mapping[Fact, Sequence[Fact]] | None = None,
        aggregates: Aggregates | None = None,
    ) -> Proof:
        """Return the proof that has these derivations, without hidden relations, and these steps by equality."""
        aggregates = aggregates or self.rules.aggregates
        rules: dict[Fact, tuple[Rule, Rule]] = {}
        bodies: dict[Fact, list[Fact]] = {fact: list(premises) for fact, premises in (by_equality or {}).items()}
        for fact, instance in chosen.items():
            if not self.rules.is_hidden(fact):
                unfolded = self.rules.unfold(instance.rule)
                binding = unfolded.binding(instance, chosen)
                rules[fact] = unfolded.shown, substitute_rule(unfolded.shown, self.rules.bound(binding, unfolded.rule))
                asked = [atom for atom in unfolded.rule.positive if atom.predicate != TRUTH.name]
                bodies[fact] = [instantiate(atom, binding) for atom in asked]
        order = _downwards(goal, bodies)
        place = {fact: i for i, fact in enumerate(order)}

        def step(fact: Fact) -> ProofStep:
            if fact[0] in aggregates:
                values, bindings = aggregates.python_values(fact), aggregates.bindings(fact, I)
                return ProofStep(fact, aggregates.text(fact), values, bindings=bindings)
            premises = tuple(place[b] for b in bodies.get(fact, ()))
            rule, instance = rules.get(fact, (None, None))
            return ProofStep(fact, self.rules.fact_text(fact), self.rules.values(fact), rule, instance, premises)

        return Proof(tuple(map(step, order)))


@contextmanager
def _limited_in_time_and_memory(meter: Meter) -> Iterator[None]:
    """Suspend the limits on facts and rounds: they bound what is derived, and explaining derives nothing new."""
    limits = meter.limits
    meter.limits = replace(limits, facts=None, rounds=None)
    try:
        yield
    finally:
        meter.limits = limits


def _downwards(goal: Fact, bodies: Mapping[Fact, list[Fact]]) -> list[Fact]:
    """Return the facts of a proof, each before those that it rests on."""
    finished: list[Fact] = []
    seen = {goal}
    pending: list[tuple[Fact, Iterator[Fact]]] = [(goal, reversed(bodies.get(goal, [])))]
    while pending:
        fact, below = pending[-1]
        for body in below:
            if body not in seen:
                seen.add(body)
                pending.append((body, reversed(bodies.get(body, []))))
                break
        else:
            finished.append(fact)
            pending.pop()
    return finished[::-1]
