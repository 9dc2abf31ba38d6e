"""Facts by relation, and what an update has changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Protocol, TypeVar, overload

from upheld.base.errors import Problem, UsageError, count, nearest, quote
from upheld.base.pages import Markup, element, first_rows, joined
from upheld.base.source import Span
from upheld.base.statistics import Statistics
from upheld.facts.change_table import ChangeTable
from upheld.facts.columns import Row
from upheld.facts.relation import Relation
from upheld.language.core import Core, Predicate

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession


T = TypeVar("T")


class UnreadRows(Protocol):
    """Rows by side of a change and by relation, which are read when somebody looks at them."""

    @property
    def counts(self) -> Sequence[int]:
        """The numbers of deleted, inserted, retracted and asserted rows."""

    def sizes(self, side: int) -> Mapping[str, int]:
        """Return the number of rows of each relation that has any."""

    def read(self, side: int) -> Mapping[str, Iterable[Row]]: ...


#: The numbers of the sides of a change that is not read yet, as `ChangedRows` has them.
_SIDES = {"deleted": 0, "inserted": 1, "retracted": 2, "asserted": 3, "ignored": 4}


class ByRelation(Mapping[str, Relation]):
    """Facts of each relation of a program; only relations with facts are kept, the others are made when asked for."""

    __slots__ = ("_predicates", "_read", "_side", "_unread")

    def __init__(self, predicates: Mapping[str, Predicate], rows: Mapping[str, Iterable[Row]]):
        self._predicates = predicates
        self._unread: UnreadRows | None = None
        self._side = 0
        self._read = self._relations(rows)

    @classmethod
    def of_side(cls, predicates: Mapping[str, Predicate], rows: UnreadRows, side: int) -> ByRelation:
        """Return the facts of one side of a change, whose rows are not read yet."""
        facts = cls.__new__(cls)
        facts._predicates, facts._unread, facts._side = predicates, rows, side
        return facts

    def _relations(self, rows: Mapping[str, Iterable[Row]]) -> dict[str, Relation]:
        some: dict[str, Relation] = {}
        for name in sorted(rows) if len(rows) > 1 else rows:
            if not (predicate := self._predicates[name]).hidden:
                some[name] = relation_of(predicate, rows[name])
        return some

    @property
    def _some(self) -> dict[str, Relation]:
        """The relations with facts."""
        unread = self._unread
        if unread is not None:
            self._read = self._relations(unread.read(self._side))
            self._unread = None  # not sooner: another thread may ask
        return self._read

    def __getstate__(self) -> object:
        _ = self._some  # rows are read before they leave the process
        return super().__getstate__()

    def __contains__(self, name: object) -> bool:
        predicate = self._predicates.get(name) if isinstance(name, str) else None
        return predicate is not None and not predicate.hidden

    def __getitem__(self, name: str) -> Relation:
        relation = self._some.get(name)
        if relation is not None:
            return relation
        predicate = self._predicates.get(name) if isinstance(name, str) else None
        if predicate is None or predicate.hidden:
            raise UsageError(unknown_relation(name, list(self)))
        return relation_of(predicate, ())

    @overload
    def get(self, name: str, default: None = None) -> Relation | None: ...
    @overload
    def get(self, name: str, default: Relation | T) -> Relation | T: ...
    def get(self, name: str, default: object = None) -> object:
        """Return the facts of a relation; the default if the program does not have it."""
        if name not in self:
            return default
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return (p.name for p in self._predicates.values() if not p.hidden)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{r.name!r}: {r!r}" for r in self.not_empty()) + "}"

    def _repr_html_(self) -> str:
        return joined(Markup(relation._repr_html_()) for relation in self.not_empty()) or element("div", "no facts")

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def some(self, name: str) -> Relation:
        """Return the facts of a relation; none for one that the program did not have at the time."""
        return self._some.get(name) or Relation(name, (), (), ())

    def held(self) -> Collection[Relation]:
        """Return the relations that are kept. Some of them may have no facts."""
        return self._some.values()

    def known_sizes(self) -> Mapping[str, int]:
        """Return the numbers of facts of relations, where they are known without work."""
        unread = self._unread
        if unread is None:
            return {name: relation.known_size or 0 for name, relation in self._read.items()}
        sizes = unread.sizes(self._side)
        return {name: size for name, size in sizes.items() if not self._predicates[name].hidden}

    def keep_own_codes(self) -> None:
        """Let go of the tables of an engine that rows were to be read from. Rows that are unread have none."""
        if self._unread is None:
            for columns in (relation.unordered for relation in self._read.values()):
                if columns is not None:
                    columns.keep_own_codes()

    def not_empty(self) -> list[Relation]:
        """Return the relations that have facts."""
        return [r for r in self._some.values() if len(r)]


@dataclass(frozen=True)
class Change:
    """The change made by an update: for each relation, the facts that appeared and disappeared, explicit or derived.

    An empty change is false:

    >>> m = materialise("q(x) :- p(x).", {"p": [1]})
    >>> bool(m.update(insert={"p": [1]})), bool(m.update(insert={"p": [2]}))
    (False, True)
    """

    inserted: ByRelation
    deleted: ByRelation
    #: Facts that were to be deleted but are not explicit, or to be inserted but are.
    ignored: ByRelation
    #: Explicit facts that were added, and that were taken away, whether or not they follow from others as well.
    asserted: ByRelation
    retracted: ByRelation
    statistics: Statistics
    #: Which updates of a stream it is the change of, counted from one: several if they were waiting and made as one.
    updates: tuple[int, ...] = ()
    #: Violations that appeared, by constraint: the bindings of the variables of each.
    violations: Mapping[str, Relation] = field(default_factory=dict)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> ByRelation:
            side, unread = _SIDES.get(name), vars(self).get("_unread")
            if side is None or unread is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            # Another thread may have made it in between: all see the same.
            core, rows = unread
            return vars(self).setdefault(name, ByRelation.of_side(core.predicates, rows, side))

    def __getstate__(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # not what sides are made of: it stays behind

    def __bool__(self) -> bool:
        """Return whether any facts appeared or disappeared, or became explicit or stopped being explicit."""
        return any(side.not_empty() for side in (self.inserted, self.deleted, self.asserted, self.retracted))

    def __repr__(self) -> str:
        sizes = ((sign, r) for sign, rs in (("+", self.inserted), ("-", self.deleted)) for r in rs.not_empty())
        violated = (f"{count(len(r), 'violation')} of {r.name}" for r in self.violations.values())
        return f"<Change {', '.join([*(f'{sign}{len(r)} {r.name}' for sign, r in sizes), *violated]) or 'nothing'}>"

    def _repr_html_(self) -> str:
        sides = ("appeared", self.inserted), ("disappeared", self.deleted)
        some = [(r, verb) for verb, side in sides for r in side.not_empty()]
        if not some:
            return element("div", "nothing changed")
        return joined(
            element(
                "details",
                element("summary", element("b", r.name), f": {count(len(r), 'fact')} {verb}"),
                first_rows(r.columns, r, len(r)),
                open=True if len(some) <= 4 else None,
            )
            for r, verb in sorted(some, key=lambda part: part[0].name)
        )

    def inverse(self) -> Change:
        """Return the change that undoes this one: what appeared disappears, and what disappeared appears.

        It changes no facts itself. Pass its explicit facts to `update`, as long as no other update came between.

        >>> m = materialise("q(x) :- p(x).", {"p": [1]})
        >>> undo = m.update(insert={"p": [2]}, delete={"p": [1]}).inverse()
        >>> undo
        <Change +1 p, +1 q, -1 p, -1 q>
        >>> m.update(insert=undo.asserted, delete=undo.retracted)
        <Change +1 p, +1 q, -1 p, -1 q>
        >>> m["q"].to_set()
        {(1,)}
        """
        none = ByRelation(self.ignored._predicates, {})
        return replace(
            self,
            inserted=self.deleted,
            deleted=self.inserted,
            ignored=none,
            asserted=self.retracted,
            retracted=self.asserted,
            violations={},
        )

    def to_arrow(self, relation: str | None = None) -> pyarrow.Table:
        """Return the facts that appeared and disappeared as an Arrow table.

        Each fact has the name of its `relation`, a `sign` (1 if it appeared, -1 if it disappeared) and its values by
        column; columns of other relations are null. A column name that relations of the program use with different
        types is a column of texts. All changes of a program have the same columns.

        Args:
            relation: Name of a relation, for a table of its columns only. By default all relations.

        >>> m = materialise("q(x, y) :- p(x), p(y).", {"p": [1]})
        >>> m.update(insert={"p": [2]}).to_arrow("q").to_pylist()[0]
        {'sign': 1, 'c0': 1, 'c1': 2}
        """
        return self._table(relation).to_arrow()

    def to_pandas(self, relation: str | None = None) -> pandas.DataFrame:
        """Return the facts that appeared and disappeared as a DataFrame, with the columns of `to_arrow`.

        Args:
            relation: Name of a relation, for a table of its columns only. By default all relations.
        """
        return self._table(relation).to_pandas()

    def to_spark(self, spark: SparkSession, relation: str | None = None) -> DataFrame:
        """Return the facts that appeared and disappeared as a Spark DataFrame, with the columns of `to_arrow`.

        Args:
            spark: The Spark session.
            relation: Name of a relation, for a table of its columns only. By default all relations.
        """
        return self._table(relation).to_spark(spark)

    def _table(self, relation: str | None) -> ChangeTable:
        sides = (-1, self.deleted), (1, self.inserted)
        if relation is None:
            every = [relation_of(self.inserted._predicates[name], ()) for name in self.inserted]
            return ChangeTable(every, [(sign, side.not_empty()) for sign, side in sides], named=True)
        empty = relation_of(self.inserted._predicates[self.inserted[relation].name], ())
        return ChangeTable([empty], [(sign, [side[relation]]) for sign, side in sides], named=False)


def unread_change(core: Core, rows: UnreadRows, statistics: Statistics, violations: Mapping[str, Relation]) -> Change:
    """Return a change whose sides are made when somebody looks at them: few updates have anybody who does."""
    change = Change.__new__(Change)
    vars(change).update(statistics=statistics, updates=(), violations=violations, _unread=(core, rows))
    return change


def numbered(change: Change, updates: tuple[int, ...]) -> Change:
    """Return a change that was just made, with the numbers of the updates of a stream that it is the change of."""
    vars(change).update(updates=updates)
    return change


def known_sizes(change: Change) -> list[Mapping[str, int]]:
    """Return how many facts of each relation a change has deleted, inserted, retracted and asserted.

    Of rows that are still being computed, only sizes that are known without work.
    """
    return [side.known_sizes() for side in (change.deleted, change.inserted, change.retracted, change.asserted)]


def known_counts(change: Change) -> Sequence[int]:
    """Return how many facts a change has deleted, inserted, retracted and asserted, as `known_sizes` knows them."""
    unread = vars(change).get("_unread")
    if unread is None or unread[0].hidden:
        return [sum(sizes.values()) for sizes in known_sizes(change)]
    return unread[1].counts


def relation_of(predicate: Predicate, rows: Iterable[Row]) -> Relation:
    return Relation(predicate.name, predicate.columns, predicate.types, rows)


def mixed_sources(message: str, span: Span | None = None, place: str | None = None) -> Problem:
    """Return the problem of a transaction that names more than one source, or retracts one and has facts as well."""
    note = "a transaction has facts of one source, or retracts a source and has no facts"
    return Problem("mixed-sources", message, span, place, note=note, hint="make two transactions")


def unknown_relation(name: str, known: tuple[str, ...] | list[str]) -> Problem:
    return Problem(
        "unknown-relation",
        f"unknown relation {quote(name)}",
        note=f"the relations are {', '.join(map(quote, known[:20])) or 'none'}",
        hint=nearest(str(name), known),
    )
