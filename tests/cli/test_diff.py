"""`upheld diff`: the facts that appear and vanish between two programs, by rule, and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from upheld.cli import main

OLD = ".decl e(x:number, y:number)\n.input e\n.decl p(x:number, y:number)\n.decl q(x:number)\np(x, y) :- e(x, y).\n"
NEW = OLD + "p(x, z) :- p(x, y), e(y, z).\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.dl").write_text(OLD + "q(x) :- e(x, _).\n")
    Path("new.dl").write_text(NEW)
    Path("e.facts").write_text("1\t2\n2\t3\n3\t4\n")


def test_facts_by_rule(capsys):
    assert main(["diff", "old.dl", "new.dl", "-F", "."]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "- old.dl:6:1: q(x) :- e(x, _).",
        "-   q(1)",
        "-   q(2)",
        "-   q(3)",
        "+ new.dl:6:1: p(x, z) :- p(x, y), e(y, z).",
        "+   p(1, 3)",
        "+   p(1, 4)",
        "+   p(2, 4)",
        "facts that appear: 3, facts that vanish: 3",
    ]


def test_no_difference(capsys):
    Path("same.dl").write_text(NEW.replace("z", "w"))
    assert main(["diff", "new.dl", "same.dl"]) == 0
    assert capsys.readouterr().out == "facts that appear: 0, facts that vanish: 0\n"


def test_at_most_some_facts_and_new_relations(capsys):
    Path("new.dl").write_text(NEW + ".decl r(x:number)\nr(7). r(8). r(9).\n")
    assert main(["diff", "old.dl", "new.dl", "--most", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "+ explicit facts" in lines and "+   r(7)" in lines and "+ 2 more facts of r" in lines
    assert main(["diff", "old.dl", "missing.dl"]) == 2
    with pytest.raises(SystemExit):
        main(["diff", "old.dl", "new.dl", "--most", "x"])
