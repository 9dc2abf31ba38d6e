"""Versions of a materialisation as readers see them: relations, snapshots, lookups, the store for SPARQL."""
