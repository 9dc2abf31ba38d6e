"""Components: the program that `.comp` and `.init` stand for, and what is wrong with them."""

from __future__ import annotations

from random import Random

import pytest

import upheld
from tests.helpers.programs.strategies import random_case, within_components
from tests.helpers.runs import run
from upheld.base.errors import ProgramError
from upheld.language.syntax.components import COMPONENT_DEPTH, INSTANCE_COUNT
from upheld.language.syntax.files import read_text

GRAPH = """
.comp Graph<N> {
  .decl edge(x:N, y:N)
  .decl path(x:N, y:N) overridable
  path(x, y) :- edge(x, y).
  path(x, z) :- path(x, y), edge(y, z).
}
"""


def same(text: str, plain: str) -> None:
    """Check that a program is another one, written without components, and that it prints back."""
    program = read_text(text)
    assert str(program) == str(read_text(plain))
    assert read_text(str(program)) == program


def problems(text: str) -> list[upheld.base.errors.Problem]:
    with pytest.raises(ProgramError) as error:
        read_text(text)
    return list(error.value.problems)


# -- what programs mean -----------------------------------------------------------------------------------------------


def test_instances_qualify_names():
    same(
        GRAPH + '.init g = Graph<symbol>\ng.edge("a", "b").\n.output g.path',
        """.decl g.edge(x:symbol, y:symbol)
        .decl g.path(x:symbol, y:symbol)
        .output g.path
        g.edge("a", "b").
        g.path(x, y) :- g.edge(x, y).
        g.path(x, z) :- g.path(x, y), g.edge(y, z).""",
    )


def test_rules_without_a_declaration_in_the_component_are_about_relations_around_it():
    """In an instance within another one, a name is looked up from the inside to the outside."""
    same(
        """.decl all(x:number)
        .comp Outer {
          .decl some(x:number)
          .comp Inner { .decl r(x:number) r(1). some(x) :- r(x). all(x) :- some(x), !r(x). }
          .init i = Inner
          all(x) :- i.r(x).
        }
        .init o = Outer""",
        """.decl all(x:number)
        .decl o.i.r(x:number)
        .decl o.some(x:number)
        o.i.r(1).
        o.some(x) :- o.i.r(x).
        all(x) :- o.some(x), !o.i.r(x).
        all(x) :- o.i.r(x).""",
    )


def test_types_within_components():
    same(
        """.type Id <: number
        .comp C<T> { .type Id <: T .type Both = Id | T .decl r(x:Id, y:Both, z:T) }
        .init c = C<Id>""",
        """.type Id <: number
        .type c.Id <: Id
        .type c.Both = c.Id | Id
        .decl c.r(x:c.Id, y:c.Both, z:Id)""",
    )


def test_records_and_branches_within_components():
    """Types of fields are those of the instance, and so are the branches of its data types."""
    same(
        """.comp C<T> { .type L = [head:T, tail:L] .type Tree = Leaf {} | Node {v:T, l:Tree}
          .decl t(x:Tree, l:L)  t($Node(1, $Leaf()), [1, nil]). }
        .init c = C<number>""",
        """.type c.L = [head:number, tail:c.L]
        .type c.Tree = c.Leaf {} | c.Node {v:number, l:c.Tree}
        .decl c.t(x:c.Tree, l:c.L)
        c.t($c.Node(1, $c.Leaf()), [1, nil]).""",
    )


def test_arguments_mean_what_they_mean_where_they_are_written():
    """`Id` as an argument is the type of `D`, although `C` has a type of that name."""
    same(
        """.comp C<T> { .type Id <: number .decl r(x:T, y:Id) }
        .comp D { .type Id <: symbol .init c = C<Id> }
        .init d = D""",
        """.type d.c.Id <: number
        .type d.Id <: symbol
        .decl d.c.r(x:d.Id, y:d.c.Id)""",
    )


