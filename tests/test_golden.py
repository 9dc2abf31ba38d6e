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
    """The outputs are those expected, all of them and no others; if there are updates, so is what each changes."""
    output = tmp_path / "output"
    output.mkdir()
    if (case / "updates").exists():
        changes = tmp_path / "changes"
        upheld.apply(
            case / "program.dl", case / "updates", case / "facts", output, changes=changes, verify=True, engine=engine
        )
        assert changes.read_text() == (case / "changes").read_text()
    else:
        upheld.run(case / "program.dl", case / "facts", output, engine=engine)
    expected = {path.name: set(path.read_text().splitlines()) for path in (case / "expected").iterdir()}
    assert {path.name: set(path.read_text().splitlines()) for path in output.iterdir()} == expected


def test_there_are_cases():
    assert any((case / "updates").exists() for case in CASES)
    assert not all((case / "updates").exists() for case in CASES)
