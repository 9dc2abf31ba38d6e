"""A store for SPARQL beside a materialisation: made for the first query, brought up to date for each later one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Protocol

from upheld.base.errors import Problem, UsageError
from upheld.facts.relation import Relation
from upheld.language.terms.vocabulary import COLUMNS
from upheld.materialisation.versions.views import SPARE, History, Version

if TYPE_CHECKING:
    from upheld.rdf.sparql import Solutions


class Statements(Protocol):
    """A materialisation, as its store sees it."""

    @property
    def relations(self) -> tuple[str, ...]: ...
    def __getitem__(self, name: str) -> Relation: ...


class SparqlStore:
    """The store of a materialisation as of one version. Whoever calls a method holds a turn.

    Like a relation that somebody holds, it keeps the changes that were made since. When these have more rows than the
    store, it is made anew for the next query instead.
    """

    def __init__(self, m: Statements, history: History):
        from upheld.rdf.sparql import TripleStore

        self._history = history
        self.names = relations_of_triples(m.relations)
        relations = [m[name] for name in self.names]
        self._size = sum(map(len, relations))
        self._store: TripleStore | None = TripleStore(relations)
        self._version: Version = history.tip
        history.views[id(self)] = self

    @property
    def is_whole(self) -> bool:
        """Whether it can be brought up to date: no interruption has left it with a part of a change."""
        return self._store is not None

    def query(
        self,
        text: str,
        prefixes: Mapping[str, str],
        format: str | None,
        parameters: Mapping[str, object] | None,
        look: Callable[[], None],
    ) -> Solutions | bool | Relation | str:
        """Return the answer to a query about the facts that there are now."""
        self._catch_up()
        assert self._store is not None, "a store that was interrupted"
        return self._store.query(text, prefixes, format, parameters, look)

    def settle(self, age: int) -> None:
        """Let go of the changes made since the last query, and of the store, if they are many."""
        if age - self._version.age > SPARE + self._size:
            self._version, self._store = self._history.tip, None

    def leave(self, versions: Set[Version]) -> None:
        """Let go of the store if it has facts of one of these versions, which are about to be undone."""
        if self._version in versions:
            self._version, self._store = self._history.now, None

    def _catch_up(self) -> None:
        store, self._store = self._store, None
        assert store is not None, "a store that was interrupted"
        for change in self._version.changes():
            store.apply(change, self.names)
        self._version, self._store = self._history.tip, store


def relations_of_triples(names: Sequence[str]) -> list[str]:
    """Return the relations that SPARQL is about; raise `UsageError` if there are none."""
    known = [name for name in COLUMNS if name in names]
    if not known:
        note = "SPARQL is about the relations `triple` and `quad` of `.dlog` programs"
        hint = "`query` and `sql` are about any relation"
        raise UsageError(Problem("no-triples", "the program has no triples", note=note, hint=hint))
    return known
