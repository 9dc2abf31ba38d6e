"""Sets, bags and rule instances on plain Python sets. Set expressions are computed at once and in full.

The only index is a dictionary per predicate and bound columns, made on first use, so that a case of a few thousand
facts does not take minutes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from upheld.algebra.instances import RuleInstance
from upheld.algebra.sets import Bag, FactSet, Instances, Profile, SetEngine
from upheld.compiler.strata import Stratification, Stratum
from upheld.language.ast import Constant
from upheld.language.core import Atom, Fact
from upheld.language.values import Value

Row = tuple[Value, ...]


class Facts:
    """A set of facts, by predicate. `indexes` holds the rows of a predicate by their values at some positions."""

    def __init__(self, engine: SetEngine, facts: Iterable[Fact] = ()):
        self.engine = engine
        self.by_predicate: dict[str, set[Row]] = defaultdict(set)
        self.indexes: dict[tuple[str, tuple[int, ...]], dict[Row, list[Row]]] = {}
        for predicate, row in facts:
            self.by_predicate[predicate].add(row)

    def __contains__(self, fact: Fact) -> bool:
        return fact[1] in self.by_predicate.get(fact[0], ())

    def __iter__(self) -> Iterator[Fact]:
        return ((predicate, row) for predicate, rows in self.by_predicate.items() for row in rows)

    def __bool__(self) -> bool:
        return any(self.by_predicate.values())

    def __repr__(self) -> str:
        return f"Facts({sorted(self, key=repr)})"

    def count(self, predicate: str | None = None) -> int:
        if predicate is not None:
            return len(self.by_predicate.get(predicate, ()))
        return sum(map(len, self.by_predicate.values()))

    def has(self, predicate: str, row: Sequence[object]) -> bool:
        return tuple(row) in self.by_predicate.get(predicate, ())

    def rows(self, predicate: str) -> set[Row]:
        return set(self.by_predicate.get(predicate, ()))

    def predicates(self) -> set[str]:
        return {p for p, rows in self.by_predicate.items() if rows}

    def classes(self, strata: Stratification) -> set[int]:
        return {strata.class_of_fact((p, row)) for p, rows in self.by_predicate.items() for row in rows}

    def classes_apart(self, other: FactSet, stratum: Stratum) -> set[int]:
        return ((self - other) | (other - self)).in_stratum(stratum).classes(stratum.stratification)

    def profiles(self, atoms: Sequence[Atom]) -> list[Profile]:
        return [self._profile(atom) for atom in atoms]

    def _profile(self, atom: Atom) -> Profile:
        given = {i: term.value for i, term in enumerate(atom.terms) if isinstance(term, Constant)}
        rows = [row for row in self.rows(atom.predicate) if all(row[i] == value for i, value in given.items())]
        return len(rows), tuple(len({row[i] for row in rows}) for i in range(len(atom.terms)))

    def at_most(self, predicate: str) -> int:
        return self.count(predicate)

    def in_stratum(self, stratum: Stratum) -> Facts:
        place = stratum.stratification.stratum_of
        return Facts(self.engine, (f for f in self if place(f) == stratum.index))

    def __or__(self, other: FactSet) -> Facts:
        return Facts(self.engine, [*self, *own_set(other)])

    def __and__(self, other: FactSet) -> Facts:
        right = own_set(other)
        return Facts(self.engine, (f for f in self if f in right))

    def __sub__(self, other: FactSet) -> Facts:
        right = own_set(other)
        return Facts(self.engine, (f for f in self if f not in right))

    def __ior__(self, other: FactSet) -> Self:
        for predicate, row in list(own_set(other)):
            rows = self.by_predicate[predicate]
            if row not in rows:
                rows.add(row)
                for (indexed, positions), index in self.indexes.items():
                    if indexed == predicate:
                        index[tuple(row[p] for p in positions)].append(row)
        return self

    def __isub__(self, other: FactSet) -> Self:
        for predicate, row in list(own_set(other)):
            self.by_predicate[predicate].discard(row)
        self.indexes.clear()
        return self

    def lookup(self, predicate: str, positions: tuple[int, ...], key: Row) -> Iterable[Row]:
        """Return the rows of a predicate with the values `key` at `positions`."""
        if not positions:
            return tuple(self.by_predicate.get(predicate, ()))
        index = self.indexes.get((predicate, positions))
        if index is None:
            index = self.indexes[predicate, positions] = defaultdict(list)
            for row in self.by_predicate.get(predicate, ()):
                index[tuple(row[p] for p in positions)].append(row)
        return tuple(index.get(key, ()))


class CountedFacts:
    """Facts with multiplicities; where these count instances, `instances` lists them."""

    def __init__(self, engine: SetEngine, counts: Counter[Fact], instances: Sequence[RuleInstance] | None = None):
        self.engine, self.counts, self.instances = engine, counts, instances

    def __iadd__(self, other: Bag) -> Self:
        self.counts.update(own_bag(other).counts)
        return self

    def __isub__(self, other: Bag) -> Self:
        self.counts.subtract(own_bag(other).counts)
        return self

    def facts(self) -> Facts:
        return Facts(self.engine, (f for f, n in self.counts.items() if n > 0))

    def items(self) -> Iterable[tuple[Fact, int]]:
        return ((f, n) for f, n in self.counts.items() if n)


class InstanceList:
    """Rule instances, and the sets of facts they are made of."""

    def __init__(self, engine: SetEngine, instances: Iterable[RuleInstance]):
        self.engine = engine
        self.instances = list(instances)

    def __iter__(self) -> Iterator[RuleInstance]:
        return iter(self.instances)

    def __len__(self) -> int:
        return len(self.instances)

    def __or__(self, other: Instances) -> InstanceList:
        return InstanceList(self.engine, dict.fromkeys([*self, *own_instances(other)]))

    def partition(self, facts: FactSet) -> tuple[InstanceList, InstanceList]:
        some = own_set(facts)
        having = [any(f in some for f in i.body) for i in self.instances]
        return (
            InstanceList(self.engine, (i for i, has in zip(self.instances, having, strict=True) if has)),
            InstanceList(self.engine, (i for i, has in zip(self.instances, having, strict=True) if not has)),
        )

    def heads(self) -> Facts:
        return Facts(self.engine, (i.head for i in self.instances))

    def bodies(self, stratum: Stratum | None = None) -> Facts:
        if stratum is None:
            return Facts(self.engine, (f for i in self.instances for f in i.body))
        return Facts(self.engine, (f for i in self.instances for f in i.body_in(stratum)))

    def bag(self) -> CountedFacts:
        return CountedFacts(self.engine, Counter(i.head for i in self.instances), self.instances)


def own_set(facts: FactSet) -> Facts:
    assert isinstance(facts, Facts), "a set of another engine"
    return facts


def own_bag(bag: Bag) -> CountedFacts:
    assert isinstance(bag, CountedFacts), "a bag of another engine"
    return bag


def own_instances(found: Instances) -> InstanceList:
    assert isinstance(found, InstanceList), "instances of another engine"
    return found
