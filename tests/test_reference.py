"""The reference is true: its examples give the errors they stand under, and its generated pages are up to date.

In docs/reference/errors.md a `dl` or `dlog` block is a program that is run, a `python` block is executed, and a block
after `<!-- file: name -->` is written to that file first. One of the blocks below a heading gives that error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import upheld
from tests.test_documents import ERRORS, SLUG, Block, read_markdown


@dataclass(frozen=True)
class Entry:
    """A slug of the page with the blocks below its heading."""

    slug: str
    blocks: tuple[Block, ...]


def entries() -> list[Entry]:
    """Return the entries of the page of errors."""
    prose, blocks = read_markdown(ERRORS.read_text(encoding="utf-8"))
    headings = [(line, re.fullmatch(rf"#{{2,4}}\s+({SLUG.pattern})", text)) for line, text in prose if text[:1] == "#"]
    ends = [line for line, _ in headings[1:]] + [10**9]
    return [
        Entry(found[1], tuple(b for b in blocks if start < b.line < end))
        for (start, found), end in zip(headings, ends)
        if found
    ]


def slugs_of(block: Block) -> set[str]:
    """Run a block and return the slugs of its errors and warnings."""
    try:
        if block.language == "python":
            exec(compile(block.text, str(ERRORS), "exec"), {"upheld": upheld, "Path": Path})
            return set()
        program = Path(f"program.{block.language}")
        program.write_text(block.text, encoding="utf-8")
        upheld.run(program)
        return {warning.slug for warning in upheld.check(program).warnings}
    except upheld.UpheldError as error:
        return set(error.slugs)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.slug)
def test_error_examples(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example of an error gives that error, and leaves no output behind."""
    monkeypatch.chdir(tmp_path)
    assert entry.blocks, f"{entry.slug} has no example"
    for block in entry.blocks:
        if block.mark.startswith("not run:"):
            continue
        if block.mark.startswith("file:"):
            file = Path(block.mark.removeprefix("file:").strip())
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        if block.language in ("dl", "dlog", "python"):
            assert entry.slug in slugs_of(block), f"line {block.line}"
