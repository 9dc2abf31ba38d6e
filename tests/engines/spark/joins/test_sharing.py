"""Work of values with many facts, which tasks share: however it is dealt out, what they derive is the same."""

from __future__ import annotations

from collections import Counter
from random import Random
from threading import current_thread

import numpy as np
import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven, assert_followed, follow
from tests.engines.spark.joins.test_hub import PROGRAMS
from tests.engines.spark.tasks.test_procedures import InProcesses
from tests.engines.spark.test_streams import PARTS, followed
from tests.helpers.programs.strategies import Case, Update, random_typed_case
from tests.helpers.sizes import usually
from tests.helpers.streams.streams import CONSTANTS, NAMES, Stream, random_stream
from upheld.compiler.compile import compile_program
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.compiler.strata import stratify
from upheld.engines.memory.plans.plan import HEIGHT
from upheld.engines.spark.joins import sharing
from upheld.engines.spark.joins.plans import Kind, pipeline
from upheld.engines.spark.joins.replication import views_of
from upheld.language.syntax.files import read_text

NODES = 9

#: The relations of all programs here, and how many columns they have.
COLUMNS = {"edge": 2, "path": 2, "link": 2, "near": 2, "met": 1, "two": 2, "end": 1, "p": 2, "q": 2, "r": 2, "s": 1}


def declared(rules: str) -> str:
    """Return rules with the declarations of all relations in them."""
    used = {name: n for name, n in COLUMNS.items() if f"{name}(" in rules}
    lines = [f".decl {name}({', '.join(f'c{i}:number' for i in range(n))})" for name, n in used.items()]
    return "\n".join([*lines, rules, ""])


@pytest.fixture
def shared(monkeypatch) -> Counter[str]:
    """Let tasks share whatever they can; the pairs that each of them has made."""
    for name, value in {"FEWEST": 1, "OFTEN": 1, "MOST_VALUES": 50, "LEAST_PAIRS": 1, "GAIN": 0}.items():
        monkeypatch.setattr(sharing, name, value)
    made, pairs = Counter[str](), sharing.pairs

    def counted(expansion, bindings, facts):
        for some in pairs(expansion, bindings, facts):
            made[current_thread().name] += some.shape[1]
            yield some

    monkeypatch.setattr(sharing, "pairs", counted)
    return made


def hub_case(r: Random, program: str, updates: int) -> Case:
    """A graph in which one node after the other becomes a hub and is none any more."""
    edges = {(r.randrange(NODES), r.randrange(NODES)) for _ in range(8)}
    first, steps = sorted(edges), []
    for _ in range(updates):
        hub = r.randrange(NODES)
        if r.random() < 0.5:
            gone, new = {e for e in edges if hub in e}, set[tuple[int, int]]()
        else:
            gone = set(r.sample(sorted(edges), min(2, len(edges))))
            others = r.sample(range(NODES), 4)
            new = {(hub, y) if r.random() < 0.5 else (y, hub) for y in others}
        edges = (edges - gone) | new
        steps.append(Update({"edge": sorted(gone)}, {"edge": sorted(new)}))
    return Case(declared(PROGRAMS[program]), {"edge": first}, steps)


@pytest.mark.parametrize("algorithm", NAMES)
def test_hubs_that_come_and_go(algorithm, shared):
    r = Random(algorithm)
    for program in PROGRAMS:
        stream = Stream(hub_case(r, program, usually(4, 12)), r.choice(STRATIFICATIONS), {})
        states = stream.recomputed()
        for parts in usually([r.choice(PARTS[1:])], PARTS):
            twice = r.random() < 0.3 and not algorithm.endswith("-marking")
            assert_followed(follow(stream, algorithm, parts, states, twice=twice), states)
    assert shared.total()


@pytest.mark.parametrize("algorithm", NAMES)
def test_random_streams(algorithm, shared):
    """Random programs with negation, recursion and built-ins, in which all that can be shared is."""
    r = Random(f"shared {algorithm}")
    for _ in range(usually(2, 20)):
        stream = random_stream(r.randrange(10_000), updates=usually(4, 12))
        for parts in usually([r.choice(PARTS[1:])], PARTS):
            followed(stream, algorithm, parts, r)


@pytest.mark.parametrize("algorithm", ["ranked", "dred", "counting"])
def test_built_ins_without_a_result(algorithm, shared):
    r = Random(f"typed {algorithm}")
    for _ in range(usually(2, 20)):
        case = random_typed_case(Random(r.random()), usually(4, 12))
        stream = Stream(case, r.choice(STRATIFICATIONS), r.choice(CONSTANTS))
        followed(stream, algorithm, r.choice(PARTS[1:]), r)


