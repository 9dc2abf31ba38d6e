"""Every public function refuses arguments of wrong types with an error of ours, for each of its parameters."""

from __future__ import annotations

import inspect
from pathlib import Path

import pandas
import pyarrow
import pytest

import upheld
from upheld import UpheldError
from upheld.base.errors import FactsError, UsageError

PROGRAM = "path(x, y) :- edge(x, y)."
WRONG = [None, 5, 2.5, True, b"x", [1], ("a",), {"a": 1}, object(), "\0", lambda: 1]

#: A call of each function that is right, by its parameters.
HOW = {
    "engine": "reference",
    "decompose": "auto",
    "equality": "off",
    "limits": None,
    "threads": None,
    "progress": None,
    "confined": False,
    "on_violation": None,
}
FACTS = {"edge": [("a", "b")]}
CALLS: dict[str, dict[str, object]] = {
    "materialise": {"program": PROGRAM, "facts": FACTS, "algorithm": "adaptive", "stratification": "levels", **HOW},
    "Project": {"program": PROGRAM, "facts": None, "output": ".", "state": None, "confined": False},
    "load": {"program": PROGRAM, "facts": None, "algorithm": "adaptive", **HOW},
    "restore": {
        "program": PROGRAM,
        "folder": "state",
        "version": None,
        "edited": False,
        "algorithm": "adaptive",
        "stratification": "levels",
        **HOW,
    },
    "check": {"program": PROGRAM, "stratification": "levels", "facts": None, "confined": False, "strict": False},
    "parse": {"program": PROGRAM, "dialect": "dl", "include": [], "confined": False},
    "read_updates": {"updates": {}, "m": ...},
    "Limits": {"facts": None, "rounds": None, "seconds": None, "memory": None},
    "Arrivals": {"updates": [], "most": 3},
    "m.query": {"text": "path(x, y)", "parameters": None, "limit": None},
    "m.plans": {"query": None, "parameters": None},
    "m.explain": {"fact": "path", "row": ("a", "b")},
    "m.history": {"fact": "path", "row": ("a", "b")},
    "m.event": {"change": ..., "fact": "path", "row": ("a", "b")},
    "m.verify": {"engine": "reference"},
    "m.__getitem__": {"name": "path"},
    "m.explicit": {"name": "edge"},
    "m.unexpanded": {"name": "path"},
    "m.representative": {"constant": "a"},
    "m.equals": {"constant": "a", "relation": None},
    "m.save": {"folder": "state", "feed": None},
    "m.preview": {"insert": {}, "delete": {}, "replace": {}, "add": "", "remove": [], "program": None, "source": None},
    "m.retract": {"source": "feed-7", "on_violation": None},
    "m.change_rules": {"add": "", "remove": [], "replace": None, "on_violation": None},
    "m.transaction": {"on_violation": None},
    "m.short": {"text": "p(1)"},
    "m.sql": {"text": "select 1", "parameters": None},
    "m.update": {"insert": {}, "delete": {}, "replace": {}, "algorithm": None, "on_violation": None, "source": None},
    "m.stream": {"updates": [], "algorithm": None, "merge_waiting": 1, "on_violation": None},
    "rdf.read": {"paths": "a.nt", "base": None, "blank_nodes": "file"},
    "rdf.write": {"path": "b.nt", "triples": [], "quads": [], "prefixes": None},
    "rdf.rules": {"parts": "rdfs", "without": []},
    "rdf.translate": {"paths": "a.nt", "bound": "lower", "base": None},
}

#: Functions of the public surface whose arguments other tests have.
ELSEWHERE = {"functor", "m.sparql", "rdf.iri", "rdf.literal", "rdf.blank", "spark_session"}
ELSEWHERE |= {"m.keep", "read_table", "table_files"}


@pytest.fixture
def m(tmp_path, monkeypatch) -> upheld.Materialisation:
    monkeypatch.chdir(tmp_path)
    Path("a.nt").write_text("<http://e/a> <http://e/b> <http://e/c> .\n")
    m = upheld.materialise(PROGRAM, FACTS, engine="reference")
    m.update(source="feed-7", insert={})
    m.save("state")
    return m


def called(name: str, m: upheld.Materialisation, arguments: dict[str, object]) -> object:
    """Call a function and go through what it returns, if that is done step by step."""
    owner = {"m": m, "rdf": upheld.rdf}.get(name.partition(".")[0], upheld)
    function = getattr(owner, name.rpartition(".")[2])
    first = [
        arguments.pop(p.name) for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_POSITIONAL
    ]
    known = {"m": m, "change": m.update()}
    given = {key: known[key] if value is ... else value for key, value in arguments.items()}
    result = function(*first, **given)
    return list(result) if name in ("read_updates", "m.stream") else result


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types(name, m):
    """Whatever is passed, what escapes is an error of ours, and the right call works after it."""
    for parameter in CALLS[name]:
        for wrong in WRONG:
            if callable(wrong) and parameter in ("progress", "committed"):
                continue  # a function of the user's
            try:
                called(name, m, {**CALLS[name], parameter: wrong})
            except UpheldError:
                continue
    called(name, m, dict(CALLS[name]))


