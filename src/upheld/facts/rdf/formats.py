"""The formats of RDF files, by how their names end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upheld.base.errors import FactsError, Problem, nearest, quote
from upheld.facts.relation import missing_package


@dataclass(frozen=True)
class RdfFormat:
    """A format: what messages call it, and what it can hold."""

    name: str
    #: Its name among the formats of pyoxigraph.
    constant: str
    #: Whether it has named graphs, and labels for all of its blank nodes.
    has_graphs: bool = False
    all_labelled: bool = False
    written: bool = False

    def of_parser(self) -> Any:
        """Return the format as pyoxigraph has it."""
        return getattr(pyoxigraph().RdfFormat, self.constant)


_RDF_XML = RdfFormat("RDF/XML", "RDF_XML")

FORMATS = {
    ".nt": RdfFormat("N-Triples", "N_TRIPLES", all_labelled=True, written=True),
    ".ttl": RdfFormat("Turtle", "TURTLE", written=True),
    ".nq": RdfFormat("N-Quads", "N_QUADS", has_graphs=True, all_labelled=True, written=True),
    ".trig": RdfFormat("TriG", "TRIG", has_graphs=True, written=True),
    ".rdf": _RDF_XML,
    ".owl": _RDF_XML,
    ".xml": _RDF_XML,
}


def pyoxigraph() -> Any:
    """Return the package that reads and writes RDF."""
    try:
        import pyoxigraph as package
    except ImportError:
        raise missing_package("pyoxigraph", "rdf") from None
    return package


def suffix_of(path: Path) -> str:
    """Return how the name of a file ends, before `.gz`."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def is_rdf(path: Path) -> bool:
    """Tell whether the name of a file is that of RDF."""
    return suffix_of(path) in FORMATS


def format_of(path: Path, *, to_write: bool = False) -> RdfFormat:
    """Return the RDF format of a file by its extension; raise `FactsError` if there is none."""
    known = {suffix: format for suffix, format in FORMATS.items() if format.written or not to_write}
    suffix = suffix_of(path)
    if suffix in known:
        return known[suffix]
    verb = "written" if to_write else "read"
    note = f"RDF is {verb} as " + ", ".join(f"`{suffix}` ({format.name})" for suffix, format in known.items())
    message = f"the name of {quote(path)} has no extension of an RDF format that is {verb}"
    raise FactsError(Problem("unknown-rdf-format", message, place=str(path), note=note, hint=nearest(suffix, known)))
