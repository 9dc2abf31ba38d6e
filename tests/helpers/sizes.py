"""How much of a random test runs: a part in `make test`, all of it in `make test-all`.

`make test` gives a verdict within ten minutes on two cores. It runs every kind of test, with fewer random cases of each
kind; the reliability programme (`make reliability`) and `make test-all` run the many.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

#: Whether everything runs, at full size.
ALL = os.environ.get("UPHELD_TESTS") == "all"

#: For a test, or a parameter of one, that repeats at greater cost what other tests show: it runs in `make test-all`.
exhaustive = pytest.mark.exhaustive

Size = TypeVar("Size")


def usually(size: Size, everything: Size) -> Size:
    """Return the first size in `make test`, the second one in `make test-all`."""
    return everything if ALL else size


def one_in(n: int, cases: Iterable[tuple[object, ...]]) -> list[ParameterSet]:
    """Return cases as parameters of a test: `make test` runs every n-th of them, `make test-all` all of them.

    For cases that vary two things, choose an `n` that has no common divisor with the number of inner values: then each
    value of either occurs.
    """
    return [pytest.param(*case, marks=[exhaustive] if k % n else []) for k, case in enumerate(cases)]


def examples(count: int) -> settings:
    """Settings of a Hypothesis test with `count` examples in `make test-all`, and a third of them in `make test`."""
    return settings(max_examples=usually(max(5, count // 3), count))
