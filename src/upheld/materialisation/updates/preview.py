"""Previews: an update is made as usual, its change is read, and then it is undone as one that has failed."""

from __future__ import annotations

from upheld.facts.change import Change


class Previewed(Exception):
    """Ends the transaction of a preview, so that the engine restores the state before it."""

    def __init__(self, change: Change):
        super().__init__("the update was a preview")
        self.change = change


def end_preview(change: Change) -> None:
    """Read all rows of a change, which the engine is about to forget, and end its transaction."""
    for facts in (change.inserted, change.deleted, change.ignored, change.asserted, change.retracted):
        for relation in facts.held():
            relation.detach()
    for relation in change.violations.values():
        relation.detach()
    raise Previewed(change)
