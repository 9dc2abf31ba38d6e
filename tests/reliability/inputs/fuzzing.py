"""R15: whatever bytes come in, only errors of ours come out, within a second and a bounded memory.

A target reads one kind of input: programs, queries, facts files, update files, manifests of saved states, RDF. Its
inputs are mutations of right ones: of the seeds here, so that a clone alone can run it, and of kept cases where there
are any.
"""

from __future__ import annotations

import gzip
import os
import random
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import FrameType

import upheld
from tests.helpers.cases import CASES
from tests.reliability.inputs.mutating import mutated
from tests.reliability.programme import Run, goal
from upheld.base.errors import UpheldError
from upheld.base.limits import memory_in_use
from upheld.engines import facts_reader
from upheld.facts.files.formats import Format
from upheld.facts.files.reading import read_bytes
from upheld.language.core import Predicate

#: Seconds of the processor and bytes that one input may take. A hang is cut off after a few times that.
SECONDS, MEMORY, HANG = 1.0, 512 << 20, 20.0


class Hang(BaseException):
    """Raised inside an input that takes far too long; a base exception, so that nobody takes it for an error."""


@dataclass(frozen=True)
class Target:
    """What reads a file of some name, right inputs for it, and words that its grammar knows."""

    name: str
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]
    read: Callable[[Path], object]
    kept: str = ""
    finish: Callable[[bytes], bytes] = bytes


RULES = (
    b'.decl edge(x:number, y:number)\n.decl path(x:number, y:number)\n.input edge(delimiter=",", headers=true)\n'
    b"path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z), x != z, !edge(z, x).\n.output path(IO=stdout)\n",
    b".type Id <: symbol\n.type Node = Id | Name\n.type Name <: symbol\n.decl a(x:Id, n:float)\n.decl b(x:Id)\n"
    b'b(cat(x, "\\n\\t")) :- a(x, n), (n > 0.5 ; n < -1e3), strlen(x) = 3, match("a.*", x). // a comment\n',
    b"p(1). p(0x1f). p(-3).\nq(x + 1, min(x, 2)) :- p(x), x < 10, y = range(0, x), y * 2 = x % 3. /* more */\n"
    b"r(x), s(x) :- p(x), !(q(x, _), x > 2).\n.printsize r\n",
)
DLOG = (
    b"PREFIX : <http://e/>\n[?y, :knows, ?x] :- [?x, :knows, ?y], NOT [?x, a, :Robot] .\n:p[?x, ?y] :- :q[?x, ?y].\n",
    b'@prefix ex: <http://ex.org/> .\nex:C[?x], [?x, ex:n, 5] :- [?x, ex:p, "a"@en], FILTER(?x != ex:b && ?z > 3.5),'
    b' BIND(?x AS ?w), [?x, ex:q, ?z] ?g .\nex:fact[ex:a, "1"^^xsd:integer] .\n',
)
FACTS = (b"1\tabc\t0.5\n-7\tx y\t1e9\n0x1f\t\tnan\n", b"12\ta\t3\r\n9223372036854775807\tb\t-inf\r\n")
CSV = (b'x,name,z\n1,"a, ""b""\nc",0.5\n2,plain,3\n', b'x,name,z\n"7","",1e3\n')
UPDATES = (
    b'+edge(1, 2).\n-edge(2, 3).\ncommit.\n// note\n+edge(3, 4). +name("a\\"b", 0.5).\ncommit.\n',
    b'/* two\nlines */ +name("\xc3\xa9", -1.5). commit. -name("x", 2). commit.\n',
)
TERM_UPDATES = (b'PREFIX : <http://e/>\n+[<http://e/a>, :p, 5].\ncommit.\n-[:a, a, "x"@en].\ncommit.\n',)
TABLES = (b"operation,commit,x,y\n+,1,1,2\n-,2,2,3\ninsert,2,4,5\n", b'operation,x,y\n"+",1,2\n"delete","3",4\n')
NT = (
    b'<http://e/s> <http://e/p> "a\\n\\u00e9"@en-us .\n_:b1 <http://e/p> "5"^^<http://e/d> .\n',
    b"<http://e/s> <http://e/p> <http://e/o> . # note\n\n<http://e/s> <http://e/q> _:x .\n",
)
NQ = (b'<http://e/s> <http://e/p> "o" <http://e/g> .\n_:a <http://e/p> _:b _:g .\n<http://e/s> <http://e/p> "x" .\n',)
TURTLE = (
    b'@prefix : <http://e/> .\n@base <http://b/> .\n:s a :C ; :p 5, 3.5, 1e3, true, "x"@en, """long\n"text""" .\n',
    b"PREFIX : <http://e/>\n[ :p ( 1 2 [ :q :r ] ) ] :s <rel> .\n:a\\,b :c%20 _:d .\n",
)
TRIG = (b"PREFIX : <http://e/>\n:s :p 1 . :g { :s :p _:x, 'x'@en } GRAPH _:h { _:x :q ( :a :b ) }\n{ :t :p 2 }\n",)
XML = (
    b'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [<!ENTITY e "http://e/">]>\n'
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/" xml:base="http://b/">'
    b'<e:C rdf:about="&e;s"><e:p rdf:datatype="http://e/d">5</e:p><e:q rdf:resource="r"/>'
    b'<e:l rdf:parseType="Collection"><rdf:Description rdf:nodeID="n" e:p="x"/></e:l>'
    b'<e:x rdf:parseType="Literal"><b>t</b></e:x></e:C></rdf:RDF>\n',
)
QUERIES = (b"path(x, y), x < 3, !edge(y, x)", b"edge(1, x), y = x + 1", b"path(1, _)")

