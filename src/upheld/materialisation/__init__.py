"""Materialisations: how they are built, read, updated, followed and saved."""
