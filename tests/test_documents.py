"""The documents are true: every error is listed, every link leads somewhere, every marked example runs.

How examples are marked, in README.md and docs/ (errors.md has examples of its own, see test_reference.py):

    <!-- run -->                before a ```python block: it runs, in one namespace for the whole page
    <!-- output -->             before a ```text block: what the blocks run since the last output have printed
    <!-- file: reach.dl -->     before any block: its text is written to that file, for the blocks after it
    ```console                  whose first line starts with `$ upheld`: each `$` line runs and prints what follows it
    <!-- not run: reason -->    before such a console block: it is only shown
    ```dl and ```dlog           that are no file are programs that `upheld check` accepts
    <!-- refused: slug -->      before such a block: it is refused with this error instead
    <!-- from: src/file.py -->  before any block: its text occurs in that file

`...` in an output stands for any text, as in doctest. Pages run in an empty folder of their own.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock
from urllib.parse import unquote

import pytest

import upheld
from tests.helpers.cases import ROOT
from upheld.cli import main
from upheld.compiler.lints.programs import lint
from upheld.language.syntax.files import read_text

PACKAGE = ROOT / "src" / "upheld"
ERRORS = ROOT / "docs" / "reference" / "errors.md"

SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

# -- markdown ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block: `line` is that of its first line of text, `mark` the comment on the line before its fence."""

    line: int
    language: str
    mark: str
    text: str


def read_markdown(text: str) -> tuple[list[tuple[int, str]], list[Block]]:
    """Return the numbered lines outside of fenced blocks, and the blocks."""
    prose: list[tuple[int, str]] = []
    blocks: list[Block] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        opening = re.match(r"(\s*)(`{3,}|~{3,})\s*(\w*)", line)
        if not opening:
            prose.append((number, line))
            continue
        indent, fence, language = opening.groups()
        before = next((said for _, said in reversed(prose) if said.strip()), "")
        comment = re.fullmatch(r"\s*<!--\s*(.*?)\s*-->\s*", before)
        inside: list[str] = []
        for _, within in lines:
            if re.fullmatch(rf"\s*{re.escape(fence)}{fence[0]}*\s*", within):
                break
            inside.append(within.removeprefix(indent))
        blocks.append(Block(number + 1, language, comment[1] if comment else "", "".join(f"{x}\n" for x in inside)))
        # What stands before this block does not mark the next one.
        prose.append((number, "```"))
    return prose, blocks


def markdown_files() -> list[Path]:
    found = [*ROOT.glob("*.md")]
    for folder in ("docs", "changelog.d", "tests", "examples", "benchmarks"):
        found.extend((ROOT / folder).rglob("*.md"))
    return sorted(found)


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


# -- errors -----------------------------------------------------------------------------------------------------------


def literals(expression: ast.expr) -> list[str] | None:
    """Return the strings an expression may be, or None where that cannot be read off it."""
    match expression:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=body, orelse=orelse):
            first, second = literals(body), literals(orelse)
            return None if first is None or second is None else first + second
        case _:
            return None


@dataclass
class Slugs:
    """The slugs a source gives to problems, with their places, and the places where none can be read."""

    used: dict[str, str]
    unreadable: list[str]


def forwarders(trees: dict[str, ast.Module]) -> dict[str, int]:
    """Return what takes a parameter called `slug`, with its place among the arguments of a call.

    `Problem` does; so does a helper that makes a problem of the slug it is given, and an exception that carries one.
    """
    found = {"Problem": 0}
    for tree in trees.values():
        for node in ast.walk(tree):
            # An `__init__` is called by the name of its class, which comes next.
            if isinstance(node, ast.FunctionDef) and node.name != "__init__":
                if (place := place_of_slug(node)) is not None:
                    found[node.name] = place
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                        if (place := place_of_slug(method)) is not None:
                            found[node.name] = place
    return found


