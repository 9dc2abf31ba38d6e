"""The reference is true: its examples give the errors they stand under, and its generated pages are up to date.

In docs/reference/errors.md a `dl` or `dlog` block is a program that is run, a `python` block is executed, and a block
after `<!-- file: name -->` is written to that file first. One of the blocks below a heading gives that error.
"""

from __future__ import annotations

import doctest
import importlib
import re
import runpy
import shlex
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

import upheld
from tests.helpers.cases import ROOT
from tests.helpers.runs import run
from tests.test_documents import ERRORS, PACKAGE, SLUG, Block, read_markdown
from upheld.cli import main

GENERATOR = runpy.run_path(str(ROOT / "docs" / "generate.py"), run_name="generate")


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
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", upheld.UpheldWarning)
                exec(compile(block.text, str(ERRORS), "exec"), {"upheld": upheld, "Path": Path})
            return {w.message.problem.slug for w in caught if isinstance(w.message, upheld.UpheldWarning)}
        if block.language == "console":
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as told:
                for command in block.text.splitlines():
                    main(shlex.split(command.removeprefix("$ upheld ")))
            return set(re.findall(r"(?:error|warning): .* \[([a-z0-9-]+)\]", told.getvalue()))
        program = Path(f"program.{block.language}")
        program.write_text(block.text, encoding="utf-8")
        _, warned = run(program)
        return {warning.slug for warning in (*upheld.Project(program).lint(), *warned, *upheld.check(program).warnings)}
    except upheld.UpheldError as error:
        return set(error.slugs)


def in_groups() -> list[object]:
    """Return the entries, those whose examples start Spark in the group that shares a session."""
    group = pytest.mark.xdist_group("spark")
    uses_spark = (any("spark" in block.text.lower() for block in entry.blocks) for entry in entries())
    return [
        pytest.param(entry, id=entry.slug, marks=[group] if spark else [])
        for entry, spark in zip(entries(), uses_spark)
    ]


@pytest.mark.parametrize("entry", in_groups())
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
        if block.language in ("dl", "dlog", "python", "console"):
            assert entry.slug in slugs_of(block), f"line {block.line}"


@pytest.mark.parametrize("page", GENERATOR["PAGES"])
def test_generated_pages_are_up_to_date(page: str) -> None:
    """The pages that are read off the code agree with it; if this fails, `make docs` writes them anew."""
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == GENERATOR["PAGES"][page]()


def test_every_functor_has_a_meaning() -> None:
    """Each functor and comparison has a line of explanation, and no line explains what is not there."""
    functors = {f"{name}/{len(s.arguments)}" for name, ss in GENERATOR["SIGNATURES"].items() for s in ss}
    assert functors == set(GENERATOR["MEANINGS"])
    conditions = {name for name in GENERATOR["CONSTRAINTS"] if GENERATOR["HOLDS"] not in name}
    assert conditions == set(GENERATOR["CONSTRAINT_MEANINGS"])
    assert GENERATOR["function_names"]() <= set(GENERATOR["FUNCTION_MEANINGS"])


def modules_with_examples() -> list[str]:
    files = [f for f in sorted(PACKAGE.rglob("*.py")) if ">>> " in f.read_text(encoding="utf-8")]
    return [".".join(f.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__") for f in files]


@pytest.mark.parametrize("module", modules_with_examples())
def test_docstring_examples(module: str) -> None:
    """The examples in docstrings, which the reference repeats, print what they say; they know what `upheld` offers."""
    public = {name: getattr(upheld, name) for name in upheld.__all__}
    ran = doctest.testmod(importlib.import_module(module), extraglobs=public)
    assert ran.attempted and not ran.failed
