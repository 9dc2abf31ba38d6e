"""Sets as bits: what expressions mean, and that every bit taken is given back, clear in all rows."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.sizes import examples
from upheld.algebra.meter import Meter
from upheld.algebra.sets import derive, settle
from upheld.base.errors import EvaluationError, FactsError, LimitReached
from upheld.base.limits import Limits
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.engines.memory.engine import MemoryEngine
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.sets import bits
from upheld.engines.memory.sets.truth_tables import NOTHING, TruthTables
from upheld.engines.memory.storage.arrays import BITS
from upheld.engines.reference.engine import ReferenceEngine
from upheld.language.syntax.files import read_text
from upheld.maintain.seminaive import seminaive
from upheld.materialisation.build import materialise

PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def setting(program: str = PATHS, limits: Limits | None = None):
    core = compile_program(read_text(program)).core
    return MemoryEngine(core, Meter(limits)), core


def free_bits(engine: MemoryEngine) -> int:
    gc.collect()
    return engine.context.bits.free.bit_count()


def assert_dead_sets_left_nothing(engine: MemoryEngine) -> None:
    """A bit that is free is set in no row."""
    gc.collect()
    mask = engine.context.bits.free
    for table in engine.tables.values():
        assert not np.any(table.flags[: table.n] & np.uint16(mask)), table.name


# -- truth tables -----------------------------------------------------------------------------------------------------


def spellings():
    return st.recursive(
        st.integers(0, BITS - 1), lambda part: st.tuples(st.sampled_from("|&-~"), part, part), max_leaves=6
    )


@given(spellings(), st.lists(st.integers(0, 2**BITS - 1), min_size=1, max_size=20))
def test_truth_tables(spelling, flags):
    """An expression holds for flags exactly when it holds for the bits in them; `~` is the complement of its left."""

    def holds(part, f: int) -> bool:
        if isinstance(part, int):
            return bool(f >> part & 1)
        operator, left, right = part
        if operator == "~":
            return not holds(left, f)
        a, b = holds(left, f), holds(right, f)
        return a or b if operator == "|" else a and b if operator == "&" else a and not b

    truth = TruthTables()[spelling]
    assert len(truth) == len(NOTHING) == 2**BITS
    assert [bool(truth[f]) for f in flags] == [holds(spelling, f) for f in flags]


# -- bits -------------------------------------------------------------------------------------------------------------


def test_bits_after_many_rounds():
    """A thousand rounds take no more bits than one, and leave no more truth tables behind than ten."""
    tables = {}
    for length in (10, 1000):
        engine, core = setting(PATHS.replace("path(x, y) :- edge(x, y)", "path(x, y) :- edge(x, y), x = 0"))
        before = free_bits(engine)
        E = engine.named("E")
        E |= engine.load("edge", [(i, i + 1) for i in range(length)])
        I = seminaive(engine, E, stratify(core))
        assert I.count() == 2 * length
        assert free_bits(engine) == before - 2
        assert_dead_sets_left_nothing(engine)
        tables[length] = len(engine.context.truths._tables)
        del E, I
        assert free_bits(engine) == before == BITS
        assert_dead_sets_left_nothing(engine)
    assert tables[1000] == tables[10]


def test_bits_after_many_updates():
    """Updates and queries, whatever they do, leave two sets behind: the explicit facts and the materialisation."""
    m = materialise(PATHS, {"edge": [(0, 1), (1, 2)]}, engine="memory")
    before = free_bits(m._engine)
    assert before == BITS - 2
    for i in range(2, 60):
        m.update(insert={"edge": [(i, i + 1)]}, delete={"edge": [(i - 2, i - 1)]})
        assert len(m.query("path(x, y), edge(y, z)")) == 1
    assert m["edge"].to_set() == {(58, 59), (59, 60)}
    assert free_bits(m._engine) == before
    assert_dead_sets_left_nothing(m._engine)


FAILING = (
    PATHS
    + """
