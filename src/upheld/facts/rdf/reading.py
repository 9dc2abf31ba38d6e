"""Reading RDF files: batches of statements, each term under a code of one dictionary.

pyoxigraph parses, and writes what it has parsed as canonical N-Triples, where the subject and the predicate of a line
end with a space. Cutting that text takes less time than asking each statement for its terms: 3.3 us a triple, not 4.5.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from upheld.base.errors import FactsError, Problem, UsageError, is_path, quote, require
from upheld.base.limits import look
from upheld.base.source import Source, Span
from upheld.facts.columns import Columns, Row, Texts
from upheld.facts.files.reading import read_bytes
from upheld.facts.rdf.entities import problem_of_entities
from upheld.facts.rdf.formats import RdfFormat, format_of, is_rdf, pyoxigraph
from upheld.language.terms.vocabulary import QUAD, TRIPLE

#: Statements parsed at a time.
_BATCH = 1 << 12

BLANK_NODES = ("file", "shared")

#: Facts of `triple`, and of `quad` where there are named graphs.
Statements = dict[str, "list[Row] | Columns"]


def read(*paths: str | Path, base: str | None = None, blank_nodes: str = "file") -> Statements:
    """Return the statements of RDF files as facts of `triple` and, for named graphs, of `quad`.

    The extension selects the format: `.nt`, `.ttl`, `.nq`, `.trig`, and `.rdf`, `.owl` or `.xml` for RDF/XML. All may
    be gzipped.

    Args:
        paths: RDF files, or folders whose RDF files are read.
        base: IRI that relative IRIs are resolved against; without it they are refused.
        blank_nodes: `file`: a label denotes a different node in each file. `shared`: the same node in all files, for
            N-Triples and N-Quads.
    """
    for path in paths:
        require(is_path(path), "paths", "paths", path)
    require(isinstance(base, str | None), "base", "an IRI, or None", base)
    is_known = isinstance(blank_nodes, str) and blank_nodes in BLANK_NODES
    require(is_known, "blank_nodes", "`file` or `shared`", blank_nodes)
    files = [file for path in paths for file in _files(Path(path))]
    triples, quads = StatementTable(3), StatementTable(4)
    problems: list[Problem] = []
    for file in files:
        try:
            _read_file(file, base, blank_nodes == "shared", triples, quads)
        except FactsError as error:
            problems.extend(error.problems)
    if problems:
        raise FactsError(problems)
    result: Statements = {TRIPLE: triples.rows()}
    if quads.count:
        result[QUAD] = quads.rows()
    return result


def read_relation(relation: str, path: Path) -> list[Row] | Columns:
    """Return the statements of a file as facts of `triple` or `quad`, which must be able to hold all of them."""
    hint = f'`upheld.rdf.read("{path.name}")` returns the facts of both `triple` and `quad`'
    return of_one_relation(relation, read(path), str(path), hint)


def of_one_relation(relation: str, statements: Statements, place: str, hint: str) -> list[Row] | Columns:
    """Return the statements as facts of `triple` or `quad`; raise `FactsError` if it cannot hold all of them."""
    other, arity = (QUAD, 3) if relation != QUAD else (TRIPLE, 4)
    if relation == QUAD and not len(statements[TRIPLE]):
        return statements.get(QUAD, [])
    if relation != QUAD and QUAD not in statements:
        return statements[TRIPLE]
    there = "statements of named graphs" if other == QUAD else "statements outside of named graphs"
    message = f"there are {len(statements[other])} {there}, which {quote(relation)} of {arity} columns does not hold"
    raise FactsError(Problem("mixed-graphs", message, place=place, hint=hint))


def _files(path: Path) -> Iterable[Path]:
    """Return the file, or the RDF files in the folder, in the order of their names."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and is_rdf(file))
    if not files:
        hint = "name a file, or another folder"
        raise FactsError(Problem("empty-folder", "there is no RDF file in this folder", place=str(path), hint=hint))
    return files


# -- one file ---------------------------------------------------------------------------------------------------------


def _read_file(path: Path, base: str | None, shared: bool, triples: StatementTable, quads: StatementTable) -> None:
    format = format_of(path)
    if shared and not format.all_labelled:
        note = f"brackets and lists of {format.name} create blank nodes without labels"
        message = f"blank nodes of {format.name} are not shared"
        raise UsageError(Problem("bad-argument", message, place=str(path), note=note))
    data = read_bytes(path)
    if format.constant == "RDF_XML" and (problem := problem_of_entities(data, path)) is not None:
        raise FactsError(problem)
    labels = _Labels(path, format.all_labelled, shared)
    for text, named in _batches(path, data, format, base):
        look(path)
        triples.add(_terms(text, path, labels))
        if named:
            graphs = labels.relabel([str(quad.graph_name) for quad in named])
            inside = _terms(_text(quad.triple for quad in named), path, labels)
            quads.add([term for row in zip(inside[::3], inside[1::3], inside[2::3], graphs) for term in row])


def _batches(path: Path, data: bytes, format: RdfFormat, base: str | None) -> Iterator[tuple[str, list[Any]]]:
    """Yield the triples of a file as text, and its quads; raise `FactsError` for the first statement that is none."""
    try:
        parser = pyoxigraph().parse(input=data, format=format.of_parser(), base_iri=base)
        if format.has_graphs:
            while batch := list(islice(parser, _BATCH)):
                default, named = _by_graph(batch)
                yield _text(default), named
        else:  # statements never come together as objects, which takes a third of the time
            while text := _text(islice(parser, _BATCH)):
                yield text, []
    except SyntaxError as error:
        raise FactsError(_malformed(path, data, format, error)) from None
    except MemoryError as error:  # of the buffer of one statement, not of the machine
        message = f"a statement of {format.name} is too long: {error}"
        note = "each statement of N-Triples, N-Quads, Turtle and TriG may have at most 16 MB"
        raise FactsError(Problem("too-long-statement", message, place=str(path), note=note)) from None
    except ValueError as error:
        raise UsageError(Problem("bad-argument", f"the base {quote(base)} is not an IRI: {error}")) from None


