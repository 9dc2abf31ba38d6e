"""Tests of your own program: random updates, each compared with recomputation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import upheld
from upheld.base.errors import Problem, UsageError, is_whole, require
from upheld.engines import EngineChoice
from upheld.facts.columns import Row
from upheld.facts.ingest.by_relation import FactsGiven
from upheld.facts.relation import encoded
from upheld.facts.updatefiles import transaction_text

#: Most facts that a random update inserts, and most that it deletes.
FACTS_CHANGED = 3

Rows = dict[str, list[Row]]


def check_updates(
    program: str | Path | upheld.Program,
    facts: FactsGiven | None = None,
    *,
    updates: int = 50,
    seed: int = 0,
    algorithm: str = "adaptive",
    equality: str = "off",
    engine: str | EngineChoice = "memory",
) -> upheld.Materialisation:
    """Make random updates to the explicit facts of a program, verify each of them, and return the materialisation.

    An update deletes explicit facts, inserts facts that were deleted before, and inserts new facts with values that
    occur in columns of the same type. If the maintained facts differ from recomputation, or an update fails, the error
    has the updates made so far as a note, in the form of an update file. Constraints refuse none of the updates. Call
    it in a test of pytest:

    >>> from upheld.testing import check_updates
    >>> rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
    >>> m = check_updates(rules, {"edge": [(1, 2), (2, 3), (3, 4)]}, updates=5)
    >>> m.version
    5

    Args:
        program: As for `materialise`.
        facts: As for `materialise`. Updates change the relations that have explicit facts.
        updates: Number of updates.
        seed: Number that determines the updates.
        algorithm: As for `materialise`.
        equality: As for `materialise`.
        engine: As for `materialise`. Recomputation is by the memory engine.
    """
    require(is_whole(updates), "updates", "a whole number of at least 0", updates)
    require(is_whole(seed), "seed", "a whole number of at least 0", seed)
    m = upheld.materialise(program, facts, algorithm=algorithm, equality=equality, engine=engine, on_violation="report")
    chosen = random.Random(seed)
    facts_to_change = _Facts(m, chosen)
    texts: list[str] = []
    m.verify()
    for _ in range(updates):
        delete, insert = facts_to_change.update()
        texts.append(_text(m, delete, insert))
        try:
            m.update(insert=insert, delete=delete)
            m.verify()
        except upheld.UpheldError as error:
            error.add_note(f"after these updates, with seed {seed}:\n{''.join(texts)}")
            raise
    return m


class _Facts:
    """Explicit facts of a program, facts that were deleted, and the values of columns by type."""

    def __init__(self, m: upheld.Materialisation, chosen: random.Random):
        self._chosen = chosen
        relations = [m.explicit(name) for name in m.relations]
        self._present: Rows = {r.name: r.to_rows() for r in relations if len(r) and r.columns}
        if not self._present:
            message = "the program has no explicit facts with values, so no update can be made of them"
            raise UsageError(Problem("no-facts-to-change", message, hint="pass some facts"))
        self._gone: Rows = {name: [] for name in self._present}
        self._types = {r.name: r.types for r in relations if r.name in self._present}
        self._values: dict[str, list[object]] = {}
        for name, rows in self._present.items():
            for i, type in enumerate(self._types[name]):
                self._values.setdefault(type, []).extend(dict.fromkeys(row[i] for row in rows))

    def update(self) -> tuple[Rows, Rows]:
        """Return facts to delete and to insert."""
        delete: Rows = {}
        insert: Rows = {}
        for name in self._names():
            rows = self._present[name]
            for _ in range(self._chosen.randint(0, min(FACTS_CHANGED, len(rows)))):
                row = rows.pop(self._chosen.randrange(len(rows)))
                delete.setdefault(name, []).append(row)
        for name in self._names():
            for row in self._some_new(name):
                insert.setdefault(name, []).append(row)
        for name, deleted in delete.items():
            self._gone[name] += deleted
        for name, inserted in insert.items():
            self._present[name] += [row for row in dict.fromkeys(inserted) if row not in self._present[name]]
        return delete, insert

    def _names(self) -> list[str]:
        return self._chosen.sample(sorted(self._present), self._chosen.randint(1, min(3, len(self._present))))

    def _some_new(self, name: str) -> Iterator[Row]:
        for _ in range(self._chosen.randint(0, FACTS_CHANGED)):
            if self._gone[name] and self._chosen.random() < 0.5:
                yield self._chosen.choice(self._gone[name])
            else:
                yield tuple(self._chosen.choice(self._values[type]) for type in self._types[name])  # type: ignore[misc]


def _text(m: upheld.Materialisation, delete: Rows, insert: Rows) -> str:
    """Return an update as text of an update file."""

    def relations(side: Rows) -> list[upheld.Relation]:
        like = {name: m[name] for name in side}
        return [
            upheld.Relation(name, r.columns, r.stored_types, encoded(side[name], r.coded)) for name, r in like.items()
        ]

    return transaction_text(relations(delete), relations(insert))
