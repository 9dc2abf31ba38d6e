"""Records in rules: what patterns bind, which types fields have, and what is refused."""

from __future__ import annotations

import pytest

import upheld
from upheld.compiler.compile import compile_program
from upheld.engines import ENGINES
from upheld.language.syntax.files import read_text

TYPES = """
.type List = [head:number, tail:List]
.type Tree = Leaf {x:number} | Node {left:Tree, right:Tree} | Nothing {}
.decl l(x:List)
.decl t(x:Tree)
.decl n(x:number)
.decl q(x:number, y:number)
.decl r(x:List, y:List)
.decl s(x:Tree)
"""
FACTS = {
    "l": [(None,), ((1, None),), ((2, (1, None)),), ((3, (3, None)),)],
    "t": [("$Node($Leaf(1), $Nothing)",), ("$Node($Leaf(2), $Node($Leaf(2), $Leaf(2)))",), ("$Leaf(5)",)],
    "n": [(1,), (2,)],
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "rule, expected",
    [
        ("q(x, y) :- l([x, [y, _]]).", {(2, 1), (3, 3)}),
        ("q(x, x) :- l([x, [x, nil]]).", {(3, 3)}),
        ("q(x, 0) :- l([x, _]), !l([_, [x, nil]]).", {(2, 0)}),
        ("q(x, y) :- l(z), z = [x, w], w = [y, _].", {(2, 1), (3, 3)}),
        ("q(x, y) :- n(x), n(y), l([x, [y, nil]]).", {(2, 1)}),
        ("q(x, y) :- n(x), n(y), z = [x, y], z = v, v = [1, _].", {(1, 1), (1, 2)}),
        ("q(x, y) :- n(x), n(y), [x, y] != [1, 1], [x, _] = [y, 7].", {(2, 2)}),
        ("q(x, 0) :- n(x), l([x + 1, _]).", {(1, 0), (2, 0)}),
        ("q(x, 0) :- n(x), !l([x + 1, [x, _]]).", {(2, 0)}),
        ("q(x, k) :- n(x), k = count : { l([x, _]) }.", {(1, 1), (2, 1)}),
        ("q(x, k) :- n(x), k = sum y : { l([y, z]), (z = [x, _] ; z = nil) }.", {(1, 3), (2, 1)}),
        ("q(0, k) :- k = count : { l([_, _]) }.", {(0, 3)}),
        ("r(x, y) :- l(x), l(y), x = [_, y].", {("[1, nil]", "nil"), ("[2, [1, nil]]", "[1, nil]")}),
        ("r([x, y], y) :- n(x), y = nil.", {("[1, nil]", "nil"), ("[2, nil]", "nil")}),
        ("s(x) :- t($Node(x, $Nothing)).", {("$Leaf(1)",)}),
        ("s(x) :- t($Node(x, $Node(x, _))).", {("$Leaf(2)",)}),
        ("s($Node(x, x)) :- t(x), x = $Leaf(_).", {("$Node($Leaf(5), $Leaf(5))",)}),
        ("s(x) :- t(x), !t($Node(_, _)).", set()),
        ("s(x) :- t(x), x != $Leaf(5), !(x = $Node($Leaf(1), $Nothing)).", {(FACTS["t"][1][0],)}),
        ("q(x, 0) :- t($Leaf(x)) ; t($Node($Leaf(x), $Nothing)).", {(1, 0), (5, 0)}),
    ],
)
def test_patterns(engine, rule, expected):
    """A pattern matches the records that have its fields, and binds its variables."""
    m = upheld.materialise(TYPES + rule, FACTS, engine=engine)
    assert m[rule[0]].to_set() == expected