def test_tasks_share_a_hub(monkeypatch, shared):
    """With the constants as they are all tasks make as many pairs of a hub, and none of other values."""
    monkeypatch.undo()
    made, pairs = Counter[str](), sharing.pairs

    def counted(expansion, bindings, facts):
        made[current_thread().name] += bindings.shape[1] * facts.shape[1]
        return pairs(expansion, bindings, facts)

    monkeypatch.setattr(sharing, "pairs", counted)
    n = 400
    assert derived_from_hub("memory", n) == derived_from_hub(Driven(4), n)
    assert sorted(made.values()) == [n * n // 4] * 4


def test_processes_share_a_hub():
    """Both sides go through sockets."""
    assert derived_from_hub("memory", 400) == derived_from_hub(InProcesses(), 400)


def derived_from_hub(engine, n: int) -> object:
    """Return all facts of a graph in which n edges end at one node, and n begin there."""
    rules = "come(x, y) :- edge(x, y), x > y. go(x, y) :- edge(x, y), x < y. far(z) :- come(x, y), go(y, z), x < z.\n"
    edges = [(x, 0) for x in range(1, n + 1)] + [(0, z) for z in range(n, 2 * n)]
    edges += [(x + 1, x) for x in range(2 * n, 3 * n)]
    with upheld.materialise(rules, {"edge": edges}, engine=engine, algorithm="rematerialise") as m:
        return m.facts()


def test_each_pair_is_made_once():
    bindings, facts = np.arange(14).reshape(2, 7), np.arange(3).reshape(1, 3)
    for sides in ((bindings, facts), (facts, bindings)):
        for parts in (1, 2, 5, 9):
            made = [(int(x), int(y)) for one, other in sharing.dealt(*sides, parts) for x in one[0] for y in other[0]]
            assert sorted(made) == sorted((int(x), int(y)) for x in sides[0][0] for y in sides[1][0])


def test_the_highest_rank_of_a_pair(monkeypatch):
    expansion = expansions("p(x, z) :- p(x, y), q(y, z). q(x, y) :- p(x, y).", ranked=True)[0]
    assert expansion is not None and expansion.variable == "y"
    assert expansion.rest.start == ("x", "y", HEIGHT, "z") and expansion.fresh == ("z", HEIGHT)
    bindings, facts = np.array([[1, 2], [0, 0], [5, 7]]), np.array([[3, 4], [6, 1]])
    for chunk in (1, 2, 100):
        monkeypatch.setattr(sharing, "CHUNK", chunk)
        made = np.concatenate(list(sharing.pairs(expansion, bindings, facts)), axis=1)
        assert made.T.tolist() == [[1, 0, 6, 3], [1, 0, 5, 4], [2, 0, 7, 3], [2, 0, 7, 4]]
    assert not list(sharing.pairs(expansion, bindings, facts[:, :0]))


def expansions(program: str, *, ranked: bool = False) -> list[sharing.Expansion | None]:
    """Return how the legs of the first rule may be shared that begin with new facts of its first atom."""
    core = compile_program(read_text(declared(program), "dl")).core
    views = views_of(core, {"edge"})
    rule = core.rules[0]
    ranks = stratify(core).strata[-1] if ranked else None
    legs = pipeline(rule, Kind("via", 0, ranked_in=ranks), views, HEIGHT).legs
    return [sharing.expansion_of(leg, views) for leg in legs]


DERIVED = " p(x, y) :- edge(x, y). q(x, y) :- edge(y, x)."


@pytest.mark.parametrize(
    ("rule", "is_shared"),
    [
        ("r(x, z) :- p(x, y), q(y, z).", True),
        ("r(x, z) :- p(x, y), q(y, z), x < z.", True),
        ("r(x, z) :- p(x, y), q(y, z), !edge(x, z).", True),
        ("r(x, w) :- p(x, y), q(y, z), edge(z, w).", True),
        ("s(x) :- p(x, y), q(y, 3).", False),  # each binding has one fact
        ("s(x) :- p(x, y), q(y, x).", False),
        ("r(x, y) :- p(x, y), edge(y, z).", False),  # all tasks have the edges
        ("r(x, z) :- p(x, y), q(y, z), edge(x, z).", False),  # an atom and an equation that tie bindings to facts
        ("r(x, z) :- p(x, y), q(y, z), z = x + 1.", False),
        ("r(x, z) :- p(x, y), q(y, z), p(y, w), x < w.", False),  # two atoms at the owner
    ],
)  # fmt: skip
def test_which_legs_are_shared(rule, is_shared):
    assert any(one is not None for one in expansions(rule + DERIVED)) == is_shared


def test_when_it_is_worth_it():
    assert sharing.is_worth_it(1000, 1000, 4)
    assert not sharing.is_worth_it(100, 100, 4), "few pairs"
    assert not sharing.is_worth_it(4, 1_000_000, 4) and not sharing.is_worth_it(1_000_000, 4, 4), "as many travel"


def test_frequent_values():
    values = np.random.default_rng(0).permutation(np.concatenate([np.arange(50_000), np.full(5_000, 7)]))
    assert sharing.frequent(values) == [7]
    assert sharing.frequent(values[:0]) == []
