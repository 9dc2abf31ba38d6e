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
from numba.core.errors import TypingError

import upheld
from tests.helpers.sizes import exhaustive, usually
from upheld.engines.memory.kernels import jit, machine_code

#: Uses two kernels, one of which calls others, and says how many were read from the cache and how many compiled.
PROGRAM = """
import numpy as np
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.kernels.jit import compile_kernels

compile_kernels()
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
    announcer = machine_code._Announcer()
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
            made(np.arange(3), np.empty(3, np.int64))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(made.signatures) == 1, "it was compiled all the same"
    made(np.arange(3), out := np.empty(3, np.int64))
    assert out.tolist() == [0, 2, 4]


def test_a_kernel_that_makes_arrays_unseen_is_refused():
    """References are counted in kernels that call `empty` or `zeros`, so any other way to make an array is refused."""
    with pytest.raises(TypingError):
        jit.kernel(_doubled)(np.arange(3))


def _twice(numbers, out):
    for i in range(len(numbers)):
        out[i] = 2 * numbers[i]


def _doubled(numbers):
    return numbers + numbers


# -- before kernels are compiled ---------------------------------------------------------------------------------------

#: A program, an update, a query and an explanation, with a word about whether the compiler was loaded.
FIRST_CONTACT = """
import sys
import upheld

m = upheld.materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2), (2, 3)]})
change = m.update(insert={"edge": [(3, 4)]}, delete={"edge": [(1, 2)]})
assert sorted(change.inserted["path"]) == [(2, 4), (3, 4)] and sorted(change.deleted["path"]) == [(1, 2), (1, 3)]
assert sorted(m.query("path(2, y)")) == [(3,), (4,)]
assert "edge(3, 4)" in str(m.explain("path(2, 4)"))
print("numba" in sys.modules)
"""


def in_a_process(program: str) -> str:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_small_program_loads_no_compiler():
    """The first contact does not wait for a compiler."""
    assert in_a_process(FIRST_CONTACT) == "False"


def test_much_work_is_compiled():
    """An array of many rows is not gone through in plain Python, nor is any once plain Python has taken long."""
    many = "import numpy as np\nm.update(insert={'edge': np.arange(140_000).reshape(-1, 2)})"
    assert in_a_process(f"{FIRST_CONTACT}\n{many}\nprint('numba' in sys.modules)").split() == ["False", "True"]
    long = "from upheld.engines.memory.kernels import jit\njit.ENOUGH = 0\nm.update(insert={'edge': [(8, 9)]})"
    assert in_a_process(f"{FIRST_CONTACT}\n{long}\nprint('numba' in sys.modules)").split() == ["False", "True"]


#: Random updates, with kernels compiled in the middle of one; facts, counts and changes are those of a fresh process.
SWITCHED = """
import sys
from random import Random
import upheld
from upheld.engines.memory.kernels import jit

calls, last = 0, int(sys.argv[1])
call = jit.Kernel.__call__

def counted(self, *args):
    global calls
    calls += not jit._state.thread.in_kernel
    if calls == last:
        jit.compile_kernels()
    return call(self, *args)

jit.Kernel.__call__ = counted
r = Random(7)
rules = ".decl e(x: number, y: number) .decl p(x: number, y: number) .decl q(x: number) .decl n(x: number, c: number) "
rules += "p(x, y) :- e(x, y), !q(y). p(x, z) :- p(x, y), e(y, z). n(x, c) :- e(x, _), c = count : { p(x, _) }."
for algorithm in ("adaptive", "dred", "counting", "bf-c"):
    m = upheld.materialise(rules, {"e": [(i, i + 1) for i in range(6)]}, algorithm=algorithm)
    for _ in range(6):
        rows = [(r.randrange(7), r.randrange(7)) for _ in range(3)]
        change = m.update(insert={"e": rows[:2], "q": [(r.randrange(7),)]}, delete={"e": rows[2:]})
        print({name: sorted(change.inserted[name]) for name in ("e", "p", "n")}, change.statistics.instances.total())
        print({name: sorted(change.deleted[name]) for name in ("e", "p", "n")})
print(calls > 1, file=sys.stderr)
"""


@pytest.mark.parametrize("last", [1, pytest.param(40, marks=exhaustive), 400])
def test_compiled_in_the_middle_of_an_update(last):
    """From one call to the next, all kernels are compiled: nothing that comes out is different."""
    run = [sys.executable, "-c", SWITCHED]
    plain, switched = (
        subprocess.run([*run, str(n)], capture_output=True, text=True, env=os.environ | {"NUMBA_DISABLE_JIT": off})
        for n, off in ((-1, "1"), (last, "0"))
    )
    assert (plain.returncode, switched.returncode) == (0, 0), plain.stderr + switched.stderr
    assert plain.stdout == switched.stdout and plain.stdout.count("\n") == 48


def test_compiled_before_a_module_is_imported():
    """A module that is imported later has compiled kernels, and functions that these can call, at once."""
    early = "from upheld.engines.memory.kernels.jit import compile_kernels\ncompile_kernels()\n"
    late = "from upheld.engines.memory.bytecode import tables\nfrom upheld.engines.memory.kernels import rows\n"
    assert in_a_process(f"{early}{late}print(type(tables.number), hasattr(rows.find_or_add, 'py_func'))").endswith(
        "_Intrinsic'> True"
    )


def test_a_signal_waits_for_a_kernel_in_plain_python():
    """As it does for machine code: the kernel is done when `KeyboardInterrupt` is raised."""
    done = []

    def half(numbers):
        signal.raise_signal(signal.SIGINT)
        done.append(numbers.sum())

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            jit.Kernel(half)(np.arange(3))
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == [3]


def _next(x: int) -> int:
    return x + 1


def test_machine_code_in_the_cache_belongs_to_all_files_of_the_engine() -> None:
    """A kernel contains the constants of other files: kernels that were cached before these changed crashed."""
    stamp = machine_code.compiled(_next)._cache._cache_file._source_stamp
    assert {"records.py", "hashing.py", "table.py"} <= {name for name, _, _ in stamp}


def test_two_processes_that_give_one_number_to_the_code_for_different_arguments(tmp_path, monkeypatch) -> None:
    """As a kernel that is called with several constants is compiled in two processes at once."""
    mine, theirs = (machine_code._CheckedFile(str(tmp_path), "kernel", ()) for _ in range(2))
    save_data = mine._save_data

    def others_first(name: str, data: object) -> None:
        monkeypatch.setattr(mine, "_save_data", save_data)
        with monkeypatch.context() as patch:
            patch.setattr(theirs, "_load_index", dict)  # they have read the index before it was written here
            theirs.save("for 9", "their code")
        save_data(name, data)

    monkeypatch.setattr(mine, "_save_data", others_first)
    mine.save("for 4", "my code")
    assert theirs._load_index() == {"for 9": "kernel.1.nbc"}  # which has the code for 4
    assert theirs.load("for 9") is None and theirs.load("for 4") is None
    theirs.save("for 9", "their code")
    mine.save("for 4", "my code")
    assert (mine.load("for 9"), mine.load("for 4")) == ("their code", "my code")


def test_machine_code_of_other_sources_is_not_loaded(tmp_path, monkeypatch) -> None:
    """As files are edited while processes run: one may read the index before and the code after the other wrote."""
    cached = machine_code._CheckedFile(str(tmp_path), "kernel", ())
    monkeypatch.setattr(machine_code, "_digest", lambda: b"edited")
    cached.save("for 4", "code of edited files")
    assert cached.load("for 4") == "code of edited files"
    monkeypatch.undo()
    assert cached.load("for 4") is None
