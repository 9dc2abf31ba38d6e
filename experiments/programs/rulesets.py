"""Published rule sets, read from a folder that the user names, as rules over relations of things."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import upheld
from experiments.data.zipf import ATOM

#: The relation of owl:sameAs in each rule set. Rules that replace equals by equals are left out, as paper 1 does.
SAME_AS = {"Claros_L": "RP5", "Claros_LE": "RP5", "DBpedia_L": "RP307"}

#: The instances of paper 3 whose rules are among them.
WITH_EQUALITY = ("Claros-L", "Claros-LE", "DBpedia-L")

#: The relation of Claros-LE that is symmetric and transitive.
RELATED_PLACES = "rp238"


def dlog(folder: Path, name: str) -> str | None:
    """Return the rules of `ontologies/NAME.dlog.gz`, or None if the folder does not have it."""
    file = folder / "ontologies" / f"{name}.dlog.gz"
    if not file.exists():
        return None
    numbers: dict[str, str] = {}

    def term(text: str) -> str:
        return text.lower() if text[0].isupper() else numbers.setdefault(text, str(1_000_000_000 + len(numbers)))

    def atom(match: re.Match[str]) -> str:
        return f"{match[1].lower()}({', '.join(map(term, match[2].split(',')))})"

    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    chosen = [line for line in lines if "TE(" not in line and not _replaces(line, SAME_AS[name])]
    return "".join(f"{ATOM.sub(atom, line)}.\n" for line in chosen)


def _replaces(line: str, same_as: str) -> bool:
    """Return whether a rule replaces an equal by an equal in one relation."""
    head, *body = (name for name, _ in ATOM.findall(line))
    return len(body) == 2 and body.count(same_as) >= 1 and sorted((head, same_as)) == sorted(body)


_TRIPLE = re.compile(r"\[(\S+?), (\S+?), (\S+?)\]")


def ontology(folder: Path, bound: str) -> str | None:
    """Return the rules of `ontologies/biopax-level3.owl`, the schema of Reactome, or None if it is not there.

    Classes become relations of one column, properties of two. Violations of disjointness are left out: Reactome's data
    has none, and the generated facts would have nothing else.
    """
    file = folder / "ontologies" / "biopax-level3.owl"
    if not file.exists():
        return None
    numbers: dict[str, str] = {}

    def name(text: str) -> str:
        return re.sub(r"\W", "_", text.rpartition("#")[2].lstrip(":").rstrip(">"))

    def term(text: str) -> str:
        return text[1:].lower() if text[0] == "?" else numbers.setdefault(text, str(1_000_000_000 + len(numbers)))

    def atom(match: re.Match[str]) -> str:
        subject, predicate, value = match.groups()
        if predicate == "rdf:type":
            return f"c_{name(value)}({term(subject)})"
        return f"p_{name(predicate)}({term(subject)}, {term(value)})"

    text = upheld.rdf.translate(file, bound=bound).text
    rules = [line for line in text.splitlines() if line.startswith("[") and ":-" in line and "FILTER" not in line]
    return "".join(_TRIPLE.sub(atom, line) + "\n" for line in rules if not re.search(r"\[\S+, \?", line))
