"""Plain technical English in messages, docstrings, comments and documents.

`PHRASES` and `NAMES` are habits that make a text hard to read. `tests/voice.txt` records how many of them each file
still has, and may only shrink. A file above its record has a new one; a file below it needs a lower record, which
`python -m tests.test_voice` writes.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.helpers.cases import ROOT

RECORD = ROOT / "tests" / "voice.txt"

#: Pages written by docs/generate.py: their text is checked where it comes from.
GENERATED = ("docs/reference/api.md", "docs/reference/cli.md", "docs/reference/functors.md")

#: A pattern, and the plain way to say it.
PHRASES = (
    (r"^What (?!.*\?)", "name the thing: `The rows that ...`, not `What was read ...`"),
    (r"^(?:Return |Yield )?(?:what|[Tt]hose) (?:of|that)\b", "name the thing: `the facts of`, not `those of`"),
    (r"^(?:Those|That|So many|Not there)\b", "start with a noun"),
    (r"\bso (?:many|much)\b(?! (?:that|as)\b)", "say `n`, `this many` or the number's name"),
    (r"\b(?:is|are|was|were|be|been) told\b", "`is reported`, `is shown`, or `gets`"),
    (r"\b(?:tells|tell)\b(?! (?:apart|whether))", "`reports`, `shows`, `says`"),
    (r"(?<!here )\b(?:is|are|was|were) no (?!longer|more|other|less|matter|need|such)\b", "`is not a`"),
    (r"\bdear(?:er|est)?\b", "`expensive`"),
    (r"\b(?:is|are) to be (?:made|had)\b", "`must be`"),
    (r"\bquicker\b", "`faster`"),
    (r"\bbooks\b", "`bookkeeping`"),
    (r"\btaken? apart\b", "`split` or `decompose`"),
)  # fmt: skip

#: Most texts have none of them, which one pattern finds out.
ANY = re.compile("|".join(pattern.replace("^", r"(?:^|[.!?:\n] *)") for pattern, _ in PHRASES), re.MULTILINE)

#: Participles that name nothing when they are nouns.
NAMES = frozenset({"told", "said", "kept", "found", "made", "given"})


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each on one line, without the code in backticks."""
    text = re.sub(r"`[^`\n]*`", "`x`", text)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from re.split(r"(?<=[.!?:])\s+", " ".join(paragraph.split()))


def phrases(text: str) -> list[str]:
    """Return a complaint about each habit in a text."""
    if not ANY.search(re.sub(r"\s+", " ", text)):
        return []
    return [
        f"{sentence[:100]!r}: {better}"
        for sentence in sentences(text)
        for pattern, better in PHRASES
        for _ in re.finditer(pattern, sentence)
    ]


def prose_of_source(source: str, nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the docstrings, messages and comments of Python code."""
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (str(v.value) if isinstance(v, ast.Constant) else "`x`" for v in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value
    for block in re.finditer(r"(?:^ *#.*\n)+|  #.*\n", source, re.MULTILINE):
        yield re.sub(r"^ *#+:? ?", "", block[0], flags=re.MULTILINE)


def prose_of_page(page: str) -> str:
    """Return the text of a page without its blocks of code; list items and table cells are sentences of their own."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2.*?$", "", page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^[ >]*(?:[-*#|]+|\d+\.) *| \| ", "\n\n", text, flags=re.MULTILINE)


def names(nodes: list[ast.AST]) -> list[str]:
    """Return the variables, parameters and functions of Python code that are called by a bare participle."""
    bound = []
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.append((node.lineno, node.id))
        elif isinstance(node, ast.arg):
            bound.append((node.lineno, node.arg))
        elif isinstance(node, ast.FunctionDef):
            bound.append((node.lineno, node.name))
    return [f"line {line}: `{name}` is not a noun" for line, name in bound if name.lstrip("_") in NAMES]


def complaints(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return phrases(prose_of_page(text))
    nodes = list(ast.walk(ast.parse(text)))
    return [c for prose in prose_of_source(text, nodes) for c in phrases(prose)] + names(nodes)


def checked_files() -> list[Path]:
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), ROOT / "docs/generate.py"]
    files += (ROOT / "src" / "upheld").rglob("*.py")
    return sorted(f for f in files if str(f.relative_to(ROOT)) not in GENERATED)


def recorded() -> dict[str, int]:
    lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
    return {name: int(count) for count, name in (line.split() for line in lines)}


@cache
def current() -> dict[str, list[str]]:
    every = {str(f.relative_to(ROOT)): complaints(f) for f in checked_files()}
    return {name: those for name, those in every.items() if those}


def test_no_new_habits() -> None:
    """No file has more of the habits than its record."""
    record = recorded()
    above = {name: those for name, those in current().items() if len(those) > record.get(name, 0)}
    shown = "\n".join(f"{name} (at most {record.get(name, 0)}):\n    " + "\n    ".join(c) for name, c in above.items())
    assert not above, shown


def test_the_record_shrinks() -> None:
    """A file that got better has its record lowered, so that it stays so."""
    now = {name: len(those) for name, those in current().items()}
    below = {name: now.get(name, 0) for name, count in recorded().items() if now.get(name, 0) < count}
    assert not below, f"lower the record with `python -m tests.test_voice`: {below}"


def test_habits_are_recognised() -> None:
    """Each habit is found, and the plain way to say the same is not."""
    for bad in (
        "What was read.",
        "Return those of facts that are explicit.",
        "so many rows are cached",
        "All bad rows are told at once.",
        "the name tells no format",
        "`o` is no subtype",
        "which on Spark is dear",
    ):
        assert len(phrases(bad)) >= 1, bad
    for good in (
        "What is a stratum?",
        "Return the explicit facts.",
        "it is no longer there",
        "rows cached per table",
        "All bad rows are reported together.",
        "`o` is not a subtype",
    ):
        assert phrases(good) == [], good
    code = "found = [given for given in rows]\ndef f(told): pass\nfounder = 1\n"
    assert len(names(list(ast.walk(ast.parse(code))))) == 3


def main() -> int:
    """Write the record; refuse to raise it."""
    now, before = {name: len(those) for name, those in current().items()}, recorded()
    if before and sum(now.values()) > sum(before.values()):
        print(f"{sum(before.values())} habits before, {sum(now.values())} now: the record only shrinks")
        return 1
    RECORD.write_text("".join(f"{count} {name}\n" for name, count in sorted(now.items())), encoding="utf-8")
    print(f"{sum(now.values())} habits in {len(now)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
