"""Relations of one version, read when they are used: threads hold them while others change the materialisation.

A version is the state after an update. It refers to the change that led to the next one, and nothing refers to the
version before: a version that nobody holds is gone. So the rows that a relation had in a version are its rows now,
without the rows that have appeared since, and with the rows that have disappeared.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Protocol
from weakref import WeakValueDictionary

from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet, derive, settle
from upheld.base.errors import Problem
from upheld.base.turns import Turns
from upheld.facts.change import Change, known_counts, known_sizes
from upheld.facts.columns import Columns, Row
from upheld.facts.relation import Relation
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Core, Predicate, Rule
from upheld.language.values import Value

Rows = Columns | Collection[Row]

#: Changes and their rows that are kept for a relation that nobody has read yet, beside as many as it has rows.
SPARE = 10_000

#: Deleted, inserted, retracted and asserted facts: whether they are explicit, and how they count.
_SIDES = (False, -1), (False, 1), (True, -1), (True, 1)


class Version:
    """The state after an update, with the change that led to the next version, once there is one."""

    __slots__ = ("age", "change", "core", "following", "number", "sizes")

    def __init__(self, core: Core, number: int, age: int, sizes: dict[tuple[str, bool], int]):
        #: The program, as its author knows it.
        self.core = core
        self.number = number
        #: The changes that were made before it, and all rows of these.
        self.age = age
        #: The sizes of relations that somebody has asked for: of explicit facts, or of all.
        self.sizes = sizes
        self.change: Change | None = None
        self.following: Version | None = None

    def after(self, change: Change, core: Core) -> Version:
        """Return a version that a change leads to, which is not known to this one yet, of the program from then on."""
        sizes = self.sizes.copy()
        if sizes:
            for (explicit, sign), changed in zip(_SIDES, known_sizes(change), strict=True):
                for name, size in changed.items():
                    if (name, explicit) in sizes:
                        sizes[name, explicit] += sign * size
        return Version(core, self.number + 1, self.age + 1 + sum(known_counts(change)), sizes)

    def changes(self) -> Iterator[Change]:
        """Yield the changes that were made since, the first one first."""
        version = self
        while version.change is not None and version.following is not None:
            yield version.change
            version = version.following


class Viewed(Protocol):
    """A materialisation whose relations can be read as they are now. Whoever reads holds a turn."""

    def _count_now(self, name: str, explicit: bool) -> int: ...
    def _has_now(self, name: str, explicit: bool, row: Sequence[object]) -> bool: ...
    def _find_now(self, name: str, explicit: bool, values: Mapping[int, Value]) -> Iterable[Row]: ...

    def _rows_now(self, name: str, explicit: bool, without: Rows = (), more: Rows = ()) -> Columns | frozenset[Row]:
        """Return the rows that there are, without some of them, and with some that are not there."""


class Holder(Protocol):
    """Something that holds a version, and the changes made since."""

    def settle(self, age: int) -> None:
        """Let go of the changes if there are many. Whoever calls this holds a turn."""

    def leave(self, versions: Set[Version]) -> None:
        """Let go of these versions, which are about to be undone. Whoever calls this holds a turn."""


class History:
    """The versions of a materialisation: the one it has now, and others while somebody holds relations of them.

    Changes are kept for relations that nobody has read yet. When they have become more than these have rows, the
    relations are read: so what is kept is bounded, and costs an update no more than the updates before it.
    """

    def __init__(self, core: Core) -> None:
        #: The last version that was committed, and the version of the facts that the engine has: in a transaction, the
        #: state after its last update.
        self.now = self.tip = Version(core, 0, 0, {})
        #: The thread whose transaction is open.
        self._thread: int | None = None
        #: The relations that somebody holds, of whichever version.
        self.views: WeakValueDictionary[int, Holder] = WeakValueDictionary()
        self._settled = 0

    @property
    def seen(self) -> Version:
        """The version that this thread sees: others see no transaction before it is committed."""
        return self.now if self._thread is None or self._thread != get_ident() else self.tip

    def after(self, change: Change, core: Core) -> Version:
        """Return the version that a change leads to. All updates of a transaction make one version."""
        following = self.tip.after(change, core)
        following.number = self.now.number + 1
        return following

    def advance(self, change: Change, following: Version) -> None:
        """Let a version follow the one there is."""
        self.tip.change, self.tip.following = change, following
        self.tip = following
        if self._thread is None:
            self.now = following

    def begin(self) -> None:
        """Begin a transaction in this thread."""
        self._thread = get_ident()

    def commit(self) -> None:
        """Let all threads see what the transaction has changed."""
        self.now, self._thread = self.tip, None

    def roll_back(self) -> None:
        """Go back to the last version that was committed, before the engine does.

        Relations of the versions in between are read: they stay as they are.
        """
        between: set[Version] = set()
        version = self.now.following
        while version is not None:
            between.add(version)
            version = version.following
        try:
            for view in list(self.views.values()):
                view.leave(between)
        finally:
            self.now.change = self.now.following = None
            self.tip, self._thread = self.now, None

    def settle(self) -> None:
        """Read the relations for which many changes are kept. Whoever calls this holds a turn."""
        age = self.tip.age
        if age - self._settled < SPARE:
            return
        self._settled = age
        for view in list(self.views.values()):
            view.settle(age)


class View:
    """The rows of a relation in one version, explicit ones or all. They are read when they are first needed."""

    def __init__(
        self, viewed: Viewed, history: History, turns: Turns, version: Version, name: str, explicit: bool
    ) -> None:
        self._viewed, self._history, self._turns = viewed, history, turns
        self._name, self._explicit = name, explicit
        self._rows: Columns | frozenset[Row] | None = None
        self._version: Version | None = version
        history.views[id(self)] = self

    def count(self) -> int | None:
        """Return the number of rows, if that is known without reading them."""
        version = self._version
        if version is None:
            return None
        known = version.sizes.get((self._name, self._explicit))
        if known is not None:
            return known
        with self._turns.look():
            return self.size_now() if version is self._history.tip else None

    def has(self, row: Sequence[object]) -> bool | None:
        """Return whether a row is among them, if that is known without reading them, and they have not been read."""
        if self._rows is not None:
            return None
        with self._turns.look():
            if self._version is not self._history.tip:
                return None
            return self._viewed._has_now(self._name, self._explicit, row)

    def find(self, values: Mapping[int, Value]) -> Iterable[Row] | None:
        """Return the rows with these values by column, if they can be found without reading all rows."""
        if any(value != value for value in values.values()):  # a rule has no NaN
            return None
        with self._turns.work():
            if self._version is not self._history.tip:
                return None
            return self._viewed._find_now(self._name, self._explicit, values)

    def rows(self) -> Columns | frozenset[Row]:
        """Return the rows, which do not change any more."""
        if self._rows is None:
            with self._turns.look():
                self.read()
        assert self._rows is not None, "rows that were read and are not there"
        return self._rows

    def read(self) -> None:
        """Read the rows. Whoever calls this holds a turn."""
        if self._rows is None:
            assert self._version is not None, "a version that was let go unread"
            came, went = together(self._sides(change) for change in self._version.changes())
            self._rows = self._viewed._rows_now(self._name, self._explicit, came, went)

    def settle(self, age: int) -> None:
        """Read the rows if more changes are kept for them than there are rows, and let go of the changes then."""
        if self._rows is None and self._version is not None and age - self._version.age > SPARE + self.size_now():
            self.read()
        if self._rows is not None and self._version is not self._history.tip:
            self._version = None

    def leave(self, versions: Set[Version]) -> None:
        """Read the rows if they are of one of these versions, which are about to be undone."""
        if self._version in versions:
            self.read()
            self._version = None

    def size_now(self) -> int:
        """Return the number of rows that the relation has now. Whoever calls this holds a turn."""
        sizes = self._history.tip.sizes
        key = self._name, self._explicit
        if key not in sizes:
            sizes[key] = self._viewed._count_now(*key)
        return sizes[key]

    def _sides(self, change: Change) -> tuple[Relation, Relation]:
        """Return the rows of the relation that came and that went with a change."""
        sides = (change.asserted, change.retracted) if self._explicit else (change.inserted, change.deleted)
        return sides[0].some(self._name), sides[1].some(self._name)


def together(changes: Iterable[tuple[Relation, Relation]]) -> tuple[Rows, Rows]:
    """Return the rows that came and that went with changes that were made one after the other."""
    some = [(came, went) for came, went in changes if len(came) or len(went)]
    if len(some) == 1:
        return some[0][0].unordered or some[0][0].stored_set(), some[0][1].unordered or some[0][1].stored_set()
    return net((came.stored_set(), went.stored_set()) for came, went in some)


def net(changes: Iterable[tuple[set[Row], set[Row]]]) -> tuple[set[Row], set[Row]]:
    """Return the rows that came and that went with changes that were made one after the other."""
    all_came, all_went = set[Row](), set[Row]()
    for came, went in changes:
        new, gone = came - all_went, went - all_came
        all_came, all_went = (all_came - went) | new, (all_went - came) | gone
    return all_came, all_went


def not_copied(kind: str) -> Problem:
    """Return the problem of a thing that belongs to one process, and cannot be pickled or copied."""
    return Problem(
        "not-copied",
        f"a {kind} cannot be pickled or copied",
        note="its facts and bookkeeping live in one process",
        hint="`m.save(folder)` and `upheld.restore(program, folder)` make another; relations can be pickled",
    )


#: No dialect lets a user write such a name.
FOUND = "$found"


def find(
    engine: Engine, predicate: Predicate, facts: FactSet, keep: Sequence[FactSet], values: Mapping[int, Value]
) -> Iterable[Row]:
    """Return the rows of a relation that have these values in these columns, by an index of the engine.

    `keep` are the sets that must outlast the search.
    """
    terms = tuple(
        Constant(values[i], type) if i in values else Variable(f"c{i}") for i, type in enumerate(predicate.types)
    )
    answer = replace(predicate, name=FOUND)
    engine.declare(answer)
    try:
        with engine.meter.run():
            rule = Rule(Atom(FOUND, terms), (Atom(predicate.name, terms),))
            rows = settle(derive((rule,), facts, facts)).rows(FOUND)
            return rows if isinstance(rows, Columns) else frozenset(rows)
    finally:
        engine.abandon(keep=keep)
        engine.forget(answer)
