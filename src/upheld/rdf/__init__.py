"""RDF: files of triples and quads, as facts of the relations `triple` and `quad`, and rule sets over them."""

from upheld.rdf.reading import read
from upheld.rdf.rulesets import rules
from upheld.rdf.writing import Written, write

__all__ = ["Written", "read", "rules", "write"]
