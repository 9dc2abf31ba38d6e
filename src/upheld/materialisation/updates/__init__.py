"""Kinds of updates: previews, snapshots of relations, changes of rules, streams."""
