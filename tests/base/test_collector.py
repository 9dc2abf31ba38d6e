"""The pause of the garbage collector ends with the block, and leaves a collector alone that someone else stopped."""

from __future__ import annotations

import gc

import pytest

from upheld.base.errors import ProgramError
from upheld.base.interruptions import collector_paused
from upheld.materialisation.build import parse


def test_the_collector_rests_within_the_block_and_nested_blocks() -> None:
    assert gc.isenabled()
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_program_that_is_refused_leaves_the_collector_running() -> None:
    with pytest.raises(ProgramError):
        parse("p(x) :- ")
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
