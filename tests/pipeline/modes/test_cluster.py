"""Distributed mode with executors in other processes, which share one folder with the driver and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.helpers.cases import ROOT

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What one run on a cluster tells; starting the cluster takes longer than all it does."""
    folder = tmp_path_factory.mktemp("cluster")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    command = [sys.executable, "-m", "tests.pipeline.modes.on_cluster", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


def test_executors_are_apart(told):
    """Two executors with working folders of their own, and several worker processes."""
    folders = told["working folders"]
    assert len(folders) == 2 and told["processes"] == 4
    assert not any("driver" in os.path.basename(folder) for folder in folders)


def test_tasks_read_encode_and_write(told):
    """The facts of the memory engine, in files that tasks wrote beside the sink and in the sink itself."""
    assert told["equal"] and told["facts"]["path"]["facts"] == 61 * 62 // 2
    assert told["sources"] == {"edge": [61, 60], "weight": [60, 60]}
    assert told["choices"] == ["partitions, in the tasks of one Spark job", "files that tasks write and read"]
    assert told["folders"] == [["facts", "heavy", "owner.lock", "path"]]
    assert told["in the driver's folders"] == []


def test_jobs_in_the_ui(told):
    """All jobs have the name of the program; the job that holds facts has others beside it that tell its progress."""
    descriptions = told["descriptions"]
    holding = "Upheld: closure.dl, 3 rules, facts in 3 partitions"
    assert {"Upheld: closure.dl, read", holding} <= set(descriptions)
    assert any(re.fullmatch(rf"{holding}: stratum \d of \d, round \d+, .*", text) for text in descriptions)
