"""The demonstration goes through all its steps, and its facts are those derived anew."""

from __future__ import annotations

import re

import pytest

from tests.helpers.sizes import usually

pytestmark = pytest.mark.xdist_group("spark")


def test_the_whole_story(spark, tmp_path, capsys, monkeypatch):
    from examples.university import demonstration, generator

    updates = usually(3, demonstration.UPDATES)
    monkeypatch.setattr(demonstration, "UPDATES", updates)
    monkeypatch.setattr(generator, "FACULTIES", usually(1, generator.FACULTIES))
    demonstration.main(["--keep", str(tmp_path / "demo")])
    printed = capsys.readouterr().out
    assert len(re.findall(r"version \d+: \+\d+ -\d+ facts in", printed)) == updates
    assert re.search(r"such as \+answers_to\(\w+, new_teacher\d+\)", printed)
    assert len(re.findall(r"^    department\d+ +\d+$", printed, re.MULTILINE)) == 5
    facts = re.search(r"gives the same ([\d,]+)", printed)
    assert facts is not None and int(facts[1].replace(",", "")) > usually(40_000, 200_000)
    assert "times as long" in printed
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"facts", "updates", "state", "out", "feed"}
