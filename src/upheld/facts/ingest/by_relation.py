"""Facts as callers give them, fitted to the relations of a program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from upheld.base.errors import FactsError, Problem, are_paths, is_path, require
from upheld.base.threads import ONE_THREAD, Threads
from upheld.facts.change import unknown_relation
from upheld.facts.columns import Row
from upheld.facts.files.reading import Reader
from upheld.facts.files.side_by_side import read_side_by_side
from upheld.facts.ingest import facts_of
from upheld.facts.ingest.fitting import are_plain
from upheld.facts.rdf.graphs import read_graph
from upheld.facts.rdf.reading import read as read_rdf
from upheld.language.core import Core, Predicate
from upheld.language.terms.ntriples import is_graph


class Graph(Protocol):
    """A graph of rdflib or pyoxigraph."""

    @property
    def add(self) -> Any: ...


#: Facts as callers give them: for each relation rows, a data frame, an Arrow table, or the path of a file.
#: RDF files, a folder of them, or a graph hold facts of `triple` and `quad`.
FactsGiven = Mapping[str, object] | str | Path | Sequence[str | Path] | Graph


#: The forms of facts, for messages.
FACTS = 'a dictionary of facts by relation, such as `{"edge": [(1, 2)]}`, paths of RDF files, or a graph'

#: Rows that are looked at one by one before anything else.
_FEW = 16


def by_name(facts: FactsGiven | None, parameter: str = "facts") -> Mapping[str, object]:
    """Return facts for each relation; RDF files and graphs have facts of `triple` and `quad`."""
    if facts is None or isinstance(facts, Mapping):
        return facts or {}
    require(are_facts(facts), parameter, FACTS, facts)
    if is_graph(facts):
        return read_graph(facts)
    paths = [facts] if isinstance(facts, str | os.PathLike) else facts
    assert isinstance(paths, Sequence), "facts of an unknown form"
    return read_rdf(*paths)


def are_facts(value: object) -> bool:
    """Return whether `value` has one of the forms in which callers give facts."""
    return isinstance(value, Mapping) or is_path(value) or are_paths(value) or is_graph(value)


def fitted_facts(
    core: Core, facts: Mapping[str, object], read: Reader, threads: Threads = ONE_THREAD
) -> dict[str, Iterable[Row]]:
    """Return the rows given for each relation, checked against its columns. Several files are read at once."""
    problems: list[Problem] = []
    fitted: dict[str, Iterable[Row]] = {}
    read_before = _read_side_by_side(core, facts, read, threads) if threads.count > 1 and len(facts) > 1 else {}
    for name, data in facts.items():
        predicate = core.predicates.get(name)
        if predicate is None or predicate.hidden:
            problems.append(unknown_relation(name, [p.name for p in core.predicates.values() if not p.hidden]))
            continue
        if type(data) is list and len(data) <= _FEW and are_plain(data, predicate.types):
            fitted[name] = data.copy()
            continue
        rows = read_before.get(name)
        if rows is None:
            rows = _fitted(predicate, data, read)
        if isinstance(rows, FactsError):
            problems.extend(rows.problems)
        else:
            fitted[name] = rows
    if problems:
        raise FactsError(problems)
    return fitted


def _fitted(predicate: Predicate, data: object, read: Reader) -> Iterable[Row] | FactsError:
    """Return the rows given for a relation, or what is wrong with them."""
    try:
        return facts_of(predicate.name, data, predicate.types, predicate.columns, read).rows
    except FactsError as e:
        return e


def _read_side_by_side(
    core: Core, facts: Mapping[str, object], read: Reader, threads: Threads
) -> dict[str, Iterable[Row] | FactsError]:
    """Return the rows of the relations that files are given for, or what is wrong with them."""
    paths = [(core.predicates.get(name), data) for name, data in facts.items() if isinstance(data, str | os.PathLike)]
    files = [(predicate, Path(data)) for predicate, data in paths if predicate is not None and not predicate.hidden]
    rows = read_side_by_side(threads, [(path, partial(_fitted, one, path, read)) for one, path in files])
    return dict(zip((predicate.name for predicate, _ in files), rows, strict=True))
