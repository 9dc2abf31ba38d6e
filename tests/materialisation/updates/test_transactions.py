"""Transactions: several updates are committed together or not at all, and queries in between see them."""

from __future__ import annotations

import gc
import signal
import threading
from contextlib import suppress

import pytest

from tests.engines.spark.helpers.tasks import Driven
from upheld import ConstraintViolated, UpheldError, materialise, parse, restore
from upheld.base.errors import EvaluationError

REACH = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). inverse(x, 100 / y) :- edge(x, y)."
EDGES = {"edge": [(1, 2), (2, 3)]}
GUARDED = REACH + " .constraint cyclic :- path(x, x)."
ENGINES = ["memory", "reference", Driven(2)]


def edges(*pairs):
    return {"edge": list(pairs)}


@pytest.mark.parametrize("engine", ENGINES)
def test_committed_together(engine):
    with materialise(REACH, EDGES, engine=engine) as m:
        with m.transaction() as t:
            m.update(insert=edges((3, 4), (4, 5)))
            assert (1, 5) in m["path"] and len(m["path"]) == 10
            m.update(delete=edges((4, 5), (1, 2)))
            assert m.query("path(x, 4)").to_rows() == [(2,), (3,)]
            assert m.explain("path", (2, 4)).holds and not m.explain("path", (1, 2)).holds
            assert t.is_open and t.change is None
        assert m.version == 1 and not t.is_open
        assert t.change.asserted["edge"].to_rows() == [(3, 4)]
        assert t.change.retracted["edge"].to_rows() == [(1, 2)]
        assert t.change.inserted["path"].to_rows() == [(2, 4), (3, 4)]
        assert t.change.deleted["path"].to_rows() == [(1, 2), (1, 3)]
        assert m["path"].to_rows() == [(2, 3), (2, 4), (3, 4)]
        m.verify()


@pytest.mark.parametrize("engine", ENGINES)
def test_rolled_back(engine):
    """An exception, and `rollback`, leave everything as it was before the block; relations that were read stay."""
    with materialise(REACH, EDGES, engine=engine) as m:
        before = m.facts()
        with suppress(ZeroDivisionError), m.transaction() as t:
            m.update(insert=edges((3, 1)))
            seen = m["path"]
            raise ZeroDivisionError
        assert m.facts() == before and m.version == 0 and t.change is None
        assert len(seen.to_set()) == 9
        with m.transaction() as t:
            m.update(delete=edges((1, 2)))
            t.rollback()
            assert m.facts() == before
            m.update(insert=edges((3, 4)))  # after the transaction, in its block
        assert m.version == 1 and (1, 4) in m["path"]
        m.verify()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_update_that_fails_in_a_transaction(engine):
    """It is undone by itself: the transaction goes on with the updates before it."""
    with materialise(REACH, EDGES, engine=engine) as m:
        with m.transaction() as t:
            m.update(insert=edges((3, 4)))
            with pytest.raises(EvaluationError):
                m.update(insert=edges((4, 0)), delete=edges((1, 2)))
            assert m.explicit("edge").to_rows() == [(1, 2), (2, 3), (3, 4)]
            with pytest.raises(UpheldError):
                m.update(insert={"edge": [("a", 1)]})
            m.update(insert=edges((4, 5)))
        assert t.change.inserted["edge"].to_rows() == [(3, 4), (4, 5)] and len(m["path"]) == 10
        m.verify()


@pytest.mark.parametrize("engine", ENGINES)
def test_constraints_are_checked_at_the_end(engine):
    """An update may violate a constraint that a later one satisfies; one that stays violated undoes all updates."""
    with materialise(GUARDED, EDGES, engine=engine) as m:
        with m.transaction() as t:
            assert m.update(insert=edges((3, 1))).violations["cyclic"].to_rows() == [(1,), (2,), (3,)]
            m.update(delete=edges((1, 2)))
        assert t.change.violations == {}
        before = m.facts()
        with suppress(ConstraintViolated), m.transaction() as t:
            m.update(insert=edges((5, 6)))
            m.update(insert=edges((1, 2)))
        assert m.facts() == before and m.version == 1 and t.change is None
        with m.transaction() as t:
            m.update(insert=edges((1, 2)))
            with pytest.raises(ConstraintViolated, match="the transaction violates the constraint `cyclic`"):
                t.commit()
            assert m.facts() == before and not t.is_open
        with m.transaction(on_violation="report") as t:
            m.update(insert=edges((1, 2)))
        assert len(t.change.violations["cyclic"]) == 3
        m.verify()


