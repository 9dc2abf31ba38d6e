"""The private parts of PySpark that Upheld uses. No other file of `spark` and `pipeline` uses any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Gateway:
    """The Java side of a session: its classes, arrays, type tests, and the configuration of Hadoop."""

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self.java: Any = spark._jvm
        self.hadoop_configuration: Any = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]

    def is_instance(self, value: Any, java_class: str) -> bool:
        """Return whether an object of Java is of a class."""
        from py4j.java_gateway import is_instance_of

        return bool(is_instance_of(self._gateway, value, java_class))

    def array(self, java_class: Any, *values: Any) -> Any:
        """Return an array of Java."""
        array = self._gateway.new_array(java_class, len(values))
        for i, value in enumerate(values):
            array[i] = value
        return array


def is_stopped(spark: SparkSession) -> bool:
    """Return whether a session has ended, in Python or in Java."""
    context: Any = getattr(spark, "_sc", None)
    # A context that Python has stopped has no Java side; one that Java has stopped still has.
    return context is not None and (context._jsc is None or context._jsc.sc().isStopped())


def is_java_running() -> bool:
    """Return whether this process has started a Java, which serves all its sessions."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None
