"""Random programs with equality and streams of updates: those of the prototype, as programs over triples.

A stream is fixed by its seed, so that one that fails can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from random import Random
from unittest.mock import patch

import upheld
from upheld.base.errors import LimitReached, Problem
from upheld.compiler.equality.equality import SAME_AS
from upheld.facts.change import Change
from upheld.language.ast import Program
from upheld.materialisation.materialisation import Materialisation

Triple = tuple[str, str, str]
Update = tuple[set[Triple], set[Triple]]

VARIABLES = ("?x", "?y", "?z")


@dataclass(frozen=True)
class EqualityCase:
    """A program, the facts it begins with, and updates: what each deletes and inserts."""

    text: str
    facts: set[Triple]
    updates: list[Update]

    @property
    def program(self) -> Program:
        return upheld.parse(self.text, dialect="dlog")


def iri(name: str) -> str:
    return SAME_AS if name == "=" else f"<http://e/{name}>"


PROPERTIES = {iri("R"), iri("T"), SAME_AS}


def random_equality_case(seed: int, updates: int = 4) -> EqualityCase:
    """Return rules with equalities in heads and bodies, constants in rules, and facts that merge and split classes.

    In some cases properties may equal others, and equality itself.
    """
    r = Random(seed)
    names = list("abcdef")[: r.randint(3, 6)]
    odd = r.random() < 0.15
    constants = [*names, *(["R", "="] if odd else [])]

    def term() -> str:
        return r.choice(VARIABLES) if r.random() < 0.85 else iri(r.choice(constants))

    def relation() -> str:
        return r.choice(VARIABLES) if odd and r.random() < 0.1 else iri(r.choice("RRTT="))

    rules = []
    for _ in range(r.randint(1, 4)):
        body = [(term(), relation(), term()) for _ in range(r.randint(1, 3))]
        variables = [t for atom in body for t in atom if t in VARIABLES]

        def pick(variables: list[str] = variables) -> str:
            return r.choice(variables) if variables and r.random() < 0.9 else iri(r.choice(constants))

        head = (pick(), iri(r.choice("RT==")), pick())
        rules.append(f"{atom_text(head)} :- {', '.join(map(atom_text, body))}.")

    def fact() -> Triple:
        return iri(r.choice(constants)), iri(r.choice("RRTT=")), iri(r.choice(constants))

    facts = {fact() for _ in range(r.randint(2, 9))}
    return EqualityCase("\n".join(rules), facts, random_updates(r, fact, facts, updates))


def random_updates(r: Random, fact: Callable[[], Triple], explicit: set[Triple], count: int) -> list[Update]:
    """Return updates, each of which deletes some of the facts that there are by then, and inserts some others."""
    updates: list[Update] = []
    for _ in range(count):
        deleted = set(r.sample(sorted(explicit), min(len(explicit), r.randint(0, 3))))
        inserted = {fact() for _ in range(r.randint(0, 3))}
        updates.append((deleted, inserted))
        explicit = (explicit - deleted) | inserted
    return updates


def merged(rules: str, seed: int, databases: int, updates: int) -> EqualityCase:
    """Return rules with many random databases, each with names of its own, as one case."""
    cases = list(islice((c for s in count(seed) if is_plain(c := random_equality_case(s, updates))), databases))

    def together(sides: list[set[Triple]]) -> set[Triple]:
        return {(named(s, i), p, named(o, i)) for i, triples in enumerate(sides) for s, p, o in triples}

    changes = [
        (together([c.updates[k][0] for c in cases]), together([c.updates[k][1] for c in cases])) for k in range(updates)
    ]
    return EqualityCase(f"PREFIX : <http://e/> {rules}", together([c.facts for c in cases]), changes)


def is_plain(case: EqualityCase) -> bool:
    """Return whether properties equal no others."""
    sides = (case.facts, *(side for update in case.updates for side in update))
    return not any({s, o} & PROPERTIES for side in sides for s, _, o in side)


def named(name: str, database: int) -> str:
    return name.replace("http://e/", f"http://e/{database}/")


def atom_text(terms: tuple[str, str, str]) -> str:
    return f"[{', '.join(terms)}]"


def opened(case: EqualityCase, equality: str, engine: str, algorithm: str = "adaptive") -> Materialisation:
    return upheld.materialise(
        case.program, {"triple": case.facts}, engine=engine, equality=equality, algorithm=algorithm
    )


def recomputed(case: EqualityCase, explicit: set[Triple]) -> set[Triple]:
    """Return what follows by the axioms, derived anew by the reference engine."""
    m = upheld.materialise(
        case.program, {"triple": explicit}, engine="reference", equality="axioms", algorithm="rematerialise"
    )
    return m["triple"].to_set()  # type: ignore[return-value]


def check_stream(
    case: EqualityCase,
    engine: str,
    algorithm: str = "adaptive",
    recompute: Callable[[EqualityCase, set[Triple]], set[Triple]] = recomputed,
) -> Iterator[Materialisation]:
    """Make the updates of a case by rewriting, and compare all that users see with recomputation under the axioms."""
    explicit = set(case.facts)
    m = opened(case, "rewrite", engine, algorithm)
    J = recompute(case, explicit)
    assert m["triple"].to_set() == J
    for deleted, inserted in case.updates:
        change = m.update(delete={"triple": deleted}, insert={"triple": inserted})
        explicit = (explicit - deleted) | inserted
        before, J = J, recompute(case, explicit)
        assert_seen(m, change, explicit, before, J)
        check_state(m)
        yield m


def assert_seen(m: Materialisation, change: Change, explicit: set[Triple], before: set[Triple], J: set[Triple]) -> None:
    """What users see is J, and of a change what it has made of what was before; numbers are told without a listing."""
    assert m["triple"].to_set() == J
    assert len(m["triple"]) == len(J)
    assert m.explicit("triple").to_set() == explicit
    inserted, deleted = change.inserted["triple"], change.deleted["triple"]
    assert (inserted.to_set(), deleted.to_set()) == (J - before, before - J)
    assert (len(inserted), len(deleted)) == (len(J - before), len(before - J))


def after_failures(
    m: Materialisation, update: dict[str, object], unchanged: Callable[[], None], every: int = 1
) -> Change:
    """Return the change of an update that first fails at each set it settles; each time nothing may have changed.

    With `every`, only one in so many sets fails.
    """
    settle, failed = m._engine.settle, 0
    for at in range(0, 1000, every):
        left = at

        def fail(facts):
            nonlocal left
            left -= 1
            if left < 0:
                raise LimitReached(Problem("limit-reached", "enough"))
            return settle(facts)

        with patch.object(m._engine, "settle", fail):
            try:
                change = m.update(**update)
            except LimitReached:
                failed += 1
            else:
                assert failed > 20
                return change
        unchanged()
    raise AssertionError("an update that settles a thousand sets")


def check_state(m: Materialisation) -> None:
    """What is kept is normal, has the smallest representatives, and counts the explicit facts that are not."""
    rewriting = m._representation.rewriting
    assert rewriting is not None
    pi = rewriting.pi
    normal = m.unexpanded("triple").to_set()
    counts: dict[tuple[object, ...], int] = {}
    for row in m.explicit("triple").to_set():
        representative = tuple(pi.representatives(row))
        if representative != row:
            counts[representative] = counts.get(representative, 0) + 1
    assert {row: n for (_, row), n in rewriting.stand_ins.items()} == counts
    mentioned = {constant for row in m.explicit("triple") for constant in row}
    loops = [(constant, SAME_AS, constant) for constant in {c for row in m["triple"] for c in row}]
    counted = pi.counted(m._engine.load("triple", loops)).rows("triple")
    assert {constant for constant, _, _ in counted} == mentioned
    for row in normal:
        assert tuple(pi.representatives(row)) == row
    assert {(m.representative(s), p, m.representative(o)) for s, p, o in m["triple"] if p == SAME_AS} <= normal
    for s, p, o in m["triple"]:
        if p == SAME_AS:
            assert o in m.equals(s) and m.equals(s)[0] == m.representative(o)
