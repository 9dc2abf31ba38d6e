"""Errors of ours for jobs that Spark gave up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, PySparkException, PythonException

from upheld.base.errors import Problem, UpheldError

#: Characters of Spark's own message that an error shows.
_SHOWN = 300


@contextmanager
def explained_failures() -> Iterator[None]:
    """Raise `failed-job` where Spark gave up a job."""
    try:
        yield
    except AnalysisException:
        raise  # a plan that does not fit together is a mistake of ours, and no fault of Spark
    except (Py4JJavaError, Py4JNetworkError, PySparkException) as error:
        raise _failure(error) from error


def _failure(error: Exception) -> UpheldError:
    if isinstance(error, Py4JNetworkError):
        message = "the Java process of Spark has ended"
        hint = "start the program again, with more memory for Spark if its log reports too little"
        return UpheldError(Problem("failed-job", message, note="all that Spark held is lost", hint=hint))
    return UpheldError(
        Problem(
            "failed-job",
            f"a job of Spark failed: {_reason(error)[:_SHOWN]}",
            note="Spark gives up a job when one of its tasks has failed in each attempt",
            hint="mend the cause, which Spark's log has in full, and try again",
        )
    )


def _reason(error: Exception) -> str:
    """Return the line of an error that says what happened."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if isinstance(error, PythonException):
        return lines[-1]  # of a traceback
    # The first line of an error in Java names the call from Python, and the next what happened.
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])
