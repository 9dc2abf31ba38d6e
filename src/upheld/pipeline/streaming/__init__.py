"""Streams of updates on Structured Streaming: one version per micro-batch, each exactly once."""
