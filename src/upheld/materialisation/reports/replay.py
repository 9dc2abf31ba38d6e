"""Updates that are made again on a copy of an earlier state, to see what each of them did to a fact, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from upheld.base.errors import Problem, quote
from upheld.compiler.edits import changed
from upheld.explain import Explainer, Explanation
from upheld.facts.change import Change
from upheld.language.core import Core, Fact, Rule
from upheld.materialisation.persistence.feeds import RowsByName, Step, appears_in
from upheld.materialisation.reports.history import FactEvent, FactHistory, event_of


class Replayed(Protocol):
    """A materialisation that updates are made again on."""

    @property
    def _written(self) -> Core: ...
    @property
    def _explainer(self) -> Explainer: ...

    def close(self) -> None: ...
    def _holds(self, goal: Fact) -> bool: ...
    def _explained(self, goal: Fact) -> Explanation: ...
    def _last_event(self, goal: Fact, prefixes: Mapping[str, str], change: Change) -> FactEvent | None: ...
    def _make_again(self, minus: RowsByName, plus: RowsByName) -> Change: ...
    def _change_program(self, core: Core, minus: RowsByName, plus: RowsByName) -> Change: ...


@dataclass(frozen=True)
class Replay:
    """A copy of the state before some updates, and these updates.

    `compiled` returns the program of a step. Rules that are equal in the program before it are the same objects.
    """

    copy: Replayed
    steps: Sequence[Step]
    compiled: Callable[[Step, Core], Core]

    def events_of(self, goal: Fact, prefixes: Mapping[str, str]) -> tuple[bool, tuple[FactEvent, ...]]:
        """Make the updates; return whether a fact held before them, and the updates in which that changed."""
        try:
            return self.copy._holds(goal), tuple(self._events(goal, prefixes))
        finally:
            self.copy.close()

    def _events(self, goal: Fact, prefixes: Mapping[str, str]) -> Iterator[FactEvent]:
        copy = self.copy
        for step in self.steps:
            if step.changes_rules:
                event = self._rule_event(goal, prefixes, step)
            else:
                event = copy._last_event(goal, prefixes, copy._make_again(step.minus, step.plus))
            if event is not None:
                yield replace(event, update=step.number, version=step.version)

    def _rule_event(self, goal: Fact, prefixes: Mapping[str, str], step: Step) -> FactEvent | None:
        """Change the rules, and return what that did to a fact, if it did anything."""
        copy = self.copy
        before, explainer = copy._written, copy._explainer
        explained = copy._explained(goal) if copy._holds(goal) else None
        change = copy._change_program(self.compiled(step, before), step.minus, step.plus)
        appeared = appears_in(goal, change)
        if appeared is None:
            return None
        gone, new = changed(before.rules, copy._written.rules)
        rules = _as_shown(copy._explainer, new) if appeared else _as_shown(explainer, gone)
        explanation = copy._explained(goal) if appeared else explained
        assert explanation is not None, "a fact that vanished without having held"
        return event_of(replace(explanation, prefixes=prefixes), step.number, appeared, change, rules)


def _as_shown(explainer: Explainer, rules: Sequence[Rule]) -> set[Rule]:
    """Return rules as proofs show them."""
    return {explainer.rules.unfold(rule).shown for rule in rules}


# -- problems ----------------------------------------------------------------------------------------------------------


def does_not_fit(history: FactHistory) -> Problem:
    """Return the problem of updates that do not lead to the facts there are."""
    message = f"the updates of the feed do not lead to the facts of the last version: {history.text}"
    note = (
        "replayed from the first version of the feed, the fact holds where it should not, or does not where it should"
    )
    hint = "a functor of the program may have changed; begin a new feed: save with `feed=False`, then with `feed=True`"
    return Problem("bad-state", message, note=note, hint=hint)


def no_relation(name: str) -> Problem:
    """Return the problem of explicit facts of a relation that the program did not have."""
    message = f"the updates of the feed leave facts of {quote(name)}, which the program did not have then"
    hint = "begin a new feed: save with `feed=False`, then with `feed=True`"
    return Problem("bad-state", message, hint=hint)


def other_meaning(version: int) -> Problem:
    """Return the problem of a program whose text means something else now."""
    message = f"the program of version {version}, which the feed has, is compiled to other rules now"
    note = "the feed has the digest of each of its programs"
    hint = "use the release of Upheld, and the value of `equality`, that saved the version"
    return Problem("other-program", message, note=note, hint=hint)