.decl divided(q:number)
divided(z) :- path(x, y), z = 100 / x.
.decl up(x:number)
up(x + 1) :- up(x).
"""
)


def test_bits_after_failures():
    """Updates and queries that fail leave everything as it was, though their errors are kept."""
    m = materialise(FAILING, {"edge": [(1, 2), (2, 3)]}, engine="memory", limits=Limits(facts=120))
    facts, explicit = m.facts(), {name: m.explicit(name) for name in m.relations}
    before = free_bits(m._engine)
    errors = []
    for failing, error in (
        (lambda: m.update(insert={"edge": [(0, 1)]}), EvaluationError),
        (lambda: m.update(insert={"up": [(0,)]}, delete={"edge": [(1, 2)]}), LimitReached),
        (lambda: m.update(delete={"edge": [(1, 2)]}, insert={"nothing": [(1,)]}), FactsError),
        (lambda: m.update(delete={"edge": [(1, 2)]}, insert={"edge": [("x",)]}), FactsError),
        (lambda: m.query("edge(x, y), z = x / (y - 2)"), EvaluationError),
    ):
        for _ in range(12):
            with pytest.raises(error) as caught:
                failing()
            errors.append(caught)
        assert m.facts() == facts
        assert {name: m.explicit(name) for name in m.relations} == explicit
        assert free_bits(m._engine) == before
        assert_dead_sets_left_nothing(m._engine)
    change = m.update(insert={"edge": [(3, 4)]})
    assert change.inserted["path"].to_set() == {(1, 4), (2, 4), (3, 4)}
    assert free_bits(m._engine) == before


MANY_SETS = 40


class Both:
    """A set of the memory engine beside the same set of the reference engine."""

    def __init__(self, memory, reference):
        self.memory, self.reference = memory, reference

    def __or__(self, other):
        return Both(self.memory | other.memory, self.reference | other.reference)

    def __and__(self, other):
        return Both(self.memory & other.memory, self.reference & other.reference)

    def __sub__(self, other):
        return Both(self.memory - other.memory, self.reference - other.reference)

    def __ior__(self, other):
        self.memory |= other.memory
        self.reference |= other.reference
        return self

    def __isub__(self, other):
        self.memory -= other.memory
        self.reference -= other.reference
        return self

    def settled(self):
        return Both(settle(self.memory), settle(self.reference))

    def derived(self, rules, **others):
        """The heads of the instances of rules with positive atoms in this set."""
        mine, theirs = ({name: getattr(facts, side) for name, facts in others.items()} for side in vars(self))
        return Both(
            settle(derive(rules, self.memory, self.memory, **mine)),
            settle(derive(rules, self.reference, self.reference, **theirs)),
        )

    def assert_equal(self):
        for name in ("edge", "path"):
            assert set(self.memory.rows(name)) == set(self.reference.rows(name))
        assert self.memory.count() == self.reference.count()


@pytest.mark.parametrize("seed", range(6))
def test_any_number_of_named_sets_may_live(seed):
    """Forty named sets, alive at once, are what the reference engine says, whatever is made of them."""
    r = random.Random(seed)
    engine, core = setting()
    oracle = ReferenceEngine()
    edges = [(x, y) for x in range(6) for y in range(6)]
    sets = [Both(engine.named(f"S{i}"), oracle.named(f"S{i}")) for i in range(MANY_SETS)]
    for one in sets:
        rows = r.sample(edges, r.randrange(8))
        one |= Both(engine.load("edge", rows), oracle.load("edge", rows))

    def expression(width):
        made = r.choice(sets)
        for _ in range(width - 1):
            operator, other = r.choice("|||&-"), r.choice(sets)
            made = made | other if operator == "|" else made & other if operator == "&" else made - other
        return made

    for _ in range(40):
        one = r.choice(sets)
        match r.randrange(7):
            case 0:
                one |= expression(r.randrange(1, 25))
            case 1:
                one -= expression(r.randrange(1, 25))
            case 2:
                one |= expression(3).derived(core.rules)
            case 3:
                expression(9).derived(core.rules, **{r.choice(["via", "heads"]): expression(9)}).assert_equal()
            case 4:
                before = expression(20)  # means what it meant when it was written
                one |= expression(2)
                before.assert_equal()
            case 5:
                made = expression(MANY_SETS).settled()
                made.assert_equal()
                one |= made
            case _:
                one.assert_equal()
    for one in sets:
        one.assert_equal()
    one = made = before = None
    sets.clear()
    assert free_bits(engine) == BITS
    assert_dead_sets_left_nothing(engine)


def test_a_failed_transaction_puts_back_sets_that_lent_their_bits():
    """Sets that had no bit when they changed, or when the change is undone, are as they were before."""
    engine, _ = setting()
    sets = [engine.named(f"S{i}") for i in range(MANY_SETS)]
    for i, one in enumerate(sets):
        one |= engine.load("edge", [(i, j) for j in range(i % 5)])
    before = [set(one.rows("edge")) for one in sets]

    def fail():
        with engine.transaction():
            for i, one in enumerate(sets):
                one |= engine.load("edge", [(i, 100 + i)])
                one -= engine.load("edge", [(i, 0)])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [set(one.rows("edge")) for one in sets] == before


def test_compaction_moves_sets_that_lent_their_bits():
    """Tables that are compacted have the rows of every set that somebody holds, with a bit or without."""
    engine, _ = setting()
    sets = [engine.named(f"S{i}") for i in range(MANY_SETS)]
    engine.load("edge", [(-1, i) for i in range(500)])
    for i, one in enumerate(sets):
        one |= engine.load("edge", [(i, j) for j in range(i % 5)])
    kept = sets[0]
    kept |= sets[39] | sets[38]
    assert engine.compact([kept]).rows > 0
    assert set(kept.rows("edge")) == {(39, j) for j in range(4)} | {(38, j) for j in range(3)}


def test_settled_sets_lend_their_bits():
    """Any number of settled sets may be kept that expressions have spoken of, and each stays what it is."""
    engine, _ = setting()
    whole = engine.named("A")
    whole |= engine.load("edge", [(i, i) for i in range(3 * BITS)])
    kept = [settle(engine.load("edge", [(i, i)])) for i in range(3 * BITS)]
    for _ in range(2):
        for i, one in enumerate(kept):
            assert set(settle(whole & one).rows("edge")) == {(i, i)}
            both = settle(one | kept[i - 1])
            assert set(settle(both - one).rows("edge")) == set(kept[i - 1].rows("edge"))
    del one, both, kept
    assert free_bits(engine) == BITS - 1


def test_a_bit_that_could_not_be_cleared_is_not_lost(monkeypatch):
    """Not even if somebody still holds the set that lent it."""
    engine, _ = setting()
    whole = engine.named("A")
    whole |= engine.load("edge", [(1, 1), (2, 2)])
    kept = settle(engine.load("edge", [(1, 1)]))
    assert set(settle(whole & kept).rows("edge")) == {(1, 1)}
    with monkeypatch.context() as patched:
        patched.setattr(bits, "clear_bit", refuse)
        with pytest.raises(MemoryError):
            kept.lend()
    engine.abandon([whole])
    assert free_bits(engine) == BITS - 1
    assert set(settle(whole & kept).rows("edge")) == {(1, 1)}
    assert set(settle(whole - kept).rows("edge")) == {(2, 2)}


def refuse(*_: object) -> None:
    raise MemoryError


# -- derivations ------------------------------------------------------------------------------------------------------


def test_a_derivation_is_settled_once():
    """A derivation goes into one settled set without one of its own; using it again is refused, never wrong."""
    engine, core = setting()
    A = engine.named("A")
    A |= engine.load("edge", [(1, 2), (2, 3)])
    derived = derive(core.rules, A, A)
    new = settle(derived - A)
    assert set(new.rows("path")) == {(1, 2), (2, 3)}
    for again in (lambda: settle(derived), lambda: settle(derived | A), lambda: bool(derived)):
        with pytest.raises(AssertionError, match="a derivation is settled once; settle it by itself to use it twice"):
            again()
    A |= new  # nothing that was written before stands in the way
    by_itself = settle(derive(core.rules, A, A))
    assert settle(by_itself - A).count() == 1  # path(1, 3)
    assert settle(by_itself & A).count() == 2


def test_a_derivation_settled_by_itself_keeps_its_facts():
    """Expressions over a derivation that has been settled mean the facts it had."""
    engine, core = setting()
    A = engine.named("A")
    A |= engine.load("edge", [(1, 2)])
    derived = derive(core.rules, A, A)
    assert bool(derived)
    A |= engine.load("edge", [(7, 8)])
    assert set((derived | A).rows("path")) == {(1, 2)}
    assert set(derived.rows("path")) == {(1, 2)}


# -- meaning ----------------------------------------------------------------------------------------------------------

SIZE = 6000  # above this, a set that holds most of a table keeps no list of its rows


@pytest.mark.parametrize("size", [12, SIZE])
@examples(25)
@given(r=st.randoms(use_true_random=False))
def test_expressions_keep_their_meaning(size, r):
    """Whatever is done to the named sets, an expression is what it was when it was written."""
    engine, _ = setting(".decl r(x:number)\n.decl s(x:number)")
    universe = [(p, (x,)) for p in "rs" for x in range(size)]
    names = "ABC"
    sets = {name: engine.named(name) for name in names}
    plain = {name: frozenset() for name in names}
    written = []

    def some():
        start, length = r.randrange(len(universe)), r.randrange(len(universe) // 2 + 1)
        facts = frozenset(universe[start : start + length])
        loaded = [engine.load(p, [row for q, row in facts if q == p]) for p in "rs"]
        return loaded[0] | loaded[1], facts

    def expression(depth: int = 2):
        if depth == 0 or (depth == 1 and r.random() < 0.5):
            name = r.choice(names)
            return sets[name], plain[name]
        (left, a), (right, b) = expression(depth - 1), expression(depth - 1)
        operator = r.choice("|&-")
        return (
            (left | right, a | b) if operator == "|" else
            (left & right, a & b) if operator == "&" else
            (left - right, a - b)
        )  # fmt: skip

    def facts_of(facts):
        return frozenset((p, row) for p in "rs" for row in facts.rows(p))

    for _ in range(12):
        name = r.choice(names)
        match r.choice(["add", "remove", "write", "write", "settle", "add expression", "remove expression", "look"]):
            case "add":
                new, facts = some()
                sets[name] |= new
                plain[name] |= facts
            case "remove":
                old, facts = some()
                sets[name] -= old
                plain[name] -= facts
            case "add expression":
                new, facts = expression()
                sets[name] |= new
                plain[name] |= facts
            case "remove expression":
                old, facts = expression()
                sets[name] -= old
                plain[name] -= facts
            case "write":
                written = [*written[-4:], expression()]
            case "settle" if written:
                built, facts = written.pop(r.randrange(len(written)))
                settled = settle(built)
                assert settled.count() == len(facts)
                assert facts_of(settled) == facts
            case "look":
                assert facts_of(sets[name]) == plain[name]
                assert sets[name].count() == len(plain[name])
        new = old = built = settled = None
    for built, facts in written:
        assert facts_of(built) == facts
    for name in names:
        assert facts_of(sets[name]) == plain[name]
    built = None
    written.clear()
    sets.clear()
    assert_dead_sets_left_nothing(engine)
    assert free_bits(engine) == BITS


def test_sets_that_shrink_are_derived_anew():
    """What left a large set is found again, though its pairs are kept as a matrix of bits besides."""
    program = """
    .decl e(x:number, y:number)
    .decl p(x:number, y:number)
    p(x, y) :- e(x, y).
    p(x, z) :- p(x, y), p(y, z).
    """
    engine, core = setting(program)
    n = 200
    E = engine.named("E")
    E |= engine.load("e", [(i, (i + 1) % n) for i in range(n)] + [(i, (i + 70) % n) for i in range(n)])
    I = seminaive(engine, E, stratify(core))
    assert I.dense(engine.tables["p"]) is not None
    recursive = [rule for rule in core.rules if len(rule.positive) == 2]
    r = np.random.default_rng(5)
    for part in (0.01, 0.5):
        kept = r.random((n, n)) >= part
        gone = np.argwhere(~kept).tolist()
        I -= engine.load("p", gone)
        assert np.array_equal(matrix(I, n), kept)
        delta = settle(derive(recursive, I, I, via=I) - I)
        assert np.array_equal(matrix(delta, n), (kept.astype(int) @ kept.astype(int) > 0) & ~kept)
        I |= delta
        I |= engine.load("p", gone)
        assert matrix(I, n).all()
        assert not settle(derive(recursive, I, I, via=I) - I)
        delta = None


def matrix(facts, n: int) -> np.ndarray:
    found = np.zeros((n, n), bool)
    rows = np.array(list(facts.rows("p")), int).reshape(-1, 2)
    found[rows[:, 0], rows[:, 1]] = True
    assert found.sum() == len(rows)
    return found


def test_the_number_of_facts_is_known_without_a_pass(monkeypatch):
    """It follows what comes and goes, also where a transaction is undone."""
    engine, _ = setting()
    E = engine.named("E")
    E |= engine.load("edge", [(i, i + 1) for i in range(6000)])
    assert E.count() == 6000
    scanned = []
    scan = flag_kernels.scan
    monkeypatch.setattr(flag_kernels, "scan", lambda *a: scanned.append(1) or scan(*a))
    with engine.transaction():
        E |= engine.load("edge", [(0, 1), (7, 7), (8, 8)])
        assert E.count() == 6002
        E -= engine.load("edge", [(0, 1), (9, 9)])
        assert E.count() == 6001 and not scanned

    def fail() -> None:
        nonlocal E
        with engine.transaction():
            E -= engine.load("edge", [(7, 7)])
            E |= engine.load("edge", [(1, 1), (2, 2)])
            assert E.count() == 6002
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert E.count() == len(E.rows("edge")) == 6001
    E |= engine.load("edge", [(3, 3)])
    assert E.count() == 6002
