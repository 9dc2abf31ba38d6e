"""Kept cases: small programs that once went wrong, with what they must give."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from upheld.engines import ENGINES

CASES = sorted(path.parent for path in (Path(__file__).parent / "golden").glob("*/program.dl"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kept_case(engine, case, tmp_path):
    """The outputs are those expected, all of them and no others."""
    upheld.run(case / "program.dl", case / "facts", tmp_path, engine=engine)
    expected = {path.name: set(path.read_text().splitlines()) for path in (case / "expected").iterdir()}
    assert {path.name: set(path.read_text().splitlines()) for path in tmp_path.iterdir()} == expected


def test_there_are_cases():
    assert CASES
