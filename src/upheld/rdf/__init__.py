"""RDF: files of triples and quads as facts of `triple` and `quad`, rule sets over them, and ontologies as rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upheld.facts.rdf.reading import read
from upheld.facts.rdf.terms import blank, iri, literal
from upheld.facts.rdf.writing import Written, write
from upheld.rdf.rulesets import rules

if TYPE_CHECKING:
    from upheld.rdf.owl.translating import Translation, translate
    from upheld.rdf.sparql import Solutions

__all__ = ["Solutions", "Translation", "Written", "blank", "iri", "literal", "read", "rules", "translate", "write"]


def __getattr__(name: str) -> object:
    """Import the translation of ontologies and the answers to SPARQL, which few programs use, when first asked for."""
    if name == "Solutions":
        from upheld.rdf import sparql

        return sparql.Solutions
    if name in ("Translation", "translate"):
        from upheld.rdf.owl import translating

        return getattr(translating, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
