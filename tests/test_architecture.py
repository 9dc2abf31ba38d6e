"""The page on the architecture leads a reader through the code, and stays short enough to be followed."""

from __future__ import annotations

import re

import pytest

from tests.helpers.cases import ROOT

PAGE = ROOT / "docs" / "explanation" / "architecture.md"

#: Files that a reader opens to follow one program or one update, at most.
MOST_FILES = 12


@pytest.mark.parametrize("subject", ["program", "update"])
def test_a_dozen_files_tell_the_story(subject: str) -> None:
    """Each section names few files, and they define the functions that it names."""
    section = PAGE.read_text(encoding="utf-8").split(f"## Follow one {subject}\n")[1].split("\n## ")[0]
    files = list(dict.fromkeys(re.findall(r"\]\(\.\./\.\./(src/upheld/[^)]*)\)", section)))
    assert 5 < len(files) <= MOST_FILES
    source = "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    functions = re.findall(r"`(_?[a-z]+(?:_[a-z]+)+)`", section)
    assert len(functions) > 1
    assert [name for name in functions if not re.search(rf"\bdef {name}\b", source)] == []
