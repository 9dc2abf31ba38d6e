"""Tests of your own program: updates, random ones or yours, each compared with recomputation."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import upheld
from upheld.base.errors import Problem, UsageError, VerificationFailed, is_whole, require
from upheld.engines import EngineChoice
from upheld.facts.columns import Row
from upheld.facts.ingest.by_relation import FactsGiven
from upheld.facts.relation import encoded
from upheld.facts.updatefiles import transaction_text
from upheld.language.types.columns import ColumnType
from upheld.materialisation.reports.verification import Compared

#: Most facts that a random update inserts, and most that it deletes.
FACTS_CHANGED = 3

Rows = dict[str, list[Row]]
Stored = dict[str, set[Row]]


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


class Oracle:
    """The facts that a materialisation should have, recomputed from the explicit facts after each update.

    It computes with the engine of the materialisation, but in a new instance for each update: what it has in common
    with the maintained state is how rules are joined, and nothing that is kept from one update to the next. The
    reference engine would have less in common, and would take minutes for what other engines do in a second.

    Args:
        m: The materialisation, before the updates.

    >>> import upheld
    >>> m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
    >>> oracle = Oracle(m)
    >>> update = upheld.Update({"p": [(2,)]}, {}, 1, "here")
    >>> for change in m.stream([update]):
    ...     oracle.check([update], change)
    """

    def __init__(self, m: upheld.Materialisation):
        self._m, self._claims = m, _Claims.of(m)
        self._facts = {name: m[name].stored_set() for name in m.relations}

    def check(self, updates: Sequence[upheld.Update], change: upheld.Change) -> None:
        """Raise what differs after updates: in explicit facts, in all facts, and in the change that was reported.

        Args:
            updates: The updates, which were made as one.
            change: Their change.
        """
        m, names, last = self._m, self._m.relations, updates[-1]
        for update in updates:
            self._claims.apply(update, {name: m[name].coded for name in names})
        explicit = self._claims.explicit()
        with m._copy_with(explicit.items()) as new:
            before, self._facts = self._facts, {name: new[name].stored_set() for name in names}
            compared = (
                Compared("explicit facts", [m.explicit(name) for name in names], explicit),
                Compared("facts", [m[name] for name in names], self._facts, new._explained),
                Compared("reported insertions", [change.inserted[name] for name in names], _minus(self._facts, before)),
                Compared("reported deletions", [change.deleted[name] for name in names], _minus(before, self._facts)),
            )
            problems = [p for some in compared for p in some.problems(f"after commit {last.number}", last.place)]
        if problems:
            raise VerificationFailed(problems)


class _Claims:
    """The sources of each explicit fact, None for the unnamed one, by relation: a plain model of what updates mean."""

    def __init__(self, claims: dict[str, dict[Row, set[str | None]]]):
        self._claims = claims

    @classmethod
    def of(cls, m: upheld.Materialisation) -> _Claims:
        """Return the sources of the explicit facts of a materialisation."""
        rows = {name: m.explicit(name).stored_set() for name in m.relations}
        return cls({name: {row: set(m._sources.of((name, row))) or {None} for row in rows[name]} for name in rows})

    def explicit(self) -> Stored:
        return {name: set(rows) for name, rows in self._claims.items()}

    def apply(self, update: upheld.Update, coded: Mapping[str, Mapping[int, ColumnType]]) -> None:
        """Change the claims as a transaction does."""
        gone, new, whole = (
            {name: set(encoded(rows, coded[name])) for name, rows in side.items()}
            for side in (update.delete, update.insert, update.replace)
        )
        for name, rows in self._claims.items():
            claimed = {row for row in rows if update.source is None or update.source in rows[row]}
            if name in whole:
                gone[name], new[name] = claimed - whole[name], whole[name] - claimed
            if update.retract is not None:
                gone[name] = {row for row in rows if update.retract in rows[row]}
        for name, lost in gone.items():
            for row in lost & self._claims[name].keys():
                claims = self._claims[name][row]
                source = update.source or update.retract
                claims -= claims if source is None else {source}
                if not claims:
                    del self._claims[name][row]
        for name, won in new.items():
            for row in won:
                self._claims[name].setdefault(row, set()).add(update.source)


def _minus(facts: Stored, others: Stored) -> Stored:
    return {name: rows - others[name] for name, rows in facts.items()}


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