def place_of_slug(function: ast.FunctionDef) -> int | None:
    """Return which argument of a call is the parameter `slug`, if there is one."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return names.index("slug") - (names[0] in ("self", "cls")) if "slug" in names else None


def slugs_of(sources: dict[str, str]) -> Slugs:
    """Read the slugs of sources given by name."""
    trees = {where: ast.parse(text, where) for where, text in sources.items()}
    takers = forwarders(trees)
    slugs = Slugs({}, [])
    for where, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [k.value for k in node.keywords if k.arg == "slug"]
            if not given and called in takers and len(node.args) > takers[called]:
                given = [node.args[takers[called]]]
            for expression in given:
                place = f"{where}:{expression.lineno}"
                passed_on = (isinstance(expression, ast.Name) and expression.id == "slug") or (
                    isinstance(expression, ast.Attribute) and expression.attr == "slug"
                )
                texts = literals(expression)
                if texts is None and not passed_on:
                    slugs.unreadable.append(place)
                for text in texts or ():
                    slugs.used.setdefault(text, place)
    return slugs


@cache
def slugs_in_source() -> Slugs:
    return slugs_of({name(f): f.read_text(encoding="utf-8") for f in sorted(PACKAGE.rglob("*.py"))})


def documented_slugs() -> set[str]:
    """Return the slugs of the reference page: each is a heading of its own, so that it can be linked to."""
    if not ERRORS.is_file():
        return set()
    prose, _ = read_markdown(ERRORS.read_text(encoding="utf-8"))
    headings = (re.fullmatch(rf"#{{2,4}}\s+`?({SLUG.pattern})`?\s*", line) for _, line in prose)
    return {found[1] for found in headings if found}


@pytest.mark.xdist_group("slugs")
def test_every_slug_is_documented() -> None:
    """Each slug in the source has a heading in docs/reference/errors.md."""
    documented = documented_slugs()
    assert {s: place for s, place in slugs_in_source().used.items() if s not in documented} == {}


@pytest.mark.xdist_group("slugs")
def test_every_documented_slug_is_used() -> None:
    """docs/reference/errors.md lists no error that can no longer happen."""
    assert sorted(documented_slugs() - slugs_in_source().used.keys()) == []


@pytest.mark.xdist_group("slugs")
def test_slugs_are_written_out() -> None:
    """A slug is a literal, or a parameter or attribute called `slug`: only then can the tests above see it."""
    slugs = slugs_in_source()
    assert slugs.unreadable == []
    assert [s for s in slugs.used if not SLUG.fullmatch(s)] == []


def test_slugs_are_found() -> None:
    """Literals, either branch of a choice, helpers that pass a slug on, and slugs nobody can read."""
    source = """
def refuse(parser, span, slug, message): raise ProgramError(Problem(slug, message, span))
class Parser:
    def fail(self, slug): refuse(self, None, slug, "")
p = Problem("one", "message")
q = errors.Problem(slug="two", message="")
r = Problem("three" if p else "four", "")
parser.fail("five")
refuse(parser, span, "six", "message")
Problem(table[key], "")
replace(p, slug="seven")
class Unfit(Exception):
    def __init__(self, slug): self.slug = slug
raise Unfit("eight")
parser.fail(unfit.slug)
"""
    found = slugs_of({"x.py": source})
    assert set(found.used) == {"one", "two", "three", "four", "five", "six", "seven", "eight"}
    assert found.unreadable == ["x.py:10"]


# -- links ------------------------------------------------------------------------------------------------------------


def anchors(file: Path) -> set[str]:
    """Return the anchors of a page's headings, formed as code forges form them."""
    found: set[str] = set()
    for _, line in read_markdown(file.read_text(encoding="utf-8"))[0]:
        if heading := re.match(r"#{1,6}\s+(.*?)\s*#*$", line):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            repeated = next((f"{anchor}-{n}" for n in range(1, 1000) if f"{anchor}-{n}" not in found), anchor)
            found.add(repeated if anchor in found else anchor)
    return found


