"""Kept cases: small programs that once went wrong, with what they must give."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from upheld.engines import ENGINES
from upheld.maintain.registry import ALGORITHMS

CASES = sorted(path.parent for path in (Path(__file__).parent / "golden").glob("*/program.dl"))


UPDATED = [case for case in CASES if (case / "updates").exists()]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", [case for case in CASES if case not in UPDATED], ids=lambda case: case.name)
def test_kept_case(engine, case, tmp_path):
    """The outputs are those expected, all of them and no others."""
    upheld.run(case / "program.dl", case / "facts", tmp_path, engine=engine)
    assert lines_in(tmp_path) == lines_in(case / "expected")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("case", UPDATED, ids=lambda case: case.name)
def test_kept_case_with_updates(engine, algorithm, case, tmp_path):
    """So is what each transaction changes."""
    changes, output = tmp_path / "changes", tmp_path / "output"
    output.mkdir()
    options = dict(changes=changes, verify=True, engine=engine, algorithm=algorithm)
    upheld.apply(case / "program.dl", case / "updates", case / "facts", output, **options)
    assert changes.read_text() == (case / "changes").read_text()
    assert lines_in(output) == lines_in(case / "expected")


def lines_in(folder: Path) -> dict[str, set[str]]:
    return {path.name: set(path.read_text().splitlines()) for path in folder.iterdir()}


def test_there_are_cases():
    assert UPDATED and len(UPDATED) < len(CASES)