@pytest.mark.parametrize(
    "rule, slug",
    [
        ("q(x, y) :- z = [x, y].", "unsafe-head"),
        ("q(x, x) :- n(x), z = [x, _].", "unsafe-comparison"),
        ("l([x, _]) :- n(x).", "wildcard-in-head"),
        ("l([_, nil]).", "unsafe-head"),
        ("n(x) :- n(x), l(y), y != [x, _].", "wildcard-in-comparison"),
        ("n(x) :- l([x]).", "type-clash"),
        ('l(["a", nil]).', "type-clash"),
        ("l([1, 2]).", "type-clash"),
        ("s(x) :- l(x).", "subtype-clash"),
        ("s(nil).", "type-clash"),
        ("s([1, nil]).", "type-clash"),
        ("l($Leaf(1)).", "type-clash"),
        ("s($Leaf(1, 2)).", "wrong-argument-count"),
        ("s($Leaf).", "wrong-argument-count"),
        ("s($Root(1)).", "unknown-branch"),
        ("n(1) :- l(x), l(y), x < y.", "type-clash"),
        ("n(k) :- k = max x : { l(x) }.", "type-clash"),
        ("n(1) :- l(x), t(x).", "subtype-clash"),
        (".type A <: List", "record-subtype"),
        (".type A = List | Tree", "record-subtype"),
        (".type A = Leaf {}", "duplicate-branch"),
        (".type A = [x:number, x:number]", "duplicate-attribute"),
        (".type A = [x:nowhere]", "unknown-type"),
    ],
)
def test_refused(rule, slug):
    """What has no meaning is refused by name."""
    with pytest.raises(upheld.UpheldError) as refusal:
        compile_program(read_text(TYPES + rule))
    assert slug in refusal.value.slugs


def test_aliases():
    """Another name of a record type is the same type, also before the type and in its own fields."""
    program = ".type B = A\n.type A = [x:number, y:C]\n.type C = B\n.decl a(x:A)\n.decl b(x:C)\nb(x) :- a([_, x])."
    m = upheld.materialise(program, {"a": [((1, (2, None)),)]})
    assert m["b"].to_set() == {("[2, nil]",)}


def test_types_of_fields():
    """Numbers have the type of their field, and fields of undeclared records the types of their use."""
    m = upheld.materialise(
        ".type F = [x:float, y:unsigned]\n.decl f(x:F)\n.decl x(x:float)\nf([1, 2]). x(a) :- f([a, 2])."
    )
    assert m["f"].to_set() == {("[1, 2]",)} and m["x"].to_set() == {(1.0,)}
    m = upheld.materialise('p([1, ["a", 2.5]]). q(x, y) :- p([x, [_, y]]). r(z) :- p([_, z]).')
    assert m["q"].to_rows() == [(1, 2.5)] and m["r"].to_rows() == [('["a", 2.5]',)]
    assert m.query("p([_, z]), r(z), z = [x, _]").to_rows() == [('["a", 2.5]', "a")]


def test_components():
    """Branches belong to an instance, like types."""
    m = upheld.materialise(
        """
        .comp Trees<T> {
          .type Tree = Leaf {x:T} | Node {left:Tree, right:Tree} | Nothing {}
          .decl tree(x:Tree)
          .decl leaf(x:T)
          tree(x), tree(y) :- tree($Node(x, y)).
          leaf(x) :- tree($Leaf(x)).
        }
        .init a = Trees<number>
        .init b = Trees<symbol>
        .decl first(x:number)
        a.tree($a.Node($a.Leaf(1), $a.Nothing)).
        b.tree($b.Leaf("x")).
        first(x) :- a.tree($a.Node($a.Leaf(x), _)).
        """
    )
    assert [m[name].to_rows() for name in ("a.leaf", "b.leaf", "first")] == [[(1,)], [("x",)], [(1,)]]


@pytest.mark.parametrize(
    "rule, grows",
    [("l(x) :- l([_, x]).", False), ("l([1, x]) :- l(x).", True), ("l([x, y]) :- l([x, [_, y]]), n(x).", True)],
)
def test_growth(rule, grows):
    """To construct records in a recursion may never end; to take them apart ends."""
    report = upheld.check(read_text(TYPES + rule))
    assert any(w.slug == "arithmetic-recursion" for w in report.warnings) == grows
    if grows and "n(x)" not in rule:
        with pytest.raises(upheld.UpheldError) as stopped:
            upheld.materialise(TYPES + rule, FACTS, limits=upheld.Limits(facts=1000))
        assert stopped.value.slugs == ("limit-reached",)


def test_too_long():
    """A record that doubles at each step is stopped with its rule."""
    program = ".type P = [x:P, y:P]\n.decl p(x:P, n:number)\np(nil, 0). p([x, x], n + 1) :- p(x, n), n < 100."
    with pytest.raises(upheld.UpheldError) as stopped:
        upheld.materialise(program)
    assert stopped.value.slugs == ("undefined-result",) and "longer than the maximum" in str(stopped.value)
