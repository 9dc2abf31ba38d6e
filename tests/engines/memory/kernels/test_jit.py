"""The kernel cache: where it lies when the package cannot be written to, who may use it at once, and what is said."""

from __future__ import annotations

import logging
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import upheld
from tests.helpers.sizes import usually
from upheld.engines.memory.kernels import jit

#: Uses two kernels, one of which calls others, and says how many were read from the cache and how many compiled.
PROGRAM = """
import numpy as np
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import hashing

flags, out = np.array([1, 0, 1], np.uint16), np.empty(3, np.int32)
assert flag_kernels.scan(flags, 3, np.array([False, True]), out) == 2
assert hashing.hash_key(np.zeros(1, np.uint32), 0) == 0
hits = misses = 0
for used in (flag_kernels.scan, hashing.hash_key):
    hits += sum(used.stats.cache_hits.values())
    misses += sum(used.stats.cache_misses.values())
print(hits, "read,", misses, "compiled", used.stats.cache_path)
"""

SAID = b"compiling kernels"


def surroundings(tmp_path: Path, **variables: str) -> dict[str, str]:
    """The variables of a process whose home is empty."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
    return kept | {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"} | variables


def run(environment: dict[str, str]) -> str:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""  # nothing is said where stderr is no terminal
    return ran.stdout


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the package in whose folders no cache can be made.

    A file stands where each cache would go: that stops even a user who may write anywhere.
    """
    site = tmp_path / "site"
    source = Path(upheld.__file__).parent
    shutil.copytree(source, site / "upheld", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [f for f in (site / "upheld").rglob("*") if f.is_dir()]:
        (folder / "__pycache__").touch()
    return site


def test_package_that_cannot_be_written_to(installed, tmp_path):
    """The cache then lies in the cache folder of the user."""
    environment = surroundings(tmp_path, PYTHONPATH=str(installed))
    first = run(environment)
    assert "compiled" in first and str(tmp_path / ".cache") in first
    assert run(environment).startswith("2 read, 0 compiled")


def test_nothing_can_be_written_to(installed, tmp_path):
    """Without any place for a cache, kernels are compiled by each process."""
    nowhere = tmp_path / "file"
    nowhere.touch()
    environment = surroundings(nowhere, PYTHONPATH=str(installed), XDG_CACHE_HOME=str(nowhere))
    assert run(environment).startswith("0 read")


def test_several_processes_at_once(tmp_path):
    """Processes that start together on an empty cache all compute what they should, and leave a cache that is whole."""
    environment = surroundings(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "shared"))
    count = usually(2, 4)
    started = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    ended = [(process.communicate(timeout=300)[1], process.returncode) for process in started]
    assert ended == [("", 0)] * count
    assert run(environment).startswith("2 read, 0 compiled")


def test_first_compilation_is_announced(tmp_path):
    """On a terminal one line says what takes so long, and only when it does."""
    environment = surroundings(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert on_terminal(environment).count(SAID) == 1
    assert SAID not in on_terminal(environment)


def on_terminal(environment: dict[str, str]) -> bytes:
    """Run the program with a terminal for its stderr, and return what is on it."""
    ours, theirs = pty.openpty()
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.DEVNULL, stderr=theirs)
    os.write(theirs, b"(end)")  # so that there is always something to read
    written = os.read(ours, 65536)
    os.close(ours)
    os.close(theirs)
    assert ran.returncode == 0, written
    return written


@pytest.mark.parametrize("shell", [None, "notebook"])
def test_compiling_is_said_where_stderr_is_not_a_terminal(monkeypatch, caplog, capsys, shell):
    """A notebook shows the line once; elsewhere it goes to the log."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    compilation = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=jit.kernel)})
    announcer = jit._Announcer()
    with caplog.at_level("INFO", "upheld"):
        announcer.on_start(compilation)
        announcer.on_start(compilation)
    shown = capsys.readouterr().err.count(SAID.decode())
    assert (shown, len(caplog.records)) == ((1, 0) if shell else (0, 1))


def test_the_log_of_numba_is_silent():
    """A program that logs everything does not see each step of each compilation."""
    assert not logging.getLogger("numba.core.ssa").isEnabledFor(logging.INFO)


def test_interrupted_while_a_kernel_is_compiled(monkeypatch):
    """A signal waits until the machine code is there: the kernel, and every other, works afterwards."""
    made = jit.kernel(_twice)
    compile = made.compile

    def interrupted(signature):
        signal.raise_signal(signal.SIGINT)
        return compile(signature)

    monkeypatch.setattr(made, "compile", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            made(np.arange(3))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(made.signatures) == 1, "it was compiled all the same"
    assert made(np.arange(3)).tolist() == [0, 2, 4]


def _twice(numbers):
    return numbers + numbers
