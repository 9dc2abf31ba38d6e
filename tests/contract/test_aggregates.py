"""The law of aggregates on every engine that has them: corrected values are those of the facts there are now."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.programs.aggregates import TERMS
from tests.helpers.sizes import examples, exhaustive
from upheld.algebra.engine import Engine
from upheld.algebra.sets import settle
from upheld.compiler.compile import compile_program
from upheld.engines import ENGINES, open_engine
from upheld.language.core import Aggregation
from upheld.language.syntax.files import read_text
from upheld.language.types.aggregates import COLUMNS, aggregated, is_of_terms

VALUES = {
    "number": st.integers(-3, 3) | st.sampled_from((2**40, -(2**40))),
    "unsigned": st.integers(0, 3) | st.just(2**50),
    "float": st.sampled_from((0.0, 0.1, 0.2, 1e16, -1e16, float("inf"))),
}
TYPES = {"k": "number", "l": "symbol", "n": "number", "exact": "symbol", "mean": "float"}


@pytest.mark.parametrize("engine", [*ENGINES, pytest.param(Driven(2), id="driven", marks=exhaustive)])
@pytest.mark.parametrize("type", VALUES)
@pytest.mark.parametrize("function", [function for function in COLUMNS if not is_of_terms(function)])
@examples(20)
@given(data=st.data())
def test_changed(engine, function, type, data):
    """`changed` removes and adds so that values of the facts before become those of the facts now."""
    groups = data.draw(st.sampled_from([(), (0,), (1, 0)]))
    target = None if function == "count" else 2
    columns = [*("kl"[group] for group in groups), *COLUMNS[function]]
    declared = ", ".join(f"{name}:{TYPES.get(name, type)}" for name in columns)
    core = compile_program(read_text(f".decl f(k:number, l:symbol, v:{type})\n.decl a({declared})")).core
    aggregation = Aggregation("a", function, "f", groups, target, ("k", "l", "v"), function, type)
    rows = st.sets(st.tuples(st.integers(0, 2), st.sampled_from("ab"), VALUES[type]), max_size=12)
    assert_law(open_engine(engine, core), aggregation, data.draw(rows), data.draw(rows))


@pytest.mark.parametrize("engine", [*ENGINES, pytest.param(Driven(2), id="driven", marks=exhaustive)])
@pytest.mark.parametrize("function", [function for function in COLUMNS if is_of_terms(function)])
@examples(30)
@given(data=st.data())
def test_changed_terms(engine, function, data):
    """The same of functions of RDF terms."""
    groups = data.draw(st.sampled_from(["", "ON ?k", "ON ?l ?k"]))
    rule = f"a(?n) :- AGGREGATE(f(?k, ?l, ?v) {groups} BIND {function}(?v) AS ?n) ."
    core = compile_program(read_text(rule, "dlog")).core
    (aggregation,) = core.aggregations
    if aggregation.body != "f":  # of which extremes need no more than the groups and the values
        aggregation = replace(aggregation, body="f", groups=tuple("kl".index(g) for g in groups if g in "kl"), target=2)
    rows = st.sets(st.tuples(*map(st.sampled_from, (("<k:1>", "<k:2>"), ("<l:1>", "<l:2>"), TERMS))), max_size=12)
    assert_law(open_engine(engine, core), aggregation, data.draw(rows), data.draw(rows))


def assert_law(algebra: Engine, aggregation: Aggregation, before: set[tuple], now: set[tuple]) -> None:
    """Values of some facts are changed to those of others."""
    aggregate, relation = algebra.aggregate(aggregation), aggregation.relation
    F, G = algebra.load("f", before), algebra.load("f", now)
    held = algebra.named("held")
    held |= aggregate.changed(algebra.nothing, F, algebra.nothing, F)[1]
    assert set(held.rows(relation)) == values(aggregation, before)
    left, come = aggregate.changed(settle(F - G), settle(G - F), held, G)
    assert not set(left.rows(relation)) & set(come.rows(relation))
    held -= left
    held |= come
    assert set(held.rows(relation)) == values(aggregation, now)


def values(aggregation: Aggregation, rows: set[tuple]) -> set[tuple]:
    by_group = defaultdict(list)
    for row in rows:
        by_group[tuple(row[c] for c in aggregation.groups)].append(row[2])
    kept = {group: aggregated(aggregation.function, aggregation.type, of) for group, of in by_group.items()}
    return {(*group, *numbers) for group, numbers in kept.items() if numbers is not None}
