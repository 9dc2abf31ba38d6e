"""The stratum of each row is that of the fact it stands for, however tables grow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import upheld
from upheld.algebra.sets import settle
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.engines import open_engine
from upheld.language.syntax.files import read_text

TERMS = st.sampled_from(["?x", "?y", "?z", ":a", ":b", ":c"])
ATOMS = st.tuples(TERMS, TERMS, TERMS).map(lambda terms: f"[{', '.join(terms)}]")
VALUES = st.sampled_from([f"<http://e/{name}>" for name in "abcd"])
ROWS = st.sets(st.tuples(VALUES, VALUES, VALUES), max_size=20)


@st.composite
def programs(draw) -> str:
    """Rules over triples with constants here and there; most have several strata."""
    rules = []
    for _ in range(draw(st.integers(1, 6))):
        body = draw(st.lists(ATOMS, min_size=1, max_size=2))
        terms = draw(st.tuples(TERMS, TERMS, TERMS))
        head = [term if term.startswith(":") or any(term in atom for atom in body) else ":a" for term in terms]
        rules.append(f"[{', '.join(head)}] :- {', '.join(body)}.")
    return "PREFIX : <http://e/>\n" + "\n".join(rules)


@given(text=programs(), loads=st.lists(ROWS, min_size=1, max_size=3))
def test_strata_of_rows(text, loads):
    core = compile_program(read_text(text, "dlog")).core
    strata = stratify(core)
    engine = open_engine("memory", core)
    E = engine.named("E")
    for rows in loads:
        E |= engine.load("triple", sorted(rows))
        for stratum in strata:
            found = set(settle(stratum.out(E)).rows("triple"))
            known = E.rows("triple")
            assert found == {row for row in known if strata.stratum_of(("triple", row)) == stratum.index}


def test_many_strata_over_triples():
    """A chain of classes over one relation is a stratum each, and derives what it should."""
    count = 300
    rules = "".join(f"[?x, a, :c{i + 1}] :- [?x, a, :c{i}].\n" for i in range(count))
    program = read_text("PREFIX : <http://e/>\n" + rules, "dlog")
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    m = upheld.materialise(program, {"triple": [("<http://e/x>", kind, "<http://e/c0>")]})
    assert len(m["triple"]) == count + 1
    assert len(m.update(delete={"triple": [("<http://e/x>", kind, "<http://e/c0>")]}).deleted["triple"]) == count + 1


@given(text=programs(), rows=ROWS)
def test_classes_of_rows(text, rows):
    """The classes of a set are those of its facts, and each is in the stratum of its facts."""
    core = compile_program(read_text(text, "dlog")).core
    strata, engine = stratify(core), open_engine("memory", core)
    loaded = engine.load("triple", sorted(rows))
    expected = {strata.class_of_fact(("triple", row)) for row in rows}
    assert loaded.classes(strata) >= expected
    if len(strata.classes_of("triple")) > 1:
        assert loaded.classes(strata) == expected
    for row in rows:
        place = strata.strata[strata.stratum_of(("triple", row)) - 1]
        assert strata.class_of_fact(("triple", row)) in place.classes


def test_a_change_reaches_only_strata_that_look_at_it():
    """Of a hundred classes of things, one changes."""
    count = 100
    rules = "".join(f"[?x, a, :d{i}] :- [?x, a, :c{i}].\n" for i in range(count))
    program = read_text("PREFIX : <http://e/>\n" + rules, "dlog")
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    rows = [("<http://e/x>", kind, f"<http://e/c{i}>") for i in range(count)]
    m = upheld.materialise(program, {"triple": rows})
    change = m.update(delete={"triple": rows[3:4]})
    assert len(change.deleted["triple"]) == 2
    assert change.statistics.rounds < 10
    assert m.update(insert={"triple": [("<http://e/x>", kind, "<http://e/none>")]}).statistics.rounds < 10
