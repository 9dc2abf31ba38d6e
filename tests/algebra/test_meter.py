"""What a run counts is its own."""

from __future__ import annotations

import upheld
from upheld.base import statistics


def test_a_phase_that_an_interruption_left_behind():
    """Interrupted just before a procedure, its phase stays set; the next run does not count by it."""
    token = statistics.current_phase.set("deletion")
    try:
        m = upheld.materialise("q(x) :- p(x).", {"p": [1, 2]})
        change = m.update(delete={"p": [1]}, algorithm="rematerialise")
    finally:
        statistics.current_phase.reset(token)
    assert m.statistics.instances == {"materialisation": 2}
    assert change.statistics.instances == {"materialisation": 1}
