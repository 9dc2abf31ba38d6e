"""Update streams of inc-mat-mark: paths, LUBM, a family tree and ways of a map, with the state after every update.

Each step gives the number of explicit facts, of all facts, a hash of these, and the facts of each predicate. LUBM and
the family tree are rules over triples: a fact of one argument is a triple with `rdf:type`.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import pytest

import upheld
from tests.helpers.cases import CASES, requires_cases
from tests.helpers.sizes import exhaustive, one_in, usually
from upheld.language.core import Fact
from upheld.maintain.registry import ALGORITHMS, MARKING

pytestmark = requires_cases

STREAMS = (
    sorted(p.name.removesuffix(".updates.tsv.gz") for p in (CASES / "update-streams").glob("*.updates.tsv.gz"))
    if CASES
    else []
)

#: Every algorithm follows a stream of each kind; `adaptive` follows all. (All follow all, too, but that takes minutes.)
CHOSEN = (
    "path.random.0.100-10-200",
    "lubm.scale-update.0.100-40-200",
    "family.scale-update.0.100-40-200",
    "ways.real.0.gps-track",
)

#: Streams that are followed with a look at the next update. (All are right in every way, but that takes minutes.)
LOOKED_AHEAD = ("path.overlap.0.100-10-200", "lubm.scale-update.0.100-40-200", "ways.real.0.gps-track")

#: All facts are read and hashed after every so many updates; after the others, the changes that are told must come to
#: the numbers of facts of each predicate.
WHOLE = 6

#: The updates of a stream that are followed.
UPDATES = usually(10, 1000)

#: `ways.dlog` in the other dialect: two ways are connected that share a node, and what both are connected to.
WAYS = """
.decl nextInWay(x:symbol, y:symbol, z:symbol)
.decl connection(x:symbol, y:symbol)
connection(z1, z2) :-
    nextInWay(x1, y1, z1), nextInWay(x2, y2, z2), z1 != z2, (x1 = x2; x1 = y2; y1 = x2; y1 = y2).