def test_what_cannot_be_done_in_a_transaction(tmp_path):
    m = materialise(GUARDED, EDGES)
    refused = {
        "nested-transaction": [lambda: m.transaction().__enter__()],
        "in-transaction": [
            lambda: m.change_rules(add="p(x) :- path(x, _)."),
            lambda: m.preview(add="p(x) :- path(x, _)."),
            lambda: m.save(tmp_path / "state"),
            lambda: m.compact(),
            lambda: m.close(),
            lambda: m.history("path", (1, 2)),
            lambda: m.update(algorithm="dred"),
            lambda: m.update(insert=edges((7, 8)), on_violation="report"),
            lambda: list(m.stream([{"insert": edges((7, 8))}], on_violation="refuse")),
        ],
    }
    with m.transaction():
        m.update(insert=edges((3, 4)))
        for slug, actions in refused.items():
            for action in actions:
                with pytest.raises(UpheldError, match=slug):
                    action()
        m.update(insert=edges((4, 5)), algorithm="adaptive")
        list(m.stream([{"insert": edges((5, 6))}, {"delete": edges((5, 6))}]))
    assert m.explicit("edge").to_rows() == [(1, 2), (2, 3), (3, 4), (4, 5)] and m.version == 1
    m.verify()


def test_a_transaction_that_is_over():
    m = materialise(REACH, EDGES)
    with m.transaction() as t:
        m.update(insert=edges((3, 4)))
        assert t.commit() is t.change
        for end in (t.commit, t.rollback):
            with pytest.raises(UpheldError, match="transaction-over"):
                end()
    with pytest.raises(UpheldError, match="transaction-over"):
        t.rollback()
    with m.transaction() as empty:
        pass
    assert not empty.change and m.version == 1
    for wrong in (1, "ignore"):
        with pytest.raises(UpheldError, match="bad-argument"):
            m.transaction(on_violation=wrong)


def test_other_threads_see_all_or_nothing():
    m = materialise(REACH, EDGES)
    before, seen, made = m["path"], [], []

    def read():
        seen.append(len(m["path"].to_set()))

    def write():
        made.append(m.update(insert=edges((7, 8))))

    with m.transaction():
        m.update(insert=edges((3, 4)))
        threads = [threading.Thread(target=target) for target in (read, write)]
        for thread in threads:
            thread.start()
        m.update(insert=edges((4, 5)))
        assert not made
        unread = m.snapshot()
    for thread in threads:
        thread.join()
    assert len(before.to_set()) == 3 and seen[0] in (3, 10, 11) and len(made) == 1
    assert len(unread["path"]) == 10 and m.version == 2
    m.verify()


def test_relations_of_other_threads_survive_a_rollback():
    m = materialise(REACH, EDGES)
    got = []
    with m.transaction() as t:
        m.update(insert=edges((3, 4)))
        thread = threading.Thread(target=lambda: got.append(m["path"]))
        thread.start()
        thread.join()
        t.rollback()
    assert len(got[0]) == 3 and len(got[0].to_set()) == 3


def test_an_interruption_rolls_back():
    m = materialise(REACH, EDGES)
    before = m.facts()
    with suppress(KeyboardInterrupt), m.transaction() as t:
        m.update(insert=edges((3, 4)))
        signal.raise_signal(signal.SIGINT)
    assert t.change is None and not t.is_open
    assert m.facts() == before and m.version == 0
    m.update(insert=edges((3, 4)))
    m.verify()


def test_a_block_that_is_dropped_rolls_back():
    """A transaction whose block never ends, since its generator was dropped, is undone with it."""
    m = materialise(REACH, EDGES)

    def updating():
        with m.transaction():
            m.update(insert=edges((3, 4)))
            yield

    generator = updating()
    next(generator)
    del generator
    gc.collect()
    assert m.explicit("edge").to_rows() == [(1, 2), (2, 3)]
    m.update(insert=edges((3, 4)))
    assert m.version == 1


