"""From rows to the rules they concern, by predicate and by the constants of atoms.

A program may have thousands of rules over one predicate; an update must touch only those whose atoms it can match.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codec
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Constant
from upheld.language.core import Atom, Rule

#: So few different constants are looked for one by one; for more, the values that occur are looked up.
_FEW = 8


@dataclass(frozen=True, eq=False)
class Occurrence:
    """An atom of a rule, by its position among the positive ones, the negated ones, or the heads."""

    rule: Rule
    position: int
    atom: Atom
    #: Plans that begin with the atom as `few_facts` writes them, by their kind.
    written: dict[object, Any] = field(default_factory=dict, repr=False)


class DeltaIndex:
    """The atoms of some rules, by predicate, columns with constants, and those constants."""

    def __init__(self, rules: Sequence[Rule], codec: Codec, atoms_of: Callable[[Rule], Sequence[Atom]]):
        self._groups: dict[str, dict[tuple[int, ...], dict[tuple[int, ...], list[Occurrence]]]] = {}
        for rule in rules:
            for position, atom in enumerate(atoms_of(rule)):
                constants = [(c, t) for c, t in enumerate(atom.terms) if isinstance(t, Constant)]
                columns = tuple(c for c, _ in constants)
                codes = tuple(codec.constant(t.value, t.type) for _, t in constants)
                groups = self._groups.setdefault(atom.predicate, defaultdict(lambda: defaultdict(list)))
                groups[columns][codes].append(Occurrence(rule, position, atom))

    @property
    def predicates(self) -> Collection[str]:
        """The predicates of the atoms."""
        return self._groups

    def concerned(self, table: Table, rows: Rows) -> Iterator[tuple[Occurrence, Rows]]:
        """Yield each atom that some of the rows match, with these rows; repeated variables are not looked at."""
        for columns, by_constants in self._groups.get(table.name, {}).items():
            if not columns:
                for occurrences in by_constants.values():
                    for occurrence in occurrences:
                        yield occurrence, rows
                continue
            values = table.rows[rows][:, columns]
            for codes, chosen in _matching(values, by_constants.keys()):
                for occurrence in by_constants[codes]:
                    yield occurrence, rows[chosen]


def _matching(values: np.ndarray, keys: Collection[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:  # type: ignore[type-arg]
    if len(keys) <= _FEW:
        for codes in keys:
            chosen = np.flatnonzero((values == codes).all(axis=1))
            if len(chosen):
                yield codes, chosen
        return
    if len(values) > len(keys) and values.dtype == np.int32 and values.shape[1] <= 2:
        yield from _sorted_out(_as_one(values), list(keys), _as_one(np.array(list(keys), np.int32)))
        return
    distinct, inverse = np.unique(values, axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(inverse.ravel(), minlength=len(distinct)))
    for k, codes in enumerate(map(tuple, distinct.tolist())):
        if codes in keys:
            yield codes, order[ends[k - 1] if k else 0 : ends[k]]


def _sorted_out(
    values: np.ndarray, keys: list[tuple[int, ...]], numbers: np.ndarray
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:  # type: ignore[type-arg]
    """Yield the keys that occur among many values, with the places of each: only values that are a key are sorted."""
    order = np.argsort(numbers)
    ascending = numbers[order]
    at = np.searchsorted(ascending, values)
    at[at == len(ascending)] = 0
    hits = np.flatnonzero(ascending[at] == values)
    which = at[hits]
    together = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(keys)))
    for k, end in enumerate(ends.tolist()):
        begin = int(ends[k - 1]) if k else 0
        if end > begin:
            yield keys[order[k]], hits[together[begin:end]]


def _as_one(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Return rows of one or two numbers of 32 bits as one number each."""
    if values.shape[1] == 1:
        return values[:, 0]
    return (values[:, 0].astype(np.int64) << 32) | (values[:, 1].astype(np.int64) & 0xFFFFFFFF)