connection(x, z) :- connection(x, y), connection(y, z), x != y.
"""

PATH = """
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
"""

PREFIXES = {
    "p": "http://example.org/family#",
    "a1": "http://swat.cse.lehigh.edu/onto/univ-bench.owl#",
    "owl": "http://www.w3.org/2002/07/owl#",
}
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


class Relations:
    """Facts as rows of their relations."""

    def given(self, facts: Iterable[Fact]) -> dict[str, list[tuple[str, ...]]]:
        rows = defaultdict(list)
        for predicate, row in facts:
            rows[predicate].append(row)
        return rows

    def read(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        yield from facts


class Triples:
    """Facts as triples. Arguments are IRIs with numbers: to the rules, any term will do."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.arguments: dict[str, str] = {}

    def given(self, facts: Iterable[Fact]) -> dict[str, list[tuple[str, ...]]]:
        return {"triple": [self.triple(predicate, *map(self.term, row)) for predicate, row in facts]}

    def triple(self, predicate: str, subject: str, *objects: str) -> tuple[str, ...]:
        prefix, _, name = predicate.partition(":")
        iri = f"<{PREFIXES[prefix]}{name}>"
        return (subject, iri, *objects) if objects else (subject, TYPE, iri)

    def term(self, argument: str) -> str:
        term = f"<x:{self.numbers.setdefault(argument, len(self.numbers))}>"
        self.arguments[term] = argument
        return term

    def read(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        for _, (subject, predicate, object) in facts:
            if predicate == TYPE:
                yield self.name(object), (self.arguments[subject],)
            else:
                yield self.name(predicate), (self.arguments[subject], self.arguments[object])

    def name(self, iri: str) -> str:
        return next(f"{p}:{iri[1 + len(long) : -1]}" for p, long in PREFIXES.items() if iri.startswith(f"<{long}"))


def rows_of(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as f:
        return list(csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def program_of(folder: Path, kind: str, tmp_path: Path) -> str | Path:
    text = gzip.decompress((folder / f"{kind}.dlog.gz").read_bytes()).decode()
    if kind == "path":
        return PATH + text
    if kind == "ways":
        return WAYS
    program = tmp_path / f"{kind}.dlog"
    rules = "\n".join(line for line in text.splitlines() if not line.startswith(("%", "PREFIX")))
    program.write_text("".join(f"PREFIX {p}: <{iri}>\n" for p, iri in PREFIXES.items()) + rules, encoding="utf-8")
    return program


def hash_of(facts: set[Fact]) -> str:
    lines = sorted("\t".join((predicate, *row)).encode() + b"\n" for predicate, row in facts)
    return hashlib.sha256(b"".join(lines)).hexdigest()[:16]


def follow(folder: Path, name: str, algorithm: str, tmp_path: Path, engine: str = "memory") -> int:
    """Go through a stream, compare each state with the one expected, and return the number of updates."""
    steps: dict[int, dict[str, list[Fact]]] = defaultdict(lambda: {"+": [], "-": []})
    for step, sign, predicate, *row in rows_of(folder / f"{name}.updates.tsv.gz"):
        steps[int(step)][sign].append((predicate, tuple(row)))
    kind = name.partition(".")[0]
    form = Triples() if kind in ("lubm", "family") else Relations()
    program = program_of(folder, kind, tmp_path)
    m = upheld.materialise(program, form.given(steps[0]["+"]), engine=engine, algorithm=algorithm)
    expected = rows_of(folder / f"{name}.expected.tsv.gz")[1 : 2 + UPDATES]
    signed = [steps[int(step)] for step, *_ in expected[1:]]
    updates = [{"delete": form.given(step["-"]), "insert": form.given(step["+"])} for step in signed]
    changes = m.stream(updates)
    facts = set(form.read(m.facts()))
    found = Counter(p for p, _ in facts)
    for number, (step, explicit, total, hash, counts) in enumerate(expected):
        if step != "0":
            change = next(changes)
            sides = (change.deleted, change.inserted)
            deleted, inserted = (set(form.read((r.name, row) for r in s.not_empty() for row in r)) for s in sides)
            assert deleted <= facts and facts.isdisjoint(inserted), step
            facts -= deleted
            facts |= inserted
            found.subtract(p for p, _ in deleted)
            found.update(p for p, _ in inserted)
        assert sum(len(m.explicit(r)) for r in m.relations) == int(explicit), step
        assert len(facts) == int(total), step
        assert " ".join(f"{p}={n}" for p, n in sorted((+found).items())) == counts, step
        if number % WHOLE == 0 or number == len(expected) - 1:
            assert facts == set(form.read(m.facts())), step
            assert hash_of(facts) == hash, step
    return len(expected) - 1


def test_there_are_streams(cases):
    assert len(STREAMS) >= 37
    assert set(CHOSEN) <= set(STREAMS)


@pytest.mark.parametrize("name", [pytest.param(s, marks=exhaustive) if s.split(".")[2] != "0" else s for s in STREAMS])
def test_adaptive(cases, name, tmp_path):
    """Every state is the expected one."""
    assert follow(cases / "update-streams", name, "adaptive", tmp_path) >= 9


@pytest.mark.parametrize("algorithm", MARKING)
@pytest.mark.parametrize("name", LOOKED_AHEAD)
def test_looking_ahead(cases, name, algorithm, tmp_path):
    """Every state is the expected one when each update is made with a look at the next."""
    assert follow(cases / "update-streams", name, algorithm, tmp_path) >= 9


@pytest.mark.parametrize("name, algorithm", one_in(4, product(CHOSEN, (a for a in ALGORITHMS if a != "adaptive"))))
def test_every_algorithm(cases, name, algorithm, tmp_path):
    """Every state is the expected one, by every algorithm."""
    assert follow(cases / "update-streams", name, algorithm, tmp_path) >= 9
