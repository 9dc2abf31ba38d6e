"""Facts as callers give them, fitted to the relations of a program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from upheld.data.change import unknown_relation
from upheld.data.columns import Row
from upheld.data.factfiles import Reader
from upheld.errors import FactsError, Problem
from upheld.ingest import facts_of
from upheld.language.core import Core
from upheld.rdf.reading import read as read_rdf

#: Facts as callers give them: for each relation rows, a data frame, an Arrow table, or the path of a file.
#: RDF files, or a folder of them, hold facts of `triple` and `quad`.
FactsGiven = Mapping[str, object] | str | Path | Sequence[str | Path]


def by_name(facts: FactsGiven | None) -> Mapping[str, object]:
    """Return facts for each relation; those of RDF files are for `triple` and `quad`."""
    if facts is None or isinstance(facts, Mapping):
        return facts or {}
    return read_rdf(*([facts] if isinstance(facts, str | os.PathLike) else facts))


def fitted_facts(core: Core, facts: Mapping[str, object], read: Reader) -> dict[str, Iterable[Row]]:
    """Return the rows given for each relation, checked against its columns."""
    problems: list[Problem] = []
    fitted: dict[str, Iterable[Row]] = {}
    for name, data in facts.items():
        predicate = core.predicates.get(name)
        if predicate is None or predicate.hidden:
            problems.append(unknown_relation(name, [p.name for p in core.predicates.values() if not p.hidden]))
            continue
        try:
            fitted[name] = facts_of(name, data, predicate.types, predicate.columns, read).rows
        except FactsError as e:
            problems.extend(e.problems)
    if problems:
        raise FactsError(problems)
    return fitted
