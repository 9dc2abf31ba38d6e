"""Random programs with equivalences (`eqrel`) and streams of updates.

A stream is fixed by its seed, so that one that fails can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import upheld
from upheld.algebra.sets import derive, settle
from upheld.materialisation.materialisation import Materialisation

Row = tuple[int, ...]
Facts = dict[str, set[Row]]

VARIABLES = "xyzw"
#: Relations in the order in which they may negate others: a rule negates only what comes before its head.
LEVELS = ("p", "q", "e", "r", "f", "s", "g", "t")
EQUIVALENCES = ("e", "f", "g")
ARITY = {"q": 1, "t": 1}
HIGHEST = 6


@dataclass(frozen=True)
class EqrelCase:
    """A program, the facts it begins with, and updates: what each deletes and inserts."""

    text: str
    facts: Facts
    updates: list[tuple[Facts, Facts]]


def random_eqrel_case(seed: int, updates: int = 4, cyclic: bool = False) -> EqrelCase:
    """Return rules that derive, use and negate equivalences, recursively as well, with built-ins and constants.

    With `cyclic`, rules can be decomposed into nodes that hold numbers of classes which their own stratum changes.
    """
    r = Random(seed)
    columns = {name: ", ".join(f"c{i}:number" for i in range(arity(name))) for name in LEVELS}
    lines = [f".decl {name}({columns[name]}){' eqrel' * (name in EQUIVALENCES)}" for name in LEVELS]
    lines += random_cyclic_rules(r) if cyclic else []
    lines += [random_rule(r) for _ in range(0 if cyclic else r.randint(2, 7))]
    facts = {name: {random_row(r, name) for _ in range(r.randint(0, 5))} for name in LEVELS if r.random() < 0.6}
    there = {(name, row) for name, rows in facts.items() for row in rows}
    stream: list[tuple[Facts, Facts]] = []
    for _ in range(updates):
        deleted = set(r.sample(sorted(there), min(len(there), r.randint(0, 3))))
        if cyclic and r.random() < 0.5:  # what holds itself up goes only with all that it began from
            emptied = r.sample(EQUIVALENCES, 1) + ["q"]
            deleted |= {(name, row) for name, row in there if name in emptied}
        names = [r.choice(LEVELS) for _ in range(r.randint(0, 3))]
        inserted = {(name, random_row(r, name)) for name in names}
        stream.append((by_name(deleted), by_name(inserted)))
        there = (there - deleted) | inserted
    return EqrelCase("\n".join(lines), facts, stream)


def arity(name: str) -> int:
    return ARITY.get(name, 2)


def random_row(r: Random, name: str) -> Row:
    return tuple(r.randint(1, HIGHEST) for _ in range(arity(name)))


def random_rule(r: Random) -> str:
    level = r.randrange(1, len(LEVELS))
    body_names = [
        LEVELS[r.randint(0, min(level + r.choice((0, 0, 2)), len(LEVELS) - 1))] for _ in range(r.randint(1, 3))
    ]
    level = max([level, *map(LEVELS.index, body_names)])
    head_name = LEVELS[level]

    def atom(name: str, names: str) -> str:
        terms = (r.choice(names) if r.random() < 0.9 else str(r.randint(1, HIGHEST)) for _ in range(arity(name)))
        return f"{name}({', '.join(terms)})"

    body = [atom(name, VARIABLES) for name in body_names]
    bound = "".join(v for v in VARIABLES if any(v in text[2:] for text in body)) or "1"
    if r.random() < 0.3:
        body.append(f"{r.choice(bound)} {r.choice(('<', '!=', '>='))} {r.choice(bound)}")
    if r.random() < 0.15:
        body.append(f"v = {r.choice(bound)} + 1, v <= {HIGHEST}")
        bound += "v"
    while r.random() < 0.35:
        body.append("!" + atom(LEVELS[r.randrange(level)], bound))
    if r.random() < 0.2:
        body.append(
            f"!{LEVELS[r.randrange(level)]}(_, {r.choice(bound)})".replace("!q(_, ", "!q(").replace("!t(_, ", "!t(")
        )
    return f"{atom(head_name, bound)} :- {', '.join(body)}."


def random_cyclic_rules(r: Random) -> Iterator[str]:
    """Yield rules by which two equivalences depend on one another, one of them through cycles of the other."""
    inner, outer = r.sample(EQUIVALENCES, 2)
    for _ in range(r.randint(1, 2)):
        variables = "xyzwv"[: r.randint(4, 5)]
        body = [f"{outer}({', '.join(r.sample(variables, 2))})" for _ in range(r.randint(3, 5))]
        bound = sorted({v for text in body for v in variables if v in text[2:]})
        body.append(f"{inner}({', '.join(r.sample(bound, 2))})")
        if r.random() < 0.6:
            body.append(f"!p({r.choice(bound)}, {r.choice(bound)})")
        yield f"{inner}({', '.join(r.sample(bound, 2))}) :- {', '.join(body)}."
    yield f"{inner}(x, x) :- q(x)."
    yield f"{outer}(x, y) :- {inner}(x, y), p(x, y), p(y, x)."


def by_name(facts: set[tuple[str, Row]]) -> Facts:
    return {name: {row for mine, row in facts if mine == name} for name in sorted({name for name, _ in facts})}


def opened(case: EqrelCase, engine: str, algorithm: str = "adaptive", **options: object) -> Materialisation:
    return upheld.materialise(case.text, case.facts, engine=engine, algorithm=algorithm, equality="rewrite", **options)


def recomputed(case: EqrelCase, explicit: Facts) -> dict[str, set[Row]]:
    """Return what follows by the rules that make relations equivalences, derived anew by the reference engine."""
    m = upheld.materialise(case.text, explicit, engine="reference", algorithm="rematerialise")
    return {name: m[name].to_set() for name in LEVELS}


def check_stream(
    case: EqrelCase, m: Materialisation, recompute: Callable[[EqrelCase, Facts], Facts] = recomputed
) -> Iterator[Materialisation]:
    """Make the updates of a case, and compare all that users see with recomputation by rules."""
    explicit = {name: set(case.facts.get(name, ())) for name in LEVELS}
    J = recompute(case, explicit)
    assert {name: m[name].to_set() for name in LEVELS} == J
    for deleted, inserted in case.updates:
        change = m.update(delete=deleted, insert=inserted)
        for name in LEVELS:
            explicit[name] = (explicit[name] - deleted.get(name, set())) | inserted.get(name, set())
        before, J = J, recompute(case, explicit)
        for name in LEVELS:
            gone, new = change.deleted[name], change.inserted[name]
            assert m[name].to_set() == J[name] and len(m[name]) == len(J[name])
            assert (gone.to_set(), len(gone)) == (before[name] - J[name], len(before[name] - J[name]))
            assert (new.to_set(), len(new)) == (J[name] - before[name], len(J[name] - before[name]))
            assert m.explicit(name).to_set() == explicit[name]
        check_hidden(m)
        yield m


def check_hidden(m: Materialisation) -> None:
    """Every fact of a node that decomposition made follows by its rule: none holds the number of a former class."""
    hidden = {name for name, p in m._core.predicates.items() if p.hidden} - {c.members for c in m._core.classings}
    I = m._state.I
    for stratum in m._strata:
        rules = [rule for rule in stratum.rules if rule.head.predicate in hidden]
        derived = settle(derive(rules, I, I))
        for name in {rule.head.predicate for rule in rules}:
            assert set(I.rows(name)) == set(derived.rows(name)), name
