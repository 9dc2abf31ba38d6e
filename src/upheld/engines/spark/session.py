"""Spark sessions: the local one that Upheld starts, and those that callers bring."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from upheld.base.errors import MissingDependency, Problem, UsageError, bad_argument, described_type, is_whole, quote
from upheld.base.memory import size_of
from upheld.base.source import Span
from upheld.engines.spark.java import find_java
from upheld.store.spark.gateway import is_java_running, is_stopped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Settings for the exchange of batches between Spark and Python on any session.
ARROW = {"spark.sql.execution.arrow.pyspark.enabled": "true"}

#: The last lines of Spark's log that an error shows.
_LOG_LINES = 5


def spark_session(spark: SparkSession | None = None, *, memory: str = "2g", cores: int | None = None) -> SparkSession:
    """Return a Spark session: `spark`, else the active one, else a new local one.

    A local session runs in this process with a JVM beside it, and ends with the process.

    Args:
        spark: An existing session, which is only checked.
        memory: Memory of the JVM of a local session, such as `2g`.
        cores: Tasks that a local session runs at once; by default one more than the machine has cores, since the Spark
            engine leaves one free.
    """
    size = size_of(memory) if isinstance(memory, str) else None
    if size is None:
        raise bad_argument("`memory` of `spark_session`", "a size, such as `2g`", memory)
    if not (cores is None or is_whole(cores, 1)):
        raise bad_argument("`cores` of `spark_session`", "a whole number of at least 1, or None", cores)
    require_pyspark()
    from pyspark.sql import SparkSession

    if spark is None:
        spark = SparkSession.getActiveSession()
        if spark is None or is_stopped(spark):
            # spark-submit has started a Java and chosen a cluster: take what it chose.
            submitted = "PYSPARK_GATEWAY_PORT" in os.environ
            return SparkSession.builder.getOrCreate() if submitted else _start(size, cores or (os.cpu_count() or 1) + 1)
    given: object = spark
    if "connect" in type(given).__module__:
        raise UsageError(
            Problem(
                "unsupported-session",
                "this is a session of Spark Connect",
                note="Upheld works in the driver of a classic session",
                hint="start one with `SparkSession.builder.master(...)`, or run under `spark-submit`",
            )
        )
    if not isinstance(given, SparkSession):
        message = f"{described_type(given)} where a Spark session is expected"
        raise UsageError(Problem("unsupported-session", message, hint="pass a `pyspark.sql.SparkSession`"))
    if is_stopped(given):
        message = "this Spark session has been stopped"
        hint = "start a new one with `SparkSession.builder.getOrCreate()`, or pass none for a local one"
        raise UsageError(Problem("stopped-session", message, hint=hint))
    return given


def require_pyspark() -> None:
    """Raise the error that names the extra if pyspark, or what it needs for batches, is not installed."""
    for package in ("pyspark", "pandas", "pyarrow"):
        try:
            __import__(package)
        except ModuleNotFoundError as e:
            message = f"Spark needs the package {quote(e.name or package)}"
            hint = "pip install 'upheld[spark]'"
            raise MissingDependency(Problem("missing-dependency", message, hint=hint)) from None


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session for a while, and restore them whatever happens."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


# -- the local session -------------------------------------------------------------------------------------------------


def _start(memory: int, cores: int) -> SparkSession:
    """Start a Java, and in it a local session whose log and temporary files go with this process."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if is_java_running():  # one Java serves a process; it has been started before, with its memory
        builder = SparkSession.builder
        for name, value in _settings(memory, cores, Path(tempfile.gettempdir())).items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    java = find_java()
    folder = Path(tempfile.mkdtemp(prefix="upheld-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    conf = SparkConf()
    conf.setAll(list(_settings(memory, cores, folder).items()))
    log = folder / "spark.log"
    environment = {
        "JAVA_HOME": str(java.home(folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
    }
    with _environment(environment), log.open("wb") as errors:
        try:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": errors, "stderr": errors})
            context = SparkContext(gateway=gateway, conf=conf)
        except Exception as error:
            said = log.read_text(errors="replace").splitlines()[-_LOG_LINES:] or [str(error)]
            raise UsageError(
                Problem(
                    "no-session",
                    f"Spark did not start on Java {java.version} at {quote(java.path)}",
                    note="the last it said is: " + " | ".join(map(str.strip, said)),
                    hint="less memory may help, or another Java, chosen by JAVA_HOME",
                )
            ) from error
    spark = SparkSession(context)
    atexit.register(_stop, spark)
    return spark


def _settings(memory: int, cores: int, folder: Path) -> dict[str, str]:
    """Return the settings of a local session."""
    return {
        "spark.app.name": "upheld",
        "spark.master": f"local[{cores},2]",  # a task that fails is tried once more, as on a cluster
        "spark.driver.memory": f"{memory >> 10}k",  # a unit that Java and Spark read alike
        "spark.driver.maxResultSize": "0",  # what may come to the driver is for the plan to say
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.session.timeZone": "UTC",
        # Otherwise each operation on a column sends its line of Python to Java, in a dozen messages.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.adaptive.enabled": "false",  # it would plan each stage of a query anew
        **ARROW,
    }


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables that Spark reads when it starts, and restore them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old


def _stop(spark: SparkSession) -> None:
    if not is_stopped(spark):
        spark.stop()


def title(spans: Iterable[Span | None], *more: str) -> str:
    """Return the description of jobs: the name of the file that a program is from, if it is from one, and more."""
    names = (str(span.source.name) for span in spans if span is not None)
    file = next((os.path.basename(name) for name in names if name.endswith((".dl", ".dlog"))), None)
    return f"Upheld: {', '.join(filter(None, (file, *more)))}"
