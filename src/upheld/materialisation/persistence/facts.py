"""The facts of a materialisation, written for a version of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from upheld.facts.change import Change
from upheld.facts.relation import Relation
from upheld.language.core import Predicate

if TYPE_CHECKING:
    from upheld.store.draft import Draft, Parted


class Facts(Protocol):
    """The facts of relations by name, and the explicit ones among them."""

    def __getitem__(self, name: str, /) -> Relation | Parted: ...

    def explicit(self, name: str) -> Relation | Parted: ...


def write_facts(
    draft: Draft,
    predicates: Mapping[str, Predicate],
    facts: Facts,
    change: Change | None,
    keep_bookkeeping: Callable[[Draft], None] | None,
) -> None:
    """Write the facts of relations for a version: all of them, or only a change since the version before."""
    if change is None or (keep_bookkeeping is not None and draft.books_are_due()):
        draft.relations.clear()
        for name, predicate in predicates.items():
            draft.whole(predicate, facts.explicit(name), facts[name])
        draft.books = None
        if keep_bookkeeping is not None:
            keep_bookkeeping(draft)
        return
    sides = change.inserted, change.deleted, change.asserted, change.retracted
    for name in dict.fromkeys(relation.name for side in sides for relation in side.not_empty()):
        if draft.is_due(name):
            draft.whole(predicates[name], facts.explicit(name), facts[name])
        else:
            draft.changed(predicates[name], *(side[name] for side in sides))
    if draft.books is not None:
        stated = sum(len(relation) for side in sides[2:] for relation in side.not_empty())
        draft.books = replace(draft.books, changed=draft.books.changed + stated)
