"""RDF: files of triples and quads, as facts of the relations `triple` and `quad`."""

from upheld.rdf.reading import read
from upheld.rdf.writing import Written, write

__all__ = ["Written", "read", "write"]
