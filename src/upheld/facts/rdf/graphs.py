"""Graphs of rdflib and pyoxigraph as facts of `triple` and `quad`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from upheld.base.errors import FactsError, Problem, quote
from upheld.facts.columns import Columns, Row
from upheld.facts.graphs import RDFLIB_DEFAULT
from upheld.facts.rdf.reading import Statements, StatementTable, of_one_relation
from upheld.language.terms.ntriples import NotATerm, term
from upheld.language.terms.terms import escape
from upheld.language.terms.vocabulary import QUAD, TRIPLE


def read_graph(graph: Any) -> Statements:
    """Return the statements of a graph. Blank nodes keep their labels, so a graph can be passed again in an update."""
    texts, triples, quads = _Texts(), list[str](), list[str]()
    for statement in _statements(graph):
        inside, name = statement[:3], statement[3]
        try:
            if name is None:
                triples += [texts[term] for term in inside]
            else:
                quads += [texts[term] for term in statement]
        except NotATerm as wrong:
            message = f"{quote(' '.join(map(str, inside)))} has a term that {wrong.reason}"
            raise FactsError(Problem("bad-term", message, place="graph", hint=wrong.hint)) from None
    return {
        name: _rows(terms, arity)
        for name, terms, arity in ((TRIPLE, triples, 3), (QUAD, quads, 4))
        if terms or name == TRIPLE
    }


def _rows(terms: list[str], arity: int) -> list[Row] | Columns:
    table = StatementTable(arity)
    table.add(terms)
    return table.rows()


def read_graph_relation(relation: str, graph: Any) -> list[Row] | Columns:
    """Return the statements of a graph as facts of `triple` or `quad`, which must be able to hold all of them."""
    return of_one_relation(relation, read_graph(graph), "graph", "pass the graph itself as the facts")


def _statements(graph: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield subject, predicate, object and graph, which is None for the default graph."""
    if type(graph).__module__ == "pyoxigraph":
        for quad in graph:
            name = quad.graph_name
            yield quad.subject, quad.predicate, quad.object, None if type(name).__name__ == "DefaultGraph" else name
    elif hasattr(graph, "quads"):
        for subject, predicate, object, context in graph.quads():
            name = getattr(context, "identifier", context)
            yield subject, predicate, object, None if name is None or str(name) == RDFLIB_DEFAULT else name
    else:
        for triple in graph:
            yield (*triple, None)


class _Texts(dict[Any, str]):
    """The N-Triples text of each term, computed once."""

    def __missing__(self, value: Any) -> str:
        self[value] = text = term(str(value) if type(value).__module__ == "pyoxigraph" else _rdflib_text(value))
        return text


def _rdflib_text(value: Any) -> str:
    match type(value).__name__:
        case "URIRef":
            return f"<{value}>"
        case "BNode":
            return f"_:{value}"
        case "Literal":
            suffix = f"@{value.language}" if value.language else f"^^<{value.datatype}>" if value.datatype else ""
            return f'"{escape(str(value))}"{suffix}'
    raise NotATerm("is not an IRI, a literal or a blank node", "facts hold terms of RDF 1.1")
