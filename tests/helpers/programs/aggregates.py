"""Random programs with aggregates, and streams of updates."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.helpers.programs.strategies import Case, FactsGiven, Update

#: Relations in levels: a rule reads those of its own level and below, an aggregate or a negation those below.
DECLARED = {
    "e": ("number", "number"),
    "w": ("number", "number", "float"),
    "u": ("number", "unsigned"),
    "k": ("number",),
    "t": ("number", "number"),
    "c": ("number", "number"),
    "f": ("number", "float"),
    "v": ("number", "unsigned"),
    "h": ("number", "number"),
    "g": ("number",),
}
GIVEN = ("e", "w", "u", "k", "c")

FLOATS = (0.0, 0.1, 0.2, 0.3, 1e16, -1e16, 1.0, -2.5, float("inf"), float("nan"))
NUMBERS = (-2, -1, 0, 1, 2, 3)

#: Recursion and joins below the aggregates.
BELOW = (
    "t(x, y) :- e(x, y).",
    "t(x, z) :- t(x, y), e(y, z).",
    "t(x, y) :- e(y, x), !k(x).",
    "t(x, y) :- w(x, y, _), k(y).",
    "t(x, x) :- u(x, _).",
)

#: Values of aggregates, with what a random one is put in the place of: F is a function with a target, B a body.
VALUES = (
    "c(x, n) :- k(x), n = count : { t(x, _) }.",
    "c(x, n) :- k(x), n = count : { t(x, y), B }.",
    "c(x, F y : { t(x, y), B }) :- k(x).",
    "c(x, n) :- t(x, z), n = F y + z : { e(z, y) }.",
    "c(y, n) :- k(y), n = F x : { t(x, z), x < y }.",
    "c(0, F y : { t(_, y) }).",
    "c(n, F y : { t(y, _), B }) :- n = count : { k(_) }.",
    "c(x, n) :- k(x), n = F y : { t(x, z), y = count : { e(z, q), q != x } }.",
    "c(x, n) :- e(x, _), 0 < count : { t(y, x), y > x }, n = F y : { t(y, x) ; e(x, y) }.",
    "f(x, n) :- k(x), n = G y : { w(x, _, y) }.",
    "f(x, n) :- k(x), n = G y * y : { w(_, x, y), y < 1e10 }.",
    "f(x, n) :- k(x), n = mean y : { t(x, y) }.",
    "f(x, n) :- k(x), n = mean y : { u(x, y) }.",
    "v(x, n) :- k(x), n = F y : { u(x, y) }.",
    "v(0, F y : { u(_, y) }).",
)

#: Rules, aggregates and recursion above.
ABOVE = (
    "h(x, y) :- c(x, y), !k(y).",
    "h(x, z) :- h(x, y), c(y, z).",
    "h(x, y) :- f(x, n), f(y, m), n < m.",
    "h(x, y) :- v(x, n), v(y, n).",
    "g(x) :- h(x, y), y = max z : { c(_, z) }.",
    "g(x) :- k(x), !h(x, x), 1 < count : { h(x, _) }.",
    "g(n) :- n = sum y : { h(_, y) }.",
)


_XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = (
    *(f'"{n}"^^<{_XSD}integer>' for n in ("1", "2", "01", "-3", "9" * 30)),
    *(f'"{n}"^^<{_XSD}decimal>' for n in ("1.0", "0.10", "2.5", "-1.10", ".3")),
    *(f'"{n}"^^<{_XSD}double>' for n in ("1e16", "0.1", "INF", "NaN", "-1e16")),
    '"one"',
    '"one"@en',
    "<https://e/a>",
    "_:b",
)

#: The same over triples.
TRIPLES_BELOW = (
    "[?x, :q, ?y] :- [?x, :p, ?y] .",
    "[?x, :q, ?z] :- [?x, :q, ?y], [?y, :p, ?z] .",
    "[?x, :q, ?y] :- [?x, :p, ?y], NOT EXISTS ?z, ?w IN ([?y, :p, ?z], [?z, :v, ?w]) .",
    "[?x, :q, ?x] :- [?x, :v, ?y], NOT EXISTS ?z IN ([?z, :p, ?z]) .",
)
GROUPINGS = (
    "c(?x, ?n) :- AGGREGATE([?x, :q, ?y] ON ?x BIND COUNT(?y) AS ?n) .",
    "c(?x, ?n) :- AGGREGATE([?x, :q, ?y], [?y, :v, ?z] ON ?x BIND COUNT(DISTINCT ?z) AS ?n) .",
    "c(?x, ?n) :- AGGREGATE([?x, :v, ?y] ON ?x BIND F(?y) AS ?n) .",
    "c(?x, ?m) :- AGGREGATE([?x, :v, ?y] ON ?x BIND F(?y) AS ?n BIND G(?y) AS ?m) .",
    "c(?x, ?n) :- AGGREGATE([?x, :q, ?y], [?y, :v, ?z] ON ?x BIND F(DISTINCT ?z) AS ?n) .",
    "c(?x, ?n) :- AGGREGATE([?x, :q, ?y], [?y, :v, ?z] ON ?x BIND F(?z + 1) AS ?n) .",
    "c(?x, ?n) :- AGGREGATE([?x, :q, ?z], [?z, :v, ?y] ON ?x BIND MAX_ARGMAX(?y, ?z) AS ?n) .",
    "c(?x, ?n) :- AGGREGATE([?x, :q, ?z], [?z, :v, ?y] ON ?x BIND MIN_ARGMIN(?y, ?z) AS ?n) .",
    "c(:a, ?n) :- AGGREGATE([_, :v, ?y] BIND F(?y) AS ?n BIND COUNT(*) AS ?k), FILTER(?k > 2) .",
    "c(:a, ?n) :- AGGREGATE(AGGREGATE([?x, :q, ?y] ON ?x BIND COUNT(?y) AS ?m) BIND F(?m) AS ?n) .",
    "c(?x, ?y) :- [?x, :v, ?y], NOT AGGREGATE([?x, :v, ?z] ON ?x BIND F(?z) AS ?y) .",
    "c(?x, ?n) :- AGGREGATE([?x, :v, ?y], NOT [?x, :q, ?x] ; [?x, :q, ?y] ON ?x BIND F(?y) AS ?n) .",
)
TRIPLES_ABOVE = (
    "d(?x, ?y) :- c(?x, ?n), c(?y, ?n) .",
    "d(?x, ?z) :- d(?x, ?y), d(?y, ?z), NOT c(?z, ?x) .",
    "d(?n, ?n) :- AGGREGATE(c(?x, ?y) BIND SUM(?y) AS ?n) .",
    "d(?x, ?n) :- AGGREGATE(c(?x, ?y) ON ?x BIND MAX(?y) AS ?n BIND COUNT(*) AS ?k) .",
)


def random_aggregate_case(r: Random, updates: int) -> Case:
    """Return rules that aggregate, over recursion and below it, with updates of what is given."""
    lines = [
        f".decl {name}({', '.join(f'c{i}:{type}' for i, type in enumerate(types))})" for name, types in DECLARED.items()
    ]
    lines += r.sample(BELOW, r.randint(1, 4))
    for text in r.sample(VALUES, r.randint(1, 5)):
        function = r.choice(("sum", "min", "max"))
        body = r.choice(("y > 0", "!k(y)", "e(y, _)", "y != x, e(_, y)"))
        body = body.replace("x", "y") if "x" not in text else body
        lines.append(text.replace("F", function).replace("G", r.choice((function, "mean"))).replace("B", body))
    lines += r.sample(ABOVE, r.randint(0, 4))
    facts = random_facts(r, 8)
    return Case("\n".join(lines), facts, random_updates(r, facts, updates, random_facts))


def random_grouping_case(r: Random, updates: int) -> Case:
    """Return rules over triples that aggregate terms, with updates of triples."""
    lines = ["PREFIX : <https://e/>", *r.sample(TRIPLES_BELOW, r.randint(1, 3))]
    for text in r.sample(GROUPINGS, r.randint(1, 5)):
        for letter in "FG":
            text = text.replace(f" {letter}(", f" {r.choice(('SUM', 'AVG', 'MIN', 'MAX', 'COUNT', 'SAMPLE'))}(")
        lines.append(text)
    lines += r.sample(TRIPLES_ABOVE, r.randint(0, 3))
    facts = random_triples(r, 14)
    return Case("\n".join(lines), facts, random_updates(r, facts, updates, random_triples), "dlog")


def random_updates(
    r: Random, facts: FactsGiven, count: int, random_facts: Callable[[Random, int], FactsGiven]
) -> list[Update]:
    """Return updates that delete facts that are there, and insert others."""
    stream, there = [], {(name, row) for name, rows in facts.items() for row in rows}
    for _ in range(count):
        deleted = r.sample(sorted(there, key=repr), min(len(there), r.choice((0, 1, 2, 6))))
        stream.append(Update(_by_name(deleted), random_facts(r, r.choice((0, 1, 3)))))
        inserted = {(name, row) for name, rows in stream[-1].insertions.items() for row in rows}
        there = (there - set(deleted)) | inserted
    return stream


def random_triples(r: Random, most: int) -> FactsGiven:
    def term(name: str) -> str:
        return f"<https://e/{name}>"

    rows = [
        (term(r.choice("abc")), term("p"), term(r.choice("abc")))
        if r.random() < 0.5
        else (term(r.choice("abc")), term("v"), r.choice(TERMS))
        for _ in range(r.randint(0, most))
    ]
    return {"triple": rows}


def random_facts(r: Random, most: int) -> FactsGiven:
    return {name: [random_row(r, name) for _ in range(r.randint(0, most))] for name in GIVEN if r.random() < 0.7}


def random_row(r: Random, name: str) -> tuple[object, ...]:
    return tuple(random_value(r, type) for type in DECLARED[name])


def random_value(r: Random, type: str) -> object:
    match type:
        case "float":
            return r.choice(FLOATS)
        case "unsigned":
            return r.choice((0, 1, 2, 2**63, 2**64 - 1)) if r.random() < 0.2 else r.randint(0, 3)
        case _:
            return r.choice((2**62, -(2**63), 2**63 - 1)) if r.random() < 0.01 else r.choice(NUMBERS)


def _by_name(facts: list[tuple[str, tuple[object, ...]]]) -> FactsGiven:
    found: dict[str, list[tuple[object, ...]]] = {}
    for name, row in facts:
        found.setdefault(name, []).append(row)
    return found  # type: ignore[return-value]
