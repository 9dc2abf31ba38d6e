"""Where the kept cases from elsewhere lie, and the mark of tests that need them."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_BESIDE = ROOT.parent / "shared" / "cases"

#: The folder of cases, or None where it is absent.
CASES: Path | None = _BESIDE if _BESIDE.is_dir() else None

ABSENT = "../shared/cases is absent"

requires_cases = pytest.mark.skipif(CASES is None, reason=ABSENT)
