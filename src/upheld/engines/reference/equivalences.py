"""The classes of an equivalence on plain Python sets: what `join`, `part` and the others mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from upheld.algebra.expansion import Expansions
from upheld.algebra.pairs import pairs_between, pairs_within
from upheld.algebra.sets import FactSet, SetEngine
from upheld.engines.reference.classes import connected
from upheld.engines.reference.sets import Facts, own_set
from upheld.language.core import Classing
from upheld.language.values import Value

Members = Mapping[int, set[Value]]


class PlainGroups:
    """An equivalence. A class number is used once: no later class gets the number of an earlier one."""

    def __init__(self, engine: SetEngine, classing: Classing):
        self.engine, self._classing = engine, classing
        self._numbers = count()

    def join(self, links: FactSet, held: FactSet) -> tuple[Facts, Facts]:
        members, class_of = self._classes(held)
        connecting = self._links(links)
        # A link connects classes, or values that are in no class.
        node = {v: (class_of.get(v), None if v in class_of else v) for link in connecting for v in link}
        left: list[tuple[Value, int]] = []
        come: list[tuple[Value, int]] = []
        for group in connected([(node[a], node[b]) for a, b in connecting]):
            numbers = [number for number, _ in group if number is not None]
            winner = max(numbers, key=lambda n: len(members[n])) if numbers else next(self._numbers)
            losing = [(value, number) for number in numbers if number != winner for value in members[number]]
            left += losing
            come += [(value, winner) for value, _ in losing]
            come += [(value, winner) for number, value in group if number is None and value is not None]
        return self._memberships(left), self._memberships(come)

    def around(self, links: FactSet, facts: FactSet) -> Facts:
        members, class_of = self._classes(facts)
        wanted = {v for number in self._about(links, class_of) for v in members[number]}
        return self._facts(self._classing.relation, [link for link in self._links(facts) if link[0] in wanted])

    def part(self, links: FactSet, sure: FactSet, held: FactSet) -> tuple[Facts, Facts]:
        members, class_of = self._classes(held)
        parts: dict[int, list[list[Value]]] = defaultdict(list)
        # NaN differs from itself; a tuple that contains it equals itself.
        for wrapped in connected([((a,), (b,)) for a, b in self._links(sure)]):
            part = [value for (value,) in wrapped]
            parts[class_of[part[0]]].append(part)
        left: list[tuple[Value, int]] = []
        come: list[tuple[Value, int]] = []
        for number in self._about(links, class_of):
            largest = max(parts[number], key=len, default=[])
            left += [(value, number) for value in members[number] - set(largest)]
            for part in parts[number]:
                if part is not largest:
                    new = next(self._numbers)
                    come += [(value, new) for value in part]
        return self._memberships(left), self._memberships(come)

    def pairs(self, held: FactSet) -> Expansions:
        rows = own_set(held).rows(self._classing.members)
        return pairs_within(lambda: rows)

    def changed(self, left: FactSet, come: FactSet, held: FactSet) -> tuple[Expansions, Expansions]:
        gone, came, there = (own_set(facts).rows(self._classing.members) for facts in (left, come, held))
        changed = {number for _, number in gone | came}
        now = {row for row in there if row[1] in changed}
        before = (now - came) | gone
        return pairs_between(lambda: (_by_value(before), _by_value(now)))

    def class_of(self, value: Value, held: FactSet) -> list[Value]:
        members, class_of = self._classes(held)
        return list(members[class_of[value]]) if value in class_of else []

    # -- inside --------------------------------------------------------------------------------------------------------

    def _classes(self, held: FactSet) -> tuple[Members, Mapping[Value, int]]:
        """Return the members of each class, and the class of each member."""
        members: dict[int, set[Value]] = defaultdict(set)
        class_of = _by_value(own_set(held).rows(self._classing.members))
        for value, number in class_of.items():
            members[number].add(value)
        return members, class_of

    def _links(self, facts: FactSet) -> list[tuple[Value, Value]]:
        return [(a, b) for a, b in own_set(facts).rows(self._classing.relation)]

    def _about(self, links: FactSet, class_of: Mapping[Value, int]) -> set[int]:
        """Return the classes that links connect members of."""
        return {class_of[a] for a, _ in self._links(links) if a in class_of}

    def _memberships(self, rows: Iterable[tuple[Value, int]]) -> Facts:
        return self._facts(self._classing.members, rows)

    def _facts(self, predicate: str, rows: Iterable[tuple[Any, ...]]) -> Facts:
        return Facts(self.engine, ((predicate, row) for row in rows))


def _by_value(rows: Iterable[tuple[Value, ...]]) -> dict[Value, int]:
    return {value: int(number) for value, number in rows}
