"""Facts as callers give them, fitted to the relations of a program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from upheld.data.change import unknown_relation
from upheld.data.columns import Row
from upheld.data.factfiles import Reader
from upheld.errors import FactsError, Problem
from upheld.ingest import facts_of
from upheld.ingest.fitting import are_plain
from upheld.language.core import Core
from upheld.language.terms.ntriples import is_graph
from upheld.rdf.graphs import read_graph
from upheld.rdf.reading import read as read_rdf


class Graph(Protocol):
    """A graph of rdflib or pyoxigraph."""

    @property
    def add(self) -> Any: ...


#: Facts as callers give them: for each relation rows, a data frame, an Arrow table, or the path of a file.
#: RDF files, a folder of them, or a graph hold facts of `triple` and `quad`.
FactsGiven = Mapping[str, object] | str | Path | Sequence[str | Path] | Graph


#: Rows that are looked at one by one before anything else.
_FEW = 16


def by_name(facts: FactsGiven | None) -> Mapping[str, object]:
    """Return facts for each relation; RDF files and graphs have facts of `triple` and `quad`."""
    if facts is None or isinstance(facts, Mapping):
        return facts or {}
    if is_graph(facts):
        return read_graph(facts)
    paths = [facts] if isinstance(facts, str | os.PathLike) else facts
    assert isinstance(paths, Sequence), "facts of an unknown form"
    return read_rdf(*paths)


def fitted_facts(core: Core, facts: Mapping[str, object], read: Reader) -> dict[str, Iterable[Row]]:
    """Return the rows given for each relation, checked against its columns."""
    problems: list[Problem] = []
    fitted: dict[str, Iterable[Row]] = {}
    for name, data in facts.items():
        predicate = core.predicates.get(name)
        if predicate is None or predicate.hidden:
            problems.append(unknown_relation(name, [p.name for p in core.predicates.values() if not p.hidden]))
            continue
        if type(data) is list and len(data) <= _FEW and are_plain(data, predicate.types):
            fitted[name] = data.copy()
            continue
        try:
            fitted[name] = facts_of(name, data, predicate.types, predicate.columns, read).rows
        except FactsError as e:
            problems.extend(e.problems)
    if problems:
        raise FactsError(problems)
    return fitted
