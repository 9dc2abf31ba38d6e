"""Write the rules that an ontology stands for, and tell what of it they leave out or make stronger."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import upheld


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("ontology", nargs="+", type=Path, help="RDF files, or folders of them")
    command.add_argument(
        "--bound",
        default="lower",
        help="lower (default) leaves out what is not Datalog; upper makes it stronger, and derives all that follows",
    )
    command.add_argument("--base", metavar="IRI", help="what relative IRIs are resolved against")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="a .dlog file to write (default: print it)")


def execute(options: argparse.Namespace) -> int:
    found = upheld.rdf.translate(*options.ontology, bound=options.bound, base=options.base)
    if options.output is None:
        print(found.text, end="")
    else:
        found.write(options.output)
    for title, axioms in (("left out", found.dropped), ("strengthened", found.strengthened)):
        for axiom in axioms:
            print(f"{title}: {axiom}", file=sys.stderr)
    return 0
