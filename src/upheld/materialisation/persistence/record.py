"""Acknowledged facts of a materialisation whose tasks may be lost: explicit facts in memory, versions in a folder.

The folder has the files of a saved state: a snapshot, and the change of each update since. An update is
acknowledged once its change is there, so a driver that is killed leaves the last acknowledged version, or the one that
it was about to acknowledge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from upheld.algebra.sets import FactSet
from upheld.base.errors import FactsError, Problem
from upheld.engines import EngineChoice, open_engine
from upheld.facts.change import ByRelation, Change
from upheld.facts.columns import Columns, Row
from upheld.facts.stored import StoredFacts
from upheld.language.core import Core

if TYPE_CHECKING:
    from upheld.store.draft import Draft
    from upheld.store.files import Files
    from upheld.store.versions import Base, Store

#: Facts by relation, of which it is known how many there are.
Sized = list[tuple[str, Columns | StoredFacts | list[Row]]]


def sized(facts: Iterable[tuple[str, Iterable[Row]]]) -> Sized:
    """Return facts of which it is known how many there are."""
    known = Columns, StoredFacts
    return [(predicate, rows if isinstance(rows, known) else list(rows)) for predicate, rows in facts]


def sizes_of(facts: Sized) -> Counter[str]:
    """Return how many facts there are of each relation."""
    sizes: Counter[str] = Counter()
    for predicate, rows in facts:
        sizes[predicate] += len(rows)
    return sizes


#: Facts that are loaded in one step at most, unless one relation has more.
_MOST_TOGETHER = 1 << 20


def together(facts: Sized) -> Iterator[dict[str, Columns | StoredFacts | list[Row]]]:
    """Yield facts by relation in few pieces: small relations are loaded in one step, those in files one by one."""
    piece: dict[str, Columns | StoredFacts | list[Row]] = {}
    size = 0
    for predicate, rows in facts:
        in_files = isinstance(rows, StoredFacts)
        if piece and (in_files or predicate in piece or size + len(rows) > _MOST_TOGETHER):
            yield piece
            piece, size = {}, 0
        if in_files:
            yield {predicate: rows}
        else:
            piece[predicate] = rows
            size += len(rows)
    if piece:
        yield piece


class Record:
    """Explicit facts in the memory of this process or in files, from which lost tasks are started again.

    Of facts in files it holds the names of the files alone, and those facts that were deleted since. An update is
    acknowledged once its change is entered here, which takes time proportional to the change.
    """

    def __init__(self, core: Core):
        self._engine = open_engine("memory", replace(core, rules=()))  # it holds facts and derives none
        self._E: FactSet = self._engine.named("E")
        self._stored: list[tuple[str, StoredFacts]] = []
        #: Facts that are not explicit, although a file may have them.
        self._gone: FactSet = self._engine.named("gone")
        #: The updates that were entered.
        self.updates = 0

    def take(self, facts: Iterable[tuple[str, Iterable[Row]]]) -> Sized:
        """Enter explicit facts, and return them for somebody else to read as well."""
        known = sized(facts)
        self._stored += [(predicate, rows) for predicate, rows in known if isinstance(rows, StoredFacts)]
        for piece in together([(predicate, rows) for predicate, rows in known if not isinstance(rows, StoredFacts)]):
            self._E |= self._engine.load_all(piece)
        return known

    def leave_out(self, facts: Iterable[tuple[str, Iterable[Row]]]) -> Sized:
        """Remove explicit facts, and return them for somebody else to read as well."""
        known, in_files = sized(facts), self._in_files()
        for predicate, rows in known:
            removed = self._engine.load(predicate, rows)
            self._E -= removed
            if predicate in in_files:
                self._gone |= removed
        return known

    def log(self, change: Change) -> None:
        """Enter the explicit facts that an update has deleted and inserted."""
        retracted, asserted = self._loaded(change.retracted), self._loaded(change.asserted)
        self._E -= retracted
        self._E |= asserted
        if self._stored:
            self._gone |= self._loaded(change.retracted, self._in_files())
            self._gone -= asserted
        self.updates += 1
        del retracted, asserted  # sets that nobody holds cost nothing
        self._engine.reclaim(keep=[self._E, self._gone])

    def _in_files(self) -> frozenset[str]:
        """Return the predicates with facts in files."""
        return frozenset(predicate for predicate, _ in self._stored)

    def _loaded(self, facts: ByRelation, of: frozenset[str] | None = None) -> FactSet:
        some = [relation for relation in facts.not_empty() if of is None or relation.name in of]
        return self._engine.load_all({r.name: r.unordered or r.stored_set() for r in some})

    def facts(self) -> list[tuple[str, Iterable[Row]]]:
        """Return the explicit facts by predicate, and perhaps facts of `without`."""
        return [*self._stored, *self._rows(self._E)]

    def without(self) -> list[tuple[str, Iterable[Row]]]:
        """Return the rows of `facts` that are not explicit any more."""
        return self._rows(self._gone)

    def _rows(self, facts: FactSet) -> list[tuple[str, Iterable[Row]]]:
        return [(predicate, facts.rows(predicate)) for predicate in sorted(facts.predicates())]


# -- versions in a folder ----------------------------------------------------------------------------------------------

#: Begins the next version of a store, with all facts or with a change alone.
Drafting = Callable[["Store", Change | None], "Draft"]


@runtime_checkable
class OnCluster(Protocol):
    """A choice of engine with file systems of its own, and perhaps a folder for checkpoints there.

    `idle` is the number of seconds after which a materialisation that nobody uses is parked, if it is to be.
    """

    checkpoint: str | Path | None
    idle: float | None

    def files(self) -> Files: ...


class Checkpoint:
    """The versions in the folder of an engine."""

    def __init__(self, store: Store):
        self._store = store
        #: A version of an update that failed, if it is not known whether the folder has it.
        self._unsure: Draft | None = None

    def begin(self, base: Base | None, drafting: Drafting) -> None:
        """Go on from the last version in the folder, if the facts are its facts; otherwise write all of them there."""
        if self._store.manifest is None or self._store.base != base:
            check_unused(self._store)
            drafting(self._store, None).commit()

    def log(self, change: Change, base: Base | None, drafting: Drafting) -> None:
        """Write the change of an update. `base` is the version that the facts were saved as last."""
        unsure, store = self._unsure, self._store
        if unsure is not None or store.base != base:
            store.look()
            if unsure is None or not unsure.is_in_place():
                store.check_follows(base)
        draft = drafting(store, change if unsure is None else None)
        try:
            draft.commit()
        except BaseException:
            self._unsure = draft
            is_there = draft.is_in_place()
            self._unsure = unsure
            if not is_there:
                raise
        self._unsure = None


def open_checkpoint(engine: str | EngineChoice) -> Store | None:
    """Return the folder for checkpoints of an engine, if it has one."""
    if not isinstance(engine, OnCluster) or engine.checkpoint is None:
        return None
    from upheld.store.versions import Store

    return Store.open(engine.checkpoint, engine.files())


def open_state(engine: str | EngineChoice, folder: str | Path, version: int | None = None) -> Store:
    """Return a saved state on the file systems of an engine."""
    from upheld.store.versions import Store

    return Store.open(folder, files_of(engine), version)


def files_of(engine: str | EngineChoice) -> Files:
    """Return the file systems of an engine."""
    from upheld.store.files import LocalFiles

    return engine.files() if isinstance(engine, OnCluster) else LocalFiles()


def idle_seconds(engine: str | EngineChoice) -> float | None:
    """Return after how long a materialisation that nobody uses is parked, if it is to be."""
    return engine.idle if isinstance(engine, OnCluster) else None


def check_unused(store: Store) -> None:
    """Raise if a folder for checkpoints has versions."""
    if store.manifest is not None:
        raise FactsError(
            Problem(
                "checkpoint-in-use",
                f"the folder for checkpoints has version {store.version} of a materialisation",
                place=store.folder,
                note="a new materialisation would replace what was acknowledged there",
                hint="continue from it with `upheld.restore(program, folder, engine=...)`, or choose another folder",
            )
        )
