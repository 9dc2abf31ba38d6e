"""DDlog's own tests, translated by hand: plain relations of `path`, `simple` and `tutorial`, with their transactions.

Left out: structures, vectors, sets, maps, references, functions, keys and multisets, which have no like here; and `X`,
`Z` and `W` of `simple`, which its transactions leave empty.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict

import pytest

import upheld
from tests.helpers.cases import requires_cases
from upheld.language.core import Fact
from upheld.maintain.registry import ALGORITHMS

pytestmark = requires_cases

PATH = """
.decl Edge(s:symbol, t:symbol)
.decl Path(s1:symbol, s2:symbol)
Path(x, y) :- Edge(x, y).
Path(x, z) :- Path(x, w), Edge(w, z).
"""

SIMPLE = """
.decl Parent(child:symbol, parent:symbol)
.decl Sib(s1:symbol, s2:symbol)
Parent("Alice", "Bob").
Parent("Ben", "Bob").
Parent("Bob", "Bob").
Sib(x, y) :- Parent(x, z), Parent(y, z), x != y.

.decl Links(l:number, s1:symbol, s2:symbol)
.decl Reach(s1:symbol, s2:symbol)
.decl Answer(x:symbol)
Reach(x, y) :- Links(_, x, y).
Reach(x, y) :- Links(_, y, x).
Reach(x, y) :- Links(_, x, z), Reach(z, y).
Answer(x) :- Reach("Odeon", x).

.decl R3(f1:number, f2:symbol)
.decl R6(f:number)
R6(x) :- R3(x, _).

.decl Gangster(nickname:symbol, name:symbol)
.decl Suspect(name:symbol)
.decl Innocent(name:symbol)
Innocent(name) :- Suspect(name), !Gangster(_, name).

.decl AggregateMe1(x:symbol, y:symbol)
.decl AggregateMe3(x:symbol, y:symbol, z:symbol)
.decl AggregateMeInts(x:symbol, y:number)
.decl Counts1(x:symbol, occurrences:number)
.decl AggregateByX(x:symbol, cnt:number)
.decl Sum(x:symbol, sum:number)
Counts1(x, n) :- AggregateMe1(x, _), n = count : { AggregateMe1(x, y), y = x }.
AggregateByX(x, n) :- AggregateMe3(x, y, _), AggregateMe1(x, y),
    n = count : { AggregateMe3(x, z, _), AggregateMe1(x, z) }.
Sum(x, n) :- AggregateMeInts(x, _), n = sum y : { AggregateMeInts(x, y) }.
"""

TUTORIAL = """
.decl Word1(word:symbol, category:symbol)
.decl Word2(word:symbol, category:symbol)
.decl Phrases(phrase:symbol)
Word1("Hello,", "CategoryOther").
Word2("World!", "CategoryOther").
Phrases(cat(w1, " ", w2)) :- Word1(w1, c), Word2(w2, c).

.decl Host(id:number, name:symbol, ip:number)
.decl Subnet(id:number, prefix:number, mask:number)
.decl HostInSubnet(host:number, subnet:number)
HostInSubnet(h, s) :- Host(h, _, ip), Subnet(s, prefix, mask), ip band mask = prefix.

.decl Number(n:number)
.decl Pow2(p:symbol)
Pow2(cat("The square of ", to_string(x), " is ", to_string(x * x))) :- Number(x).

.decl X(x:number)
.decl Sum(x:number, y:number, sum:number)
.decl Product(x:number, y:number, prod:number)
Sum(x, y, x + y) :- X(x), X(y).
Product(x, y, x * y) :- X(x), X(y).

.decl Price(item:symbol, vendor:symbol, price:number)
.decl BestPrice(item:symbol, price:number)
.decl WorstPrice(item:symbol, price:number)
.decl BestVendor(item:symbol, vendor:symbol, price:number)
BestPrice(i, p) :- Price(i, _, _), p = min q : { Price(i, _, q) }.
WorstPrice(i, p) :- Price(i, _, _), p = max q : { Price(i, _, q) }.
BestVendor(i, v, p) :- Price(i, v, p), p = min q : { Price(i, _, q) }.
"""

#: For each file the program, and the relations of it whose facts it prints.
PARTS = {
    "path": (PATH, {"Path"}),
    "simple": (SIMPLE, {"Sib", "Reach", "Answer", "R6", "Innocent", "Counts1", "AggregateByX", "Sum"}),
    "tutorial": (
        TUTORIAL,
        {"Phrases", "HostInSubnet", "Pow2", "Sum", "Product", "BestPrice", "WorstPrice", "BestVendor"},
    ),
}

_VALUE = r'"(?:[^"\\]|\\.)*"|0x[0-9a-f]+|-?\d+|\w+'

_CHANGE = re.compile(rf"\b(insert|delete) (\w+)\(\s*((?:(?:{_VALUE})\s*+,?\s*+)*+)\)")


def value_of(text: str) -> int | str:
    return ast.literal_eval(text) if text[0] in '"-0123456789' else text


def transactions(text: str, relations: set[str]) -> list[dict[str, dict[str, list]]]:
    """The insertions and deletions of each transaction that are about some relations, where there are any."""
    found = []
    for transaction in re.split(r"\bcommit\b", text):
        change = {"insert": defaultdict(list), "delete": defaultdict(list)}
        for sign, relation, row in _CHANGE.findall(transaction):
            if relation in relations:
                change[sign][relation].append(tuple(map(value_of, re.findall(_VALUE, row))))
        if change["insert"] or change["delete"]:
            found.append(change)
    return found


def printed(text: str, relations: set[str]) -> tuple[set[Fact], dict[Fact, int]]:
    """The facts that are dumped, and what is told of changes: the sum for each fact."""
    dumped: set[Fact] = set()
    changes: dict[Fact, int] = defaultdict(int)
    for relation, fields, sign in re.findall(r"^(\w+)\{(.*)\}(?:: ([+-]1))?$", text, re.MULTILINE):
        if relation in relations:
            fact = relation, tuple(value_of(v) for v in re.findall(rf"\.\w+ = ({_VALUE})", fields))
            if sign:
                changes[fact] += int(sign)
            else:
                dumped.add(fact)
    return dumped, changes


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("part", PARTS)
def test_transactions(cases, part, algorithm):
    """The facts at the end are those that are dumped, those told of have come, and taking all back takes all away."""
    program, shown = PARTS[part]
    m = upheld.materialise(program, algorithm=algorithm)

    def facts() -> set[Fact]:
        return {fact for fact in m.facts() if fact[0] in shown}

    first, told, new = facts(), set(), []
    made = transactions((cases / "ddlog" / f"{part}.dat").read_text(encoding="utf-8"), set(m.relations))
    for change in made:
        done = m.update(**change)
        told |= {(r, row) for r, rows in done.inserted.items() if r in shown for row in rows.to_set()}
        effective = {
            sign: {r: set(rows) - done.ignored[r].to_set() for r, rows in of.items()} for sign, of in change.items()
        }
        new.append(effective)
    dumped, changes = printed((cases / "ddlog" / f"{part}.dump.expected").read_text(encoding="utf-8"), shown)
    # `dump` shows all relations in `simple` up to a point; what is told of changes has the rest.
    assert facts() == dumped | changes.keys()
    assert {r for r, _ in facts()} == shown
    assert changes.keys() <= told | first
    assert set(changes.values()) <= {1}
    for effective in reversed(new):
        m.update(delete=effective["insert"], insert=effective["delete"])
    assert facts() == first