def test_inheritance_and_override():
    same(
        GRAPH
        + """.comp Both<A, B> : Graph<A> {
          .override path
          .decl label(x:A, y:B)
          path(x, y) :- edge(x, y), label(x, _).
        }
        .init b = Both<number, symbol>""",
        """.decl b.edge(x:number, y:number)
        .decl b.path(x:number, y:number)
        .decl b.label(x:number, y:symbol)
        b.path(x, y) :- b.edge(x, y), b.label(x, _).""",
    )


def test_override_replaces_rules_of_all_ancestors():
    """The rules of the component itself stay, and so do rules outside of the components."""
    same(
        """.comp A { .decl r, s(x:number) overridable r(1). s(1). }
        .comp B : A { r(2). s(2). }
        .comp C : B { .override r  r(3). }
        .init c = C
        c.r(4).""",
        ".decl c.r, c.s(x:number) c.r(4). c.s(1). c.s(2). c.r(3).",
    )


def test_override_of_a_rule_with_several_heads():
    same(
        """.comp A { .decl r, s(x:number) overridable r(x), s(x) :- t(x). }
        .comp B : A { .override r }
        .decl t(x:number)
        .init b = B""",
        ".decl t(x:number) .decl b.r, b.s(x:number) b.s(x) :- t(x).",
    )


def test_several_bases():
    same(
        """.comp A<T> { .decl a(x:T) }
        .comp B<T> { .decl b(x:T) }
        .comp C<T> : A<T>, B<symbol> { a(x) :- b(_), x = 1. }
        .init c = C<number>""",
        ".decl c.a(x:number) .decl c.b(x:symbol) c.a(x) :- c.b(_), x = 1.",
    )


def test_parameters_as_components():
    """A parameter may be a base, or behind `.init`; its argument is looked up around the instance first."""
    same(
        """.comp One { .decl r(x:number) r(1). }
        .comp Two { .decl r(x:number) r(2). }
        .comp Use<C, D> : D { .init c = C  r(x + 10) :- c.r(x). }
        .init u = Use<One, Two>""",
        """.decl u.r(x:number) .decl u.c.r(x:number) u.r(2). u.c.r(1). u.r(x + 10) :- u.c.r(x).""",
    )
    same(
        """.comp Use<C> { .comp In { .decl r(x:number) } .init c = C }
        .init u = Use<In>""",
        ".decl u.c.r(x:number)",
    )


def test_components_within_components():
    """A component within another one may use its parameters; one of a base can be initialised, too."""
    same(
        """.comp A<T> { .comp In { .decl r(x:T) } .init i = In }
        .comp B<T> : A<T> { .init j = In }
        .init b = B<number>""",
        ".decl b.i.r(x:number) .decl b.j.r(x:number)",
    )


def test_components_and_instances_of_one_name():
    """Names of components, instances and relations do not meet."""
    same(".comp a { .decl a(x:number) a(1). } .init a = a", ".decl a.a(x:number) a.a(1).")


def test_a_component_may_contain_itself_with_another_argument():
    same(
        """.comp Leaf { .decl r(x:number) }
        .comp Wrap<C> { .init w = C }
        .comp Twice { .init t = Wrap<Leaf> }
        .init x = Wrap<Twice>""",
        ".decl x.w.t.w.r(x:number)",
    )


def test_qualifiers_and_hints_of_components():
    """Hints of a component are kept once; `overridable` says nothing about an instance."""
    program = read_text(
        '.comp C { .decl r(x:number) inline overridable .pragma "a" } .init c = C .init d = C .output c.r'
    )
    assert [hint.text for hint in program.hints] == [".decl c.r inline", ".decl d.r inline", '.pragma "a"']


def test_files_included_within_a_component(tmp_path):
    (tmp_path / "part.dl").write_text(".decl r(x:number) r(1).")
    program = tmp_path / "program.dl"
    program.write_text('.comp C { .include "part.dl" }\n.init c = C\n.decl s(x:number)')
    assert str(upheld.parse(program)) == str(read_text(".decl s(x:number) .decl c.r(x:number) c.r(1)."))


