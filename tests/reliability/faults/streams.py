"""R14: streams that are killed anywhere and started again end as the unbroken stream does, and tell each change once.

Embedded: a stream of micro-batches on the memory engine fails at a call of its store, also while it starts again; every
call of some random streams is tried. On Spark: a pipeline process is killed by a signal when it writes one of its
manifests, and the next process goes on.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from tests.reliability.programme import Run, goal

#: Of all restarts, this many are of a pipeline on Spark in a full run.
ON_SPARK, FULL = 15, 1_015
#: Micro-batches of a random stream.
BATCHES = 4


@goal("R14", "streams that are killed and started again", sample=12, full=FULL)
def streams(run: Run) -> None:
    on_spark = ON_SPARK * run.size // FULL
    for number in range(on_spark):
        if run.over:
            break
        run.case(f"on Spark {number}", partial(killed_on_spark, run.random.randrange(2**32) + number))
    number = 0
    while not run.over:
        seed = run.seed * 1_000_000 + number
        with working_folder():
            stream = Embedded(Random(seed))
            for at in Random(seed).sample(range(1, stream.calls + 1), stream.calls):
                if run.over:
                    break
                run.case(f"stream {seed}, killed at call {at}", partial(stream.killed, at))
        number += 1
    run.figures |= {"embedded": run.made - on_spark, "on Spark": on_spark}


@contextlib.contextmanager
def working_folder() -> Iterator[Path]:
    """A block in a folder of its own, which is the current one."""
    with tempfile.TemporaryDirectory(prefix="upheld-streams-") as folder, contextlib.chdir(folder):
        yield Path(folder)


def random_updates(r: Random) -> dict[str, str]:
    """Return update files by name: text or a table, of one commit or two."""
    files = {}
    for number in range(BATCHES):
        changes = [(r.choice("++-"), r.choice("abcd"), r.choice("abcd")) for _ in range(r.randint(1, 4))]
        if r.random() < 0.5:
            facts = [f'{sign}edge("{x}", "{y}").\n' for sign, x, y in changes]
            middle = r.randint(0, len(facts))
            files[f"{number}.updates"] = "".join([*facts[:middle], "commit.\n", *facts[middle:], "commit.\n"])
        else:
            lines = [f"edge,{sign},{x},{y}\n" for sign, x, y in changes]
            files[f"{number}.csv"] = "relation,operation,x,y\n" + "".join(lines)
    return files


class Embedded:
    """A random stream in the current folder: what it comes to unbroken, and in how many calls of its store."""

    def __init__(self, r: Random):
        import upheld
        from tests.pipeline.streaming import test_stream as streams
        from upheld.materialisation.lifecycle import draft_of
        from upheld.store.versions import Store

        self.names, self.apart = [], r.random() < 0.5
        for minute, (name, text) in enumerate(random_updates(r).items()):
            streams.put(Path("updates"), name, text, minute)
            self.names.append(name)
        edges = [(r.choice("abcd"), r.choice("abcd")) for _ in range(3)]
        first = upheld.materialise(streams.REACH, {"edge": edges})
        draft_of(first, Store.open("state")).commit({"feeds": {str(Path("feed").absolute()): 0}})
        shutil.copytree("state", "before")
        whole = streams.batches()
        streams.take(whole, self.names, self.apart)
        self.calls = 10**9 - whole.store.files.left
        self.end = self.found()

    def found(self) -> tuple[object, ...]:
        """Return what the state and the feed hold."""
        import upheld
        from tests.pipeline.streaming import test_stream as streams
        from upheld.store.versions import Store

        return Store.open("state").version, upheld.restore(streams.REACH, "state").facts(), streams.feed()

    def killed(self, at: int) -> None:
        """Kill the stream at a call, and again in its second start; assert that the third ends as if unbroken."""
        from tests.pipeline.streaming import test_stream as streams

        for folder in ("state", "feed"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree("before", "state")
        for kill in (at, 1 + at // 2):
            with contextlib.suppress(streams.Killed):
                streams.take(streams.batches(kill), self.names, self.apart)
        streams.take(streams.batches(), self.names, self.apart)
        assert self.found() == self.end


def killed_on_spark(seed: int) -> None:
    """Kill a pipeline at one of its manifests; assert that the next process ends as if it had not been."""
    import upheld
    from tests.pipeline.streaming import test_stream as streams
    from upheld.store.versions import Store

    r = Random(seed)
    with working_folder():
        for minute, (name, text) in enumerate(random_updates(r).items()):
            streams.put(Path("updates"), name, text, minute)
        Path("reach.dl").write_text(streams.REACH)
        Path("e.csv").write_text("x,y\na,b\nb,c\n")
        Path("job.py").write_text(streams.KILLED)
        Path("job.toml").write_text(
            '[program]\nfile = "reach.dl"\n[[source]]\nrelation = "edge"\npath = "e.csv"\n[[sink]]\npath = "out"\n'
            '[[sink]]\nformat = "changes"\npath = "feed"\n[stream]\npath = "updates"\n'
            '[run]\nstate = "state"\nmemory = "512m"\n'
        )
        killed = subprocess.run(
            [sys.executable, "job.py", str(r.randint(1, BATCHES))], capture_output=True, timeout=300
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        done = subprocess.run([sys.executable, "job.py", "1000"], capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        m = upheld.materialise(streams.REACH, {"edge": [("a", "b"), ("b", "c")]})
        for file in sorted(Path("updates").iterdir()):
            for update in upheld.read_updates(str(file), m):
                m.update(insert=update.insert, delete=update.delete)
        assert upheld.restore(streams.REACH, "state").facts() == m.facts()
        assert Store.open("state").version == 1 + BATCHES
        told: dict[tuple[object, ...], str] = {}
        for _, sign, *row in streams.feed():
            assert told.get(tuple(row)) != sign, "a change that the feed tells twice"
            told[tuple(row)] = sign
        assert {row for row, sign in told.items() if sign == "+"} == m["path"].to_set()
        assert json.loads(Path("feed/feed.json").read_text()) == {"version": 1 + BATCHES}
