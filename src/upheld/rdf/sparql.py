"""SPARQL over triples and quads: a store of pyoxigraph that changes keep up to date.

The store keeps numbers, dates and times by value. Facts whose terms differ only in how a value is written, such as 05
and 5, are one statement in it: `_Variants` remembers which of them there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upheld.base.errors import Problem, UsageError, quote
from upheld.base.pages import first_rows
from upheld.base.source import Source, Span
from upheld.compiler.queries import term_parameter
from upheld.facts.change import Change
from upheld.facts.columns import Row
from upheld.facts.rdf.formats import pyoxigraph
from upheld.facts.relation import Relation, missing_package
from upheld.language.terms.ntriples import is_statement
from upheld.language.terms.terms import XSD
from upheld.language.terms.vocabulary import COLUMNS, TRIPLE

if TYPE_CHECKING:
    import pandas

#: The formats of answers: of bindings and truth values, and of triples that a query constructs.
_ANSWER_FORMATS = {"csv": "CSV", "tsv": "TSV", "json": "JSON", "xml": "XML"}
_TRIPLE_FORMATS = {"nt": "N_TRIPLES", "ttl": "TURTLE"}

_PLACE = re.compile(r"error at (\d+):(\d+): (.*)", re.DOTALL)
#: Comments, strings and IRIs of SPARQL, names with a prefix, variables, and words.
_TOKEN = re.compile(
    r'''#[^\n]*|"""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''''
    r"""|<[^<>"{}|^`\\\x00-\x20]*>|[\w.\-]*:[\w.\-%]*|[?$@]\w+|(?P<word>\w+)""",
    re.DOTALL,
)
_TYPED = f'"^^<{XSD}'

Statement = tuple[str, ...]


@dataclass(frozen=True)
class Solutions:
    """The answers to a `SELECT` query, in the order of the query.

    >>> Solutions(("x", "n"), [("<http://e/a>", None)]).to_dicts()
    [{'x': '<http://e/a>', 'n': None}]
    """

    #: The names of the variables.
    columns: tuple[str, ...]
    #: The terms that the variables are bound to, in N-Triples syntax; None where a variable is unbound.
    rows: list[tuple[str | None, ...]]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[str | None, ...]]:
        return iter(self.rows)

    def _repr_html_(self) -> str:
        rows = (["" if term is None else term for term in row] for row in self.rows)
        return first_rows(self.columns, rows, len(self.rows))

    def to_dicts(self) -> list[dict[str, str | None]]:
        """Return each answer as a dictionary of terms by variable."""
        return [dict(zip(self.columns, row)) for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the answers as a DataFrame of strings, in which unbound variables are missing."""
        try:
            import pandas
        except ImportError:
            raise missing_package("pandas", "pandas") from None
        return pandas.DataFrame(self.rows, columns=list(self.columns), dtype="string")


class TripleStore:
    """The statements of `triple` in the default graph of a store, and those of `quad` in its named graphs.

    Facts that are not valid RDF are left out: no pattern of SPARQL matches them.
    """

    def __init__(self, relations: Iterable[Relation]):
        self._package = pyoxigraph()
        self._store = self._package.Store()
        self._variants = _Variants(self._package)
        later: list[Statement] = []
        for relation in relations:
            statements = list(_statements(relation.to_set()))
            odd = [statement for statement in statements if self._variants.is_odd(statement)]
            later += odd
            rest = statements if not odd else (s for s in statements if not self._variants.is_odd(s))
            self._store.bulk_extend(self._quads(rest))
        self._insert(later)

    def apply(self, change: Change, names: Iterable[str]) -> None:
        """Bring the statements of some relations up to date."""
        for name in names:
            self._delete(_statements(change.deleted[name].to_set()))
            self._insert(_statements(change.inserted[name].to_set()))

    def _delete(self, statements: Iterable[Statement]) -> None:
        gone = [statement for statement in statements if self._variants.is_last(statement)]
        for quad in self._quads(gone):
            self._store.remove(quad)

    def _insert(self, statements: Iterable[Statement]) -> None:
        plain: list[Statement] = []
        for statement in statements:
            if self._variants.concerns(statement):
                (quad,) = self._quads([statement])
                self._variants.add(statement, quad in self._store)
                self._store.add(quad)
            else:
                plain.append(statement)
        self._store.extend(self._quads(plain))

    def _quads(self, statements: Iterable[Statement]) -> Any:
        text = "".join(" ".join(terms) + " .\n" for terms in statements)
        return self._package.parse(text.encode(), self._package.RdfFormat.N_QUADS)

    def query(
        self,
        text: str,
        prefixes: Mapping[str, str],
        format: str | None,
        parameters: Mapping[str, object] | None = None,
        look: Callable[[], None] = lambda: None,
    ) -> Solutions | bool | Relation | str:
        """Return the answer to a query, as text if a format is named.

        `parameters` are terms for variables. `look` is called now and then, and stops the query by an error.
        """
        _refuse_service(text)
        if format is not None and format not in (*_ANSWER_FORMATS, *_TRIPLE_FORMATS):
            note = f"the formats are {', '.join(map(quote, (*_ANSWER_FORMATS, *_TRIPLE_FORMATS)))}"
            raise UsageError(Problem("bad-argument", f"unknown format {quote(format)} for answers", note=note))
        try:
            substitutions = {self._package.Variable(n): self._term(n, v) for n, v in (parameters or {}).items()}
            answer = self._store.query(text, prefixes=dict(prefixes), substitutions=substitutions)
            look()
            return self._plain(answer, look) if format is None else self._text(answer, format)
        except (SyntaxError, ValueError, OSError, RuntimeError) as error:
            raise UsageError(_problem(text, error)) from None

    def _term(self, name: str, value: object) -> Any:
        """Return the term of a parameter."""
        (quad,) = self._quads([("<x:s>", "<x:p>", term_parameter(name, value))])
        return quad.object

    def _plain(self, answer: Any, look: Callable[[], None]) -> Solutions | bool | Relation:
        if isinstance(answer, self._package.QueryBoolean):
            return bool(answer)
        if isinstance(answer, self._package.QueryTriples):
            rows = [tuple(map(str, (t.subject, t.predicate, t.object))) for t in _watched(answer, look)]
            return Relation(TRIPLE, COLUMNS[TRIPLE], ("term",) * 3, rows)
        columns = tuple(variable.value for variable in answer.variables)
        solutions = _watched(answer, look)
        return Solutions(columns, [tuple(None if t is None else str(t) for t in row) for row in solutions])

    def _text(self, answer: Any, format: str) -> str:
        is_graph = isinstance(answer, self._package.QueryTriples)
        formats, kind = (
            (_TRIPLE_FORMATS, self._package.RdfFormat)
            if is_graph
            else (_ANSWER_FORMATS, self._package.QueryResultsFormat)
        )
        if format not in formats:
            what = "triples" if is_graph else "bindings or a truth value"
            note = f"their formats are {', '.join(map(quote, formats))}"
            message = f"the answer has {what}, which {quote(format)} does not hold"
            raise UsageError(Problem("bad-argument", message, note=note))
        return answer.serialize(format=getattr(kind, formats[format])).decode()  # type: ignore[no-any-return]


class _Variants:
    """The facts with a value that is not written as the store writes it, by the statement that the store has."""

    def __init__(self, package: Any):
        self._package = package
        self._scratch = package.Store()
        self._normal: dict[str, str] = {}
        self._facts: dict[Statement, set[Statement]] = {}

    def is_odd(self, statement: Statement) -> bool:
        return _TYPED in statement[2] and self._key(statement) != statement

    def concerns(self, statement: Statement) -> bool:
        """Return whether a statement is one of several facts that are the same in the store, or may become one."""
        return _TYPED in statement[2] and ((key := self._key(statement)) != statement or key in self._facts)

    def add(self, statement: Statement, is_in_store: bool) -> None:
        key = self._key(statement)
        if key not in self._facts:
            self._facts[key] = {key} if is_in_store else set()
        self._facts[key].add(statement)

    def is_last(self, statement: Statement) -> bool:
        """Return whether nothing is left in the store once this fact is gone, and forget the fact."""
        if not self.concerns(statement):
            return True
        key = self._key(statement)
        facts = self._facts.get(key, set())
        facts.discard(statement)
        if not facts:
            self._facts.pop(key, None)
        return not facts

    def _key(self, statement: Statement) -> Statement:
        return (*statement[:2], self._written(statement[2]), *statement[3:])

    def _written(self, literal: str) -> str:
        """Return how the store writes a literal."""
        known = self._normal.get(literal)
        if known is None:
            line = f"<x:s> <x:p> {literal} .\n".encode()
            self._scratch.extend(self._package.parse(line, self._package.RdfFormat.N_QUADS))
            (quad,) = self._scratch
            self._normal[literal] = known = str(quad.object)
            self._scratch.clear()
        return known


def _watched(answers: Iterable[Any], look: Callable[[], None]) -> Iterator[Any]:
    """Yield answers, and call `look` for each thousand of them."""
    for number, answer in enumerate(answers):
        if number % 1000 == 0:
            look()
        yield answer


def _refuse_service(text: str) -> None:
    """Refuse a query that would ask another server."""
    for token in _TOKEN.finditer(text):
        if token["word"] is not None and token["word"].upper() == "SERVICE":
            span = Span(Source("<query>", text), token.start(), token.end())
            note = "it would send parts of the query to another server, and Upheld uses no network"
            hint = "query that server by its own client, and pass the answers as facts"
            raise UsageError(Problem("sparql-service", "`SERVICE` is not supported", span, note=note, hint=hint))


def _statements(rows: Iterable[Row]) -> Iterator[Statement]:
    return (terms for row in rows if is_statement(terms := tuple(map(str, row))))


def _problem(text: str, error: Exception) -> Problem:
    match = _PLACE.match(str(error))
    if match is None:
        return Problem("bad-sparql", f"the query cannot be evaluated: {error}", place="<query>")
    line, column, expected = int(match[1]), int(match[2]), match[3]
    start = sum(map(len, text.splitlines(keepends=True)[: line - 1])) + column - 1
    start = min(start, len(text))
    if "Prefix not found" in expected:
        expected = "a declared prefix"
    else:
        expected = " ".join(expected.removeprefix("expected ").split())[:200]
    message = f"this is not SPARQL: expected {expected}"
    return Problem("bad-sparql", message, Span(Source("<query>", text), start, min(start + 1, len(text))))
