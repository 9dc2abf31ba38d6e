"""Sources of a pipeline: one file per format, brought to the types of their relation."""
