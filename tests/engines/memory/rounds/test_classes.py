"""Small rounds of equality by rewriting: kernels do what the operators do, in streams that join and split classes."""

from __future__ import annotations

from unittest.mock import patch

import pytest

import upheld
from tests.helpers.streams.equality_streams import (
    EqualityCase,
    Triple,
    check_state,
    iri,
    merged,
    opened,
    random_equality_case,
    recomputed,
)
from upheld.compiler.equality.equality import SAME_AS
from upheld.engines.memory.bytecode import many_rules
from upheld.engines.memory.bytecode.records import OUTCOME, ROUNDS, TOO_LARGE
from upheld.engines.memory.rounds.classes import code, connection_kernel, connections, driver, kernel, records
from upheld.materialisation.materialisation import Materialisation

FUNCTIONAL = "[?y, owl:sameAs, ?z] :- [?x, :R, ?y], [?x, :R, ?z]."
CLOSURE = "[?x, :S, ?y] :- [?x, :T, ?y]. [?x, :S, ?z] :- [?x, :S, ?y], [?y, :T, ?z]."
#: Classes join and split beside facts that no class concerns, some of them derived in several ways.
PROGRAMS = (
    FUNCTIONAL + CLOSURE,
    CLOSURE + "[?x, owl:sameAs, ?y] :- [?x, :S, ?y], [?y, :R, ?x].",
    FUNCTIONAL + "[?x, :S, :a] :- [?x, :T, ?y]. [?x, :S, :a] :- [?y, :T, ?x]. [?x, :U, ?y] :- [?x, :S, ?y].",
)


class Rounds:
    """Counts the rounds of kernels, and the calls that left a round to the operators."""

    def __init__(self) -> None:
        self.done = self.left = 0

    def watch(self, name: str):
        function = getattr(kernel, name)

        def call(*arguments):
            function(*arguments)
            state = next(a for a in arguments if getattr(a, "shape", ()) == (records.STATE_FIELDS,))
            self.done += int(state[ROUNDS])
            self.left += state[OUTCOME] == TOO_LARGE

        return patch.object(kernel, name, call)


def by_axioms(case: EqualityCase, explicit: set[Triple]) -> set[tuple[object, ...]]:
    m = upheld.materialise(case.program, {"triple": explicit}, equality="axioms", algorithm="rematerialise")
    return m["triple"].to_set()


def seen(m: Materialisation, deleted: set[Triple], inserted: set[Triple]) -> tuple[object, ...]:
    """Make an update, and return the change, and the facts that are kept."""
    change = m.update(delete={"triple": deleted}, insert={"triple": inserted})
    return (
        change.deleted["triple"].to_set(), change.inserted["triple"].to_set(), m.unexpanded("triple").to_set(),
        m["triple"].to_set(),
    )  # fmt: skip


@pytest.mark.parametrize("room", [1 << 13, 24])
@pytest.mark.parametrize("rules", PROGRAMS)
def test_twin(rules, room):
    """Facts and changes are the same by kernels and by operators, also where rounds are too large for a kernel."""
    rounds = Rounds()
    for seed in range(4):
        case = merged(rules, seed=100 * seed, databases=8, updates=4)
        small, words, explicit = opened(case, "rewrite", "memory"), opened(case, "rewrite", "memory"), set(case.facts)
        for deleted, inserted in case.updates:
            explicit = (explicit - deleted) | inserted
            with (
                patch.object(driver, "MOST_HANDLED", room),
                rounds.watch("overdelete_rounds"),
                rounds.watch("insert_rounds"),
            ):
                by_kernels = seen(small, deleted, inserted)
            with patch.object(driver, "MOST_FACTS", -1), patch.object(connections, "MOST_MEMBERS", -1):
                assert seen(words, deleted, inserted) == by_kernels, seed
            assert by_kernels[-1] == by_axioms(case, explicit), seed
            check_state(small)
    assert rounds.done > 20 if room > 24 else rounds.left > 0 and rounds.done > 0


def test_random_programs():
    """The same for rules with constants whose class changes, and for rules with equality in bodies."""
    rounds = Rounds()
    with rounds.watch("overdelete_rounds"), rounds.watch("insert_rounds"):
        for seed in range(5000, 5060):
            case = random_equality_case(seed, updates=5)
            m, explicit = opened(case, "rewrite", "memory"), set(case.facts)
            for deleted, inserted in case.updates:
                m.update(delete={"triple": deleted}, insert={"triple": inserted})
                explicit = (explicit - deleted) | inserted
                assert m["triple"].to_set() == recomputed(case, explicit), seed
    assert rounds.done > 200


def test_many_rounds_in_few_calls():
    """A long chain goes, and comes back, in a few calls, although each fact takes a round of its own."""
    chain = {(iri(f"c{i}"), iri("T"), iri(f"c{i + 1}")) for i in range(60)}
    m = opened(EqualityCase(f"PREFIX : <http://e/> {CLOSURE}", chain, []), "rewrite", "memory")
    first = {"triple": [(iri("c0"), iri("T"), iri("c1"))]}
    with patch.object(driver.Call, "_report", autospec=True, side_effect=driver.Call._report) as calls:
        gone = m.update(delete=first)
        back = m.update(insert=first)
    assert gone.deleted["triple"].to_set() == back.inserted["triple"].to_set()
    assert len(gone.deleted["triple"]) == 1 + 60 + 1
    assert gone.statistics.rounds > 59 and back.statistics.rounds > 59
    assert calls.call_count < 6


