"""The history of a fact: the updates in which it appeared and vanished, and why."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from upheld.base.errors import count
from upheld.base.pages import indented, outline
from upheld.explain import Explanation, Proof
from upheld.explain.explanation import LEVELS_SHOWN
from upheld.facts.change import Change
from upheld.facts.relation import Relation
from upheld.language.ast import Constant
from upheld.language.core import Atom, Fact, Rule
from upheld.language.core_text import atom_text, rule_text
from upheld.materialisation.persistence.feeds import has


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
    #: The version of the saved state that has the update, if the state keeps a feed and the update is saved.
    version: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the event as data that JSON can hold."""
        return {
            "update": self.update,
            "version": self.version,
            "event": "appeared" if self.appeared else "vanished",
            "causes": list(self.causes),
            "explanation": self.explanation.to_dict(),
        }

    def lines(self, depth: int | None) -> Iterator[str]:
        """Yield the lines of its text.

        Args:
            depth: Maximum number of levels of the proof; None for all.
        """
        saved = "" if self.version is None else f" (version {self.version})"
        yield f"  update {self.update}{saved}: {'appeared' if self.appeared else 'vanished'}"
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
    #: The version of the saved state that its feed reaches back to, if the history is that of a feed.
    since_version: int | None = None

    def to_text(self, depth: int | None = LEVELS_SHOWN) -> str:
        """Return the history as text.

        Args:
            depth: Maximum number of levels of each proof; None for all.
        """
        lines = [f"{self.text}  {'holds' if self.holds else 'does not hold'}"]
        lines.append(f"  {'held' if self.held_before else 'did not hold'} {self._start()}")
        for event in self.events:
            lines += event.lines(depth)
        return "\n".join(lines)

    def _start(self) -> str:
        """Return where the history begins."""
        if self.since_version is not None:
            return f"before update {self.since}, in version {self.since_version}, which the feed reaches back to"
        return "when it was materialised" if self.since == 1 else f"before update {self.since}, the first remembered"

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
            "since_version": self.since_version,
            "events": [event.to_dict() for event in self.events],
        }

    def to_json(self) -> str:
        """Return the history as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


# -- why ---------------------------------------------------------------------------------------------------------------


def causes(proof: Proof | None, appeared: bool, change: Change, rules: Collection[Rule] = ()) -> Iterator[str]:
    """Yield the changes that a proof depends on: it began to hold with a change of facts, or ceased to hold.

    `rules` are the rules, as proofs show them, that the change has added or removed.
    """
    if proof is None:
        return
    done = "added" if appeared else "removed"
    gained, lost = (change.inserted, change.deleted) if appeared else (change.deleted, change.inserted)
    verb, opposite = ("appeared", "vanished") if appeared else ("vanished", "appeared")
    for step in proof.steps:
        if step.explicit and has(gained, step.fact):
            yield f"{step.text} {verb}"
        if step.rule is not None and step.rule in rules:
            yield f"rule {rule_text(step.rule)} was {done}"
        if step.bindings is not None:
            yield f"{step.text} has changed"
        for literal in step.conditions:
            if literal.negated and isinstance(literal.of, Atom) and literal.of.predicate in lost:
                yield from (f"{text} {opposite}" for text in _matching(literal.of, lost[literal.of.predicate]))


def event_of(
    explanation: Explanation, number: int, appeared: bool, change: Change, rules: Collection[Rule] = ()
) -> FactEvent:
    """Return the event of a fact in an update that made this change, and changed these rules."""
    because = dict.fromkeys(causes(explanation.proof, appeared, change, rules))
    if not because:  # what else could it be: the facts that a part of a body stands for are in no change
        because = dict.fromkeys(["a negated part of the proof has changed"])
    return FactEvent(number, appeared, explanation, tuple(map(explanation.short, because)))


def _matching(atom: Atom, facts: Relation) -> Iterator[str]:
    """Yield the facts that an atom matches, as they are written."""
    wanted = {i: term.value for i, term in enumerate(atom.terms) if isinstance(term, Constant)}
    for row in facts.stored():
        if all(row[i] == value for i, value in wanted.items()):
            yield atom_text(Atom(atom.predicate, tuple(map(Constant, row, facts.stored_types))))
