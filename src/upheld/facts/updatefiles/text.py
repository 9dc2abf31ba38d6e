"""Update files as text: `+edge("a", "b").`, `-edge("b", "c").`, and `commit.` at the end of each transaction.

`=edge("a", "b").` is a fact of a snapshot, which replaces all explicit facts of its relation; `=edge.` is an empty one.
`source "feed-7".` names the source of the facts of its transaction; `retract "feed-7".` retracts that source.

A part of a file that holds nothing but plain facts is read by `PlainFacts`. All else is read statement by statement,
with the parser of the program's dialect, which also explains what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

from upheld.base.errors import FactsError, Problem, ProgramError, quote
from upheld.base.source import Source, Span
from upheld.facts.change import mixed_sources
from upheld.facts.files.reading import decoded
from upheld.facts.updatefiles.constants import row_of, unknown_relation
from upheld.facts.updatefiles.plain import PlainFacts
from upheld.facts.updatefiles.streams import STDIN, name_of, parts_of
from upheld.facts.updatefiles.transactions import Draft, Update
from upheld.language.ast import Atom, Constant, Formula, Term
from upheld.language.core import Predicate
from upheld.language.syntax import parser as language
from upheld.language.syntax.lexer import Token, string_value
from upheld.language.syntax.parser import PROBLEM_LIMIT, Parser, first_problems, too_deep
from upheld.language.syntax.rdfox import RDFoxParser
from upheld.language.syntax.souffle import SouffleParser
from upheld.language.terms.vocabulary import PREFIXES
from upheld.language.types.primitive import ESCAPES
from upheld.language.types.records import end_of

#: Text that is cut off inside a comment is read again with more of the file, from here on with twice as much each time.
_MUCH = 1 << 20

#: Where, after a faulty statement, the next one seems to begin.
_RESUME = re.compile(r"^[ \t]*+(?=[+=-]|(?:commit|source|retract)\b)", re.MULTILINE)


def read_text(path: Path, predicates: Mapping[str, Predicate]) -> Iterator[Update]:
    """Yield the transactions of a file, each as soon as its `commit.` has been read.

    Where the first faulty one would come, raises `FactsError` with all that is wrong with the rest of the file; of a
    pipe, with what is wrong in the part that has come, since the rest may never do.
    """
    reader = _Reader(path, predicates)
    is_pipe = path == STDIN or not path.is_file()
    rest, line, offset = "", 1, 0
    more: list[str] = []
    for part in parts_of(path):
        if reader.hopeless:
            break
        more.append(decoded(part, reader.path, line + rest.count("\n"), offset))
        offset += len(part)
        if len(rest) > _MUCH and sum(map(len, more)) < len(rest):
            continue
        text = "".join((rest, *more))
        rest = yield from reader.read(text, line)
        line += text.count("\n", 0, len(text) - len(rest))
        more.clear()
        if is_pipe:
            reader.check()
    yield from reader.read("".join((rest, *more)), line, last=True)
    reader.end()


class _Reader:
    """Reads the parts of a file one after the other. Once it has found a problem it only looks for others."""

    def __init__(self, path: Path, predicates: Mapping[str, Predicate]):
        self.path = Path(name_of(path))
        self.predicates = predicates
        # Only programs of the `.dlog` dialect have terms, and they have nothing else.
        self.dialect = "dlog" if any("term" in p.types for p in predicates.values()) else "dl"
        self.prefixes = dict(PREFIXES)
        self.plain = PlainFacts(self.dialect, predicates, self.prefixes)
        self.draft = Draft()
        self.commits = 0
        self.problems: list[Problem] = []
        #: How much of the text that is read next has been read before: statements on its first line.
        self.done = 0
        #: Whether the text up to the next line that begins like a statement belongs to a faulty one.
        self.lost = False
        #: Problems outside the transaction being read.
        self.earlier = 0
        #: The text that was read last, unless it was blank, and the number of its first line.
        self.latest = "", 1

    @property
    def hopeless(self) -> bool:
        """Whether there are more problems than will be shown."""
        return len(self.problems) > PROBLEM_LIMIT

    def read(self, text: str, line: int, last: bool = False) -> Generator[Update, None, str]:
        """Yield the transactions that end in a text whose first line has this number; return what was not read.

        The rest is the line of a statement that continues in the next part; it is empty after the last part.
        """
        start, self.done = self.done, 0
        if self.lost:
            resume = _RESUME.search(text)
            if resume is None:
                return ""
            self.lost, skipped = False, resume.start()
            text, line = text[skipped:], line + text.count("\n", 0, skipped)
        if not text or text.isspace():
            return ""
        self.latest = text, line
        segments = self.plain.segments(text) if not start else None
        if segments is None:
            return (yield from self.carefully(Source(str(self.path), text, line), start, last))
        for segment in segments:
            for sign, relation, rows in segment.rows:
                self.draft.add(sign, relation, rows)
            self.begin(line + segment.line)
            if segment.committed:
                yield from self.commit()
        return ""

    def carefully(self, source: Source, at: int, last: bool) -> Generator[Update, None, str]:
        """As `read`, one statement after the other, from an offset on."""
        text, parser = source.text, self.parser(source)
        while not self.hopeless:
            parser.token = parser.scan(at)
            parser.start, parser.depth = parser.token.start, 0
            if parser.token.kind == "end":
                break
            found, failure = None, None
            try:
                found = self.statement(parser)
            except ProgramError as error:
                failure = error.problems
            except RecursionError:  # below the limit of nesting only where the caller had used up the stack
                failure = (too_deep(parser.here()),)
            self.problems += parser.draft.problems  # of a statement that could be read nevertheless
            parser.draft.problems.clear()
            if failure is not None:
                if not last and (parser.token.kind == "end" or parser.token.text == "/*"):
                    line_start = text.rfind("\n", 0, at) + 1
                    self.done = at - line_start
                    return text[line_start:]
                self.problems += failure
                # A line that begins like a statement; the one that was refused is not read again.
                line_start = text.rfind("\n", 0, parser.token.start) + 1
                resume = _RESUME.search(text, max(parser.start + 1, line_start))
                if resume is None:
                    self.lost = True
                    break
                at = resume.end()
                continue
            at = parser.seen
            if found is None:
                continue
            sign, atom = found
            self.begin(source.position(parser.start)[0])
            if isinstance(atom, Token):
                self.empty_snapshot(atom, source)
            elif isinstance(atom, str):
                self.name_source(sign, atom, Span(source, parser.start, parser.seen))
            elif atom is None:
                yield from self.commit()
            else:
                row = row_of(atom, self.predicates, self.problems)
                if row is not None:
                    self.draft.add(sign, atom.predicate, [row])
        return ""

    def parser(self, source: Source) -> Parser:
        """Return the parser of a part of the file. A prefix holds from where it is declared to the end of the file."""
        if self.dialect == "dl":
            return _FactsParser(source, language.Draft(), _no_files)
        parser = RDFoxParser(source, language.Draft())
        parser.prefixes = self.prefixes
        return parser

    def empty_snapshot(self, name: Token, source: Source) -> None:
        """Add a snapshot without facts, of the relation of this name."""
        if name.text in self.predicates:
            self.draft.add("=", name.text, [])
        else:
            span = Span(source, name.start, name.end)
            self.problems.append(unknown_relation(name.text, self.predicates, span))

    def name_source(self, word: str, source: str, span: Span) -> None:
        """Note the source of a transaction, or the source that it retracts."""
        draft = self.draft
        if (known := draft.source or draft.retract) is not None:
            self.problems.append(mixed_sources(f"the transaction names {quote(known)} and {quote(source)}", span))
        elif word == "source":
            draft.source = source
        else:
            draft.retract = source

    def statement(self, parser: Parser) -> tuple[str, Atom | Token | str | None] | None:
        """Read a statement: return the sign and atom of a fact, no atom for a `commit.`, and None for a prefix.

        Of an empty snapshot, return the name of the relation; of a `source` or `retract`, that word and the source.
        """
        token = parser.token
        word = token.kind
        atom: Atom | Token | str | None = None
        if token.kind in ("+", "-", "="):
            parser.advance()
            if token.kind == "=" and parser.token.kind == "name" and parser.following().kind == ".":
                atom = parser.token
                parser.advance()
            else:
                atom = parser.head()
        elif token.kind == "name" and token.text == "commit" and parser.following().kind != "(":
            parser.advance()
        elif token.text in ("source", "retract") and parser.following().kind == "string":
            word = parser.advance().text
            if parser.token.text == '""':
                parser.fail("the name of a source")
            atom = string_value(parser.source, parser.advance(), ESCAPES, code_points=False)
        elif self.dialect == "dlog" and parser.begins_statement(token):
            parser.statement()
            return None
        else:
            fact = parser.begins_clause()
            hint = "put `+` before a fact to insert it, `-` to delete it" if fact else None
            parser.fail("`+`, `-`, `=` or `commit.`", hint)
        if parser.token.kind == ":-":
            parser.fail("`.`", hint="an update changes facts; rules belong in the program")
        line_ends = parser.token.kind == "end" or "\n" in parser.source.text[parser.seen : parser.token.start]
        if parser.token.kind != "." and line_ends:
            where = Span(parser.source, parser.seen, parser.seen)
            note = "each fact ends with `.`, and so does `commit.`"
            problem = Problem("missing-full-stop", "a `.` is missing", where, note=note, hint="put a `.` here")
            raise ProgramError(problem)
        parser.expect(".")
        return word, atom

    def begin(self, line: int) -> None:
        """Note that something of a transaction stands on this line."""
        if self.draft.place is None:
            self.draft.place = f"{self.path}:{line}"

    def commit(self) -> Iterator[Update]:
        """End a transaction, and yield it if all has been well so far."""
        self.commits += 1
        if self.draft.retract is not None and self.draft.has_facts:
            message = f"the transaction retracts {quote(self.draft.retract)}, and has facts as well"
            self.problems.append(mixed_sources(message, place=self.draft.place))
        if not self.problems:
            yield self.draft.done(self.commits)
        self.draft, self.earlier = Draft(), len(self.problems)

    def end(self) -> None:
        """End the file, and raise its problems."""
        if self.draft.place is not None and len(self.problems) == self.earlier:
            source = Source(str(self.path), *self.latest)
            end = len(source.text.rstrip())
            self.problems.append(
                Problem(
                    "missing-commit",
                    "the last transaction is not committed",
                    Span(source, end, end),
                    note=f"it begins at {self.draft.place}; a transaction ends with `commit.`",
                    hint="add `commit.` here; if the end of the file was lost, download it again",
                )
            )
        self.check()

    def check(self) -> None:
        """Raise the problems found so far, if there are any."""
        if self.problems:
            raise FactsError(first_problems(self.problems, str(self.path)))


class _FactsParser(SouffleParser):
    """Reads facts whose records are constants, and so may be nested to any depth."""

    def operand(self, level: int) -> Term | Formula:
        token = self.token
        if token.kind not in ("[", "branch"):
            return super().operand(level)
        end = end_of(self.source.text, token.start)
        self.seen = len(self.source.text) if end is None else end
        self.token = self.scan(self.seen)
        if end is None:
            self.fail("`]`" if token.kind == "[" else "`)`")
        return Constant(self.source.text[token.start : end], "record", self.since(token.start))


def _no_files(name: str, span: Span) -> None:
    raise AssertionError("a directive in an update file")