def test_directives_within_components(tmp_path):
    """The files of a relation are named like it."""
    (tmp_path / "c.r.facts").write_text("1\n")
    program = ".comp C { .decl r, s(x:number) .input r .output s  s(x) :- r(x). } .init c = C"
    run(program, tmp_path, tmp_path)
    assert (tmp_path / "c.s.csv").read_text() == "1\n"


def test_names_in_facts_queries_and_explanations():
    m = upheld.materialise(GRAPH + ".init g = Graph<number>", {"g.edge": [(1, 2), (2, 3)]})
    assert m.query("g.path(1, x), !g.edge(1, x)").to_rows() == [(3,)]
    assert m.update(delete={"g.edge": [(2, 3)]}).deleted["g.path"].to_set() == {(1, 3), (2, 3)}
    assert str(m.explain("g.path(1, 2)")).splitlines() == [
        "g.path(1, 2)  by <program>:5:3: g.path(x, y) :- g.edge(x, y).",
        "  g.edge(1, 2)  explicit",
    ]


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, slug, place, words",
    [
        (".init c = Grap" + GRAPH, "unknown-component", "1:11", ["unknown component `Grap`", "did you mean `Graph`?"]),
        (".comp C : D { }", "unknown-component", "1:11", ["unknown component `D`", "add `.comp D"]),
        (".comp C { .init d = D }", "unknown-component", "1:21", ["unknown component `D`"]),
        (".comp C { .comp D { } }\n.init d = D", "unknown-component", "2:11", ["unknown component `D`"]),
        (".comp C<T> { }\n.init c = C", "component-parameters", "2:11", ["has 1 parameter, not 0", "declared here"]),
        (".comp C { }\n.comp D : C<number> { }", "component-parameters", "2:11", ["has 0 parameters, not 1"]),
        (".comp C<T, T> { }", "component-parameters", "1:1", ["two parameters `T`"]),
        (".comp C { }\n.comp C { }", "duplicate-component", "2:1", ["declared here first"]),
        (".comp C { }\n.init c = C\n.init c = C", "duplicate-instance", "3:1", ["initialised here first"]),
        (".comp C { .init d = C }", "cyclic-component", None, []),
        (".comp C : C { }", "cyclic-component", "1:1", ["`C` is derived from itself"]),
        (".comp A { .decl r(x:number) }\n.comp B : A { .override r }", "bad-override", "2:25", ["not overridable"]),
        (".comp B { .decl r(x:number) .override r }", "bad-override", "1:39", ["in `B` itself, not inherited"]),
        (".comp A { .decl ab(x:number) }\n.comp B : A { .override abc }", "bad-override", "2:25", ["you mean `ab`"]),
    ],
)
def test_mistakes(text, slug, place, words):
    if place is None:
        read_text(text)  # a component that nothing initialises may contain itself
        text, place = f"{text}\n.init c = C", "1:11"
    (problem,) = problems(text)
    assert problem.slug == slug
    assert str(problem).startswith(f"<program>:{place}: error: ")
    for word in words:
        assert word in str(problem)


def test_cycles():
    text = ".comp A : B { }\n.comp B : A { }"
    assert [(p.slug, p.span.line) for p in problems(text)] == [("cyclic-component", 1), ("cyclic-component", 2)]
    text = ".comp A { .init b = B }\n.comp B { .init a = A }\n.init a = A"
    (problem,) = problems(text)
    assert problem.slug == "cyclic-component"
    assert "this would be the instance `a.b.a`" in str(problem)
    text = ".comp A<T> { .init a = A<U> .type U <: T }\n.init a = A<number>"
    assert {p.slug for p in problems(text)} == {"cyclic-component"}
    (problem,) = problems(".comp A<T> : T { }\n.comp B : A<B> { }\n.init a = B")
    assert problem.slug == "cyclic-component"


