"""Sessions: the local one, those that callers bring, and what is said of those that will not do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import upheld
from upheld.base.errors import MissingDependency, UsageError
from upheld.engines.spark import session

pytestmark = pytest.mark.xdist_group("spark")


def test_the_local_session(spark):
    """It is started once, has few shuffle partitions and no adaptive execution, and its workers are this Python."""
    assert session.spark_session() is spark
    assert session.spark_session(spark) is spark
    assert int(spark.conf.get("spark.sql.shuffle.partitions")) <= 2 * spark.sparkContext.defaultParallelism
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"

    def where(batches):
        import pyarrow

        for _ in batches:
            yield pyarrow.record_batch({"python": [sys.executable]})

    assert spark.range(1).mapInArrow(where, "python string").first()["python"] == sys.executable


def test_settings_are_restored(spark):
    """Those that had a value have it again, the others have none, also after an error."""
    before = spark.conf.get("spark.sql.adaptive.enabled")
    settings = {"spark.sql.adaptive.enabled": "true", "spark.upheld.test": "1"}

    def fail():
        with session.configured(spark, settings):
            assert spark.conf.get("spark.upheld.test") == "1"
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert spark.conf.get("spark.sql.adaptive.enabled") == before
    assert spark.conf.get("spark.upheld.test", None) is None


def test_environment_is_restored(monkeypatch):
    """What Spark is told through the environment is gone when it has started."""
    monkeypatch.setenv("ONE", "1")
    monkeypatch.delenv("TWO", raising=False)
    with session._environment({"ONE": "x", "TWO": "y"}):
        assert (os.environ["ONE"], os.environ["TWO"]) == ("x", "y")
    assert (os.environ["ONE"], os.environ.get("TWO")) == ("1", None)


class _Stopped:
    """The context of a session that was stopped."""

    _jsc = None


def test_a_stopped_session(spark, monkeypatch):
    monkeypatch.setattr(spark, "_sc", _Stopped())
    with pytest.raises(UsageError) as refusal:
        session.spark_session(spark)
    assert refusal.value.slugs == ("stopped-session",)


def test_a_session_that_is_stopped_later(spark, spark_engine, monkeypatch):
    """Its tasks cannot be started again, and whoever needs them is told."""
    with upheld.materialise("p(x) :- e(x).", {"e": [(1,), (2,)]}, engine=spark_engine(partitions=1)) as m:
        m.park()
        with monkeypatch.context() as patched:
            patched.setattr(spark, "_sc", _Stopped())
            with pytest.raises(UsageError) as refusal:
                m.update(insert={"e": [(3,)]})
            assert refusal.value.slugs == ("stopped-session",)
        assert m["p"].to_set() == {(1,), (2,)}


def test_what_is_no_session(spark):
    with pytest.raises(UsageError) as refusal:
        session.spark_session("local[2]")  # type: ignore[arg-type]
    assert refusal.value.slugs == ("unsupported-session",)


@pytest.mark.parametrize("package", ["pyspark", "pyarrow", "pandas"])
def test_a_missing_package(package, monkeypatch):
    """It is named, with the extra that installs it."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingDependency, match=rf"`{package}` \[missing-dependency\]\n  hint: pip install 'upheld\[spark\]'"
    ):
        session.spark_session()


def test_a_java_that_fails(tmp_path):
    """Where Spark does not start, the error shows the last of its log. In a process of its own: here it has started."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        '#!/bin/sh\ncase "$*" in *-version) echo \'openjdk version "17"\';; *) echo no room >&2; exit 3;; esac\n'
    )
    java.chmod(0o755)
    program = "from upheld.engines.spark.session import spark_session; spark_session()"
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "JAVA_HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert "[no-session]" in ran.stderr and "no room" in ran.stderr
