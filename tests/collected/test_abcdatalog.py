"""Small programs of AbcDatalog's tests, each with a query and its answers, or to be refused."""

from __future__ import annotations

import json

import pytest

import upheld
from tests.helpers.cases import CASES, requires_cases
from tests.helpers.programs.prolog_text import facts_in, to_dl
from upheld.engines import ENGINES

pytestmark = requires_cases

LINES = (CASES / "abcdatalog" / "cases.jsonl").read_text(encoding="utf-8").splitlines() if CASES else []
ALL = [json.loads(line) for line in LINES]
ACCEPTED = [c for c in ALL if c.get("expect") != "reject"]
REJECTED = [c for c in ALL if c.get("expect") == "reject"]


def name(case) -> str:
    return f"{case['test']}-{case.get('query', 'reject')}"


def answers(m: upheld.Materialisation, query: str):
    """Return the facts that a query of one atom asks for."""
    (asked,) = facts_in(query, numbers_are_names=True)
    predicate, terms = asked
    atom = to_dl(query, numbers_are_names=True)
    if atom.partition("(")[0] not in m.relations:
        # There, a relation that no clause mentions is empty; here, asking for it is a mistake.
        with pytest.raises(upheld.UpheldError, match="unknown-relation"):
            m.query(atom)
        return set()
    found = m.query(atom)
    return {
        (predicate, tuple(row[found.columns.index(t)] if t in found.columns else t for t in terms)) for row in found
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", ACCEPTED, ids=name)
def test_answers(engine, case):
    """The query has the answers that AbcDatalog gives."""
    m = upheld.materialise(to_dl(case["program"], numbers_are_names=True), engine=engine)
    found = answers(m, case["query"].removesuffix("?"))
    assert found == facts_in(case["answers"], numbers_are_names=True)
    assert len(found) == case.get("count", len(found))


@pytest.mark.parametrize("case", REJECTED, ids=name)
def test_rejected(case):
    """What AbcDatalog refuses is refused, with a place."""
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.materialise(to_dl(case["program"], numbers_are_names=True))
    assert all(problem.span for problem in refusal.value.problems)
