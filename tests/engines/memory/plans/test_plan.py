"""Plans: the order of atoms, and the choice between two of them binding by binding."""

from __future__ import annotations

from random import Random

import pytest

import upheld
from tests.helpers.sizes import usually

TRIANGLES = ".decl e(x:number, y:number) .decl t(x:number, y:number, z:number) t(x, y, z) :- e(x, y), e(y, z), e(z, x)."


def graph(nodes: int, edges: int) -> list[tuple[int, int]]:
    """A digraph in which a few nodes have most edges."""
    r = Random(nodes)
    ends = [int(nodes * r.random() ** 3) for _ in range(2 * edges)]
    return sorted(set(zip(ends[::2], ends[1::2])))


def test_a_cycle_is_closed_from_the_smaller_side():
    """The last variable of a triangle comes from either of two atoms; the plan says so."""
    m = upheld.materialise(TRIANGLES, {"e": graph(200, 3000)})
    (line,) = {
        line.strip() for line in m.plans().splitlines() if " or " in line and "e(y, z)" in line.split(" or ")[0]
    } & {line.strip() for line in m.plans().splitlines() if line.strip().startswith("join e(y, z) on column 1")}
    assert "keep where e(z, x) or join e(z, x) on column 2" in line


@pytest.mark.parametrize("edges", [50, 400, usually(1000, 3000)])
def test_choosing_changes_no_answer(edges):
    """Triangles and four-cycles of a skewed graph, before and after an update, are those of the reference engine."""
    cycles = TRIANGLES + " .decl c(x:number, w:number) c(x, w) :- e(x, y), e(y, z), e(z, w), e(w, x), x != z."
    all_edges = graph(40, edges)
    ms = [upheld.materialise(cycles, {"e": all_edges}, engine=engine) for engine in ("memory", "reference")]
    assert ms[0].facts() == ms[1].facts()
    for m in ms:
        m.update(delete={"e": all_edges[::7]}, insert={"e": [(1, 1), (0, 39), (39, 0)]})
    assert ms[0].facts() == ms[1].facts()


def test_the_cheapest_order_comes_first():
    """A join starts where few bindings are expected in all, not where the first table is smallest."""
    program = """
        .decl small(d:number, u:number) .decl of(x:number, d:number) .decl from(x:number, u:number)
        .decl own(x:number, u:number)
        own(x, u) :- of(x, d), small(d, u), from(x, u).
    """
    facts = {
        "small": [(d, d % 3) for d in range(30)],
        "of": [(x, x % 30) for x in range(9000)],
        "from": [(x, x % 3) for x in range(0, 9000, 50)],
    }
    m = upheld.materialise(program, facts)
    assert len(m["own"]) == 180
    lines = [line.strip() for line in m.plans().splitlines()]
    assert lines[lines.index("from all facts") + 1] == "with every from(x, u): 180 rows"


def test_an_atom_that_few_bindings_match_comes_early():
    """`plus` has rows for a tenth of the parts alone, and for those one each, like `at`: it is asked before `at`."""
    program = """
        .decl of(o:number, e:number) .decl at(o:number, s:number) .decl plus(e:number, l:number)
        .decl node(s:number, l:number)
        node(s, l) :- of(o, e), at(o, s), plus(e, l).
    """
    facts = {
        "of": [(o, o % 500) for o in range(5000)],
        "at": [(o, o // 500) for o in range(5000)],
        "plus": [(e, 1000 + e) for e in range(0, 500, 10)],
    }
    lines = [line.strip() for line in upheld.materialise(program, facts).plans().splitlines()]
    steps = lines[lines.index("from new of(o, e)") + 1 :][:2]
    assert [step.split("(")[0] for step in steps] == ["join plus", "join at"]
