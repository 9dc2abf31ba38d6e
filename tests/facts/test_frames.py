"""Frames and graphs of other packages, in and out."""

from __future__ import annotations

import sys
import warnings

import duckdb
import polars
import pyarrow
import pyoxigraph
import pytest
import rdflib

import upheld
from upheld.base.errors import FactsError, MissingDependency, UsageError

RULES = """
.decl edge(x:number, name:symbol, weight:float)
.decl named(name:symbol)
named(n) :- edge(_, n, _).
"""
ROWS = [(1, "a", 0.5), (2, "é", 2.0)]
COLUMNS = {"weight": [0.5, 2.0], "x": [1, 2], "name": ["a", "é"], "extra": [True, False]}


def polars_frame(columns):
    return polars.DataFrame(columns)


def lazy_frame(columns):
    return polars.DataFrame(columns).lazy().filter(polars.col("x") > 0)


def categories(columns):
    return polars.DataFrame(columns).with_columns(polars.col("name").cast(polars.Categorical))


def duckdb_relation(columns):
    table = pyarrow.table(columns)
    return duckdb.connect().from_arrow(table)


def batches(columns):
    return pyarrow.table(columns).to_reader()


@pytest.mark.parametrize("frame", [polars_frame, lazy_frame, categories, duckdb_relation, batches])
@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_frames_in(frame, engine):
    """Columns go by name, and extra ones are left out, as in pandas."""
    m = upheld.materialise(RULES, {"edge": frame(COLUMNS)}, engine=engine)
    assert m["edge"].to_rows() == ROWS
    assert m.update(delete={"edge": frame(COLUMNS)}).deleted["named"].to_rows() == [("a",), ("é",)]


def test_names_and_types_of_a_frame():
    m = upheld.materialise("p(x) :- e(x, _).", {"e": polars.DataFrame({"src": [1], "dst": ["b"]})}, engine="reference")
    assert m["e"].columns == ("src", "dst") and m["e"].types == ("number", "symbol")
    with pytest.raises(FactsError, match="missing-column"):
        m.update(insert={"e": polars.DataFrame({"from": [1], "dst": ["b"]})})


def test_bad_values_of_a_frame():
    with pytest.raises(FactsError, match=r"row 2: .*missing-value"):
        upheld.materialise(RULES, {"edge": polars.DataFrame({**COLUMNS, "x": [1, None]})}, engine="reference")
    with pytest.raises(FactsError, match="ill-typed-value"):
        upheld.materialise(RULES, {"edge": polars.DataFrame({**COLUMNS, "x": ["1", "2"]})}, engine="reference")


def test_a_query_that_fails_when_it_is_read():
    connection = duckdb.connect()
    bad = connection.sql("select 1 as x, 'a' as name, cast(y as double) as weight from (values ('one')) t(y)")
    with pytest.raises(FactsError, match=r"unsupported-facts"):
        upheld.materialise(RULES, {"edge": bad}, engine="reference")


@pytest.fixture
def m() -> upheld.Materialisation:
    return upheld.materialise(RULES, {"edge": ROWS}, engine="reference")


def test_polars_out(m):
    frame = m["edge"].to_polars()
    assert frame.rows() == ROWS and frame.columns == ["x", "name", "weight"]
    assert m["edge"].find(x=7).to_polars().schema == frame.schema


def test_duckdb_out(m):
    connection = duckdb.connect()
    assert m["edge"].to_duckdb(connection).filter("x > 1").fetchall() == [ROWS[1]]
    assert m["edge"].to_duckdb().aggregate("sum(weight)").fetchall() == [(2.5,)]


@pytest.mark.parametrize("package, extra, method", [("polars", "polars", "to_polars"), ("duckdb", "sql", "to_duckdb")])
def test_missing_packages(m, monkeypatch, package, extra, method):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"upheld\[{extra}\]"):
        getattr(m["edge"], method)()


# -- graphs ------------------------------------------------------------------------------------------------------------

