"""Translate an ontology to rules, and list what they leave out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import upheld

EXAMPLES = """\
upheld owl ontology.ttl -o rules.dlog
upheld owl ontology.ttl --bound upper
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("ontology", nargs="+", type=Path, metavar="ONTOLOGY", help="RDF files, or folders of them")
    translation = command.add_argument_group("translation")
    translation.add_argument(
        "--bound",
        default="lower",
        help="lower leaves out axioms that are not Datalog; upper strengthens them, so that everything that follows "
        "from the ontology is derived (default: lower)",
    )
    translation.add_argument("--base", metavar="IRI", help="resolve relative IRIs against IRI")
    translation.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=".dlog file to write (default: standard output)"
    )


def execute(options: argparse.Namespace) -> int:
    rules = upheld.rdf.translate(*options.ontology, bound=options.bound, base=options.base)
    if options.output is None:
        print(rules.text, end="")
    else:
        rules.write(options.output)
    for title, axioms in (("left out", rules.dropped), ("strengthened", rules.strengthened)):
        for axiom in axioms:
            print(f"{title}: {axiom}", file=sys.stderr)
    return 0