WORDS = tuple(
    b'.decl|.input|.output|.include|.type|.comp|:-|edge|path|name|x|y|_|1|"a"|number|symbol|float|unsigned|!|=|!=|<|cat|'
    b"range|match|strlen|to_number|eqrel|brie|inline|count|sum|:|;|,|.|(|)|as|land|bxor|^|$|nil".split(b"|")
)
DLOG_WORDS = tuple(
    b'PREFIX|@prefix|BASE|NOT|EXISTS|FILTER|BIND|AS|AGGREGATE|SKOLEM|[|]|?x|?y|:p|:C|a|<http://e/>|"a"@en|5|&&|,|.|'
    b'"1"^^xsd:integer|:-|owl:sameAs|_:b'.split(b"|")
)
RDF_WORDS = tuple(
    b'@prefix|@base|PREFIX|GRAPH|a|:s|:p|<http://e/o>|<rel>|_:b|"x"|"""|\'\'\'|@en|^^|5|1e3|true|[|]|(|)|{|}|;|,|.|'
    b"<<|>>|<<(|)>>|{||}".split(b"|")
)
XML_WORDS = tuple(
    b"<!DOCTYPE|<!ENTITY|&e;|&#65;|&amp;|rdf:about|rdf:ID|rdf:parseType|rdf:li|rdf:_1|xml:lang|xmlns:|<![CDATA[|]]>|<!--|-->|"
    b"<?x ?>|</e:p>|<e:p>|/>|rdf:Description|rdf:nodeID|rdf:bagID|rdf:datatype".split(b"|")
)
JSON_WORDS = tuple(
    b'null|true|-1|1e99|"x"|[]|{}|"../../x"|"/etc/passwd"|"relations/edge/000001-x"|2|"number"'.split(b"|")
)

TYPES = ("number", "symbol", "float")
RELATIONS = {
    "edge": Predicate("edge", ("x", "y"), ("number", "number")),
    "name": Predicate("name", ("x", "y"), ("symbol", "float")),
}
TERMS = {"triple": Predicate("triple", ("s", "p", "o"), ("term",) * 3)}
PROGRAM = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def read_facts(path: Path, rfc4180: bool) -> None:
    """Read a facts file by both readers, which must agree."""
    format = Format("e", ("x", "name", "z"), delimiter="," if rfc4180 else "\t", headers=rfc4180, rfc4180=rfc4180)
    found = []
    for engine in ("memory", "reference"):
        try:
            found.append([repr(row) for row in facts_reader(engine)(read_bytes(path), path, TYPES, format)])
        except UpheldError as error:
            found.append([str(error)])
    assert found[0] == found[1], "the readers of two engines differ"


def read_updates(path: Path, predicates: dict[str, Predicate]) -> None:
    from upheld.facts.updatefiles import updates_of

    for _ in updates_of(path, predicates):
        pass


def query(path: Path, m: upheld.Materialisation) -> None:
    text = path.read_bytes().decode(errors="surrogateescape")
    for ask in (m.query, m.explain):
        try:
            ask(text)
        except UpheldError:
            continue


def sealed(data: bytes) -> bytes:
    """Return a manifest with the checksum that its body has, so that what is inside is read."""
    body = data.partition(b"\n")[2]
    return b'{"format": 2, "sha256": "' + sha256(body).hexdigest().encode() + b'",\n' + body


