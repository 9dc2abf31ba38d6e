"""Measurements end in time, and say what they have measured."""

from __future__ import annotations

from math import inf

import upheld
from benchmarks.engines.upheld import watched
from benchmarks.measure import triples
from benchmarks.measure.streams import one_fact
from benchmarks.workloads import campus_rdf
from upheld.algebra.meter import Meter


def test_a_stream_ends_with_its_updates_or_with_patience():
    """The rate is of the updates that were made, whose number is part of the result."""
    program = one_fact.Program("q(x) :- p(x).", {"p": [(k,) for k in range(10)]})
    m = upheld.materialise(program.rules, dict(program.facts))
    made, by_second = one_fact.streamed(m, program, 6, patience=inf)
    assert made == 6 and by_second > 0
    made, by_second = one_fact.streamed(m, program, 100_000, patience=0.0)
    assert made == 1 and by_second > 0


def test_one_relation_of_triples_has_the_facts_of_many(tmp_path, monkeypatch):
    """Both programs derive the same number of facts, and have a time."""
    monkeypatch.setattr(Meter, "run", watched)
    campus_rdf.make(tmp_path, 3_000)
    found = triples.measured(tmp_path, repeat=1)
    one, many = found["programs"]["one"], found["programs"]["many"]
    assert one["facts"] == many["facts"] > 3_000
    assert 0 < one["seconds"] < float("inf") and 0 < many["seconds"] < float("inf")
