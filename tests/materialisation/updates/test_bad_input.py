"""Bad input of every public way to change or ask a materialisation: an error of ours, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable

import pandas
import pyarrow
import pytest

import upheld
from upheld.materialisation.materialisation import Materialisation

RULES = """
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
.decl n(x:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.constraint loop :- path(x, x).
"""


@pytest.fixture(scope="module")
def opened() -> Materialisation:
    m = upheld.materialise(RULES, {"edge": [("a", "b")], "n": [1]})
    m.update(insert={"edge": [("b", "c")]}, source="feed-7")
    return m


def nested(m: Materialisation) -> None:
    with m.transaction(), m.transaction():
        pass


def rules_in_a_transaction(m: Materialisation) -> None:
    with m.transaction():
        m.change_rules(add="path(x, y) :- edge(y, x).")


#: What is done, by the slug of its error and its name.
CASES: dict[tuple[str, str], Callable[[Materialisation], object]] = {
    ("bad-argument", "facts"): lambda m: m.update(insert=7),
    ("bad-argument", "empty source"): lambda m: m.update(insert={"n": [2]}, source=""),
    ("bad-argument", "source"): lambda m: m.update(insert={"n": [2]}, source=7),
    ("bad-argument", "retracted source"): lambda m: m.retract(7),
    ("bad-argument", "on_violation"): lambda m: m.update(insert={"n": [2]}, on_violation="ignore"),
    ("bad-argument", "rules"): lambda m: m.change_rules(add=7),
    ("bad-argument", "SQL"): lambda m: m.sql(7),
    ("bad-argument", "query"): lambda m: m.query(7),
    ("bad-argument", "SPARQL"): lambda m: m.sparql(7),
    ("bad-argument", "stream"): lambda m: m.stream(7),
    ("bad-argument", "source of a stream"): lambda m: list(m.stream([{"insert": {"n": [2]}, "source": 7}])),
    ("unknown-algorithm", "update"): lambda m: m.update(insert={"n": [2]}, algorithm="quick"),
    ("unknown-relation", "update"): lambda m: m.update(insert={"egde": [("a", "b")]}),
    ("unknown-relation", "replace"): lambda m: m.update(replace={"egde": [("a", "b")]}),
    ("unknown-relation", "preview"): lambda m: m.preview(delete={"egde": [("a", "b")]}),
    ("unknown-relation", "rules"): lambda m: m.change_rules(add="path(x, y) :- egde(x, y)."),
    ("unknown-relation", "query"): lambda m: m.query("pth(x, y)"),
    ("unknown-relation", "explain"): lambda m: m.explain("pth", ("a", "b")),
    ("unknown-relation", "history"): lambda m: m.history("pth", ("a", "b")),
    ("unknown-relation", "item"): lambda m: m["pth"],
    ("unknown-relation", "item of no name"): lambda m: m[7],
    ("unknown-relation", "change"): lambda m: m.preview(insert={"n": [5]}).inserted["nn"],
    ("ill-typed-value", "rows"): lambda m: m.update(insert={"n": ["x"]}),
    ("ill-typed-value", "snapshot"): lambda m: m.update(replace={"n": pandas.DataFrame({"x": ["a"]})}),
    ("unsupported-facts", "rows"): lambda m: m.update(insert={"n": None}),
    ("wrong-arity", "update"): lambda m: m.update(delete={"edge": [("a",)]}),
    ("wrong-arity", "explain"): lambda m: m.explain("path", ("a",)),
    ("wrong-arity", "history"): lambda m: m.history("path", ("a",)),
    ("missing-column", "pandas"): lambda m: m.update(insert={"edge": pandas.DataFrame({"x": ["a"], "z": ["b"]})}),
    ("missing-column", "Arrow"): lambda m: m.update(replace={"edge": pyarrow.table({"x": ["a"]})}),
    ("unknown-column", "find"): lambda m: m["path"].find(z=1),
    ("replaced-relation", "update"): lambda m: m.update(insert={"n": [2]}, replace={"n": [3]}),
    ("unsupported-update", "stream"): lambda m: list(m.stream([{"edge": [("a", "b")]}])),
    ("unknown-source", "retract"): lambda m: m.retract("feed-8"),
    ("unknown-source", "delete"): lambda m: m.update(delete={"n": [1]}, source="feed-8"),
    ("unknown-source", "stream"): lambda m: list(m.stream([{"retract": "feed-8"}])),
    ("mixed-sources", "stream"): lambda m: list(m.stream([{"retract": "feed-7", "delete": {"n": [1]}}])),
    ("constraint-violated", "update"): lambda m: m.update(insert={"edge": [("c", "a")]}),
    ("constraint-violated", "a constraint that is violated already"): lambda m: m.change_rules(
        add=".constraint any :- edge(x, y)."
    ),
    ("unsafe-head", "rules"): lambda m: m.change_rules(add="path(x, z) :- edge(x, y)."),
    ("unsafe-head", "preview"): lambda m: m.preview(add="path(x, z) :- edge(x, y)."),
    ("unsafe-head", "program"): lambda m: m.change_rules(replace="path(x, z) :- edge(x, y)."),
    ("negation-in-recursion", "rules"): lambda m: m.change_rules(add="path(x, y) :- edge(x, y), !path(y, x)."),
    ("syntax", "rules"): lambda m: m.change_rules(add="path(x, y) :- edge(x y)."),
    ("syntax", "query"): lambda m: m.query("path(x, "),
    ("unknown-rule", "rules"): lambda m: m.change_rules(remove="path(x, y) :- edge(y, x)."),
    ("ambiguous-change", "preview"): lambda m: m.preview(insert={"n": [2]}, add="path(x, y) :- edge(y, x)."),
    ("nested-transaction", "transaction"): nested,
    ("in-transaction", "transaction"): rules_in_a_transaction,
    ("bad-sql", "syntax"): lambda m: m.sql("selec * from path"),
    ("bad-sql", "table"): lambda m: m.sql("select * from paths"),
    ("bad-sql", "column"): lambda m: m.sql("select z from path"),
    ("no-triples", "SPARQL"): lambda m: m.sparql("SELECT * WHERE { ?x ?y ?z }"),
}


@pytest.mark.parametrize("case", CASES, ids=": ".join)
def test_bad_input_changes_nothing(case, opened):
    before = opened.facts(), opened.explicit("edge").to_set(), opened.sources(), opened.version
    with pytest.raises(upheld.UpheldError) as caught:
        CASES[case](opened)
    assert caught.value.slugs[0] == case[0]
    assert (opened.facts(), opened.explicit("edge").to_set(), opened.sources(), opened.version) == before


def test_sparql_that_cannot_be_parsed():
    """The error has the line and the column."""
    rules = upheld.parse("PREFIX : <http://e/> [?x, :q, ?y] :- [?x, :p, ?y].", dialect="dlog")
    m = upheld.materialise(rules, {"triple": [("<http://e/a>", "<http://e/p>", '"1"')]}, engine="reference")
    with pytest.raises(upheld.UpheldError, match=r"<query>:2:9: .*bad-sparql"):
        m.sparql("SELECT * WHERE {\n ?x ?y }")


def test_an_unknown_relation_is_not_in_a_change(opened):
    change = opened.preview(insert={"n": [5]})
    assert "n" in change.inserted and "path" in change.inserted
    assert "nn" not in change.inserted and 7 not in change.inserted
