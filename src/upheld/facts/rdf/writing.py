"""Writing triples and quads as RDF files, and the text of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from upheld.base.errors import FactsError, Problem, UsageError, count, is_path, quote, require
from upheld.facts.columns import Row
from upheld.facts.files.badrows import EXPECTED, BadRows
from upheld.facts.files.formats import Format
from upheld.facts.files.writing import Output, Writer, write_all
from upheld.facts.rdf.formats import format_of, pyoxigraph
from upheld.language.terms.ntriples import NotATerm, are_canonical, is_statement, term_of
from upheld.language.terms.vocabulary import PREFIXES


@dataclass(frozen=True)
class Written:
    """How many statements were written, and how many were left out because RDF has no such statement.

    Rules may derive these: a literal as the subject of a triple, a literal or a blank node as its property.
    """

    statements: int
    left_out: int


def write(
    path: str | Path, triples: Iterable[Row], quads: Iterable[Row] = (), *, prefixes: Mapping[str, str] | None = None
) -> Written:
    """Write triples and quads to an RDF file, atomically, and return their number.

    The extension selects the format: `.nt`, `.ttl`, `.nq` or `.trig`, optionally followed by `.gz`. Statements are
    sorted.

    Args:
        path: Path of the file.
        triples: Rows of three terms.
        quads: Rows of three terms and a graph.
        prefixes: IRIs by prefix, to shorten the IRIs of Turtle and TriG in addition to `rdf`, `rdfs`, `owl` and `xsd`.
    """
    require(is_path(path), "path", "a path", path)
    require(isinstance(triples, Iterable), "triples", "rows", triples)
    require(isinstance(quads, Iterable), "quads", "rows", quads)
    require(isinstance(prefixes, Mapping | None), "prefixes", "a dictionary of IRIs by prefix, or None", prefixes)
    output, to_text, written = prepared(path, triples, quads, prefixes)
    write_all([output], to_text)
    return written


def prepared(
    path: str | Path, triples: Iterable[Row], quads: Iterable[Row], prefixes: Mapping[str, str] | None
) -> tuple[Output, Writer, Written]:
    """Return what `write` writes, what makes the text of it, and what it returns."""
    path = Path(path)
    format = format_of(path, to_write=True)
    lines, left_out = _lines(triples, 3)
    more, left_out_too = _lines(quads, 4)
    if more and not format.has_graphs:
        message = f"{format.name} has no named graphs, and {count(len(more), 'statement')} in named graphs"
        raise FactsError(Problem("mixed-graphs", message, place=str(path), hint="write a `.nq` or a `.trig` file"))
    text = "".join(_sorted(lines, more))
    if format.constant in ("TURTLE", "TRIG"):
        text = _shortened(text, format.of_parser(), {**PREFIXES, **(prefixes or {})})
    output = Output(path, (), (), Format("triple", (), compress=path.name.endswith(".gz")))
    return output, lambda *_: text, Written(len(lines) + len(more), left_out + left_out_too)


def statements_text(triples: Iterable[Row], quads: Iterable[Row] = ()) -> tuple[str, Written]:
    """Return the N-Quads of triples and quads, sorted; it is N-Triples if there are no quads."""
    lines, left_out = _lines(triples, 3)
    more, left_out_too = _lines(quads, 4)
    return "".join(_sorted(lines, more)), Written(len(lines) + len(more), left_out + left_out_too)


def _sorted(lines: list[str], more: list[str]) -> Iterator[str]:
    yield from sorted(lines)
    yield from sorted(more)


def _lines(rows: Iterable[Row], arity: int) -> tuple[list[str], int]:
    """Return a line of N-Quads for each row that is a statement, and the number of rows that are not."""
    lines, left_out = [], 0
    for terms in _terms(list(rows), arity):
        if is_statement(terms):
            lines.append(" ".join(terms) + " .\n")
        else:
            left_out += 1
    return lines, left_out


def _terms(rows: list[Any], arity: int) -> Iterable[Sequence[str]]:
    """Return rows of canonical terms; raise `FactsError` for rows that hold anything else."""
    if set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) <= {arity}:
        if set(map(type, chain.from_iterable(rows))) <= {str} and are_canonical(set(chain.from_iterable(rows))):
            return rows
    bad = BadRows("rows")
    result: list[Sequence[str]] = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, str) or not isinstance(row, Iterable):
            message = f"{quote(row)} is not a row of {count(arity, 'term')}"
            bad.add([Problem("bad-rdf", message, place=f"row {number}", note=EXPECTED["term"])])
            continue
        try:
            terms = [term_of(value) for value in row]
        except NotATerm as wrong:
            message = f"{quote(' '.join(map(str, row)))} has a value that {wrong.reason}"
            bad.add([Problem("bad-term", message, place=f"row {number}", note=EXPECTED["term"], hint=wrong.hint)])
            continue
        if len(terms) != arity or None in terms:
            message = f"{quote(row)} is not a row of {count(arity, 'term')}"
            bad.add([Problem("bad-rdf", message, place=f"row {number}", note=EXPECTED["term"])])
        else:
            result.append(terms)  # type: ignore[arg-type]
    bad.check()
    return result


def _shortened(text: str, format: object, prefixes: Mapping[str, str]) -> str:
    package = pyoxigraph()
    try:
        statements = package.parse(input=text.encode(), format=package.RdfFormat.N_QUADS)
        used = {name: iri for name, iri in prefixes.items() if f"<{iri}" in text}
        return package.serialize(statements, format=format, prefixes=used).decode()  # type: ignore[no-any-return]
    except SyntaxError as error:  # terms are checked before, by rules that other versions of the parser may not share
        message = f"a row is not a statement of RDF: {error.msg}"
        raise FactsError(Problem("bad-rdf", message, note=EXPECTED["term"])) from None
    except ValueError as error:
        raise UsageError(Problem("bad-argument", f"the prefixes are not valid: {error}")) from None
