"""Measurements end in time, and say what they have measured."""

from __future__ import annotations

from math import inf

import upheld
from benchmarks.engines.upheld import watched
from benchmarks.measure import triples, updates
from benchmarks.measure.streams import one_fact
from benchmarks.measure.updates import Patience, Run, by_turns
from benchmarks.workloads import campus_rdf
from benchmarks.workloads.updates import Cell, Maintained
from upheld.algebra.meter import Meter


def test_a_stream_ends_with_its_updates_or_with_patience():
    """The rate is of the updates that were made, whose number is part of the result."""
    program = one_fact.Program("q(x) :- p(x).", {"p": [(k,) for k in range(10)]})
    m = upheld.materialise(program.rules, dict(program.facts))
    made, by_second = one_fact.streamed(m, program, 6, patience=inf)
    assert made == 6 and by_second > 0
    made, by_second = one_fact.streamed(m, program, 100_000, patience=0.0)
    assert made == 1 and by_second > 0


def test_algorithms_take_turns_within_the_updates_of_a_row(monkeypatch):
    """A machine that is slow for a moment is slow for all of them. Each does all updates, and has changed as much."""
    monkeypatch.setattr(updates, "TURN", 0.0)
    batches = [{"p": [(k,)]} for k in range(4)]
    workload = Maintained("q(x) :- p(x).", {"p": [(k,) for k in range(10)]}, [Cell("1", batches)])
    runs = {algorithm: Run(workload, algorithm, Patience(60.0, inf)) for algorithm in ("dred", "ranked")}
    done = []

    def update(run, way, batch, times, before=Run.update):
        if run.warm:
            done.append((run.algorithm, way, batch["p"]))
        return before(run, way, batch, times)

    monkeypatch.setattr(Run, "update", update)
    found = by_turns({algorithm: run.turns(workload.cells[0]) for algorithm, run in runs.items()})
    ways = ("delete", "insert")
    assert done == [(a, way, batch["p"]) for batch in batches for a in runs for way in ways]
    assert [*found] == [*runs]
    for told in found.values():
        assert told["delete"]["changed"] == told["insert"]["changed"] == [2] * 4
        assert all(len(told[way]["cpu"]) == len(told[way]["instances"]) == 4 for way in ways)


def test_an_algorithm_that_was_too_slow_is_spared_larger_updates():
    """The others go on without it."""
    batches = [{"p": [(k,)]} for k in range(3)]
    workload = Maintained("q(x) :- p(x).", {"p": [(k,) for k in range(10)]}, [Cell("1", batches)])
    runs = {algorithm: Run(workload, algorithm, Patience(60.0, inf)) for algorithm in ("dred", "ranked")}
    for run in runs.values():
        run.cell(workload.cells[0])
    runs["dred"].lost[""] = 7.0
    found = by_turns({algorithm: run.turns_if_in_time(workload.cells[0]) for algorithm, run in runs.items()})
    assert found["dred"] == {"delete": {"longer than": 7.0, "tried": False}, "insert": {}}
    assert len(found["ranked"]["delete"]["cpu"]) == 3


def test_one_relation_of_triples_has_the_facts_of_many(tmp_path, monkeypatch):
    """Both programs derive the same number of facts, and have a time."""
    monkeypatch.setattr(Meter, "run", watched)
    campus_rdf.make(tmp_path, 3_000)
    found = triples.measured(tmp_path, repeat=1)
    one, many = found["programs"]["one"], found["programs"]["many"]
    assert one["facts"] == many["facts"] > 3_000
    assert 0 < one["seconds"] < float("inf") and 0 < many["seconds"] < float("inf")
