"""Patterns that made other engines give wrong answers, with the right states after each update."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

import upheld
from tests.helpers.cases import CASES, requires_cases
from tests.helpers.programs.prolog_text import facts_in, to_dl
from upheld.engines import ENGINES

pytestmark = requires_cases

LINES = (CASES / "fuzz-patterns" / "cases.jsonl").read_text(encoding="utf-8").splitlines() if CASES else []


def by_relation(facts: list[str]) -> dict[str, list[tuple[int | str, ...]]]:
    grouped = defaultdict(list)
    for predicate, row in facts_in(" ".join(facts)):
        grouped[predicate].append(row)
    return grouped


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", [json.loads(line) for line in LINES], ids=lambda case: case["id"])
def test_states(engine, case):
    """The first state, and the state after each update, are as expected."""
    m = upheld.materialise(" ".join(map(to_dl, case["rules"])), by_relation(case["facts"]), engine=engine)
    shown = {predicate.partition("/")[0] for predicate in case["preds"]}

    def state():
        return {fact for fact in m.facts() if fact[0] in shown}

    first, *later = [facts_in(" ".join(facts)) for facts in case["expected_states"]]
    assert state() == first
    assert len(later) == len(case["updates"])
    for update, expected in zip(case["updates"], later):
        m.update(
            delete=by_relation([fact for sign, fact in update if sign == "-"]),
            insert=by_relation([fact for sign, fact in update if sign == "+"]),
        )
        assert state() == expected
