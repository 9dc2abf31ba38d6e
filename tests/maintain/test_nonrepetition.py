"""No instance twice: theorems 12, 19 and 25 of paper 1, and theorem 1 of paper 2, on the instances considered.

Also propositions 27 and 32 of paper 1, and what paper 2 says of DRed^c beside DRed and counting.

Lines of the papers belong to phases, by which the reference engine's recording is sorted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.helpers.streams.streams import Recomputed, Stream, random_stream
from upheld.algebra.instances import RuleInstance
from upheld.base.statistics import current_phase
from upheld.engines.reference.counters import PlainTrace

SEEDS = range(300_000, 300_060)

Considered = dict[str, Counter[RuleInstance]]


class Recording(list[RuleInstance]):
    """What is considered, by phase."""

    def __init__(self) -> None:
        self.by_phase: Considered = defaultdict(Counter)

    def append(self, instance: RuleInstance) -> None:
        self.by_phase[current_phase.get()][instance] += 1


@cache
def recomputed(seed: int) -> tuple[Stream, list[Recomputed | None]]:
    stream = random_stream(seed, updates=6)
    return stream, stream.recomputed()


def updates(
    algorithm: str, begin: Callable[[], None] = lambda: None
) -> Iterator[tuple[Considered, Recomputed, Recomputed]]:
    """Go through streams, and yield what each update considers, with what holds before and after it."""
    for seed in SEEDS:
        stream, states = recomputed(seed)
        if not states:
            continue
        m = stream.open("reference", algorithm)
        before = states[0]
        for u, now in zip(stream.case.updates, states[1:]):
            if now is not None:
                m._engine.matcher.recording = recording = Recording()
                begin()
                m.update(delete=u.deletions, insert=u.insertions)
                yield recording.by_phase, before, now
                before = now


def assert_once(found: Counter[RuleInstance], *states: Recomputed) -> None:
    """Each instance was considered once at most, and fires in all of these states."""
    assert all(n == 1 for n in found.values())
    for state in states:
        assert found.keys() <= state.instances.keys()


@pytest.mark.parametrize("algorithm", ["dred", "fbf(depth=0)"])
def test_theorem_19(algorithm):
    """DRed: overdeletion considers old instances, rederivation and insertion together new ones, each once."""
    seen = Counter()
    for found, before, now in updates(algorithm):
        deleted = found["overdeletion" if algorithm == "dred" else "deletion"]
        assert_once(deleted, before)  # (b): lines 46, 50
        assert_once(found["one-step rederivation"] + found["insertion"], now)  # (c): lines 42, 53, 58
        assert_once(found["one-step rederivation"], before)
        seen.update({phase: c.total() for phase, c in found.items()})
    assert len(seen) == 3 and min(seen.values()) > 100


@pytest.mark.parametrize("algorithm", ["bf", "fbf", "fbf(depth=1)", "fbf(depth=2)", "fbf(budget=5)"])
def test_theorem_25(algorithm):
    """FBF: deletion and backward chaining consider old instances, proofs and insertion together new ones, each once."""
    seen = Counter()
    for found, before, now in updates(algorithm):
        proved = found["forward"] + found["one-step rederivation"]  # lines 88, 94 and 64
        assert_once(found["deletion"], before)  # (b): lines 68, 75
        assert_once(proved + found["insertion"], now)  # (c): with lines 53, 58
        assert_once(proved, before)
        assert_once(found["backward"], before)  # (d): line 81
        assert all(i.rule in before.instances[i].recursive for i in found["backward"])
        if algorithm == "bf":
            assert not found["one-step rederivation"]  # (e)
        seen.update({phase: c.total() for phase, c in found.items() if c})
    assert {"deletion", "forward", "insertion"} <= seen.keys()
    assert ("backward" in seen) == (algorithm != "fbf(depth=1)")  # which looks at the facts themselves alone
    assert ("one-step rederivation" in seen) == (algorithm not in ("bf", "fbf"))


def test_always_aborted_is_dred():
    """Theorem 25 (f): FBF that never searches considers the instances of DRed, line by line."""
    names = {"deletion": "overdeletion"}
    for one, other in zip(updates("fbf(depth=0)"), updates("dred"), strict=True):
        forwards = {names.get(phase, phase): Counter(c) for phase, c in one[0].items() if c}
        assert forwards == {phase: Counter(c) for phase, c in other[0].items() if c}


@pytest.mark.parametrize("algorithm, deletion", [("dred-c", "overdeletion"), ("ranked", "deletion")])
def test_counters_follow_instances(algorithm, deletion):
    """What deletion considers is old, what insertion considers is new, each once, and one makes up for the other.

    The old instances without the first and with the second are the new ones: so counters that follow them are right,
    as theorem 1 of paper 2 says of DRed^c.
    """
    seen = Counter()
    for found, before, now in updates(algorithm):
        assert found.keys() <= {deletion, "insertion"}
        assert_once(found[deletion], before)
        assert_once(found["insertion"], now)
        kept = before.instances.keys() - found[deletion].keys()
        assert kept.isdisjoint(found["insertion"])
        assert kept | found["insertion"].keys() == now.instances.keys()
        seen.update({phase: c.total() for phase, c in found.items()})
    assert min(seen.values()) > 100


def test_nonrecursive_counter_follows_instances():
    """The same of B/F^c and instances of nonrecursive rules; its search is that of theorem 25."""
    for found, before, now in updates("bf-c"):
        assert_once(found["deletion"], before)
        assert_once(found["forward"] + found["insertion"], now)
        assert_once(found["forward"], before)
        assert_once(found["backward"], before)

        def plain(state):
            return {i for i, s in state.instances.items() if i.rule in s.nonrecursive}

        kept = plain(before) - found["deletion"].keys()
        assert kept | (plain(now) & found["insertion"].keys()) == plain(now)
        assert all(i.rule in before.instances[i].recursive for i in found["backward"] + found["forward"])


def test_theorem_12(monkeypatch):
    """Counting takes away the old instances that do not fire in their round any more, and adds those that do now.

    Each once, and no others. What it considers in order to find them is less strict than (b) and (c) of the theorem:
    old instances once at most, but where a fact has come and another one is yet to go, instances that need both; and
    one that two facts of its body bring to earlier rounds is listed for each.
    """
    lost: Counter[tuple[RuleInstance, int]] = Counter()
    gained: Counter[tuple[RuleInstance, int]] = Counter()
    lose, gain = PlainTrace.lose, PlainTrace.gain

    def noted_loss(trace, derivations, round):
        lost.update((i, round) for i in derivations.instances or ())
        return lose(trace, derivations, round)

    def noted_gain(trace, derivations, round):
        gained.update((i, round) for i in derivations.instances or ())
        return gain(trace, derivations, round)

    def forget():
        lost.clear()
        gained.clear()

    monkeypatch.setattr(PlainTrace, "lose", noted_loss)
    monkeypatch.setattr(PlainTrace, "gain", noted_gain)
    changed = moved = 0
    added, outside, repeated = 0, 0, 0
    for found, before, now in updates("counting", forget):
        assert found.keys() <= {"deleted", "added"}
        assert_once(found["deleted"], before)
        added += found["added"].total()
        outside += sum(n for i, n in found["added"].items() if i not in now.instances)
        repeated += sum(n - 1 for n in found["added"].values())
        old, new = rounds_of(before), rounds_of(now)
        assert lost == Counter(old.items() - new.items())
        assert gained == Counter(new.items() - old.items())
        changed += lost.total() + gained.total()
        moved += len({i for i, _ in lost} & {i for i, _ in gained})
    assert changed > 1000 and moved > 50
    assert max(outside, repeated) < 0.05 * added  # docs/explanation/counting.md has the figures


@pytest.mark.parametrize(
    "algorithm, deletion, insertion", [("counting", "deleted", "added"), ("dred-c", "overdeletion", "insertion")]
)
def test_proposition_27(algorithm, deletion, insertion):
    """In strata without recursion counting considers the instances that stop or begin to fire, and no others.

    And so does DRed^c, which paper 2 says is counting there.
    """
    seen: Counter[str] = Counter()
    for found, before, now in updates(algorithm):
        plain = {rule for s in before.strata if not s.recursive for rule in s.rules}
        old, new = ({i for i in state.instances if i.rule in plain} for state in (before, now))
        assert {i: n for i, n in found[deletion].items() if i.rule in plain} == dict.fromkeys(old - new, 1)
        assert {i: n for i, n in found[insertion].items() if i.rule in plain} == dict.fromkeys(new - old, 1)
        seen.update(deleted=len(old - new), inserted=len(new - old))
    assert min(seen.values()) > 50


@pytest.mark.parametrize("algorithm", ["dred", "bf", "fbf"])
def test_proposition_32(algorithm):
    """Where no instance stops firing, the instances that begin to fire are considered, and no others.

    The paper leaves out updates by which a fact stops being explicit and holds nevertheless: such a fact is checked, or
    put back, by old instances (see `test_papers`).
    """
    increasing = considered = 0
    for found, before, now in updates(algorithm):
        stays = (before.explicit - now.explicit) & now.facts
        if before.instances.keys() <= now.instances.keys() and not stays:
            assert sum(found.values(), Counter()) == Counter(now.instances.keys() - before.instances.keys())
            increasing += 1
            considered += sum(c.total() for c in found.values())
    assert increasing > 100 and considered > 100


def test_dred_with_counters_never_considers_more_than_dred():
    """Paper 2, section 4: neither to over-delete nor to put back and insert, instance by instance."""
    fewer = 0
    for one, other in zip(updates("dred-c"), updates("dred"), strict=True):
        counted, plain = one[0], other[0]
        assert counted["overdeletion"] <= plain["overdeletion"]
        assert counted["insertion"] <= plain["one-step rederivation"] + plain["insertion"]
        fewer += sum(c.total() for c in plain.values()) - sum(c.total() for c in counted.values())
    assert fewer > 100


def rounds_of(state: Recomputed) -> dict[RuleInstance, int]:
    """The round in which each instance fires: one after the last of the facts of its stratum that it leans on."""
    return {
        i: 1 + max((min(state.trace[fact]) for fact in i.body_in(s)), default=0) for i, s in state.instances.items()
    }
