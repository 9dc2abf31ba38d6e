"""The history of a fact: the updates in which it appeared and vanished, and why."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from upheld.data.change import ByRelation, Change
from upheld.data.relation import Relation
from upheld.errors import count
from upheld.explain import Explanation, Proof
from upheld.explain.explanation import LEVELS_SHOWN
from upheld.language.core import Atom, Core, Fact
from upheld.language.core_text import atom_text
from upheld.language.syntax.ast import Constant
from upheld.pages.markup import indented, outline

#: Updates that are remembered, and facts that these have changed altogether.
UPDATES_REMEMBERED = 1_000
FACTS_REMEMBERED = 10_000

#: Facts of a change that hold on to their own codes alone. More of them would hold on to the rows of whole tables.
FEW = 256


@dataclass(frozen=True)
class FactEvent:
    """An update in which a fact appeared or vanished.

    `explanation` is its proof after the update in which it appeared, or before the update in which it vanished;
    `causes` are the changes of facts that this proof depends on.
    """

    update: int
    appeared: bool
    explanation: Explanation
    causes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the event as data that JSON can hold."""
        return {
            "update": self.update,
            "event": "appeared" if self.appeared else "vanished",
            "causes": list(self.causes),
            "explanation": self.explanation.to_dict(),
        }

    def lines(self, depth: int | None) -> Iterator[str]:
        """Yield the lines of its text.

        Args:
            depth: Maximum number of levels of the proof; None for all.
        """
        yield f"  update {self.update}: {'appeared' if self.appeared else 'vanished'}"
        yield from (f"    because {cause}" for cause in self.causes)
        yield f"    the proof {'since then' if self.appeared else 'before'}:"
        yield from (f"      {line}" for line in self.explanation.to_text(depth).splitlines())


@dataclass(frozen=True)
class FactHistory:
    """The updates in which a fact appeared and vanished, the first one first, as far as they are remembered."""

    fact: Fact
    #: The fact as it is written.
    text: str
    #: Whether the fact holds now, and whether it did before the first update that is remembered.
    holds: bool
    held_before: bool
    #: The number of the first update that is remembered; one more than there are if none is.
    since: int
    events: tuple[FactEvent, ...]

    def to_text(self, depth: int | None = LEVELS_SHOWN) -> str:
        """Return the history as text.

        Args:
            depth: Maximum number of levels of each proof; None for all.
        """
        lines = [f"{self.text}  {'holds' if self.holds else 'does not hold'}"]
        start = "when it was materialised" if self.since == 1 else f"before update {self.since}, the first remembered"
        lines.append(f"  {'held' if self.held_before else 'did not hold'} {start}")
        for event in self.events:
            lines += event.lines(depth)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<FactHistory {self.text}, {count(len(self.events), 'event')}>"

    def _repr_html_(self) -> str:
        return outline(indented(self.to_text().splitlines()))

    def to_dict(self) -> dict[str, Any]:
        """Return the history as data that JSON can hold."""
        return {
            "fact": self.text,
            "holds": self.holds,
            "held_before": self.held_before,
            "since": self.since,
            "events": [event.to_dict() for event in self.events],
        }

    def to_json(self) -> str:
        """Return the history as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


# -- what is remembered ------------------------------------------------------------------------------------------------


class _Remembered(NamedTuple):
    number: int
    change: Change
    facts: int


class Past:
    """The last changes of a materialisation, bounded by their number and by the facts in them."""

    def __init__(self) -> None:
        self._changes: deque[_Remembered] = deque()
        self._facts = 0
        #: The program of these changes: a change of rules begins anew.
        self._program: Core | None = None

    def note(self, number: int, change: Change, facts: int, program: Core) -> None:
        """Remember a change, and forget the oldest ones that are too many."""
        if program is not self._program:
            self._changes.clear()
            self._facts, self._program = 0, program
        if FEW < facts <= FACTS_REMEMBERED:
            for side in (change.inserted, change.deleted, change.asserted, change.retracted):
                for columns in (relation.unordered for relation in side.held()):
                    if columns is not None:
                        columns.keep_own_codes()
        self._changes.append(_Remembered(number, change, facts))
        self._facts += facts
        while self._changes and (len(self._changes) > UPDATES_REMEMBERED or self._facts > FACTS_REMEMBERED):
            self._facts -= self._changes.popleft().facts

    def since(self, number: int) -> list[Change]:
        """Return the changes made after an update, the last one first. All of them must be remembered."""
        return [remembered.change for remembered in reversed(self._changes) if remembered.number > number]

    def changes_of(self, fact: Fact) -> Iterator[tuple[int, bool, Change]]:
        """Yield the updates in which a fact appeared or vanished, and which of these it did."""
        for number, change, _ in self._changes:
            appeared = appears_in(fact, change)
            if appeared is not None:
                yield number, appeared, change

    def first(self, following: int) -> int:
        """Return the number of the first change that is remembered, or of the one that will follow."""
        return self._changes[0].number if self._changes else following


def appears_in(fact: Fact, change: Change) -> bool | None:
    """Return whether a fact appears with a change; None if it neither appears nor vanishes."""
    if _has(change.inserted, fact):
        return True
    return False if _has(change.deleted, fact) else None


def _has(facts: ByRelation, fact: Fact) -> bool:
    name, row = fact
    return name in facts and row in facts[name].stored_set()


# -- why ---------------------------------------------------------------------------------------------------------------


def causes(proof: Proof | None, appeared: bool, change: Change) -> Iterator[str]:
    """Yield the changes of facts that a proof depends on: it began to hold with the change, or ceased to hold."""
    if proof is None:
        return
    gained, lost = (change.inserted, change.deleted) if appeared else (change.deleted, change.inserted)
    verb, opposite = ("appeared", "vanished") if appeared else ("vanished", "appeared")
    for step in proof.steps:
        if step.explicit and _has(gained, step.fact):
            yield f"{step.text} {verb}"
        if step.bindings is not None:
            yield f"{step.text} has changed"
        for literal in step.conditions:
            if literal.negated and isinstance(literal.of, Atom) and literal.of.predicate in lost:
                yield from (f"{text} {opposite}" for text in _matching(literal.of, lost[literal.of.predicate]))


def _matching(atom: Atom, facts: Relation) -> Iterator[str]:
    """Yield the facts that an atom matches, as they are written."""
    wanted = {i: term.value for i, term in enumerate(atom.terms) if isinstance(term, Constant)}
    for row in facts.stored():
        if all(row[i] == value for i, value in wanted.items()):
            yield atom_text(Atom(atom.predicate, tuple(map(Constant, row, facts.stored_types))))
