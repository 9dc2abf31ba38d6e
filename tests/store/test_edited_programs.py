"""An edited program opens a saved state: explicit facts are kept, and the difference of the programs is applied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import upheld
from tests.helpers.streams.streams import Recomputed, assert_recomputed
from tests.store.test_versions import taken_over
from upheld.cli import main
from upheld.materialisation.materialisation import Materialisation

REACH = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
HOPS = "path(x, y) :- edge(x, y). hop(x, z) :- edge(x, y), edge(y, z), !path(z, x)."


def recounted(m: Materialisation) -> None:
    """Facts and bookkeeping are those of recomputation."""
    explicit = {(p, row) for p in m._core.predicates for row in m._state.E.rows(p)}
    assert_recomputed(m, Recomputed(m._core, m._strata, explicit))


def slugs_of(program: str, folder: Path, **options: object) -> tuple[str, ...]:
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.restore(program, folder, edited=True, **options)
    return refusal.value.slugs


def test_difference_is_applied_and_reported(tmp_path):
    m = upheld.materialise(REACH, {"edge": [(1, 2), (2, 3)]})
    m.update(insert={"edge": [(3, 4)]})
    m.save(tmp_path)
    again = upheld.restore(HOPS, tmp_path, edited=True)
    assert again.facts() == upheld.materialise(HOPS, {"edge": [(1, 2), (2, 3), (3, 4)]}).facts()
    recounted(again)
    assert again.program_change is not None
    assert again.program_change.removed == ("path(x, z) :- path(x, y), edge(y, z).",)
    assert again.program_change.added == ("hop(x, z) :- edge(x, y), edge(y, z), !path(z, x).",)
    assert again.program_change.change.deleted["path"].to_set() == {(1, 3), (2, 4), (1, 4)}
    assert again.program_change.change.inserted["hop"].to_set() == {(1, 3), (2, 4)}
    assert "<program>:1:1:" in str(again.explain("path(1, 2)"))  # the place in the edited program
    assert again.save(tmp_path) == 2
    assert upheld.restore(HOPS, tmp_path).facts() == again.facts()


def test_the_same_program_changes_nothing(tmp_path):
    upheld.materialise(REACH, {"edge": [(1, 2)]}).save(tmp_path)
    again = upheld.restore(f"// the same\n{REACH}", tmp_path, edited=True)
    assert again.program_change is None and taken_over(again)


def test_facts_that_programs_state(tmp_path):
    """What the new text states comes, what only the old one stated goes, and a deleted fact stays deleted."""
    m = upheld.materialise("q(x) :- p(x). p(1). p(2).", {"p": [3]})
    m.update(delete={"p": [2]})
    m.save(tmp_path)
    again = upheld.restore("q(x) :- p(x). p(2). p(4).", tmp_path, edited=True)
    assert again["q"].to_set() == {(3,), (4,)}
    again.change_rules(add="p(5).")
    again.save(tmp_path)
    assert upheld.restore("q(x) :- p(x). p(2). p(4). p(5).", tmp_path)["q"].to_set() == {(3,), (4,), (5,)}


def test_relations_that_come_and_go(tmp_path):
    old = ".decl a(x:number) .decl b(x:number) .decl c(x:number) b(x) :- a(x)."
    new = ".decl a(x:number) .decl d(x:symbol) d(to_string(x)) :- a(x)."
    upheld.materialise(old, {"a": [1], "c": [7]}).save(tmp_path)
    again = upheld.restore(new, tmp_path, edited=True)
    assert again.facts() == {("a", (1,)), ("c", (7,)), ("d", ("1",))}
    again.save(tmp_path)
    assert upheld.restore(new, tmp_path).facts() == again.facts()


def test_renamed_columns_are_reported(tmp_path):
    upheld.materialise(".decl e(source:number, target:number)", {"e": [(1, 2)]}).save(tmp_path)
    again = upheld.restore(".decl e(a:number, b:number)", tmp_path, edited=True)
    assert again["e"].columns == ("a", "b") and again["e"].to_set() == {(1, 2)}
    assert again.program_change is not None
    assert again.program_change.removed == (".decl e(source:number, target:number)",)
    assert again.program_change.added == (".decl e(a:number, b:number)",)
    again.save(tmp_path)
    later = upheld.restore(".decl e(a:number, b:number) .decl f(x:number)", tmp_path, edited=True)
    assert later["e"].columns == ("a", "b")


@pytest.mark.parametrize(
    ("program", "slug"),
    [
        (".decl edge(x:symbol, y:symbol)", "relation-changed"),
        (".decl edge(x:number)", "relation-changed"),
        ("path(x, y) :- edge(x, y, _).", "arity-clash"),
        ("path(x, y) :- edge(x, z).", "unsafe-head"),
        ("p(x) :- edge(x, _), !q(x). q(x) :- edge(x, _), !p(x).", "negation-in-recursion"),
    ],
)
def test_refused(tmp_path, program, slug):
    """A program that does not fit the facts, or is not valid, leaves the state as it was."""
    m = upheld.materialise(REACH, {"edge": [(1, 2)]})
    m.save(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    assert slugs_of(program, tmp_path) == (slug,)
    assert sorted(tmp_path.rglob("*")) == files
    assert upheld.restore(REACH, tmp_path).facts() == m.facts()


def test_refused_with_rewriting(tmp_path):
    rules = upheld.parse("PREFIX : <http://e/> [?x, owl:sameAs, ?y] :- [?x, :is, ?y].", dialect="dlog")
    other = upheld.parse("PREFIX : <http://e/> [?x, owl:sameAs, ?y] :- [?x, :was, ?y].", dialect="dlog")
    upheld.materialise(rules, equality="rewrite").save(tmp_path)
    assert slugs_of(other, tmp_path, equality="rewrite") == ("fixed-rules",)
    assert slugs_of(other, tmp_path, equality="axioms") == ("other-program",)


def test_damaged_text(tmp_path):
    upheld.materialise(REACH, {"edge": [(1, 2)]}).save(tmp_path)
    (text,) = (tmp_path / "program").iterdir()
    text.write_text(text.read_text().replace("edge(x, y)", "edge(y, x)"))
    assert slugs_of(HOPS, tmp_path) == ("bad-state",)


def test_one_text_for_all_versions_of_a_program(tmp_path):
    m = upheld.materialise(REACH, {"edge": [(1, 2)]})
    for n in range(3):
        m.update(insert={"edge": [(n, n + 1)]})
        m.save(tmp_path)
    assert len(list((tmp_path / "program").iterdir())) == 1


def test_a_relation_with_a_long_name_is_saved(tmp_path):
    """Passes name hidden relations by parts of rules, which may be longer than names of files."""
    name = "a_rather_long_name" * 20
    m = upheld.materialise(f"{name}(x) :- p(x).", {"p": [1]})
    m.save(tmp_path)
    assert upheld.restore(f"{name}(x) :- p(x).", tmp_path).facts() == m.facts()


def test_bookkeeping_of_removed_rules_is_not_taken_over(tmp_path):
    """Removed rules still place facts in strata, which a program that never had them does not."""
    m = upheld.materialise("r(x, 2) :- r(0, x). r(x, x) :- r(1, x).", {"r": [(3, 3), (0, 1)]})
    m.change_rules(remove="r(x, x) :- r(1, x).")
    m.save(tmp_path)
    again = upheld.restore("r(x, 2) :- r(0, x).", tmp_path)
    assert again.facts() == m.facts()
    recounted(again)


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    declared = ".decl edge(x:number, y:number) .input edge .decl path(x:number, y:number) .output path\n"
    (tmp_path / "reach.dl").write_text(f"{declared}path(x, y) :- edge(x, y).")
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n")
    (tmp_path / "updates.txt").write_text("+edge(3, 4).\ncommit.\n")
    assert main(["run", "reach.dl", "--state", "kept"]) == 0
    assert "state: version 1 in kept" in capsys.readouterr().err
    assert main(["run", "reach.dl", "--state", "kept"]) == 0
    assert "state: version 1 in kept" in capsys.readouterr().err  # nothing has changed
    (tmp_path / "edge.facts").unlink()
    assert main(["apply", "reach.dl", "--state", "kept", "--updates", "updates.txt"]) == 0
    assert (tmp_path / "path.csv").read_text().split() == ["1", "2", "2", "3", "3", "4"]
    (tmp_path / "reach.dl").write_text(f"{declared}path(x, z) :- edge(x, y), edge(y, z).")
    assert main(["run", "reach.dl", "--state", "kept"]) == 2
    assert "other-program" in capsys.readouterr().err
    assert main(["run", "reach.dl", "--state", "kept", "--edited"]) == 0
    shown = capsys.readouterr().err
    assert "- path(x, y) :- edge(x, y).\n+ path(x, z) :- edge(x, y), edge(y, z).\n" in shown
    assert "<Change +2 path, -3 path>" in shown and "state: version 3 in kept" in shown
    assert (tmp_path / "path.csv").read_text().split() == ["1", "3", "2", "4"]
    assert json.loads((tmp_path / "kept" / "manifest-000003.json").read_text())["version"] == 3
    assert main(["run", "reach.dl", "--edited"]) == 2
    assert "`--edited` needs `--state`" in capsys.readouterr().err
