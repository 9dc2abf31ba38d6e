"""The classes of an equivalence in plain Python: what `join` and its kin mean, from rows that an engine looks up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import count
from typing import Any

from upheld.algebra.engine import Engine
from upheld.algebra.expansion import Expansions, Rows
from upheld.algebra.pairs import pairs_between, pairs_within
from upheld.algebra.sets import FactSet
from upheld.engines.spark.constants import connected
from upheld.language.core import Classing
from upheld.language.values import Value

#: A row as an engine has it: of two values, or of a value and the number of its class.
Row = tuple[Any, ...]


class RowGroups:
    """Numbers of classes are given out once: what a class was called before is no name for another."""

    def __init__(self, engine: Engine, classing: Classing):
        self._nothing, self._classing = engine.nothing, classing
        self._numbers = count()

    # -- for an engine to say ------------------------------------------------------------------------------------------

    def rows(self, facts: FactSet, predicate: str, column: int = 0, wanted: Collection[Any] | None = None) -> list[Row]:
        """Return the rows of a predicate, or those with some of the values in a column."""
        raise NotImplementedError

    def facts(self, predicate: str, rows: Sequence[Row]) -> FactSet:
        """Return facts with these rows."""
        raise NotImplementedError

    def shown(self, value: Any) -> Value:
        """Return the value that a row has, as users know it."""
        return value  # type: ignore[no-any-return]

    # -- operators -----------------------------------------------------------------------------------------------------

    def join(self, links: FactSet, held: FactSet) -> tuple[FactSet, FactSet]:
        connecting = self._links(links)
        if not connecting:
            return self._nothing, self._nothing
        class_of = self._classes_of({value for row in connecting for value in row}, held)
        # A class, or a value in none, is one thing that links connect.
        thing = {v: (class_of.get(v, -1), None if v in class_of else v) for row in connecting for v in row}
        groups = connected([(thing[a], thing[b]) for a, b in connecting])
        several = [[number for number, _ in group if number != -1] for group in groups]
        members = self._members({n for numbers in several if len(numbers) > 1 for n in numbers}, held)
        left: list[Row] = []
        come: list[Row] = []
        for group, numbers in zip(groups, several, strict=True):
            winner = max(numbers, key=lambda n: len(members[n])) if numbers else next(self._numbers)
            losing = [(value, number) for number in numbers if number != winner for value in members[number]]
            left += losing
            come += ((value, winner) for value, _ in losing)
            come += ((value, winner) for number, value in group if number == -1)
        return self._moved(left, come)

    def around(self, links: FactSet, facts: FactSet) -> FactSet:
        if not (wanted := self._about(links, facts)):
            return self._nothing
        members = {value for mine in self._members(wanted, facts).values() for value in mine}
        return self.facts(self._classing.relation, self.rows(facts, self._classing.relation, 0, members))

    def part(self, links: FactSet, sure: FactSet, held: FactSet) -> tuple[FactSet, FactSet]:
        members = self._members(self._about(links, held), held)
        class_of = {value: number for number, mine in members.items() for value in mine}
        parts: dict[int, list[list[Any]]] = defaultdict(list)
        # In a tuple NaN equals itself.
        for wrapped in connected([((a,), (b,)) for a, b in self._links(sure)]):
            connects = [value for (value,) in wrapped]
            parts[class_of[connects[0]]].append(connects)
        left: list[Row] = []
        come: list[Row] = []
        for number, mine in members.items():
            kept = max(parts[number], key=len, default=[])
            left += ((value, number) for value in mine - set(kept))
            for connects in parts[number]:
                if connects is not kept:
                    new = next(self._numbers)
                    come += ((value, new) for value in connects)
        return self._moved(left, come)

    def pairs(self, held: FactSet) -> Rows:
        held = held | self._nothing  # which stands for what is held now

        def rows() -> Iterable[Row]:
            return ((self.shown(value), number) for value, number in self.rows(held, self._classing.members))

        return pairs_within(rows)

    def changed(self, left: FactSet, come: FactSet, held: FactSet) -> tuple[Expansions, Expansions]:
        members = self._classing.members
        gone, came = self.rows(left, members), self.rows(come, members)
        there = self.rows(held, members, 1, {number for _, number in (*gone, *came)}) if gone or came else []

        def classes(rows: Iterable[Row]) -> dict[Value, int]:
            return {self.shown(value): number for value, number in rows}

        return pairs_between(lambda: (classes([*(set(there) - set(came)), *gone]), classes(there)))

    def class_of(self, value: Value, held: FactSet) -> list[Value]:
        number = self._classes_of({value}, held)
        return [self.shown(mine) for members in self._members(set(number.values()), held).values() for mine in members]

    # -- inside --------------------------------------------------------------------------------------------------------

    def _links(self, facts: FactSet) -> list[Row]:
        return self.rows(facts, self._classing.relation)

    def _classes_of(self, values: Collection[Any], held: FactSet) -> dict[Any, int]:
        return dict(self.rows(held, self._classing.members, 0, values))

    def _about(self, links: FactSet, held: FactSet) -> set[int]:
        """Return the classes that links are about."""
        connecting = self._links(links)
        return set(self._classes_of({row[0] for row in connecting}, held).values()) if connecting else set()

    def _members(self, numbers: Collection[int], held: FactSet) -> dict[int, set[Any]]:
        members: dict[int, set[Any]] = defaultdict(set)
        for value, number in self.rows(held, self._classing.members, 1, numbers) if numbers else ():
            members[number].add(value)
        return members

    def _moved(self, left: Sequence[Row], come: Sequence[Row]) -> tuple[FactSet, FactSet]:
        members = self._classing.members
        return (
            self.facts(members, left) if left else self._nothing,
            self.facts(members, come) if come else self._nothing,
        )