def links(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the targets of a page's links and pictures, with their lines."""
    for number, line in read_markdown(file.read_text(encoding="utf-8"))[0]:
        shown = re.sub(r"(`+).+?\1", "", line)
        for inline in re.finditer(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)", shown):
            yield number, inline[1]
        if reference := re.match(r"\s*\[[^\]]+\]:\s*<?(\S+?)>?(\s|$)", shown):
            yield number, reference[1]


def broken(file: Path, target: str) -> bool:
    """Whether a link leads nowhere in the project. Links to elsewhere are not followed."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return False
    path, _, anchor = unquote(target).partition("#")
    to = (file.parent / path).resolve() if path else file
    if not to.is_relative_to(ROOT) or not to.exists():
        return True
    return bool(anchor) and to.suffix == ".md" and anchor not in anchors(to)


@pytest.mark.parametrize("file", markdown_files(), ids=name)
def test_links_lead_somewhere(file: Path) -> None:
    """Each relative link names a file of the project, and a heading of it where it names one."""
    assert [f"{name(file)}:{line}: {target}" for line, target in links(file) if broken(file, target)] == []


@pytest.mark.parametrize("file", [f for f in markdown_files() if f.name != "CHANGELOG.md"], ids=name)
def test_paths_of_the_project_exist(file: Path) -> None:
    """A path in backquotes, such as `src/upheld/base/errors.py`, names a file or folder of the project."""
    named = re.compile(r"`((?:src|tests|docs|benchmarks|examples)/\w[\w/.-]*)`")
    text = "\n".join(line for _, line in read_markdown(file.read_text(encoding="utf-8"))[0])
    assert [path for path in named.findall(text) if not (ROOT / path).exists()] == []


# -- examples ---------------------------------------------------------------------------------------------------------


def pages_with_examples() -> list[Path]:
    pages = [f for f in sorted((ROOT / "docs").rglob("*.md")) if f != ERRORS]
    return [f for f in (ROOT / "README.md", *pages) if f.is_file()]


def commands(block: Block) -> Iterator[tuple[int, str, str]]:
    """Yield the line, command and shown output of each `$` line; a command goes on after a backslash."""
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        line, command = block.line + at, lines[at].removeprefix("$ ")
        while command.endswith("\\") and at + 1 < len(lines):
            at += 1
            command = command[:-1] + lines[at].removeprefix(">").lstrip()
        at += 1
        end = next((n for n in range(at, len(lines)) if lines[n].startswith("$ ")), len(lines))
        yield line, command, "".join(f"{shown}\n" for shown in lines[at:end])
        at = end


def run_command(command: str) -> str:
    """Return all that a command prints, errors included: a page may show one.

    Upheld's own command runs in this process, where packages are imported and Spark has been started. With a prefix or
    a redirection it is for the shell.
    """
    variables = {"NO_COLOR": "1", "COLUMNS": "120"}
    words = shlex.split(command)
    if words[0] == "upheld" and not {"<", ">", "|", ";", "&&", "-"}.intersection(words):
        printed = io.StringIO()
        with (
            mock.patch.dict(os.environ, variables),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            main(words[1:])
        return printed.getvalue()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    ran = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, **variables, "PATH": path, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,  # against hanging for ever, on a machine with other work
    )
    return ran.stdout


def same(place: str, shown: str, printed: str) -> None:
    """Fail unless the shown output is the printed one."""
    without_ends = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    if not doctest.OutputChecker().check_output(shown, without_ends, doctest.ELLIPSIS):
        pytest.fail(f"{place}: shown:\n{shown}printed:\n{without_ends}", pytrace=False)


def refusal(place: str, block: Block) -> tuple[str, ...]:
    """Return the slugs with which a block that is a program is refused or linted; none if it is accepted."""
    try:
        program = read_text(block.text, block.language, place)
        upheld.check(program)
        return tuple(warning.slug for warning in lint(program))
    except upheld.UpheldError as error:
        return error.slugs


def run_page(page: str, text: str) -> int:
    """Run the examples of a page in the current folder; return how many were checked."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed, checked = "", 0
    for block in read_markdown(text)[1]:
        place = f"{page}:{block.line}"
        if block.mark.startswith("file:"):
            file = Path(block.mark.removeprefix("file:").strip())
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.mark.startswith("from:"):
            assert block.text in (ROOT / block.mark.removeprefix("from:").strip()).read_text(encoding="utf-8"), place
            checked += 1
        elif block.mark == "run" and block.language == "python":
            out = io.StringIO()
            # Blank lines before it, so that a traceback names the line of the page.
            code = compile("\n" * (block.line - 1) + block.text, page, "exec")
            with contextlib.redirect_stdout(out), warnings.catch_warnings():
                warnings.simplefilter("error", upheld.UpheldWarning)
                exec(code, namespace)
            printed += out.getvalue()
            checked += 1
        elif block.mark == "output":
            assert printed or not block.text.strip(), f"{place}: an output, and nothing before it has printed"
            same(place, block.text, printed)
            printed = ""
        elif block.language == "console" and block.text.startswith("$ upheld"):
            if block.mark.startswith("not run:"):
                continue
            for line, command, shown in commands(block):
                same(f"{page}:{line}", shown, run_command(command))
                checked += 1
        elif block.language in ("dl", "dlog"):
            refused = (block.mark.removeprefix("refused:").strip(),) if block.mark.startswith("refused:") else ()
            assert refusal(place, block) == refused, place
            checked += 1
        else:
            assert block.mark != "run", f"{place}: only python blocks and `$ upheld` consoles can be run"
    assert not printed, f"{page}: printed and shown by no output block:\n{printed}"
    return checked


def with_group(page: Path) -> object:
    """Return a page as a parameter: those that start Spark do so in the process of the other tests that have."""
    text = page.read_text(encoding="utf-8")
    starts_spark = re.search(r"upheld\.Pipeline\(|SparkEngine\(|spark_session\(|engine=.spark|\$ upheld pipeline", text)
    marks = [pytest.mark.xdist_group("spark")] if starts_spark else []
    return pytest.param(page, marks=marks, id=name(page))


def test_examples_use_public_names() -> None:
    """Guides and tutorials import `upheld` and its two public modules only: others may change at any time."""
    private = re.compile(
        r"^\s*(?:from upheld\.(?!(?:rdf|testing)\b)[\w.]+ import|import upheld\.(?!(?:rdf|testing)\b))", re.MULTILINE
    )
    pages = [
        page
        for page in pages_with_examples()
        if page.parent.name in ("how-to", "tutorials", "docs") or page.parent == ROOT
    ]
    blocks = [(page, block) for page in pages for block in read_markdown(page.read_text(encoding="utf-8"))[1]]
    assert [f"{name(page)}:{block.line}" for page, block in blocks if private.search(block.text)] == []


@pytest.mark.parametrize("file", [with_group(page) for page in pages_with_examples()])
def test_examples_run(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Each marked example of a page prints what the page says it prints."""
    if request.node.get_closest_marker("xdist_group"):
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    run_page(name(file), file.read_text(encoding="utf-8"))


EXAMPLE = """
<!-- file: sub/greeting.txt -->
```text
hello
```

<!-- run -->

```python
x = open("sub/greeting.txt").read().strip()
```

<!-- run -->
```python
print(x, 0.123, "seconds")
```

<!-- output -->
```text
hello ... seconds
```

```python
this is not run
```
"""


def test_examples_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page share a namespace and a folder, and an output that differs is a failure."""
    monkeypatch.chdir(tmp_path)
    assert run_page("page.md", EXAMPLE) == 2
    with pytest.raises(pytest.fail.Exception, match=r"page.md:20: shown:\nbye"):
        run_page("page.md", EXAMPLE.replace("hello ...", "bye ..."))
    with pytest.raises(AssertionError, match="shown by no output block"):
        run_page("page.md", EXAMPLE.replace("<!-- output -->", ""))


def test_console_blocks_are_read() -> None:
    """Each `$` line is a command; the lines up to the next one are its output."""
    block = Block(5, "console", "", "$ upheld run \\\n>   x.dl\none\ntwo\n$ cat out\n$ ls\nthree\n")
    assert list(commands(block)) == [(5, "upheld run x.dl", "one\ntwo\n"), (9, "cat out", ""), (10, "ls", "three\n")]


def test_links_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inline and reference links are found, those in code are not, and anchors are those of headings."""
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c!\n[x](#a-b-c) `[y](nowhere)` [z](gone.md)\n```\n[v](gone)\n```\n[w]: ../outside\n")
    assert list(links(page)) == [(2, "#a-b-c"), (2, "gone.md"), (6, "../outside")]
    assert [target for _, target in links(page) if broken(page, target)] == ["gone.md", "../outside"]
