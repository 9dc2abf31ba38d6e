"""The work of a small change does not grow with the facts or the rules that it does not concern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from upheld.algebra.words import derive, derive_bag, settle, supports
from upheld.engines.memory import kernels
from upheld.engines.memory.engine import MemoryEngine
from upheld.engines.memory.joins import Join
from upheld.engines.memory.plans import Planner
from upheld.language.compiling import compile_program
from upheld.language.core import Core
from upheld.language.reading import read_text
from upheld.language.stratification import stratify
from upheld.maintain.seminaive import seminaive

# -- rows -------------------------------------------------------------------------------------------------------------

#: How many rows a call of a kernel looks at, by its arguments and what it returned.
VISITED = {
    "rehash": lambda a, _: a[1],
    "find": lambda a, _: a[1],
    "find_or_add": lambda a, out: out[0] - a[1],
    "count_rows": lambda a, _: a[1],
    "index_rows": lambda a, _: a[2] - a[1],
    "block_rows": lambda a, _: a[2] - a[1],
    "rehash_columns": lambda a, _: len(a[2]),
    "rehash_blocks": lambda a, _: a[1],
    "repack_blocks": lambda a, _: a[0][: a[1], 1].sum(),
    "block_lengths": lambda a, _: len(a[0]),
    "cross": lambda a, _: len(a[3]),
    "gather": lambda a, _: a[6],
    "select": lambda a, _: len(a[0]),
    "scan": lambda a, _: a[1],
    "set_bits": lambda a, _: len(a[1]),
    "clear_bits": lambda a, _: len(a[1]),
    "pair_limits": lambda a, _: len(a[1]),
    "set_pairs": lambda a, _: len(a[1]),
    "unseen_pairs": lambda a, _: len(a[0]),
    "make_rows": lambda a, _: a[1],
    "make_joined_rows": lambda a, _: a[4],
}
PROBES = ("probe", "probe_blocks")
#: Called by other kernels only.
PARTS = {"shift_of", "mix", "place", "hash_key", "same_key", "copy_key", "hash_columns", "columns_equal"}


def chain_length(kernel, arguments) -> int:
    """Return the rows that a probe looks at, whatever it finds: the pairs it finds if all rows are in the set."""
    before = arguments[:-4]
    room = np.empty(1 << 20, np.int32)
    everything = np.ones(1 << 16, np.bool_)
    return kernel(*before, everything, np.empty((0, 2), np.int64), room, room.copy())[2] + len(arguments[0])


@contextmanager
def counting_rows() -> Iterator[Counter[str]]:
    """Count the rows that kernels look at."""
    visited: Counter[str] = Counter()

    def wrap(name, kernel):
        def counted(*arguments):
            if name in PROBES:
                visited[name] += chain_length(kernel, arguments)
            result = kernel(*arguments)
            if name in VISITED:
                visited[name] += int(VISITED[name](arguments, result))
            return result

        return counted

    with pytest.MonkeyPatch.context() as patch:
        for name in (*VISITED, *PROBES):
            patch.setattr(kernels, name, wrap(name, getattr(kernels, name)))
        yield visited


def test_every_kernel_is_counted():
    """A kernel that this file does not know would go uncounted."""
    defined = {n for n, v in vars(kernels).items() if callable(v) and getattr(v, "__module__", "") == kernels.__name__}
    assert defined == set(VISITED) | set(PROBES) | PARTS


PROGRAM = """
.decl edge(x:number, y:number)
.decl blocked(x:number)
.decl path(x:number, y:number)
.decl open(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
open(x, y) :- path(x, y), !blocked(x).
"""
LENGTH = 12  # of a chain of edges; chains do not meet


class Chains:
    """The materialisation of many disjoint chains, and the update path of an algorithm on the first of them."""

    def __init__(self, count: int):
        self.core = compile_program(read_text(PROGRAM)).core
        self.engine = MemoryEngine(self.core)
        E = self.engine.named("E")
        E |= self.engine.load("edge", [(100 * c + i, 100 * c + i + 1) for c in range(count) for i in range(LENGTH)])
        self.I = seminaive(E, stratify(self.core))
        self.size = self.I.count()
        for table in self.engine.tables.values():
            table.make_room(1000)  # growth is paid for over time, and is not what is counted here

    def insert(self, chain: int) -> int:
        """Add an edge that makes a cycle of a chain."""
        delta = settle(self.engine.load("edge", [(100 * chain + LENGTH, 100 * chain)]) - self.I)
        self.I |= delta
        return self._follow(delta) + self._follow(None, settle(self.engine.load("blocked", [(100 * chain,)]) - self.I))

    def _follow(self, delta, negated=None) -> int:
        found = 0
        while delta or negated:
            N = derive(self.core.rules, self.I, self.I, via=delta, via_not=negated)
            negated = None
            delta = settle(N - self.I)
            self.I |= delta
            found += delta.count()
        return found

    def delete(self, chain: int) -> int:
        """Overdelete what an edge derives, then look for other derivations, forwards and backwards."""
        core, I = self.core, self.I
        D = self.engine.named("D")
        delta = settle(self.engine.load("edge", [(100 * chain + 3, 100 * chain + 4)]) & I)
        while delta:
            N = derive(core.rules, I, I, via=delta)
            D |= delta
            delta = settle(N - D)
        derived = settle(derive(core.rules, I - D, I, heads=D))
        again = supports(core.rules, D, I - D, I)
        counted = derive_bag(core.rules, I, I, via=D)
        assert len(list(again)) >= derived.count()
        total = D.count() + sum(n for _, n in counted.items())
        I -= D
        return total


def test_rows_visited_do_not_grow_with_the_materialisation():
    """The same change to one part looks at as many rows when there is ten times as much of all else."""
    visited, changed = [], []
    for count in (600, 6000):
        chains = Chains(count)
        assert chains.size > 10 * 4096  # large enough that no set keeps a list of its rows, and indexes are of one kind
        chains.insert(1)  # indexes and plans are made on first use
        chains.delete(1)
        with counting_rows() as rows:
            changed.append((chains.insert(2), chains.delete(2)))
        visited.append(rows)
    assert changed[0] == changed[1]
    assert changed[0][0] > 100
    assert visited[0] == visited[1]
    assert visited[0]["scan"] == 0
    assert visited[0].total() < 100 * sum(changed[0])


# -- rules ------------------------------------------------------------------------------------------------------------

RULES = 5000


@contextmanager
def counting_rules() -> Iterator[Counter[str]]:
    """Count the joins that are run and the plans that are made."""
    counted: Counter[str] = Counter()
    run, plan = Join.run, Planner.plan

    def counting_run(self, *arguments):
        counted["joins"] += 1
        return run(self, *arguments)

    def counting_plan(self, *arguments):
        counted["plans"] += 1
        return plan(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Join, "run", counting_run)
        patch.setattr(Planner, "plan", counting_plan)
        yield counted


def by_predicate() -> Core:
    lines = [".decl r(x:number)", ".decl n(x:number)", ".decl p(x:number, y:number)"]
    for i in range(RULES):
        lines += [f".decl q{i}(x:number)", f"p(x, {i}) :- q{i}(x), r(x), !n(x)."]
    return compile_program(read_text("\n".join(lines))).core


def by_constant() -> Core:
    lines = [".decl triple(s:symbol, p:symbol, o:symbol)"]
    lines += [f'triple(x, "type", "D{i}") :- triple(x, "type", "C{i}"), triple(x, "p", _).' for i in range(RULES)]
    return compile_program(read_text("\n".join(lines))).core


def test_rules_of_other_predicates_are_not_touched():
    """Of 5,000 rules, a change of one predicate concerns the one that mentions it, forwards and backwards."""
    core = by_predicate()
    engine = MemoryEngine(core)
    I = engine.named("I")
    I |= engine.load("r", [(i,) for i in range(10)])
    I |= engine.load("q7", [(i,) for i in range(5)])
    with counting_rules() as counted:
        delta = settle(engine.load("q7", [(3,), (4,)]) & I)
        new = settle(derive(core.rules, I, I, via=delta))
        assert set(new.rows("p")) == {(3, 7), (4, 7)}
        assert counted == {"joins": 1, "plans": 1}
        assert dict(derive_bag(core.rules, I, I, via=delta).items()) == {("p", (3, 7)): 1, ("p", (4, 7)): 1}
        assert counted == {"joins": 2, "plans": 1}
        heads = engine.load("p", [(1, 7), (8, 7)])
        assert set(derive(core.rules, I, I, heads=heads).rows("p")) == {(1, 7)}
        assert counted == {"joins": 3, "plans": 2}
        assert [i.head for i in supports(core.rules, heads, I, I)] == [("p", (1, 7))]
        assert counted == {"joins": 4, "plans": 3}


def test_rules_with_other_constants_are_not_touched():
    """Of 5,000 rules over one predicate, a change concerns those with its constants, forwards and backwards."""
    core = by_constant()
    engine = MemoryEngine(core)
    rules = [rule for rule in core.rules if rule.head.predicate == "triple"]
    I = engine.named("I")
    I |= engine.load("triple", [("a", "type", f"C{i}") for i in (3, 7, 4999)] + [("a", "p", "b")])
    for predicate in core.predicates.values():
        if predicate.hidden:  # what the wildcards of the rules were made into
            I |= engine.load(predicate.name, [("a",) * predicate.arity])
    with counting_rules() as counted:
        delta = settle(engine.load("triple", [("a", "type", "C7"), ("a", "type", "C6000"), ("a", "q", "C3")]))
        I |= delta
        new = settle(derive(rules, I, I, via=delta) - I)
        assert set(new.rows("triple")) == {("a", "type", "D7")}
        assert counted == {"joins": 1, "plans": 1}
        heads = engine.load("triple", [("a", "type", "D3"), ("a", "type", "D4"), ("a", "type", "E"), ("b", "p", "b")])
        assert set(derive(rules, I, I, heads=heads).rows("triple")) == {("a", "type", "D3")}
        assert counted == {"joins": 3, "plans": 3}
        assert [i.head for i in supports(rules, heads, I, I)] == [("triple", ("a", "type", "D3"))]
        assert counted == {"joins": 5, "plans": 5}
