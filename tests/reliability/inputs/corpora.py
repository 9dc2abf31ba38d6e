"""R16: the W3C's RDF suites come out as their manifests say, and broken files derived from them are told of well.

A broken file must end in time and in an error of ours that has the file, and the line and column wherever the format
is text; or it is right after all. Where no suites are kept, the seeds of the fuzzers are broken instead.
"""

from __future__ import annotations

import random
import re
from functools import partial
from pathlib import Path

import upheld
from tests.helpers import w3c
from tests.reliability.inputs.fuzzing import NQ, NT, TRIG, TURTLE, XML, Target, attempt, in_new_folder
from tests.reliability.inputs.mutating import mutated
from tests.reliability.programme import Run, goal
from upheld.base.errors import UpheldError

#: What is told without a place: of the document as a whole, of what RDF it says where it is XML, of one statement.
WITHOUT_PLACE = {"entity-bomb", "unsupported-triple-term", "too-long-statement"}
WORDS = [b"@prefix", b"<http://e/", b"\\u12", b'"""', b"_:", b"^^", b"@", b"[", b"(", b"{", b"<e:p", b"&x;", b"\x00"]


def formats() -> dict[str, list[bytes]]:
    """Return right files by how their names end."""
    kept = {".nt": w3c.cases("n-triples"), ".ttl": w3c.cases("turtle")}
    own = {".nt": NT, ".ttl": TURTLE, ".nq": NQ, ".trig": TRIG, ".rdf": XML}
    found = {suffix: list(seeds) for suffix, seeds in own.items()}
    for suffix, cases in kept.items():
        found[suffix] += [case.data for case in cases if Path(case.file).suffix == suffix]
    found[".nq"] += found[".nt"]
    found[".trig"] += found[".ttl"]
    return found


def read(path: Path) -> None:
    """Read a file that is broken, or right after all; an error must have its place."""
    try:
        upheld.rdf.read(path, base="http://b/")
    except UpheldError as error:
        (problem,) = error.problems
        first = str(error).splitlines()[0]
        if not first.startswith(path.name):
            raise AssertionError(f"no file in: {first}") from error
        if path.suffix != ".rdf" and problem.slug not in WITHOUT_PLACE and not re.match(r"[^:]+:\d+:\d+: ", first):
            raise AssertionError(f"no line and column in: {first}") from error


@goal("R16", "the W3C's RDF suites, and malformed files derived from them", sample=400, full=20_254)
def corpora(run: Run) -> None:
    with in_new_folder():
        suites = [case for suite in w3c.SUITES for case in w3c.cases(suite)]
        for case in suites[: run.size]:
            run.case(f"{case.suite} {case.name}", case.check)
        files = formats()
        targets = {suffix: Target(f"a{suffix}", (), (), read) for suffix in files}
        for number in run.cases():
            rng = random.Random(f"R16 {run.seed} {number}")
            suffix = rng.choice(list(files))
            data = mutated(rng.choice(files[suffix]), files[suffix], WORDS, rng)
            run.case(f"a{suffix} {number}", partial(attempt, targets[suffix], data))
        run.figures |= {"suites": len(suites)}
