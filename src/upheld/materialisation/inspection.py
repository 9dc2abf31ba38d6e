"""The methods of `Materialisation` that report on itself: memory, profile, the history of a fact, verification."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from upheld.algebra.engine import Remote
from upheld.algebra.sets import FactSet
from upheld.base.errors import FactsError, VerificationFailed, count, require
from upheld.base.interruptions import interrupted_once
from upheld.compiler.equality.equality import with_equality
from upheld.engines import EngineChoice, check_engine
from upheld.facts.change import ByRelation, Change
from upheld.language.core import Core, Fact, Rule
from upheld.language.syntax.files import read_text
from upheld.maintain.registry import Algorithm
from upheld.maintain.update import Requested
from upheld.materialisation.persistence.feeds import Noted, Past, RowsByName, Step, appears_in, net_rows, step_of
from upheld.materialisation.programs import compile_saved
from upheld.materialisation.reading import Reading
from upheld.materialisation.updates.transaction import Part, refuse_in_transaction
from upheld.materialisation.versions.views import Rows

if TYPE_CHECKING:
    from upheld.explain import Explanation
    from upheld.materialisation.reports.history import FactEvent, FactHistory
    from upheld.materialisation.reports.memory import Memory
    from upheld.materialisation.reports.profile import Costs, Profile
    from upheld.materialisation.reports.replay import Replay
    from upheld.store.feed import SavedProgram


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
    _remote: Remote | None
    _equality: str

    @property
    @abstractmethod
    def algorithm(self) -> str:
        """The name of the algorithm that `update` uses by default."""

    def memory(self) -> Memory:
        """Return the memory that the facts take, by relation: rows, indexes, texts and bookkeeping.

        It reads all rows of relations with texts. On Spark it is the sum over all tasks.
        """
        from upheld.materialisation.reports.memory import memory_of

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

    def history(self, fact: str, row: object = None) -> FactHistory:
        """Return the updates in which a fact appeared and vanished, and why.

        For each there is a proof: after the update in which the fact appeared, or before the update in which it
        vanished; and what made it so: explicit facts of the proof that came or went, facts of negated atoms, or rules
        that were added or removed. It remembers the last thousand updates with up to 10,000 changed facts. For each
        event it undoes the updates made since, explains the fact, and restores the state.

        A materialisation that goes on from a saved state with a feed has all updates of the feed: see `save`. These,
        and updates before a rule change, are made again on a copy with the memory engine.

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
        from upheld.materialisation.reports.history import FactHistory
        from upheld.materialisation.reports.replay import does_not_fit

        refuse_in_transaction(self._open_transaction, "`history` cannot be asked for")
        goal, prefixes = self._compile_fact(fact, row)
        with self._turns.work():
            feed, first = self._past.feed, self._past.first(self.version + 1)
            now = self._explain(goal, prefixes)
            known = FactHistory(goal, now.shortened, now.holds, now.holds, first, ())
            if feed is not None:
                known = replace(known, since=first + feed.offset, since_version=feed.version_before(first))
            if feed is not None and feed.begins_before(first):
                reach = feed.read()
                program = self._program_then(reach.program, reach.since)
                known = replace(known, since=reach.first, since_version=reach.since)
                replay = self._replay(program, reach.steps)
            else:
                hits = self._past.changes_of(goal)
                since = self._past.since(hits[0][1].number - 1) if hits else []
                changed = [noted.programs for noted in since if noted.programs is not None]
                if not changed:
                    events = tuple(self._event(goal, prefixes, appeared, noted) for appeared, noted in hits)
                    return replace(known, held_before=not hits[0][0] if hits else now.holds, events=events)
                replay = self._replay(changed[-1][0], [step_of(noted, feed) for noted in reversed(since)])
        # The copy is nobody else's: other threads need not wait for it.
        held_before, events = replay.events_of(goal, prefixes)
        if (events[-1].appeared if events else held_before) != now.holds:
            raise FactsError(does_not_fit(known))
        return replace(known, held_before=held_before, events=events)

    def event(self, change: Change, fact: str, row: object = None) -> FactEvent | None:
        """Return what the last update did to a fact, and why; None if the fact neither appeared nor vanished.

        Called after each update, it finds all of a fact's history, of which `history` remembers the end.

        Args:
            change: The change of the last update.
            fact: As for `history`.
            row: As for `history`.

        >>> m = materialise("q(x) :- p(x).", {"p": [1]})
        >>> m.event(m.update(insert={"p": [2]}), "q(2)").causes
        ('p(2) appeared',)
        """
        require(isinstance(change, Change), "change", "an `upheld.Change`", change)
        refuse_in_transaction(self._open_transaction, "`event` cannot be asked for")
        goal, prefixes = self._compile_fact(fact, row)
        with self._turns.work():
            return self._last_event(goal, prefixes, change)

    def _last_event(self, goal: Fact, prefixes: Mapping[str, str], change: Change) -> FactEvent | None:
        """Return what the last update did to a fact, if it did anything."""
        appeared = appears_in(goal, change)
        if appeared is None:
            return None
        return self._event(goal, prefixes, appeared, Noted(self.version, change, 0))

    def _event(self, goal: Fact, prefixes: Mapping[str, str], appeared: bool, noted: Noted) -> FactEvent:
        """Return what an update did to a fact. The rules have not changed since."""
        from upheld.materialisation.reports.history import event_of

        later = [following.change for following in self._past.since(noted.number)]
        explained = self._explained_before(later if appeared else [*later, noted.change], goal)
        event = event_of(replace(explained, prefixes=prefixes), noted.number, appeared, noted.change)
        feed = self._past.feed
        if feed is None:
            return event
        return replace(event, update=noted.number + feed.offset, version=feed.version_of(noted.number))

    # -- updates that are made again -----------------------------------------------------------------------------------

    def _replay(self, program: Core, steps: Sequence[Step]) -> Replay:
        """Return a copy of the state before some updates, which had this program, and the updates."""
        from upheld.materialisation.reports.replay import Replay, no_relation

        net = net_rows(steps)
        rows = {name: self._rows_before(name, *net.get(name, ((), ()))) for name in {*self.relations, *net}}
        explicit = [(name, some) for name, some in rows.items() if len(some)]
        if lost := [name for name, _ in explicit if name not in program.predicates]:
            raise FactsError(no_relation(lost[0]))
        engine = "memory" if self._remote is not None else None
        return Replay(self._copy_with(explicit, engine, program, "adaptive"), steps, self._program_of)

    def _rows_before(self, name: str, came: Rows, went: Rows) -> Rows:
        """Return the explicit facts that a relation had before some came and some went."""
        return self._rows_now(name, True, came, went) if name in self._written.predicates else went

    def _program_of(self, step: Step, before: Core) -> Core:
        """Return the program from a step on. The rules that the program before it has as well are in it."""
        from upheld.compiler.edits import exchanged

        if step.programs is not None:
            after = step.programs[1]
            return replace(after, rules=tuple(exchanged(after.rules, before.rules)))
        assert step.program is not None and step.version is not None, "a saved step that changes no rules"
        return self._program_then(step.program, step.version, before.rules)

    def _program_then(self, program: SavedProgram, version: int, rules: Iterable[Rule] = ()) -> Core:
        """Return a program of a feed. The rules that the program now has as well, or some others, are in it."""
        from upheld.compiler.edits import exchanged, without_unread
        from upheld.materialisation.reports.replay import other_meaning
        from upheld.store.programs import other_program

        saved, place = program.as_of(version), f"<program of version {version}>"
        core = with_equality(compile_saved(read_text(program.text, program.dialect, place), saved), self._equality)
        differs = other_program(saved, core, self._equality)
        if differs is not None:
            raise FactsError(other_meaning(version))
        known = dict.fromkeys([*rules, *self._written.rules])
        return without_unread(replace(core, rules=tuple(exchanged(core.rules, known))))

    def _holds(self, goal: Fact) -> bool:
        """Return whether a fact holds; the program need not have its relation."""
        name, row = goal
        if name not in self._written.predicates:
            return False
        return self._has_now(name, False, row) if self._is_live(name) else row in set(self._rows(name))

    def _make_again(self, minus: RowsByName, plus: RowsByName) -> Change:
        """Make an update of facts as they are stored."""
        with interrupted_once() as interruptions, self._turns.work():
            return self._update_or_abandon(
                lambda: [Requested(self._engine.load_all(minus), self._engine.load_all(plus))], None, interruptions
            )

    @abstractmethod
    def _change_program(self, core: Core, minus: RowsByName, plus: RowsByName) -> Change:
        """Take over the rules of a program, and change explicit facts as they are stored."""

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

    def verify(self, *, engine: str | EngineChoice = "memory") -> None:
        """Recompute all facts from the explicit facts and compare; a difference raises an error with a proof.

        It costs as much as `materialise`, and the memory of a second materialisation.

        Args:
            engine: Engine to recompute with. `reference` shares no code with the other engines, and is slow.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> change = m.update(delete={"p": [1]})
        >>> m.verify()
        """
        from upheld.materialisation.reports.verification import Compared

        check_engine(engine)
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
        before_commit: Callable[[Change], None] | None = None,
    ) -> Change:
        """Make the updates that `load` returns as one, or leave everything as it was."""
