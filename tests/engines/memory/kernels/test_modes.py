"""The kernels as plain Python, and compiled with checks of every index, are still their twins."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.helpers.cases import ROOT
from tests.helpers.sizes import exhaustive

HERE = ROOT / "tests" / "engines" / "memory"
KERNELS = [
    str(HERE / room / f"test_{name}.py")
    for room, names in {
        "kernels": ("rows", "pairs", "regions", "indexes"),
        "storage": ("codec", "atom_classes"),
        "files": ("reader", "writer"),
        "joins": ("meet_in_middle", "bulk_copy"),
    }.items()
    for name in names
]

#: What is of use in one mode only.
MORE = {
    "NUMBA_DISABLE_JIT": [
        str(HERE / "joins" / "source_in_plain_python.py"),
        *(str(HERE / "rounds" / f"test_{name}.py") for name in ("driver", "levels")),
    ]
}


# Plain Python meets a stray index as well, and overflow besides; checks of machine code take a minute to compile.
@pytest.mark.parametrize("mode", ["NUMBA_DISABLE_JIT", pytest.param("NUMBA_BOUNDSCHECK", marks=exhaustive)])
def test_kernels_in_other_modes(mode, request):
    """Plain Python shows what compilation hides, such as a value that does not fit; checks show a stray index."""
    # Numba does not tell machine code with checks from machine code without, so this mode has a cache of its own.
    cache = request.config.cache.mkdir(mode.lower())
    environment = os.environ | {mode: "1", "NUMBA_CACHE_DIR": str(cache)}
    options = ["-q", "--hypothesis-profile=quick", "-p", "no:cacheprovider", "-k", "not many"]
    # Random programs have variables that occur once, and the like.
    options += ["-W", "error", "-W", "ignore::upheld.base.errors.UpheldWarning"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *KERNELS, *MORE.get(mode, ())],
        env=environment, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
