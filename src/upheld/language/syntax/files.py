"""Where programs come in: from texts and from files, in either dialect."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from upheld.base.errors import Problem, ProgramError, UsageError, is_path, nearest, quote, require
from upheld.base.interruptions import collector_paused
from upheld.base.limits import allow
from upheld.base.source import Source, Span
from upheld.language.ast import Formula, Program
from upheld.language.syntax.parser import Draft, Parser
from upheld.language.syntax.rdfox import RDFoxParser
from upheld.language.syntax.souffle import SouffleParser

DIALECTS = ("dl", "dlog")
#: Files that include each other, one inside the other, and files included altogether.
INCLUDE_DEPTH = 30
INCLUDE_COUNT = 1_000


def require_program(program: object, parameter: str = "program") -> None:
    """Refuse an argument that can be no program."""
    is_right = isinstance(program, str | Program) or is_path(program)
    require(is_right, parameter, "a string, a path, or an `upheld.Program`", program)


def read_text(
    text: str,
    dialect: str = "dl",
    name: str = "<program>",
    base: Path | None = None,
    *,
    include: Sequence[Path] = (),
    confined: bool = False,
) -> Program:
    """Return the program a text is. Files that it includes are looked for in `base`, or in the current directory.

    After that they are looked for in the folders of `include`. With `confined`, they must be in one of these places.

    >>> read_text("edge(1, 2).").clauses[0].heads[0].predicate
    'edge'
    """
    try:
        return _Library(dialect, base or Path(), include, confined).program(Source(name, text), None)
    except ProgramError as error:
        hint = "leave `dialect` out, or read it from a file that ends in `.dl`"
        if dialect == "dl":
            hint = 'read it with `upheld.parse(text, dialect="dlog")`, or from a file that ends in `.dlog`'
        _check_dialect(error, text, dialect, hint)
        raise


def _check_dialect(error: ProgramError, text: str, dialect: str, hint: str) -> None:
    """Raise `wrong-dialect` instead of the errors of a program that is in the other dialect."""
    other = "dlog" if dialect == "dl" else "dl"
    if _looks_like(text, other) and (_reads_as(text, other) or _begins_as(text, other, dialect)):
        message = f"this program is in the `.{other}` dialect, but was read as `.{dialect}`"
        raise ProgramError(Problem("wrong-dialect", message, error.problems[0].span, hint=hint)) from None


def _looks_like(text: str, dialect: str) -> bool:
    """Return whether a text has signs of a dialect: directives of `.dl`, or triples, variables, prefixes of `.dlog`."""
    has_triples = re.search(r"\[|\?\w|^\s*@?prefix\b", text, re.IGNORECASE | re.MULTILINE) is not None
    if dialect == "dlog":
        return has_triples
    return not has_triples or re.search(r"^\s*\.[a-z]", text, re.MULTILINE) is not None


def _reads_as(text: str, dialect: str) -> bool:
    """Return whether a text without the files that it includes is a program of a dialect, with a rule at least."""
    draft = Draft()
    _parser(dialect, Source("", text), draft, _nothing).read()
    return not draft.problems and any(clause.body is not None for clause in draft.clauses)


def _begins_as(text: str, dialect: str, other: str) -> bool:
    """Return whether the first statement of a text is one of a dialect, and not of the other."""
    return _first_is(text, dialect) and not _first_is(text, other)


def _first_is(text: str, dialect: str) -> bool:
    """Return whether the first statement of a text is in a dialect; a fact alone does not decide."""
    draft = Draft()
    try:
        _parser(dialect, Source("", text), draft, _nothing).statement()
    except (ProgramError, RecursionError):
        return False
    return not draft.problems and all(clause.body is not None for clause in draft.clauses)


def _nothing(name: str, span: Span) -> None:
    """Include nothing."""


def _parser(dialect: str, source: Source, draft: Draft, include: Callable[[str, Span], None]) -> Parser:
    return RDFoxParser(source, draft) if dialect == "dlog" else SouffleParser(source, draft, include)


def read_file(path: str | Path, *, include: Sequence[Path] = (), confined: bool = False) -> Program:
    """Return the program of a file, by its extension. `include`, `confined`: as for `read_text`."""
    path = Path(path)
    if path.suffix not in (f".{dialect}" for dialect in DIALECTS):
        message = f"cannot tell the dialect of {quote(path)}"
        hint = nearest(path.suffix, [f".{dialect}" for dialect in DIALECTS])
        note = "programs are files named `*.dl` (Soufflé) or `*.dlog` (RDFox)"
        raise ProgramError(Problem("unknown-extension", message, place=str(path), note=note, hint=hint))
    source, dialect = Source(str(path), _load(path, None)), path.suffix[1:]
    try:
        return _Library(dialect, path.parent, include, confined).program(source, path)
    except ProgramError as error:
        other = "dlog" if dialect == "dl" else "dl"
        _check_dialect(error, source.text, dialect, f"rename the file so that its name ends in `.{other}`")
        raise


def read_fragment(text: str, dialect: str, name: str, prefixes: Mapping[str, str]) -> Program:
    """Return the clauses and declarations of a text that belongs to a program. `prefixes` need not be declared in it.

    >>> read_fragment("[?x, :q, ?y] :- [?x, :p, ?y].", "dlog", "<add 1>", {"": "http://e/"}).clauses[0].heads[0].predicate
    'triple'
    """
    library = _Library(dialect, Path())
    library.draft.prefixes.update(prefixes)
    return library.program(Source(name, text), None)


def read_query(
    text: str, dialect: str = "dl", name: str = "<query>", prefixes: Mapping[str, str] | None = None
) -> Formula:
    """Return the formula of a query, a body with or without a full stop. `prefixes` need not be declared in it.

    >>> read_query('path("a", X), X != "b"').formulas[1].operator
    '!='
    """
    return _read_query(text, dialect, name, prefixes or {})[0]


def query_prefixes(text: str, dialect: str, prefixes: Mapping[str, str]) -> dict[str, str]:
    """Return these prefixes and those that a query declares itself."""
    return _read_query(text, dialect, "<query>", prefixes)[1]


def _read_query(text: str, dialect: str, name: str, prefixes: Mapping[str, str]) -> tuple[Formula, dict[str, str]]:
    library = _Library(dialect, Path())
    library.draft.prefixes.update(prefixes)
    formula = library.parser(Source(name, text), ()).query()
    library.draft.check()
    return formula, library.draft.prefixes


class _Library:
    """The files of one program, read into one draft."""

    def __init__(self, dialect: str, base: Path, folders: Sequence[Path] = (), confined: bool = False):
        if not isinstance(dialect, str) or dialect not in DIALECTS:
            message = f"there is no dialect {quote(dialect)}"
            raise UsageError(Problem("unknown-dialect", message, note="the dialects are `dl` and `dlog`"))
        self.dialect = dialect
        self.base = base
        self.folders = folders
        self.confined = confined
        self.draft = Draft()
        self.included = 0

    @collector_paused()
    def program(self, source: Source, path: Path | None) -> Program:
        self.parser(source, (path,) if path else ()).read()
        return self.draft.program(self.dialect)

    def parser(self, source: Source, trail: tuple[Path, ...]) -> Parser:
        """Return the parser of a source. `trail` holds its file, after those that lead to it by including."""
        return _parser(self.dialect, source, self.draft, lambda name, span: self.include(name, span, trail))

    def include(self, name: str, span: Span, trail: tuple[Path, ...]) -> None:
        path = self.find(name, trail)
        if self.confined:
            problems = [outside(path, folder, span) for folder in (self.base, *self.folders)]
            if all(problems) and (problem := problems[0]):
                raise ProgramError(problem)
        if any(_same(path, other) for other in trail):
            raise ProgramError(Problem("include-cycle", f"{quote(name)} includes itself", span))
        self.included += 1
        if len(trail) > INCLUDE_DEPTH or self.included > INCLUDE_COUNT:
            note = f"at most {INCLUDE_COUNT:,} files are included, at most {INCLUDE_DEPTH} inside each other"
            raise ProgramError(
                Problem("too-many-includes", f"too many files to include {quote(name)}", span, note=note)
            )
        before = len(self.draft.problems)
        self.parser(Source(str(path), _load(path, span)), (*trail, path)).read()
        found = self.draft.problems[before:]
        if found and path.suffix not in (f".{dialect}" for dialect in DIALECTS):
            # Whatever this file is, a program that names it has no right to have its lines shown.
            self.draft.problems[before:] = [_not_a_program(name, found[0], span)]

    def find(self, name: str, trail: tuple[Path, ...]) -> Path:
        """Return the file of that name beside the one that includes it, or else in the base or a folder of includes."""
        beside = trail[-1].parent / name if trail else self.base / name
        places = (beside, self.base / name, *(folder / name for folder in self.folders))
        return next((path for path in places if _exists(path)), beside)


def _not_a_program(name: str, first: Problem, span: Span) -> Problem:
    where = f" from line {first.span.line} on" if first.span else ""
    note = "lines of an included file are shown only if its name ends in `.dl` or `.dlog`"
    hint = "include a program; if this is one, rename it to see its errors"
    return Problem("not-a-program", f"{quote(name)} is not a program{where}", span, note=note, hint=hint)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # reading it raises the reason


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def _load(path: Path, span: Span | None) -> str:
    """Return the text of a file; `span` is where it was named, if that was in a program."""

    def refused(slug: str, message: str, note: str | None = None) -> ProgramError:
        return ProgramError(Problem(slug, message, span, place=str(path) if span is None else None, note=note))

    try:
        if path.is_dir():
            raise refused("not-a-file", f"{quote(path)} is a directory, not a file")
        if path.exists() and not path.is_file():
            raise refused("unreadable-file", f"{quote(path)} is not a regular file")
        allow(path.stat().st_size, path)
        data = path.read_bytes()
    except FileNotFoundError:
        raise refused("missing-file", f"there is no file {quote(path)}") from None
    except PermissionError:
        raise refused("no-permission", f"there is no permission to read {quote(path)}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise refused("unreadable-file", f"cannot read {quote(path)}: {reason}") from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{quote(path)} is not UTF-8: byte 0x{data[error.start]:02X} at offset {error.start}, in line {line}"
        raise refused("not-utf8", message, note="programs are UTF-8") from None


def outside(path: Path, folder: Path, span: Span | None) -> Problem | None:
    """Return the problem of a path that leads out of a folder, once `..` and symbolic links are resolved; None if none.

    `span` is where the program names the path.
    """
    root = os.path.realpath(folder)
    if os.path.commonpath([os.path.realpath(path), root]) == root:
        return None
    return Problem(
        "outside-folder",
        f"{quote(path)} is outside the folder {quote(folder)}",
        span,
        place=None if span else str(path),
        note="`.include` is confined to the folder of the program, `.input` to that of `-F`, `.output` to that of `-D`",
        hint="move the file, or leave `--confined` out if you trust the program",
    )
