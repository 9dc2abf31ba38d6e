"""Work that is put aside piece by piece adds up as if it had been divided at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.algebra.work import PHASES, Piece, WorkDone

#: Stand for rules: work is divided by their places among the plans.
RULES = ("first", "second", "third")

pieces = st.tuples(
    st.just(RULES),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), max_size=4),
    st.tuples(*[st.integers(0, 9)] * 3),
    st.integers(0, 64).map(float),
)


@given(st.lists(pieces, max_size=6), st.integers(0, 6))
def test_sums(noted: list[Piece], split: int):
    """Instances go to rules by phase, facts to phases, and all seconds to somebody, in whatever parts they come."""
    done, rest = WorkDone(), WorkDone()
    for k, piece in enumerate(noted):
        (done if k < split else rest).note(piece)
    if split % 2:
        rest.by_rule()  # summed up before they come together
    done.add(rest)
    by_rule = done.by_rule()
    for k, phase in enumerate(PHASES):
        found = {rule: work.instances for (of, rule), work in by_rule.items() if of == phase and rule is not None}
        expected = dict.fromkeys(found, 0)
        for rules, met, _, _ in noted:
            for plan, *counts in met if k < 2 else ():
                if counts[k]:
                    expected[rules[plan]] = expected.get(rules[plan], 0) + counts[k]
        assert found == expected
        of_phase = by_rule.get((phase, None))
        assert (of_phase.facts if of_phase else 0) == sum(facts[k] for _, _, facts, _ in noted)
    seconds = sum(work.seconds for work in by_rule.values())
    assert seconds == pytest.approx(sum(spent for *_, spent in noted))
    assert done.by_rule() == by_rule


def test_many_pieces_are_summed_up():
    """A long run of small updates does not put aside more and more."""
    done = WorkDone()
    for _ in range(5_000):
        one = WorkDone()
        one.note((RULES, [(1, 0, 2)], (0, 1, 0), 0.5))
        done.add(one)
        assert len(done._pieces) <= 1_024 + 1
    work = done.by_rule()["insertion", "second"]
    assert (work.instances, work.facts, work.seconds) == (10_000, 5_000, 2_500.0)
