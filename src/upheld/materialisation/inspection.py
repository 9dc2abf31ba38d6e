"""The methods of `Materialisation` that report on itself: memory, profile, the history of a fact, verification."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

from upheld.algebra.sets import FactSet
from upheld.arguments import checked
from upheld.data.change import ByRelation, Change
from upheld.engines import EngineChoice
from upheld.errors import VerificationFailed, count
from upheld.explain import Explanation
from upheld.language.core import Fact, Rule
from upheld.maintain.registry import Algorithm
from upheld.maintain.update import Requested
from upheld.materialisation.reading import Reading
from upheld.materialisation.reports.history import FactEvent, FactHistory, Past, appears_in, causes
from upheld.materialisation.reports.memory import Memory, memory_of
from upheld.materialisation.reports.profile import Costs, Profile
from upheld.materialisation.reports.verification import Compared
from upheld.materialisation.updates.transaction import Part, refuse_in_transaction
from upheld.runtime.interruptions import interrupted_once


class _Explained(Exception):
    """Ends the transaction in which an earlier state was explained, so that the engine restores the state now."""

    def __init__(self, explanation: Explanation):
        super().__init__("an earlier state was explained")
        self.explanation = explanation


class Inspection(Reading):
    """The methods of `Materialisation` that report on itself."""

    _costs: Costs
    _past: Past
    _open_transaction: Part | None

    @property
    @abstractmethod
    def algorithm(self) -> str:
        """The name of the algorithm that `update` uses by default."""

    def memory(self) -> Memory:
        """Return the memory that the facts take, by relation: rows, indexes, texts and bookkeeping.

        It reads all rows of relations with texts. On Spark it is the sum over all tasks.
        """
        with self._turns.look():
            return memory_of(self._engine.memory(), self._core.predicates.values())

    def profile(self) -> Profile:
        """Return where time went so far: seconds, instances and facts by rule, stratum and phase, and by update.

        The time between two reports of an engine belongs to the rule of the second one, so times are estimates. It
        evaluates each rule once more, to count the facts that it derives.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> change = m.update(insert={"p": [3]})
        >>> [(run.update, run.inserted) for run in m.profile().runs]
        [(0, 0), (1, 2)]
        """
        rules = {rule: stratum.index for stratum in self._strata for rule in stratum.rules}
        with self._turns.work():
            try:
                with self._engine.meter.run():
                    return self._costs.profile(self.algorithm, rules, self._derived_by)
            finally:
                self._engine.abandon(keep=self._state.sets())

    def _derived_by(self, rule: Rule) -> int | None:
        return self._representation.derived_by(rule, self._state)

    @checked()
    def history(self, fact: str, row: object = None) -> FactHistory:
        """Return the updates in which a fact appeared and vanished, and why.

        For each there is a proof: after the update in which the fact appeared, or before the update in which it
        vanished; and the facts whose change made it so: explicit facts of the proof that came or went, or facts of
        negated atoms. It remembers the last thousand updates with up to 10,000 changed facts. For each event it undoes
        the updates made since, explains the fact, and restores the state.

        Args:
            fact: The fact as text, or the name of its relation.
            row: The values of the fact, if `fact` is the name of a relation.

        >>> rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
        >>> m = materialise(rules, {"edge": [(1, 2)]})
        >>> changes = m.update(insert={"edge": [(2, 3)]}), m.update(delete={"edge": [(1, 2)]})
        >>> history = m.history("path", (1, 3))
        >>> [(event.update, event.appeared, event.causes) for event in history.events]
        [(1, True, ('edge(2, 3) appeared',)), (2, False, ('edge(1, 2) vanished',))]
        """
        refuse_in_transaction(self._open_transaction, "`history` cannot be asked for")
        goal, prefixes = self._compile_fact(fact, row)
        with self._turns.work():
            events = tuple(
                self._event(goal, prefixes, number, appeared, change, self._past.since(number))
                for number, appeared, change in list(self._past.changes_of(goal))
            )
            now = self._explain(goal, prefixes)
            held_before = not events[0].appeared if events else now.holds
            since = self._past.first(self.version + 1)
            return FactHistory(goal, now.shortened, now.holds, held_before, since, events)

    def _event_of(self, goal: Fact, prefixes: dict[str, str], change: Change) -> FactEvent | None:
        """Return what the last update did to a fact, if it did anything."""
        appeared = appears_in(goal, change)
        return None if appeared is None else self._event(goal, prefixes, self.version, appeared, change, [])

    def _event(
        self, goal: Fact, prefixes: dict[str, str], number: int, appeared: bool, change: Change, later: list[Change]
    ) -> FactEvent:
        """Return what an update did to a fact; `later` are the changes made since, the last one first."""
        explained = self._explained_before(later if appeared else [*later, change], goal)
        explanation = replace(explained, prefixes=prefixes)
        because = dict.fromkeys(causes(explanation.proof, appeared, change))
        return FactEvent(number, appeared, explanation, tuple(map(explanation.short, because)))

    def _explained_before(self, later: list[Change], goal: Fact) -> Explanation:
        """Return the explanation of a fact in the state before some changes, which are undone in a transaction."""
        if not later:
            return self._explained(goal)

        def undo() -> list[Requested]:
            return [Requested(self._loaded_facts(c.asserted), self._loaded_facts(c.retracted)) for c in later]

        def explain(change: Change) -> None:
            representation = self._representation
            raise _Explained(representation.explain(self._explainer, self._written, self._state, goal))

        try:
            with interrupted_once() as interruptions:
                self._update_or_abandon(undo, None, interruptions, before_commit=explain)
        except _Explained as ended:
            return ended.explanation
        raise AssertionError("an undone update that was committed")

    def _loaded_facts(self, facts: ByRelation) -> FactSet:
        return self._engine.load_all({r.name: r.unordered or r.stored_set() for r in facts.not_empty()})

    @checked()
    def verify(self, *, engine: str | EngineChoice = "memory") -> None:
        """Recompute all facts from the explicit facts and compare; a difference raises an error with a proof.

        It costs as much as `materialise`, and the memory of a second materialisation.

        Args:
            engine: Engine to recompute with. `reference` shares no code with the other engines, and is slow.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> change = m.update(delete={"p": [1]})
        >>> m.verify()
        """
        with self._turns.look():
            explicit = [(name, self.explicit(name).stored_set()) for name in self.relations]
            copy = self._copy_with(explicit, engine)
            try:
                expected = {name: copy[name].stored_set() for name in self.relations}
                compared = Compared("facts", [self[name] for name in self.relations], expected, copy._explained)
                problems = list(compared.problems(f"after {count(self.version, 'update')}"))
            finally:
                copy.close()
        if problems:
            raise VerificationFailed(problems)

    @abstractmethod
    def close(self) -> None:
        """End the tasks of an engine that keeps its facts in other processes."""

    @abstractmethod
    def _update_or_abandon(
        self,
        load: Callable[[], list[Requested]],
        algorithm: Algorithm | None,
        interruptions: interrupted_once,
        ahead: Requested | None = None,
        numbers: tuple[int, ...] = (),
        before_commit: Callable[[Change], None] | None = None,
    ) -> Change:
        """Make the updates that `load` returns as one, or leave everything as it was."""
