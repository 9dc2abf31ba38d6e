"""Rules that copy rows run together, and derive what they derive one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.engines.memory.kernels import naive
from tests.engines.memory.kernels.kernel_rows import NONSENSE, numbers, tables
from tests.engines.memory.storage.test_strata import VALUES
from upheld.compiler.compile import compile_program
from upheld.engines import open_engine
from upheld.engines.memory.joins.bulk_copy import backward_copies, forward_copies
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.language.syntax.files import read_text


@given(tables(least_arity=1), st.data())
def test_copy_rows(table, data):
    sources = data.draw(st.lists(st.integers(-1, table.arity - 1), min_size=1, max_size=3))
    constants = data.draw(st.lists(st.tuples(*[st.integers(-3, 3)] * len(sources)), min_size=1, max_size=6))
    following = [data.draw(st.integers(-1, number - 1)) for number in range(len(constants))]
    chosen = data.draw(st.lists(st.integers(0, len(table.rows) - 1), max_size=9)) if table.rows else []
    first = [data.draw(st.integers(-1, len(constants) - 1)) for _ in chosen]
    room = len(chosen) * len(constants)
    origins, B = np.full(room, NONSENSE, np.int32), np.full((len(sources), room), NONSENSE, np.int64)
    count = row_kernels.copy_rows(
        table.array(), numbers(chosen, np.int32), numbers(first, np.int32), numbers(following), numbers(sources),
        np.array(constants, np.int64), origins, B,
    )  # fmt: skip
    rules = [list(chain_of(rule, following)) for rule in first]
    found = [(origins[i], tuple(B[:, i].tolist())) for i in range(count)]
    assert found == naive.copy_rows(table.rows, chosen, rules, sources, constants)


def chain_of(rule: int, following: list[int]) -> Iterator[int]:
    """Yield a rule and the ones that follow it."""
    while rule >= 0:
        yield rule
        rule = following[rule]


TERMS = st.sampled_from(["?x", "?y", "?z", ":a", ":b"])


@st.composite
def copying_programs(draw) -> str:
    """Most rules copy triples, some in circles; some have variables twice, or two atoms."""
    rules = []
    for _ in range(draw(st.integers(2, 8))):
        body = [draw(st.tuples(st.sampled_from(["?x", "?y"]), st.sampled_from([":a", ":b"]), TERMS))]
        body += draw(st.lists(st.tuples(TERMS, TERMS, TERMS), max_size=draw(st.sampled_from([0, 0, 0, 1]))))
        bound = {term for atom in body for term in atom}
        head = [term if term in bound or term[0] == ":" else ":a" for term in draw(st.tuples(TERMS, TERMS, TERMS))]
        atoms = [f"[{', '.join(terms)}]" for terms in (head, *body)]
        rules.append(f"{atoms[0]} :- {', '.join(atoms[1:])}.")
    return "PREFIX : <http://e/>\n" + "\n".join(rules)


ROWS = st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=12)


@given(copying_programs(), ROWS, ROWS, ROWS, st.sampled_from(["adaptive", "dred", "bf", "rematerialise"]))
def test_updates(text, rows, gone, new, algorithm):
    """One stratum has all rules, so that many of them run together."""
    program = read_text(text, "dlog")
    ms = [
        upheld.materialise(program, {"triple": rows}, engine=engine, algorithm=algorithm, stratification="coarsest")
        for engine in ("memory", "reference")
    ]
    for m in ms:
        m.update(delete={"triple": gone + rows[::2]}, insert={"triple": new})
    assert ms[0].facts() == ms[1].facts()
    assert ms[0].statistics.instances.keys() == ms[1].statistics.instances.keys()


def test_which_rules_run_together():
    """Those of one shape, if they are more than one; backwards only where the head tells the fact it came from."""
    text = """PREFIX : <http://e/>
        [?x, a, :B] :- [?x, a, :A]. [?x, a, :C] :- [?x, a, :A]. [?x, a, :D] :- [?x, a, :B].
        [?x, a, :A] :- [?x, :p, ?y]. [?x, a, :B] :- [?x, :q, ?y].
        [?y, :q, ?x] :- [?x, :p, ?y].
        [?x, :p, ?z] :- [?x, :p, ?y], [?y, :p, ?z].
        [?x, a, :D] :- [?x, :p, ?x]. [?x, a, :C] :- [?x, :q, ?x].
    """
    core = compile_program(read_text(text, "dlog")).core
    engine = open_engine("memory", core)
    matcher: Matcher = engine.matcher
    forward, backward = (matcher.together(core.rules, copies) for copies in (forward_copies, backward_copies))
    assert [len(copying.rules) for copying, _ in forward.by_table["triple"]] == [3, 2]
    assert [copying.most for copying, _ in forward.by_table["triple"]] == [2, 1]
    assert [len(copying.rules) for copying, _ in backward.by_table["triple"]] == [3]
    assert len(forward.others) == 4 and len(backward.others) == 6