DATA = r"""
<http://e/a> <http://e/p> _:b1 .
_:b1 <http://e/p> "caf\u00E9 \"x\"\n"@fr .
<http://e/a> <http://e/n> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://e/a> <http://e/n> "plain \\ text" .
"""
QUADS = DATA + '<http://e/a> <http://e/p> "in a graph" <http://e/g> .\n'
TRIPLES = {
    ("<http://e/a>", "<http://e/n>", '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ("<http://e/a>", "<http://e/n>", r'"plain \\ text"'),
}
CHAIN = "PREFIX : <http://e/> [?x, :q, ?z] :- [?x, :p, ?y], [?y, :p, ?z]."


def rdflib_graph(text):
    return rdflib.Graph().parse(data=text, format="nt")


def rdflib_dataset(text):
    dataset = rdflib.Dataset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # rdflib's parser uses what rdflib deprecates
        dataset.parse(data=text, format="nquads")
    return dataset


def store(text):
    result = pyoxigraph.Store()
    result.load(text.encode(), pyoxigraph.RdfFormat.N_QUADS)
    return result


def dataset(text):
    return pyoxigraph.Dataset(pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.N_QUADS))


@pytest.mark.parametrize("graph", [rdflib_graph, rdflib_dataset, store, dataset])
def test_graphs_in(graph):
    """A graph is facts of `triple`, by itself or by name; blank nodes keep their labels from one update to the next."""
    rules = upheld.parse(CHAIN, dialect="dlog")
    m = upheld.materialise(rules, graph(DATA), engine="reference")
    assert len(m["triple"]) == 5 and m["triple"].to_set() >= TRIPLES
    assert m.query("[?x, :q, ?z]").to_rows() == [("<http://e/a>", r'"café \"x\"\n"@fr')]
    given = graph(DATA)
    again = upheld.materialise(rules, {"triple": given}, engine="reference")
    assert len(again.update(delete={"triple": given}).deleted["triple"]) == 5


@pytest.mark.parametrize("graph", [rdflib_dataset, store, dataset])
def test_named_graphs(graph):
    rules = upheld.parse("PREFIX : <http://e/> [?x, :in, ?g] :- [?x, :p, ?y] ?g.", dialect="dlog")
    m = upheld.materialise(rules, graph(QUADS), engine="reference")
    assert m["quad"].to_rows() == [("<http://e/a>", "<http://e/p>", '"in a graph"', "<http://e/g>")]
    with pytest.raises(FactsError, match="mixed-graphs"):
        m.update(insert={"triple": graph(QUADS)})


def test_graphs_that_are_not_facts():
    bad = rdflib.Graph()
    bad.add((rdflib.URIRef("no-iri"), rdflib.URIRef("http://e/p"), rdflib.Literal(1)))
    with pytest.raises(FactsError, match="bad-term"):
        upheld.materialise(upheld.parse(CHAIN, dialect="dlog"), bad, engine="reference")
    with pytest.raises(FactsError, match="unsupported-facts"):
        upheld.materialise(".decl t(x:number, y:number, z:number)", {"t": rdflib_graph(DATA)}, engine="reference")


@pytest.mark.parametrize("package", ["pyoxigraph", "rdflib"])
def test_graphs_out(package):
    """What comes out goes in again as the same facts."""
    rules = upheld.parse(f"{CHAIN} [?x, :in, ?g] :- [?x, :p, ?y] ?g.", dialect="dlog")
    m = upheld.materialise(rules, store(QUADS), engine="reference")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph, quads = m["triple"].to_graph(package), m["quad"].to_graph(package)
    again = upheld.materialise(rules, graph, engine="reference")
    assert again["triple"].to_set() == m["triple"].to_set()
    again.update(insert=quads)
    assert again["quad"].to_set() == m["quad"].to_set()


@pytest.mark.parametrize("package", ["pyoxigraph", "rdflib"])
def test_facts_that_rdf_does_not_have(package):
    facts = {"triple": [('"1"', "<http://e/p>", '"2"'), ("<http://e/a>", "<http://e/p>", '"2"')]}
    m = upheld.materialise(upheld.parse(CHAIN, dialect="dlog"), facts, engine="reference")
    with pytest.warns(upheld.UpheldWarning, match="1 fact of `triple` left out because not valid RDF"):
        assert len(m["triple"].to_graph(package)) == 1


def test_relations_that_are_not_graphs(m):
    with pytest.raises(UsageError, match="not-a-graph"):
        m["edge"].to_graph()
    with pytest.raises(UsageError, match="unknown package `jena`"):
        m["edge"].to_graph("jena")


@pytest.mark.parametrize("package, install", [("pyoxigraph", "upheld[rdf]"), ("rdflib", "pip install rdflib")])
def test_packages_of_graphs_that_are_missing(monkeypatch, m, package, install):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency) as caught:
        m["edge"].to_graph(package)
    assert install in str(caught.value)