def _by_graph(batch: list[Any]) -> tuple[list[Any], list[Any]]:
    default = pyoxigraph().DefaultGraph()
    in_default = [quad.graph_name == default for quad in batch]
    return (
        [quad for quad, is_in in zip(batch, in_default) if is_in],
        [quad for quad, is_in in zip(batch, in_default) if not is_in],
    )


def _text(statements: Iterable[Any]) -> str:
    """Return statements as canonical N-Triples, without the graphs they are in."""
    package = pyoxigraph()
    return package.serialize(statements, format=package.RdfFormat.N_TRIPLES).decode()  # type: ignore[no-any-return]


def _terms(text: str, path: Path, labels: _Labels) -> list[str]:
    """Return the terms of statements in canonical N-Triples, one after the other."""
    if "<<(" in text:
        _refuse_triple_terms(text, path)
    # Literals have no line breaks, and nothing else has spaces.
    terms = [term for line in text.split(" .\n") for term in line.split(" ", 2)]
    terms.pop()  # what follows the last statement
    return labels.relabel(terms) if "_:" in text else terms


def _refuse_triple_terms(text: str, path: Path) -> None:
    for line in text.split(" .\n")[:-1]:
        if line.split(" ", 2)[2].startswith("<<("):
            message = f"the statement {quote(line)} has a triple as its object"
            note = "terms are IRIs, literals and blank nodes, as in RDF 1.1"
            raise FactsError(Problem("unsupported-triple-term", message, place=str(path), note=note))


def _malformed(path: Path, data: bytes, format: RdfFormat, error: SyntaxError) -> Problem:
    """Return the problem of a file that is not in its format, with the offending line."""
    where, _, said = error.msg.partition(": ")
    message = f"this is not {format.name}: {said if where.startswith('Parser error') else error.msg}"
    if error.lineno is None and format.constant == "RDF_XML":
        error.lineno, error.offset = _place_in_xml(data)
    lines = re.split(rb"\r\n?|\n", data)  # as the parser counts them
    note = "IRIs must be absolute where there is no base" if "No scheme found" in message else None
    if error.lineno is None or not 0 < error.lineno <= len(lines):
        return Problem("bad-rdf", message, place=str(path), note=note)
    line = lines[error.lineno - 1].decode(errors="replace")
    start = min(max((error.offset or 1) - 1, 0), len(line))
    ends_here = error.end_lineno == error.lineno and error.end_offset
    end = min(max(error.end_offset - 1 if ends_here and error.end_offset else start + 1, start), len(line))
    return Problem("bad-rdf", message, Span(Source(str(path), line, error.lineno), start, end), note=note)


def _place_in_xml(data: bytes) -> tuple[int | None, int | None]:
    """Return the line and column at which a document is not well-formed XML, or None if it is well-formed."""
    from xml.parsers import expat  # which nobody else needs; it fetches nothing

    try:
        expat.ParserCreate().Parse(data, True)
    except expat.ExpatError as error:
        return error.lineno, error.offset + 1
    return None, None


# -- terms to codes ---------------------------------------------------------------------------------------------------


@dataclass
class _Labels:
    """The labels that blank nodes of a file get: the same whenever a file of this name is read.

    Labels of N-Triples and N-Quads are kept, after what sets the file apart. Others number the nodes in the order of
    the file: what brackets make is labelled by the parser at random.
    """

    path: Path
    kept: bool
    shared: bool
    known: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scope = f"_:f{zlib.crc32(self.path.name.encode()):08x}_"

    def relabel(self, terms: list[str]) -> list[str]:
        if self.shared:
            return terms
        return [self._of(term) if term[0] == "_" else term for term in terms]

    def _of(self, term: str) -> str:
        if self.kept:
            return self.scope + term[2:]
        return self.known.setdefault(term, f"{self.scope}b{len(self.known)}")


class StatementTable:
    """Rows of terms as codes, by the order in which the terms first occur."""

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.count = 0
        self._codes: defaultdict[str, int] = defaultdict()
        self._codes.default_factory = self._codes.__len__
        self._parts: list[list[int]] = []

    def add(self, terms: list[str]) -> None:
        """Add rows, given as their terms one after the other."""
        self.count += len(terms) // self.arity
        self._parts.append(_numbers(map(self._codes.__getitem__, terms), len(terms)))

    def rows(self) -> list[Row] | Columns:
        """Return the rows: by column, unless NumPy is missing."""
        texts = list(self._codes)
        try:
            import numpy as np
        except ImportError:
            terms = [texts[code] for part in self._parts for code in part]
            return list(zip(*(terms[i :: self.arity] for i in range(self.arity))))
        codes = np.concatenate([*self._parts, np.empty(0, np.int64)]).reshape(-1, self.arity)
        dictionary = np.empty(len(texts), np.object_)
        dictionary[:] = texts
        columns = [Texts(np.ascontiguousarray(codes[:, i]), dictionary) for i in range(self.arity)]
        return Columns(("term",) * self.arity, columns, self.count)


def _numbers(codes: Iterable[int], count: int) -> Any:
    try:
        import numpy as np
    except ImportError:
        return list(codes)
    return np.fromiter(codes, np.int64, count)
