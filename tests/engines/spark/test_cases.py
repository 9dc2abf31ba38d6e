"""Collected cases on Spark: a selection."""

from __future__ import annotations

from collections import defaultdict

import pytest

import upheld
from tests.collected.test_souffle import lines, program_in
from tests.collected.test_update_streams import Relations, hash_of, program_of, rows_of
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.cases import requires_cases
from tests.helpers.runs import run

pytestmark = [requires_cases, pytest.mark.xdist_group("spark")]

#: Recursion, negation, arithmetic, texts and relations without columns, of few rules each.
SOUFFLE = ("evaluation_indirect_negation", "evaluation_neg3", "evaluation_plus", "example_tc", "semantic_rel_nullary")


@pytest.mark.parametrize("case", SOUFFLE)
def test_souffle(cases, spark, case, tmp_path):
    """Every expected file is written, with the expected lines."""
    folder = cases / "souffle" / "run" / case
    run(program_in(folder), folder / "facts", tmp_path, engine="spark")
    expected = {p.name: lines(p) for p in folder.glob("*.csv")}
    assert expected, "a case that expects nothing"
    assert {name: lines(tmp_path / name) for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "algorithm"), [("path.random.0.100-10-200", "ranked"), ("path.overlap.0.100-10-200", "dred")]
)
def test_update_streams(cases, name, algorithm, tmp_path):
    """The first states are those expected, and changes those of the memory engine."""
    folder, form = cases / "update-streams", Relations()
    steps: dict[int, dict[str, list]] = defaultdict(lambda: {"+": [], "-": []})
    for step, sign, predicate, *row in rows_of(folder / f"{name}.updates.tsv.gz"):
        steps[int(step)][sign].append((predicate, tuple(row)))
    program = program_of(folder, name.partition(".")[0], tmp_path)
    in_tasks, in_memory = (
        upheld.materialise(program, form.given(steps[0]["+"]), engine=engine, algorithm=algorithm)
        for engine in (Driven(2), "memory")
    )
    for step, _, total, hash, _ in rows_of(folder / f"{name}.expected.tsv.gz")[1:3]:
        if step != "0":
            update = {"delete": form.given(steps[int(step)]["-"]), "insert": form.given(steps[int(step)]["+"])}
            found, expected = in_tasks.update(**update), in_memory.update(**update)
            for part in ("inserted", "deleted", "ignored", "asserted", "retracted"):
                assert dict(getattr(found, part)) == dict(getattr(expected, part)), (step, part)
        facts = in_tasks.facts()
        assert (len(facts), hash_of(facts)) == (int(total), hash), step
