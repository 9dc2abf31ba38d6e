"""Random programs with records and algebraic data types, and streams of updates."""

from __future__ import annotations

from random import Random

from tests.helpers.programs.strategies import Case, FactsGiven, Update

TYPES = """
.type List = [head:number, tail:List]
.type Tag = [name:symbol, level:float]
.type Tree = Leaf {x:number} | Node {left:Tree, tag:Tag, right:Tree} | Nothing {}
"""

#: Relations in levels: a negation or an aggregate reads those of lower levels.
DECLARED = {
    "l": ("List",),
    "t": ("Tree",),
    "n": ("number",),
    "m": ("Tag", "number"),
    "s": ("List",),
    "p": ("Tree",),
    "q": ("number", "List"),
    "v": ("Tree", "number"),
    "w": ("Tag", "Tag"),
    "z": ("number",),
}
GIVEN = ("l", "t", "n", "m", "s")

#: Records are taken apart, compared, joined and constructed, in recursion too.
BELOW = (
    "s(x) :- l(x).",
    "s(x) :- s([_, x]).",
    "s([x, y]) :- n(x), l(y), y != nil, y = [x, _].",
    "s([x, [y, nil]]) :- n(x), n(y), x < y.",
    "p(x) :- t(x).",
    "p(x), p(y) :- p($Node(x, _, y)).",
    "p($Node(x, y, $Nothing)) :- t(x), m(y, _), x = $Leaf(_).",
    "p(x) :- p($Node(x, [_, 1], _)), !t($Node(_, _, x)).",
    "q(x, y) :- s([x, y]), n(x).",
    "q(x, z) :- q(x, y), y = [_, z], s(z).",
    "q(x, [x, y]) :- q(x, y), l([x, y]).",
    "q(x, y) :- l(y), n(x), s([x, [x, nil]]).",
    "v($Leaf(x), x) :- p($Leaf(x)).",
    "v($Nothing, 0).",
    "v($Node(x, y, z), k + 1) :- p($Node(x, y, z)), v(x, k), k < 3, v(z, _).",
    "w(x, y) :- p($Node($Leaf(_), x, $Node(_, y, _))).",
    "w([a, i], [b, i]) :- m([a, i], k), m([b, i], k), a != b.",
    "w(x, z) :- w(x, y), w(y, z).",
)
ABOVE = (
    "z(x) :- n(x), !s([x, _]).",
    "z(x) :- n(x), !q(x, [x, nil]), !s([_, [x, _]]).",
    "z(x) :- v(r, x), !w(_, ['a', _]), r != $Nothing.".replace("'", '"'),
    "z(k) :- k = count : { s([_, [_, _]]) }.",
    "z(k) :- n(x), k = sum y : { q(x, [y, _]) }.",
    "z(k) :- m(x, _), k = count : { p($Node(_, x, $Leaf(_))) }.",
    "z(k) :- k = max x : { p($Leaf(x)) ; s([x, nil]) }.",
)


def random_record_case(r: Random, updates: int) -> Case:
    """Return rules over records, with updates of the given facts."""
    lines = [TYPES]
    for name, types in DECLARED.items():
        lines.append(f".decl {name}({', '.join(f'c{i}:{type}' for i, type in enumerate(types))})")
    lines += r.sample(BELOW, r.randint(4, 10)) + r.sample(ABOVE, r.randint(1, 4))
    facts = random_facts(r, 8)
    stream, there = [], {(name, row) for name, rows in facts.items() for row in rows}
    for _ in range(updates):
        deleted = r.sample(sorted(there), min(len(there), r.choice((0, 1, 2, 6))))
        deletions: dict[str, list[tuple[object, ...]]] = {}
        for name, row in deleted:
            deletions.setdefault(name, []).append(row)
        stream.append(Update(deletions, random_facts(r, r.choice((0, 1, 3)))))
        inserted = {(name, row) for name, rows in stream[-1].insertions.items() for row in rows}
        there = (there - set(deleted)) | inserted
    return Case("\n".join(lines), facts, stream)


def random_facts(r: Random, most: int) -> FactsGiven:
    return {
        name: [tuple(random_value(r, type) for type in DECLARED[name]) for _ in range(r.randint(0, most))]
        for name in GIVEN
        if r.random() < 0.8
    }


def random_value(r: Random, type: str, depth: int = 3) -> int | str:
    """Return a number, or the canonical text of a record."""
    match type:
        case "number":
            return r.randint(0, 3)
        case "List":
            if not depth or r.random() < 0.3:
                return "nil"
            return f"[{r.randint(0, 3)}, {random_value(r, type, depth - 1)}]"
        case "Tag":
            return r.choice(("nil", '["a", 1]', '["b", 1]', '["a", 0.5]', '["\\"]", inf]', '["a\\n, b", nan]'))
        case _:
            if not depth or r.random() < 0.4:
                return r.choice(("$Nothing", "$Leaf(0)", "$Leaf(1)", "$Leaf(-2)"))
            left, right = (random_value(r, type, depth - 1) for _ in range(2))
            return f"$Node({left}, {random_value(r, 'Tag')}, {right})"
