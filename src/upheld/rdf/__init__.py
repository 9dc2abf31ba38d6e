"""RDF: files of triples and quads as facts of `triple` and `quad`, rule sets over them, and ontologies as rules."""

from upheld.rdf.owl.translating import Translation, translate
from upheld.rdf.reading import read
from upheld.rdf.rulesets import rules
from upheld.rdf.writing import Written, write

__all__ = ["Translation", "Written", "read", "rules", "translate", "write"]