def restore(path: Path, folder: Path) -> None:
    (folder / path.name).write_bytes(path.read_bytes())
    upheld.restore(PROGRAM, folder, engine="reference")


def targets() -> list[Target]:
    """Return all targets. They read files in the current folder."""
    m = upheld.materialise(PROGRAM, {"edge": [(1, 2), (2, 3)]}, engine="reference")
    m.save("state")
    (manifest,) = [path for path in Path("state").iterdir() if path.is_file()]
    rdf = upheld.rdf.read
    return [
        Target("a.dl", RULES, WORDS, upheld.check, "souffle/**/*.dl"),
        Target("a.dlog", DLOG, DLOG_WORDS, upheld.check),
        Target("query", QUERIES, WORDS, partial(query, m=m)),
        Target("e.facts", FACTS, FACTS, partial(read_facts, rfc4180=False)),
        Target("e.csv", CSV, CSV, partial(read_facts, rfc4180=True)),
        Target("e.facts.gz", FACTS, FACTS, partial(read_facts, rfc4180=False), finish=gzip.compress),
        Target("g.gz", tuple(map(gzip.compress, FACTS)), FACTS, partial(read_facts, rfc4180=False)),
        Target("u.updates", UPDATES, WORDS, partial(read_updates, predicates=RELATIONS)),
        Target("t.updates", TERM_UPDATES, DLOG_WORDS, partial(read_updates, predicates=TERMS)),
        Target("edge.csv", TABLES, TABLES, partial(read_updates, predicates=RELATIONS)),
        Target(
            manifest.name, (manifest.read_bytes(),), JSON_WORDS, partial(restore, folder=manifest.parent), "", sealed
        ),
        Target("a.nt", NT, RDF_WORDS, rdf),
        Target("a.nq", NQ, RDF_WORDS, rdf),
        Target("a.ttl", TURTLE, RDF_WORDS, rdf),
        Target("a.trig", TRIG, RDF_WORDS, rdf),
        Target("a.rdf", XML, XML_WORDS, rdf, "ontologies/*.owl"),
    ]


def seeds_of(target: Target) -> list[bytes]:
    """Return the right inputs of a target, with kept ones that are not long where there are any."""
    kept = sorted(CASES.glob(target.kept)) if CASES is not None and target.kept else []
    return [*target.seeds, *(path.read_bytes() for path in kept if path.stat().st_size < 1 << 13)]


def attempt(target: Target, data: bytes) -> None:
    """Read one input: what it raises must be an error of ours, and it must not take long."""
    path = Path(target.name)
    path.write_bytes(data)
    began = time.process_time()
    with interrupted_after(HANG), warnings.catch_warnings():
        warnings.simplefilter("ignore", upheld.UpheldWarning)
        try:
            target.read(path)
        except UpheldError as error:
            message = str(error)
            if not message.strip():
                raise AssertionError("an error without a message") from error
    took = time.process_time() - began
    assert took <= SECONDS, f"{took:.1f} s for {len(data)} bytes"


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise `Hang` in a block that takes more seconds of the processor."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def in_new_folder() -> Iterator[None]:
    """Work in a folder of one's own, which is removed at the end."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


@goal("R15", "fuzzed programs, queries, facts, updates, manifests and RDF", sample=320, full=800_000)
def fuzz(run: Run) -> None:
    with in_new_folder():
        all_targets = targets()
        seeds = {target.name: seeds_of(target) for target in all_targets}
        for target in all_targets:  # what is loaded once is loaded before any clock starts
            for seed in target.seeds:
                with suppress(UpheldError):
                    target.read(_written(target, target.finish(seed)))
        slowest, began = 0.0, memory_in_use()
        for number in run.cases():
            target = all_targets[number % len(all_targets)]
            rng = random.Random(f"R15 {run.seed} {number}")
            own = seeds[target.name]
            data = target.finish(mutated(rng.choice(own), own, list(target.words), rng))
            start = time.process_time()
            run.case(f"{target.name} {number}", partial(attempt, target, data))
            slowest = max(slowest, time.process_time() - start)
            if number % 256 == 0:
                grown = memory_in_use() - began
                assert grown <= MEMORY, f"memory has grown by {grown >> 20} MB"
        run.figures |= {"targets": len(all_targets), "slowest_seconds": round(slowest, 2)}


def _written(target: Target, data: bytes) -> Path:
    path = Path(target.name)
    path.write_bytes(data)
    return path
