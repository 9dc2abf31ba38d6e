"""Sessions, tasks and faults for the tests of the Spark engine."""
