"""Where rules are applied: in the driver, in partition tasks, or by rounds of Spark jobs."""
