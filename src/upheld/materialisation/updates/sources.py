"""Sources of explicit facts, above all engines.

A fact is explicit while a source claims it: a named one, or the unnamed source of facts that are given without a
source. Only the facts of named sources are entered here; all other explicit facts belong to the unnamed source alone.
A materialisation without named sources has an empty table, and its updates cost what they cost without one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from upheld.base.errors import Problem, UsageError, nearest, quote
from upheld.facts.change import Change
from upheld.facts.columns import Row
from upheld.language.core import Fact

#: The sources that claim a fact; None is the unnamed source.
Claims = frozenset[str | None]

NOBODY: Claims = frozenset()
UNNAMED: Claims = frozenset((None,))

Rows = Mapping[str, Iterable[Row]]

#: Changes since a save that are kept in any case.
_MOST_CHANGES = 10_000


@dataclass
class Claimed:
    """Claims of facts that an update changes; a fact that nobody claims has none."""

    claims: dict[str, dict[Row, Claims]] = field(default_factory=dict)
    #: The source that the update names.
    source: str | None = None
    #: A source that was named first by an update which is undone.
    forgotten: str | None = None

    def set(self, name: str, row: Row, claims: Claims) -> None:
        self.claims.setdefault(name, {})[row] = claims


SOURCE = "a name of at least one character"


def is_source(value: object) -> bool:
    """Return whether `value` can be the name of a source."""
    return isinstance(value, str) and value != ""


class Sources:
    """The claims of named sources, by fact and by source."""

    def __init__(self) -> None:
        self._by_fact: dict[str, dict[Row, Claims]] = {}
        #: The facts of each source that was ever named.
        self._by_source: dict[str, dict[str, set[Row]]] = {}
        #: One object for each set of claims, which many facts share.
        self._shared: dict[Claims, Claims] = {}
        #: The number of changes of the table.
        self.revision = 0
        #: The facts whose claims have changed since they were saved; None if a state must be saved whole.
        self._changed: dict[str, set[Row]] | None = None

    def __bool__(self) -> bool:
        return bool(self._by_source)

    def sizes(self) -> dict[str, int]:
        """Return the number of facts of each source."""
        return {source: sum(map(len, rows.values())) for source, rows in sorted(self._by_source.items())}

    def of(self, fact: Fact) -> Claims:
        """Return the sources of an explicit fact; none if no named source claims it."""
        name, row = fact
        return self._by_fact.get(name, {}).get(row, NOBODY)

    def facts_of(self, source: str) -> dict[str, list[Row]]:
        """Return the facts of a source; raise if it was never named."""
        self._check_named(source)
        return {name: list(rows) for name, rows in self._by_source[source].items() if rows}

    def _check_named(self, source: str) -> None:
        if source not in self._by_source:
            known = sorted(self._by_source)
            few = f"{', '.join(map(quote, known[:5]))}{', ...' if len(known) > 5 else ''}"
            note = f"the sources are {few}" if known else "no facts with a source were inserted yet"
            message = f"there is no source {quote(source)}"
            raise UsageError(Problem("unknown-source", message, note=note, hint=nearest(source, known)))

    # -- planning ------------------------------------------------------------------------------------------------------

    def plain(self, planned: Claimed, delete: Rows, insert: Rows) -> None:
        """Plan an update without a source: it deletes facts outright, and inserts them for the unnamed source."""
        for name in self._by_fact.keys() & {*delete, *insert}:
            known = self._by_fact[name]
            for row in delete.get(name, ()):
                if row in known:
                    planned.set(name, row, NOBODY)
            for row in insert.get(name, ()):
                if row in known:
                    planned.set(name, row, self._now(planned, name, row) | UNNAMED)

    def claimed(
        self,
        planned: Claimed,
        source: str,
        delete: Rows,
        insert: Rows,
        replace: Rows,
        explicit: Callable[[str, list[Row]], set[Row]],
    ) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
        """Plan an update of a source, and return the facts that nobody claims then, and the facts that it inserts.

        `explicit` returns which of some rows of a relation are explicit facts now.
        """
        if delete and not insert and not replace:  # a name that was never used is a mistake
            self._check_named(source)
        planned.source = source
        gone: dict[str, set[Row]] = {name: set(rows) for name, rows in delete.items()}
        new: dict[str, set[Row]] = {name: set(rows) for name, rows in insert.items()}
        for name, rows in replace.items():
            now, snapshot = self._by_source.get(source, {}).get(name, set()), set(rows)
            gone[name], new[name] = now - snapshot, snapshot - now
        minus: dict[str, list[Row]] = {}
        for name, those in gone.items():
            for row in those - new.get(name, set()):
                claims = self.of((name, row))
                if source in claims:
                    planned.set(name, row, claims - {source})
                    if len(claims) == 1:
                        minus.setdefault(name, []).append(row)
        for name, those in new.items():
            known = self._by_fact.get(name, {})
            others = [row for row in those if row not in known]
            unnamed = explicit(name, others) if others else set()
            for row in those:
                claims = known.get(row) or (UNNAMED if row in unnamed else NOBODY)
                if source not in claims:
                    planned.set(name, row, claims | {source})
        return minus, {name: list(those) for name, those in new.items()}

    def _now(self, planned: Claimed, name: str, row: Row) -> Claims:
        now = planned.claims.get(name, {}).get(row)
        return self.of((name, row)) if now is None else now

    # -- changing ------------------------------------------------------------------------------------------------------

    def commit(self, planned: Claimed, change: Change) -> Claimed:
        """Enter the claims of an update that was made, and return how to undo it."""
        if self._by_source:
            for relation in change.retracted.not_empty():
                known = self._by_fact.get(relation.name)
                if known:
                    for row in relation.unordered or relation.stored_set():
                        if row in known:
                            planned.set(relation.name, row, NOBODY)
        return self.enter(planned)

    def enter(self, planned: Claimed) -> Claimed:
        """Enter claims, and return how to undo it."""
        undo = Claimed()
        if planned.source is not None and planned.source not in self._by_source:
            self._by_source[planned.source], undo.forgotten = {}, planned.source
            self.revision += 1
        for name, claims in planned.claims.items():
            known = self._by_fact.setdefault(name, {})
            for row, after in claims.items():
                before = known.get(row, NOBODY)
                undo.set(name, row, before)
                for source in before - after:
                    if source is not None:
                        self._by_source[source][name].discard(row)
                for source in after - before:
                    if source is not None:
                        self._by_source.setdefault(source, {}).setdefault(name, set()).add(row)
                if after <= UNNAMED:
                    known.pop(row, None)
                else:
                    known[row] = self._shared.setdefault(after, after)
            if not known:
                del self._by_fact[name]
            self.revision += 1
            if self._changed is not None:
                self._changed.setdefault(name, set()).update(claims)
        if planned.forgotten is not None:
            del self._by_source[planned.forgotten]
        self._bound_changes()
        return undo

    def _bound_changes(self) -> None:
        """Forget the changes since a save if there are more of them than facts: nobody may save again."""
        if self._changed is not None and (count := sum(map(len, self._changed.values()))) > _MOST_CHANGES:
            if count > sum(map(len, self._by_fact.values())):
                self._changed = None

    # -- on disk -------------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the sources that were ever named."""
        return sorted(self._by_source)

    def count(self, name: str) -> int:
        """Return the number of facts of a relation that named sources claim."""
        return len(self._by_fact.get(name, {}))

    def changed(self) -> list[str] | None:
        """Return the relations whose facts have other sources than when they were saved; None if that is unknown."""
        return None if self._changed is None else sorted(self._changed)

    def note_saved(self, revision: int) -> None:
        """Note that a state has the claims of some revision. If that has passed, its changes are saved once more."""
        if revision == self.revision:
            self._changed = {}

    def groups(self, name: str, is_whole: bool) -> Iterator[tuple[str, list[Row]]]:
        """Yield facts of a relation that have the same sources, with these as text.

        These are all facts of named sources, or the facts whose sources have changed, of which some may have none.
        """
        known = self._by_fact.get(name, {})
        some = known if is_whole else (self._changed or {}).get(name, set())
        groups: dict[Claims, list[Row]] = {}
        for row in some:
            groups.setdefault(known.get(row, NOBODY), []).append(row)
        for claims, rows in groups.items():
            yield json.dumps(sorted(claims, key=lambda source: (source is not None, source))), rows

    def relations(self) -> list[str]:
        """Return the relations with facts of named sources."""
        return sorted(self._by_fact)

    @classmethod
    def saved(cls, names: Iterable[str], facts: Iterable[tuple[str, Row, str]]) -> Sources:
        """Return the sources that were saved: their names, and facts with their sources as text."""
        sources, planned = cls(), Claimed()
        for name, row, claims in facts:
            planned.set(name, row, frozenset(json.loads(claims)))
        sources.enter(planned)
        for name in names:
            sources._by_source.setdefault(name, {})
        return sources
