"""The updates of a materialisation on their way to the feed of a saved state, and back from there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from upheld.base.errors import Problem, warn
from upheld.facts.change import ByRelation, Change
from upheld.facts.columns import Columns, Row
from upheld.language.core import Core, Fact
from upheld.materialisation.versions.views import net

if TYPE_CHECKING:
    from upheld.store.draft import Draft
    from upheld.store.feed import FeedStep, SavedProgram, Segment
    from upheld.store.versions import Store

#: Facts of a change that hold on to their own codes alone. More of them would hold on to the rows of whole tables.
FEW = 256

#: Updates that are remembered, and facts that these have changed altogether.
UPDATES_REMEMBERED = 1_000
FACTS_REMEMBERED = 10_000

#: The rows of facts by relation, as engines load them.
RowsByName = Mapping[str, Columns | Sequence[Row] | Set[Row]]

#: The program before a rule change, and after it.
Programs = tuple[Core, Core]


class Noted(NamedTuple):
    """An update that was committed; `programs` if it has changed the rules."""

    number: int
    change: Change
    #: The facts that have changed.
    facts: int
    programs: Programs | None = None


@dataclass(frozen=True)
class Step:
    """An update to replay: explicit facts to delete and to insert.

    `program` is the saved program from then on if rules changed; `programs` are both of them if they are at hand.
    """

    number: int
    #: The saved version that it led to; None if it is not saved yet, or nothing was.
    version: int | None
    minus: RowsByName
    plus: RowsByName
    program: SavedProgram | None = None
    programs: Programs | None = None

    @property
    def changes_rules(self) -> bool:
        return self.program is not None or self.programs is not None


@dataclass(frozen=True)
class Reach:
    """The reach of a feed: the version that it goes back to, the program of that version, and all updates since."""

    since: int
    #: The number of the first update that it has, or that will follow.
    first: int
    program: SavedProgram
    steps: Sequence[Step]


def rows_of(facts: ByRelation) -> dict[str, Columns | set[Row]]:
    """Return the rows of facts by relation, as an engine loads them."""
    return {r.name: r.unordered or r.stored_set() for r in facts.not_empty()}


def step_of(noted: Noted, feed: Feed | None) -> Step:
    """Return an update to replay, with its number in a feed."""
    minus, plus = (rows_of(side) for side in (noted.change.retracted, noted.change.asserted))
    if feed is None:
        return Step(noted.number, None, minus, plus, programs=noted.programs)
    return Step(noted.number + feed.offset, feed.version_of(noted.number), minus, plus, programs=noted.programs)


def net_rows(steps: Sequence[Step]) -> dict[str, tuple[set[Row], set[Row]]]:
    """Return the explicit facts by relation that came, and that went, with all steps together."""
    names = {name for step in steps for side in (step.minus, step.plus) for name in side}
    return {name: net((set(s.plus.get(name, ())), set(s.minus.get(name, ()))) for s in steps) for name in names}


def keep_own_codes(*sides: ByRelation) -> None:
    """Let facts hold on to their own codes alone."""
    for side in sides:
        side.keep_own_codes()


class Feed:
    """The feed of the saved state that a materialisation goes on from, and the updates that it does not have yet.

    Updates are numbered from the beginning of the feed on: `offset` is the difference to the numbers here.
    """

    def __init__(self, store: Store, number: int) -> None:
        """Begin with the version at hand of a store, which the update of this number has led to."""
        self._unsaved: list[Noted] = []
        #: The last update of each version that was saved from here, and the number of the version.
        self._versions: list[tuple[int, int]] = []
        self._go_on_from(store)
        self.offset = self._saved.updates - number

    def _go_on_from(self, store: Store) -> None:
        manifest = store.last()
        assert manifest.feed is not None, "the feed of a state that keeps none"
        self._files, self._folder, self.base = store.files, store.folder, store.base
        self._saved, self._checksum = manifest.feed, manifest.checksums[manifest.feed.path]

    def note(self, noted: Noted) -> None:
        """Add an update."""
        if noted.facts > FEW:
            keep_own_codes(noted.change.asserted, noted.change.retracted)
        self._unsaved.append(noted)

    def take_back(self) -> None:
        """Forget the last update, which was not acknowledged."""
        self._unsaved.pop()

    def unsaved(self) -> tuple[Noted, ...]:
        """Return the updates that no saved version has."""
        return tuple(self._unsaved)

    def saved(self, updates: Sequence[Noted], store: Store) -> None:
        """Note that the version at hand of a store has these updates, the first ones that were not saved."""
        del self._unsaved[: len(updates)]
        self._go_on_from(store)
        if updates:
            self._versions.append((updates[-1].number, store.version))

    def version_of(self, number: int) -> int | None:
        """Return the version that was saved after an update made here; None if that is not saved."""
        return next((version for last, version in self._versions if number <= last), None)

    def begins_before(self, number: int) -> bool:
        """Return whether the feed has updates before the update of this number here."""
        return self._saved.before + 1 < number + self.offset

    def version_before(self, number: int) -> int | None:
        """Return the version that the feed begins with, if the update of this number here is its first one."""
        return self._saved.since if self._saved.before + 1 == number + self.offset else None

    def read(self) -> Reach:
        """Return the reach of the feed, with the updates that are not saved yet.

        It reaches back to where a relation had columns of other types, which no replay can pass.
        """
        from upheld.store.feed import read_feed

        segments = read_feed(self._files, self._folder, self._saved, self._checksum)
        steps = [step for segment in segments for step in _steps(segment)]
        first = segments[0].program
        assert first is not None, "a feed that begins without a program"
        start, program, since = 0, first, segments[0].version
        programs = [(i, step.program) for i, step in enumerate(steps) if step.program is not None]
        known: dict[str, tuple[str, ...]] = {}
        for i, following in reversed([(-1, first), *programs]):
            types = {name: types for name, (_, types) in following.relations.items()}
            if any(known.get(name, of) != of for name, of in types.items()):
                break
            known |= types
            start, program = i + 1, following
            since = segments[0].version if i < 0 else steps[i].version or since
        steps = steps[start:]
        number = steps[0].number if steps else self._saved.updates + 1
        return Reach(since, number, program, [*steps, *(step_of(noted, self) for noted in self._unsaved)])


def _steps(segment: Segment) -> Iterator[Step]:
    for number, step in enumerate(segment.steps, segment.updates + 1):
        yield Step(number, segment.version, step.minus, step.plus, step.program)


def write_feed(
    draft: Draft, feed: Feed | None, core: Core, equality: str, updates: int, wanted: bool | None
) -> tuple[Noted, ...] | None:
    """Add the updates since the version before to the feed of a state, or begin one.

    Return the updates that were added; None if the feed begins here, or there is none. `wanted` is whether the state
    shall have a feed; by default it has one if the version before had one.
    """
    from upheld.store.feed import SavedProgram

    before = draft.store.manifest
    had = before is not None and before.feed is not None
    if not (had if wanted is None else wanted):
        return None
    if had and feed is not None and feed.base == draft.store.base:
        added = feed.unsaved()
        draft.keep_feed([_saved_step(noted, equality) for noted in added])
        return added
    if had:
        warn([_begun_anew(draft)])
    draft.begin_feed(SavedProgram.of(core, equality), updates)
    return None


def _saved_step(noted: Noted, equality: str) -> FeedStep:
    from upheld.store.feed import FeedStep, SavedProgram

    program = SavedProgram.of(noted.programs[1], equality) if noted.programs is not None else None
    return FeedStep.of(noted.change.retracted, noted.change.asserted, program)


def _begun_anew(draft: Draft) -> Problem:
    message = f"the feed begins anew with version {draft.version}"
    note = "these facts do not go on from the last version, so the updates that lie between are not known"
    hint = "restore the last version and update that to continue its feed"
    return Problem("feed-begun-anew", message, place=draft.store.folder, note=note, hint=hint, severity="warning")


# -- what is remembered ------------------------------------------------------------------------------------------------


class Past:
    """The last changes of a materialisation, bounded by their number and by the facts in them.

    Beside them, if it goes on from a saved state with a feed, it has the changes for that feed.
    """

    def __init__(self) -> None:
        self._changes: deque[Noted] = deque()
        self._facts = 0
        self.feed: Feed | None = None

    def note(self, number: int, change: Change, facts: int, programs: Programs | None = None) -> None:
        """Remember a change, and forget the oldest ones that are too many. `programs` if the rules have changed."""
        noted = Noted(number, change, facts, programs)
        if FEW < facts <= FACTS_REMEMBERED:
            keep_own_codes(change.inserted, change.deleted, change.asserted, change.retracted)
        self._changes.append(noted)
        self._facts += facts
        while self._changes and (len(self._changes) > UPDATES_REMEMBERED or self._facts > FACTS_REMEMBERED):
            self._facts -= self._changes.popleft().facts
        if self.feed is not None:
            self.feed.note(noted)

    def take_back(self) -> None:
        """Forget the last change, which was not acknowledged."""
        if self._changes:  # else it was too large to be remembered
            self._facts -= self._changes.pop().facts
        if self.feed is not None:
            self.feed.take_back()

    def since(self, number: int) -> list[Noted]:
        """Return the updates after one of them, the last one first. All of them must be remembered."""
        return [noted for noted in reversed(self._changes) if noted.number > number]

    def changes_of(self, fact: Fact) -> list[tuple[bool, Noted]]:
        """Return the updates in which a fact appeared or vanished, and which of these it did."""
        appeared = ((appears_in(fact, noted.change), noted) for noted in self._changes)
        return [(which, noted) for which, noted in appeared if which is not None]

    def first(self, following: int) -> int:
        """Return the number of the first change that is remembered, or of the one that will follow."""
        return self._changes[0].number if self._changes else following


def appears_in(fact: Fact, change: Change) -> bool | None:
    """Return whether a fact appears with a change; None if it neither appears nor vanishes."""
    if has(change.inserted, fact):
        return True
    return False if has(change.deleted, fact) else None


def has(facts: ByRelation, fact: Fact) -> bool:
    """Return whether a fact is among facts by relation."""
    name, row = fact
    return name in facts and row in facts[name].stored_set()
