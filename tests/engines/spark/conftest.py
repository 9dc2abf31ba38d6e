"""What the tests of the Spark engine share."""

from __future__ import annotations

import pytest


@pytest.fixture
def spark_engine(spark):
    """Return what makes engines on the session of the test run."""
    import upheld

    def make(**options):
        return upheld.SparkEngine(spark, **options)

    return make