@pytest.mark.parametrize("algorithm", ["adaptive", "bf", "rematerialise"])
def test_equal_constants(algorithm):
    """Classes of equal constants are as they were after a rollback."""
    rules = parse(
        "PREFIX : <http://e/> [?x, owl:sameAs, ?y] :- [?x, :is, ?y]. [?x, a, :C] :- [?x, :p, _].", dialect="dlog"
    )
    a, b, c, p, same = (f"<http://e/{name}>" for name in ("a", "b", "c", "p", "is"))
    m = materialise(rules, {"triple": [(a, same, b), (c, p, c)]}, equality="rewrite", algorithm=algorithm)
    before = m.facts()
    with m.transaction() as t:
        m.update(insert={"triple": [(b, same, c)]})
        assert len(m.equals(a)) == 3
        m.update(delete={"triple": [(a, same, b)]})
        assert len(m.equals(c)) == 2
        t.rollback()
    assert m.facts() == before and m.equals(a) == [a, b]
    with m.transaction() as t:
        m.update(insert={"triple": [(b, same, c)]})
        m.update(insert={"triple": [(a, p, a)]})
    assert len(t.change.inserted["triple"]) == len(m.facts() - before) and len(m.equals(a)) == 3
    m.verify()


def test_equivalences_by_classes():
    m = materialise(".decl e(x:number, y:number) eqrel", {"e": [(1, 2), (3, 4)]}, equality="rewrite")
    with m.transaction() as t:
        m.update(insert={"e": [(2, 3)]})
        m.update(delete={"e": [(1, 2)]})
        assert m.equals(2, "e") == [2, 3, 4] and m.equals(1, "e") == []
        t.rollback()
    assert m.equals(1, "e") == [1, 2]
    with m.transaction() as t:
        m.update(insert={"e": [(2, 3)]})
        m.update(delete={"e": [(1, 2)]})
    assert m.equals(2, "e") == [2, 3, 4]
    m.verify()


def test_sparql_in_a_transaction():
    rules = parse("PREFIX : <http://e/> [?y, :above, ?x] :- [?x, :below, ?y].", dialect="dlog")
    a, b, c = (f"<http://e/{name}>" for name in "abc")
    m = materialise(rules, {"triple": [(a, "<http://e/below>", b)]})
    ask = "SELECT ?x { ?x :above ?y }"
    assert len(m.sparql(ask).rows) == 1
    with m.transaction() as t:
        m.update(insert={"triple": [(b, "<http://e/below>", c)]})
        assert len(m.sparql(ask).rows) == 2
        t.rollback()
    assert len(m.sparql(ask).rows) == 1


def test_history_and_profile_have_one_update():
    m = materialise(REACH, EDGES)
    with m.transaction():
        m.update(insert=edges((3, 4)))
        m.update(insert=edges((4, 5)))
    m.update(delete=edges((3, 4)))
    events = m.history("path", (1, 4)).events
    assert [(event.update, event.appeared) for event in events] == [(1, True), (2, False)]
    assert [run.update for run in m.profile().runs] == [0, 1, 2]


def test_a_saved_transaction(tmp_path):
    m = materialise(REACH, EDGES)
    m.save(tmp_path)
    with m.transaction():
        m.update(insert=edges((3, 4)))
        m.update(delete=edges((1, 2)))
    m.save(tmp_path)
    assert restore(REACH, tmp_path).facts() == m.facts()


def test_tasks_that_are_lost_in_a_transaction():
    """The transaction is gone, and what was committed before is there again."""
    with materialise(REACH, EDGES, engine=Driven(2)) as m:
        before = m.facts()
        with m.transaction() as t:
            m.update(insert=edges((3, 4)))
            m._engine.lose("for a test")
            with pytest.raises(UpheldError):
                m.update(insert=edges((4, 5)))
            t.rollback()
        with pytest.warns(match="tasks-started-again"):
            assert m.facts() == before
        with m.transaction():
            m.update(insert=edges((3, 4)))
            m.update(insert=edges((4, 5)))
        assert len(m["path"]) == 10 and m.version == 1
        m.park()
        assert len(m["path"]) == 10
