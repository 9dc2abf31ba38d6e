"""Materialise an ontology and data with one reasoner, and print what it took and what it entails.

python -m benchmarks.engines.reasoner REASONER FOLDER SECONDS

It is stopped if that takes more than so many seconds of the processor; what comparing takes does not count.
The entailments that are compared are the triples whose words are those of the data: each reasoner adds triples about
the ontology of its own.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.measure.spending import Spent, peak_memory, spending

VOCABULARY = "<http://campus.example/vocabulary#"
DATA = "<http://u"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

Result = tuple[Spent, Spent, Iterable[tuple[str, str, str]]]


def upheld_by(rules: str, folder: Path) -> Result:
    import upheld

    tiny = {"triple": [("<http://a>", "<http://b>", "<http://c>")]}

    def program() -> upheld.Program:
        if rules == "bound":
            return upheld.rdf.translate(folder / "ontology.ttl").program
        return upheld.rdf.rules("owl2rl", without=["eq-ref"] if rules == "owl2rl" else [])

    upheld.materialise(program(), tiny, algorithm="rematerialise")  # so that kernels are there
    upheld.rdf.read(folder / "ontology.ttl")
    with spending() as total:
        with spending() as loading:
            facts = upheld.rdf.read(folder / "ontology.ttl", folder / "data.nt")
        m = upheld.materialise(program(), facts, algorithm="rematerialise")
    return total, loading, m["triple"]  # type: ignore[return-value]


def reasonable_by(folder: Path) -> Result:
    import reasonable

    with spending() as total:
        reasoner = reasonable.PyReasoner()
        with spending() as loading:
            for name in ("ontology.ttl", "data.ttl"):
                reasoner.load_file(str(folder / name))
        found = reasoner.reason()
    return total, loading, (tuple(term.n3() for term in triple) for triple in found)  # type: ignore[misc]


def owlrl_by(folder: Path) -> Result:
    import owlrl
    import rdflib

    with spending() as total:
        graph = rdflib.Graph()
        with spending() as loading:
            graph.parse(folder / "ontology.ttl")
            graph.parse(folder / "data.nt")
        owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    return total, loading, (tuple(term.n3() for term in triple) for triple in graph)  # type: ignore[misc]


def entailed(triples: Iterable[tuple[str, str, str]]) -> tuple[int, str]:
    """Return the number of triples in the words of the data, and a hash of them."""
    told = sorted(
        f"{s} {p} {o}\n".replace("^^<http://www.w3.org/2001/XMLSchema#string>", "")
        for s, p, o in triples
        if s.startswith(DATA) and (p.startswith(VOCABULARY) or (p == TYPE and o.startswith(VOCABULARY)))
    )
    return len(told), hashlib.sha256("".join(told).encode()).hexdigest()[:16]


def main() -> None:
    reasoner, folder, limit = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, most))
    match reasoner:
        case "reasonable":
            total, loading, triples = reasonable_by(folder)
        case "owlrl":
            total, loading, triples = owlrl_by(folder)
        case _:
            total, loading, triples = upheld_by(reasoner, folder)
    peak = peak_memory()
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    count, digest = entailed(triples)
    print(
        json.dumps(
            {"total": total, "loading": loading, "peak": peak, "entailed": count, "digest": digest}, default=vars
        )
    )


if __name__ == "__main__":
    main()
