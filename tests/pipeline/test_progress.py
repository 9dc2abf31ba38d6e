"""Progress of pipelines: to the function that watches stages, and to Spark's UI."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

import upheld
from tests.engines.spark.tasks.test_barrier_job import described
from tests.helpers.sizes import exhaustive
from tests.pipeline.streaming.test_stream import PATIENCE, put
from upheld.algebra.meter import Meter
from upheld.engines.spark.tasks import job_progress

pytestmark = pytest.mark.xdist_group("spark")

RULES = """
.decl edge, path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
PROGRESS = r"stratum \d+ of \d+, round \d+, [\d,]+ facts?(, deriving `\w+`)?"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Progress is reported whenever there is some."""
    monkeypatch.setattr(Meter, "_TELL_EVERY", 0.0)
    monkeypatch.setattr(job_progress, "EVERY", 0.0)


def shown(spark, prefix: str) -> list[str]:
    """Return what Spark's UI has shown of progress, once there is some."""
    end = time.monotonic() + 60
    while not (found := [text for text, _ in described(spark, prefix) if "stratum" in text]):
        assert time.monotonic() < end, "nothing is shown"
        time.sleep(0.05)
    return found


def edges(path: str, count: int) -> str:
    Path(path).write_text("x,y\n" + "".join(f"{i},{i + 1}\n" for i in range(count)))
    return path


@pytest.mark.parametrize("mode", ["driver", "distributed"])
def test_a_run_reports_progress(spark, mode):
    """While rules are applied, the stage at work says how far they have come; its result is as without that."""
    name = f"progress_{mode}.dl"
    Path(name).write_text(RULES)
    told: list[tuple[str, str, bool]] = []
    pipeline = upheld.Pipeline(Path(name), {"edge": edges("e.csv", 60)}, mode=mode)
    run = pipeline.run(spark, progress=lambda stage: told.append((stage.name, stage.result, bool(stage.seconds))))
    assert run["path"].count() == 60 * 61 // 2
    reported = [result for stage, result, has_ended in told if stage == "materialise" and not has_ended]
    assert reported[0] == "" and len(reported) > 2
    assert all(re.fullmatch(PROGRESS, text) for text in reported[1:]), reported
    assert shown(spark, f"Upheld: {name}")
    (ended,) = [result for stage, result, has_ended in told if stage == "materialise" and has_ended]
    assert ended.startswith("1,890 facts, in ")


@pytest.mark.parametrize("mode", ["driver", pytest.param("distributed", marks=exhaustive)])
def test_a_stream_reports_progress(spark, mode):
    """Each update reports how far the next version has come, also where the stream goes on from a state."""
    told: list[tuple[str, str, bool]] = []
    for version, last in ((2, 200), (3, 300)):
        lines = "".join(f"+edge({i}, {i + 1}).\n" for i in range(last - 100, last))
        put(Path("updates"), f"{version}.updates", f"{lines}commit.\n", version)
        told.clear()
        pipeline = upheld.Pipeline(RULES, {"edge": edges("e.csv", 100)}, stream="updates", state="state", mode=mode)
        running = pipeline.stream(spark, progress=lambda s: told.append((s.name, s.result, bool(s.seconds))))
        assert running.wait(PATIENCE)
        assert len(running.materialisation["path"]) == last * (last + 1) // 2
        running.materialisation.close()
        reported = [result for stage, result, has_ended in told if stage == f"version {version}" and not has_ended]
        assert reported and all(re.fullmatch(PROGRESS, text) for text in reported), told


@pytest.mark.parametrize("mode", ["driver", "distributed"])
def test_a_function_that_fails(spark, mode):
    """It ends the run with its error."""

    def fail(stage):
        if stage.name == "materialise" and "round" in stage.result:
            raise RuntimeError("enough")

    Path("slow.dl").write_text(RULES)
    with pytest.raises(RuntimeError, match="enough"):
        upheld.Pipeline(Path("slow.dl"), {"edge": edges("e.csv", 60)}, mode=mode).run(spark, progress=fail)