def test_the_table_has_the_whole_surface(m):
    """A new function or parameter joins the table."""
    # `materialize` is `materialise` in the other spelling.
    names = [n for n in upheld.__all__ if n != "materialize" and inspect.isfunction(getattr(upheld, n))]
    functions = {n: getattr(upheld, n) for n in names}
    functions |= {n: getattr(upheld, n) for n in ("Limits", "Arrivals", "Project")}
    functions |= {f"rdf.{n}": f for n in upheld.rdf.__all__ if inspect.isfunction(f := getattr(upheld.rdf, n))}
    methods = {n: f for n, f in inspect.getmembers(m, inspect.ismethod) if not n.startswith("_")}
    functions |= {f"m.{n}": f for n, f in methods.items()} | {"m.__getitem__": m.__getitem__}
    found = {name: set(inspect.signature(f).parameters) for name, f in functions.items() if name not in ELSEWHERE}
    found = {name: parameters for name, parameters in found.items() if parameters}
    found["load"] = found["load"] - {"options"} | HOW.keys() | {"algorithm"}
    assert found == {name: set(arguments) for name, arguments in CALLS.items()}


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda m: upheld.materialise(None), "or an `upheld.Program`, got `None`"),
        (lambda m: upheld.materialise(b"p(1)."), "got the `bytes` `b'p(1).'`"),
        (lambda m: upheld.materialise(PROGRAM, limits={"facts": 3}), "must be an `upheld.Limits`, or None"),
        (lambda m: upheld.materialise(PROGRAM, progress=5), "must be a function, True, False or None"),
        (lambda m: m.update([("Al", "Gus")]), "`insert` of `Materialisation.update` must be a dictionary"),
        (lambda m: m.query(5), "`text` of `Materialisation.query` must be a string, got the `int` `5`"),
        (lambda m: upheld.spark_session(memory=5), "`memory` of `spark_session` must be a size, such as `2g`"),
        (lambda m: upheld.spark_session(cores="a"), "`cores` of `spark_session` must be a whole number of at least 1"),
        (lambda m: m.stream(5), "`updates` of `Materialisation.stream` must be an iterable of updates"),
        (lambda m: list(m.stream([{"insert": 5}])), "`insert` of an update must be a dictionary"),
        (lambda m: m.change_rules(replace=5), "`replace` of `Materialisation.change_rules` must be a string, a path"),
        (lambda m: upheld.Arrivals(5), "`updates` of `Arrivals` must be an iterable"),
        (lambda m: upheld.load(PROGRAM, 5), "`facts` of `load` must be a path, or None"),
    ],
)
def test_messages(m, call, said):
    """The message names the parameter, what it was given and what it takes."""
    with pytest.raises(UsageError) as caught:
        call(m)
    assert caught.value.slugs == ("bad-argument",)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "call, slug",
    [
        (lambda m: upheld.materialise(PROGRAM, engine=None), "unknown-engine"),
        (lambda m: upheld.materialise(PROGRAM, equality=[]), "unknown-equality"),
        (lambda m: upheld.materialise(PROGRAM, decompose=pandas.Series([1, 2])), "unknown-decomposition"),
        (lambda m: upheld.materialise(PROGRAM, stratification={}), "unknown-stratification"),
        (lambda m: upheld.parse(PROGRAM, dialect=pandas.Series([1, 2])), "unknown-dialect"),
        (lambda m: m.update(algorithm=5), "unknown-algorithm"),
        (lambda m: m.update(algorithm=""), "unknown-algorithm"),
        (lambda m: m.verify(engine=""), "unknown-engine"),
        (lambda m: m.stream([], merge_waiting="a"), "bad-merge-waiting"),
    ],
)
def test_what_is_not_a_name(m, call, slug):
    """A value that is no name of what can be chosen is unknown, as a wrong name is."""
    with pytest.raises(UsageError) as caught:
        call(m)
    assert caught.value.slugs == (slug,)


def test_wrong_options_are_refused_before_facts_are_read(m):
    """Options are looked at first: facts may take long to read."""

    class Unread(dict):
        def items(self):
            raise AssertionError("the facts were read")

    for option in ("engine", "algorithm", "decompose", "equality", "stratification", "progress", "on_violation"):
        with pytest.raises(UsageError, match=option):
            upheld.materialise(PROGRAM, Unread(edge=[]), **{option: 5})


def test_dictionaries_among_tuples(m):
    """Rows go all by name or all by position, for relations of one column as well."""
    for program in (PROGRAM, ".decl edge(x:symbol)"):
        with pytest.raises(FactsError, match="row 2 of `edge` is a `dict`"):
            upheld.materialise(program, {"edge": [("a",), {"x": "b"}]}, engine="reference")


@pytest.mark.parametrize("declared", [True, False])
def test_two_columns_of_one_name(declared, m):
    frame = pandas.DataFrame([(1, 2)], columns=["x", "x"])
    table = pyarrow.table([[1], [2]], names=["x", "x"])
    for data in (frame, table):
        with pytest.raises(FactsError) as caught:
            upheld.materialise(".decl e(x:number, y:number)" if declared else "q(x, y) :- e(x, y).", {"e": data})
        assert caught.value.slugs == ("duplicate-column",)


def test_arrow_texts_that_are_not_utf8(m):
    """Arrow does not look at the bytes of its texts; we do."""
    texts = pyarrow.array([b"a", b"\xff\xfe"]).view(pyarrow.string())
    with pytest.raises(FactsError) as caught:
        upheld.materialise("q(x) :- e(x).", {"e": pyarrow.table({"x": texts})})
    assert caught.value.slugs == ("not-utf8",)
    updates = pyarrow.table({"operation": ["+", "+"], "c0": texts, "c1": ["a", "b"]})
    with pytest.raises(FactsError) as caught:
        list(upheld.read_updates({"edge": updates}, m))
    assert caught.value.slugs == ("not-utf8",)
