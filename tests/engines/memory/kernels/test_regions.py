"""Regions of a tuple index: entered by several threads at once, rows are the same as entered by one.

A race shows itself seldom. So the kernels also run as plain Python here, with threads that yield to each other at
random between any two steps.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.memory.kernels import naive
from tests.engines.memory.kernels.kernel_rows import NONSENSE, SETS, slots_for, some_rows, tables, truths, tuples
from tests.helpers.sizes import examples
from upheld.base.threads import Threads
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.kernels import regions as region_kernels
from upheld.engines.memory.storage import regions
from upheld.engines.memory.storage.arrays import FLAGS, key_view

COUNTS = st.integers(1, 5)


def look() -> None:
    """Nothing to look at."""


def check_entered(table, wanted, reject, set_number, threads, kind=np.ndarray) -> None:
    """Enter rows by some threads into slots of a kind of array, and compare with the plain twin of one."""
    bit, n = 1 << set_number, len(table.rows)
    rows, flags, written = naive.find_or_add(wanted, table.rows, table.flags, reject, bit)
    array, flag_array = table.array(n + len(wanted)), table.flag_array(n + len(wanted))
    slots = np.full(slots_for(n + len(wanted)), -1, np.int32)
    hashing.rehash(key_view(array), 0, n, slots)
    slots, before = slots.view(kind), flag_array.copy()
    count, found = regions.entered(
        Threads(threads), key_view(table.array(rows=wanted)), (key_view(array), flag_array, n), slots,
        (np.array(reject), FLAGS(bit)), look,
    )  # fmt: skip
    slots = np.asarray(slots)
    assert tuples(array[:count]) == rows
    assert flag_array[:count].tolist() == flags
    assert np.array_equal(flag_array[count:], before[count:])
    assert found.tolist() == written
    assert sorted(slots[slots >= 0].tolist()) == list(range(count))
    out = np.full(count, NONSENSE, np.int32)
    hashing.find(key_view(array[:count]), count, key_view(array), slots, out)
    assert out.tolist() == list(range(count))


@given(tables(), st.data(), truths(), st.integers(0, SETS - 1), COUNTS)
def test_entered(table, data, reject, set_number, threads):
    check_entered(table, data.draw(some_rows(table.arity, table.dtype, 40)), reject, set_number, threads)


@given(tables(), COUNTS)
def test_tuple_index(table, threads):
    """Every row is in the index once and is found, and nothing else is there."""
    n, keys = len(table.rows), key_view(table.array())
    slots = regions.tuple_index(Threads(threads), keys, n, slots_for(n))
    assert sorted(slots[slots >= 0].tolist()) == list(range(n))
    out = np.full(n, NONSENSE, np.int32)
    hashing.find(keys, n, keys, slots, out)
    assert out.tolist() == list(range(n))


@given(st.integers(5, 12), COUNTS)
def test_bounds(power, threads):
    """Regions follow each other, from the first slot to the last."""
    size = 1 << power
    bounds = [region_kernels.region_bounds(size, region, threads) for region in range(threads)]
    assert bounds[0][0] == 0 and bounds[-1][1] == size
    assert all(end == begin for (_, end), (begin, _) in pairwise(bounds))
    for region, (begin, end) in enumerate(bounds):
        assert {region_kernels.region_of(at, power, threads) for at in range(begin, end)} <= {region}


#: Keys whose searches begin at the last slots of a region of a table of 32, and run on into the next one.
def crowded(threads: int) -> list[int]:
    size, keys = 32, []
    ends = {region_kernels.region_bounds(size, region, threads)[1] - 1 for region in range(threads)}
    for value in range(4000):
        if naive.place(naive.hash_values([value]), naive.shift_of(size)) in ends:
            keys.append(value)
    return keys[:11]


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_searches_that_run_on(threads):
    """Keys that do not fit their region are entered afterwards, in order; repeated ones are found again."""
    values = crowded(threads)
    wanted = np.array([[v] for v in [*values, *values[::-1]]], np.int32)
    array, flags = np.zeros((len(wanted), 1), np.int32), np.zeros(len(wanted), FLAGS)
    slots, reject = np.full(32, -1, np.int32), np.zeros(2**SETS, np.bool_)
    table = key_view(array), flags, 0
    n, found = regions.entered(Threads(threads), key_view(wanted), table, slots, (reject, FLAGS(1)), look)
    assert array[:n, 0].tolist() == values
    assert found.tolist() == list(range(len(values)))
    again = regions.tuple_index(Threads(threads), key_view(array), n, 32)
    for index in (slots, again):
        out = np.full(n, NONSENSE, np.int32)
        hashing.find(key_view(array[:n]), n, key_view(array), index, out)
        assert out.tolist() == list(range(n))


def test_one_thread_before_loading(monkeypatch):
    """Several threads take over when they would have saved the time to load their kernels, and not for little work."""
    monkeypatch.setattr(regions, "BEFORE_LOADING", 100)
    monkeypatch.setattr(regions._Alone, "keys", 0)
    two = Threads(2)
    assert [regions.pays(two, keys, 20) for keys in (19, 40, 19, 40, 19, 40, 20, 19)] == [False] * 5 + [True] * 2 + [
        False
    ]
    assert not regions.pays(Threads(1), 1000, 20)
    monkeypatch.setattr(regions._Alone, "keys", 0)
    assert regions.pays(two, 100, 20), "much at once is worth it by itself"


# -- races -------------------------------------------------------------------------------------------------------------


KERNELS = (
    "region_bounds", "region_of", "deal_keys", "enter_chosen", "write_new", "rehash_chosen", "rehash_late",
)  # fmt: skip
CALLED = ("shift_of", "mix", "place", "hash_key", "same_key", "copy_key")


def code_of(kernel: Any) -> Any:
    """Return the code that a kernel was made from."""
    for name in ("py_func", "function", "__wrapped__"):
        kernel = getattr(kernel, name, kernel)
    return kernel.__code__


@contextmanager
def yielding(seed: int, **instead: Any) -> Iterator[type[np.ndarray]]:
    """Run the kernels of regions as plain Python, with threads that yield at random at every call that they make.

    They also do before they write into an array of the kind that comes out.
    """
    random = Random(seed)

    def pause(*_: object) -> None:
        if random.random() < 0.3:
            time.sleep(random.choice([0, 0, 0.0001]))

    class Slowly(np.ndarray):
        def __setitem__(self, key: Any, value: Any) -> None:
            pause()
            super().__setitem__(key, value)

    def slowly(function: Any) -> Any:
        def run(*arguments: Any) -> Any:
            pause()
            result = function(*arguments)
            pause()
            return result

        return run

    names = {**vars(hashing), **vars(region_kernels)}
    for name in CALLED:
        function = FunctionType(code_of(getattr(hashing, name)), names)
        names[name] = slowly(function) if name in ("same_key", "copy_key") else function
    for name in KERNELS:
        names[name] = FunctionType(code_of(getattr(region_kernels, name)), names)
    names |= {"prefetch": pause, **instead}
    before = sys.getswitchinterval()
    with pytest.MonkeyPatch.context() as patch:
        sys.setswitchinterval(1e-6)
        for name in KERNELS:
            patch.setattr(region_kernels, name, np.errstate(over="ignore")(names[name]))
        try:
            yield Slowly
        finally:
            sys.setswitchinterval(before)


@examples(15)
@given(
    tables(), st.data(), truths(), st.integers(0, SETS - 1), st.sampled_from([2, 3, 5]), st.integers(0, 1000)
)  # fmt: skip
def test_entered_with_yields(table, data, reject, set_number, threads, seed):
    wanted = data.draw(some_rows(table.arity, table.dtype, 40))
    with yielding(seed) as slowly:
        check_entered(table, wanted, reject, set_number, threads, slowly)


@pytest.mark.parametrize("seed", range(6))
def test_many_keys_with_yields(seed):
    """Many keys of which half are the same, and a table that is nearly full."""
    r = np.random.default_rng(seed)
    wanted = r.integers(0, 120, (150, 2)).astype(np.int32)
    expected = list(dict.fromkeys(map(tuple, wanted.tolist())))
    array, flags = np.zeros((len(wanted), 2), np.int32), np.zeros(len(wanted), FLAGS)
    slots, reject = np.full(256, -1, np.int32), np.zeros(2**SETS, np.bool_)
    table, sets = (key_view(array), flags, 0), (reject, FLAGS(1))
    with yielding(seed) as slowly:
        n, found = regions.entered(Threads(2 + seed % 4), key_view(wanted), table, slots.view(slowly), sets, look)
        again = regions.tuple_index(Threads(2 + seed % 4), key_view(array), n, 256)
    assert tuples(array[:n]) == expected
    assert found.tolist() == list(range(n))
    for index in (slots, again):
        out = np.full(n, NONSENSE, np.int32)
        hashing.find(key_view(array[:n]), n, key_view(array), index, out)
        assert out.tolist() == list(range(n))


def test_a_race_is_noticed():
    """Threads that share a region get in each other's way, which these tests see."""
    wanted = np.repeat(np.arange(20, dtype=np.int32), 3).reshape(-1, 1)
    wrong = 0
    for seed in range(20):
        dealer = Random(seed)
        shared = {
            "region_bounds": lambda size, region, regions: (0, size),
            "region_of": lambda at, bits, regions, dealer=dealer: dealer.randrange(regions),
        }
        array, flags = np.zeros((60, 1), np.int32), np.zeros(60, FLAGS)
        slots, reject = np.full(128, -1, np.int32), np.zeros(2**SETS, np.bool_)
        table, sets = (key_view(array), flags, 0), (reject, FLAGS(1))
        with yielding(seed, **shared) as slowly:
            _, found = regions.entered(Threads(3), key_view(wanted), table, slots.view(slowly), sets, look)
        wrong += found.tolist() != list(range(20))
    assert wrong