def test_mistakes_in_arguments():
    """An argument that should be a component is told with its parameter and the `.init`."""
    (problem,) = problems(".comp A<T> { .init t = T }\n.init a = A<Nothing>")
    assert problem.slug == "unknown-component"
    assert "`Nothing` is the argument for the parameter `T`" in str(problem)
    assert "<program>:2:1: in the instance made here" in str(problem)
    (problem,) = problems(".comp B<T> { }\n.comp A<T> : T { }\n.init a = A<B>")
    assert problem.slug == "component-parameters"
    text = ".comp B { .decl r(x:number) }\n.comp A<T> : T { .override r }\n.init a = A<B>\n.init b = A<B>"
    assert [p.slug for p in problems(text)] == ["bad-override"]


def test_an_instance_of_an_inherited_name():
    (problem,) = problems(".comp C { }\n.comp A { .init c = C }\n.comp B : A { .init c = C }\n.init b = B")
    assert problem.slug == "duplicate-instance"
    assert "instance `b.c` is initialised twice" in str(problem)


def test_too_many_instances():
    """Components that double each other stop at a limit, and so do bases that go too deep."""
    text = ".comp C0 { }\n"
    text += "".join(f".comp C{n + 1} {{ .init a = C{n} .init b = C{n} }}\n" for n in range(20))
    (problem,) = problems(text + ".init c = C20")
    assert problem.slug == "too-many-components"
    assert f"{INSTANCE_COUNT:,}" in str(problem)
    text = ".comp C0 { }\n" + "".join(f".comp C{n + 1} : C{n} {{ }}\n" for n in range(COMPONENT_DEPTH + 5))
    (problem,) = problems(text + f".init c = C{COMPONENT_DEPTH + 5}")
    assert problem.slug == "too-many-components"


def test_components_nested_too_deeply():
    deep = COMPONENT_DEPTH + 1
    problem = problems(".comp C { " * deep + "} " * deep)[0]
    assert problem.slug == "nested-too-deep"
    assert "components nest at most 50 deep" in str(problem)


def test_places_in_expanded_rules():
    """An error in a rule of a component has its place there, and names the `.init` of the instance."""
    with pytest.raises(ProgramError) as error:
        upheld.check(".comp C<T> {\n  .decl r(x:T)\n  r(x) :- s(x).\n}\n.init c = C<number>\n.init d = C<number>")
    (problem,) = error.value.problems
    assert problem.slug == "unknown-relation"
    assert str(problem).splitlines()[:5] == [
        "<program>:3:11: error: unknown relation `s` [unknown-relation]",
        "  3 |   r(x) :- s(x).",
        "    |           ^^^^",
        "  <program>:5:1: in the instance made here",
        "  5 | .init c = C<number>",
    ]
    with pytest.raises(ProgramError) as error:  # both instances have a place
        upheld.check(".comp C<T> {\n  .decl r(x:T)\n  r(1).\n}\n.init c = C<number>\n.init d = C<symbol>")
    assert "<program>:6:1: in the instance made here" in str(error.value.problems[0])


def test_relations_declared_twice_in_an_instance():
    text = ".comp A { .decl r(x:number) }\n.comp B : A { .decl r(x:number) }\n.init b = B"
    with pytest.raises(ProgramError) as error:
        upheld.check(text)
    assert error.value.slugs == ("duplicate-relation",)
    assert "relation `b.r` is declared twice" in str(error.value)


# -- random programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_within_components(seed):
    """A program cut into components, with bases and parameters, has the facts of the program itself."""
    random = Random(seed)
    plain = random_case(random, updates=3)
    case, names = within_components(random, plain)
    expected = upheld.materialise(plain.program, plain.facts)
    m = upheld.materialise(case.program, case.facts)
    for update, step in zip([None, *plain.updates], [None, *case.updates], strict=True):
        if update is not None and step is not None:
            expected.update(delete=update.deletions, insert=update.insertions)
            m.update(delete=step.deletions, insert=step.insertions)
        for relation, qualified in names.items():
            assert m[qualified].to_set() == expected[relation].to_set(), case.program
    printed = str(upheld.parse(case.program))
    assert upheld.parse(printed) == upheld.parse(case.program)
