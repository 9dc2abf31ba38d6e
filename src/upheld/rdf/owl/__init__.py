"""Ontologies of OWL 2 as programs."""
