"""Sizes of relations before anything is derived."""

from __future__ import annotations

from collections.abc import Sequence

from tests.compiler.hypertrees.test_rewriting import read
from upheld.compiler.hypertrees.estimates import Table
from upheld.compiler.hypertrees.forecast import Forecast
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom


def forecast(text: str, **tables: Table) -> dict[str, Table]:
    """What is foreseen of each relation, and of each atom with constants in a body."""
    core = read(text)
    found = Forecast(core, lambda atoms: [tables.get(a.predicate, Table(0, (0,) * len(a.terms))) for a in atoms])
    names = {p.name: Atom(p.name, tuple(Variable(f"v{i}") for i in range(p.arity))) for p in core.predicates.values()}
    return {name: found.of(atom) for name, atom in names.items()}


EDGES = Table(1000, (100, 200))


def test_explicit_facts():
    assert forecast("p(x) :- e(x, y).", e=EDGES)["e"] == EDGES


def test_a_copy_and_a_projection():
    found = forecast("p(y, x) :- e(x, y). q(x) :- e(x, y). c(x, 3) :- e(x, 5).", e=EDGES)
    assert found["p"] == Table(1000, (200, 100))
    assert found["q"] == Table(100, (100,))
    assert found["c"] == Table(5, (5, 1))


def test_rules_and_explicit_facts_add_up():
    found = forecast("p(x, y) :- e(x, y). p(x, y) :- f(x, y).", e=EDGES, f=EDGES, p=Table(50, (50, 50)))
    assert found["p"] == Table(2050, (100, 200))


def test_a_join():
    assert forecast("p(x, z) :- e(x, y), f(y, z).", e=EDGES, f=EDGES)["p"] == Table(5000, (100, 200))


def test_recursion_counts_once():
    """A low estimate: one round on top of what other rules derive, though the recursive rule is written first."""
    found = forecast("p(x, z) :- p(x, y), e(y, z). p(x, y) :- e(x, y).", e=EDGES)
    assert found["p"] == Table(6000, (100, 200))


def test_mutual_recursion_ends():
    found = forecast("p(x, y) :- q(x, y). q(x, y) :- p(x, y). p(x, y) :- e(x, y).", e=EDGES)
    assert found["q"].rows >= 1000 and found["p"].rows >= 1000


def test_rules_without_facts_derive_nothing():
    assert forecast("p(x, z) :- e(x, y), n(y, z).", e=EDGES)["p"].rows == 0


def test_computed_values():
    """Each is taken to be another."""
    assert forecast("p(x, w) :- e(x, y), w = x + y.", e=EDGES)["p"] == Table(1000, (100, 1000))


def test_constants_tell_facts_apart():
    """Rules whose heads have another constant add nothing; those with a variable add their share."""
    core = read("t(x, 1) :- e(x, y). t(x, 2) :- f(x, y). t(x, y) :- g(x, y).")
    tables = {"e": EDGES, "f": Table(30, (30, 30)), "g": EDGES, "t": Table(0, (0, 0))}
    found = Forecast(core, lambda atoms: [tables[atom.predicate] for atom in atoms])
    asked = [Atom("t", (Variable("x"), Constant(n, "number"))) for n in (1, 2, 3)]
    assert [round(found.of(atom).rows) for atom in asked] == [100, 30, 5]


def test_long_chains_of_rules():
    """What is far below is not looked at, and nothing overflows."""
    text = "".join(f"p{i}(x, y) :- p{i + 1}(x, y). " for i in range(2000))
    assert forecast(text, p2000=EDGES)["p0"].rows == 0
    assert forecast(text, p10=EDGES)["p0"].rows == 1000


def test_atoms_are_asked_for_together():
    """In one request: tasks that have the facts answer it in one exchange."""
    core = read("p(x, z) :- e(x, y), q(y, z). q(x, y) :- f(x, y). q(x, y) :- p(x, y). r(x) :- g(x, y).")
    requests: list[list[str]] = []

    def explicit(atoms: Sequence[Atom]) -> list[Table]:
        requests.append(sorted(atom.predicate for atom in atoms))
        return [EDGES] * len(atoms)

    found, asked = Forecast(core, explicit), Atom("p", (Variable("x"), Variable("y")))
    found.expect([asked])
    assert requests == [["e", "f", "p", "q"]]
    foreseen = found.of(asked)
    assert len(requests) == 1, "nothing is left to ask"
    assert foreseen == Forecast(core, lambda atoms: [EDGES] * len(atoms)).of(asked)