def test_a_class_is_looked_at_in_part():
    """A class that many facts mention is found to hold together by a few of them, however late they come."""
    facts = {(iri(f"x{i}"), iri("R"), iri("a")) for i in range(5000)}
    joins = {(iri(f"x{i}"), iri("R"), iri("b")) for i in range(0, 5000, 100)}
    m = opened(EqualityCase(f"PREFIX : <http://e/> {FUNCTIONAL}", facts | joins, []), "rewrite", "memory")
    change = m.update(delete={"triple": [(iri("x1"), iri("R"), iri("a"))]})
    assert (iri("a"), SAME_AS, iri("b")) in m["triple"]
    assert change.statistics.instances.total() < 1000
    last = sorted(joins)[17]
    change = m.update(delete={"triple": joins - {last}})
    assert (iri("a"), SAME_AS, iri("b")) in m["triple"]
    assert change.statistics.instances["overdeletion"] < 1000
    m.update(delete={"triple": [last]})
    assert (iri("a"), SAME_AS, iri("b")) not in m["triple"]


@pytest.mark.parametrize("is_done", [False, True])
def test_classes_with_too_many_equalities_are_left_to_the_operators(is_done):
    """Facts and changes are the same whether the kernel finds out about classes or not."""
    function = connection_kernel.find_loose

    def give_up(*arguments):
        assert not is_done or function(*arguments)
        return False

    case = merged(PROGRAMS[0], seed=3, databases=6, updates=4)
    m, explicit = opened(case, "rewrite", "memory"), set(case.facts)
    with patch.object(connection_kernel, "find_loose", side_effect=give_up) as calls:
        for deleted, inserted in case.updates:
            m.update(delete={"triple": deleted}, insert={"triple": inserted})
            explicit = (explicit - deleted) | inserted
            assert m["triple"].to_set() == by_axioms(case, explicit)
    assert calls.call_count


def test_a_class_is_in_doubt_beside_other_facts():
    """One update deletes equalities of a class and plain facts; another one inserts both."""
    rules = f"PREFIX : <http://e/> {FUNCTIONAL} {CLOSURE}"
    facts = {(iri(s), iri(p), iri(o)) for s, p, o in ("xRa", "xRb", "aTc", "bTd", "eTf", "fTg", "gTh")}
    m = opened(EqualityCase(rules, facts, []), "rewrite", "memory")
    gone = {(iri("x"), iri("R"), iri("b")), (iri("f"), iri("T"), iri("g"))}
    for deleted, inserted in ((gone, set()), (set(), gone), ({(iri("e"), iri("T"), iri("f"))}, gone)):
        m.update(delete={"triple": deleted}, insert={"triple": inserted})
        facts = (facts - deleted) | inserted
        assert m["triple"].to_set() == by_axioms(EqualityCase(rules, facts, []), facts)
        assert (iri("a"), SAME_AS, iri("b")) in m["triple"] or deleted is gone


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (kernel, "overdelete_rounds"),
        (kernel, "insert_rounds"),
        (connection_kernel, "find_loose"),
        (many_rules, "find_derivable"),
    ],
)
@pytest.mark.parametrize("is_done", [False, True])
def test_a_failed_kernel_changes_nothing(module, name, is_done):
    """Whether it fails before its work or after it, sets are as they were, and the next update is right."""
    case = merged(PROGRAMS[0], seed=7, databases=6, updates=3)
    m, explicit = opened(case, "rewrite", "memory"), set(case.facts)
    function = getattr(module, name)

    def fail(*arguments):
        if is_done:
            function(*arguments)
        raise MemoryError

    for deleted, inserted in case.updates:
        before = m["triple"].to_set(), m.unexpanded("triple").to_set()
        with patch.object(module, name, fail), pytest.raises(MemoryError):
            m.update(delete={"triple": deleted}, insert={"triple": inserted})
        assert (m["triple"].to_set(), m.unexpanded("triple").to_set()) == before
        assert not m._engine.context.bits.nobodys()
        check_state(m)
        m.update(delete={"triple": deleted}, insert={"triple": inserted})
        explicit = (explicit - deleted) | inserted
        assert m["triple"].to_set() == by_axioms(case, explicit)


def test_rules_that_are_many_are_left_to_the_operators():
    """As many plans as a program of thousands of rules has are not tried one after the other on each fact."""
    case = EqualityCase(f"PREFIX : <http://e/> {CLOSURE}", {(iri("a"), iri("T"), iri("b"))}, [])
    with patch.object(code, "MOST_STARTS", 2), patch.object(driver, "Call", side_effect=AssertionError):
        m = opened(case, "rewrite", "memory")
        m.update(insert={"triple": [(iri("b"), iri("T"), iri("c"))]})
    assert (iri("a"), iri("S"), iri("c")) in m["triple"]
