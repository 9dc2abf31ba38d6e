"""Relations of triples and quads as graphs of pyoxigraph and rdflib."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from upheld.base.errors import Problem, UsageError, count, quote, warn
from upheld.facts.columns import Row
from upheld.language.terms.ntriples import is_statement
from upheld.language.terms.ntriples_grammar import literal_parts
from upheld.language.terms.terms import unescape

#: The packages that a graph may be made for.
PACKAGES = ("pyoxigraph", "rdflib")

#: How rdflib calls the default graph of a dataset.
RDFLIB_DEFAULT = "urn:x-rdflib:default"


def graph_of(name: str, types: tuple[str, ...], rows: Iterable[Row], package: str, module: Any) -> Any:
    """Return rows of three or four terms as a graph; `module` is the package."""
    if set(types) != {"term"} or len(types) not in (3, 4):
        message = f"{quote(name)} is not a relation of triples or quads"
        note = "a graph has triples or quads of RDF terms, as `triple` and `quad` of a `.dlog` program"
        raise UsageError(Problem("not-a-graph", message, note=note))
    statements = _statements(name, rows)
    return _store(module, statements) if package == "pyoxigraph" else _rdflib_graph(module, statements, len(types))


def _statements(name: str, rows: Iterable[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the rows that RDF has as statements, and warn of the others, which rules may derive."""
    left_out = 0
    for row in rows:
        terms: tuple[str, ...] = tuple(map(str, row))
        if is_statement(terms):
            yield terms
        else:
            left_out += 1
    if left_out:
        message = f"{count(left_out, 'fact')} of {quote(name)} left out because not valid RDF"
        note = "a literal cannot be a subject, and properties are IRIs"
        warn([Problem("left-out", message, note=note, severity="warning")])


def _store(module: Any, statements: Iterator[tuple[str, ...]]) -> Any:
    store = module.Store()
    text = "".join(" ".join(terms) + " .\n" for terms in statements)
    # `bulk_load` would give blank nodes new labels.
    store.bulk_extend(module.parse(text.encode(), module.RdfFormat.N_QUADS))
    return store


def _rdflib_graph(module: Any, statements: Iterator[tuple[str, ...]], arity: int) -> Any:
    graph = module.Dataset() if arity == 4 else module.Graph()
    terms: dict[str, Any] = {}

    def term(text: str) -> Any:
        if text not in terms:
            terms[text] = _rdflib_term(module, text)
        return terms[text]

    for statement in statements:
        graph.add(tuple(map(term, statement)))
    return graph


def _rdflib_term(module: Any, text: str) -> Any:
    if text[0] == "<":
        return module.URIRef(text[1:-1])
    if text[0] == "_":
        return module.BNode(text[2:])
    parts = literal_parts(text)
    assert parts is not None, "a term that is not an IRI, a blank node or a literal"
    inside, language, datatype = parts.groups()
    kind = module.URIRef(datatype) if datatype else None
    # As it is written: rdflib would bring numbers to a form of its own.
    return module.Literal(unescape(inside), lang=language, datatype=kind, normalize=False)
