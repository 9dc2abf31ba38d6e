"""Paths that a program names: followed as in Soufflé, or kept within its folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import upheld
from tests.helpers.runs import run
from upheld.base.errors import ProgramError
from upheld.cli import main

DECL = ".decl q(x:symbol)\n"


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """A program, facts and outputs in folders of their own, and beside them what is nobody's business."""
    for name in ("program", "facts", "out", "else"):
        (tmp_path / name).mkdir()
    (tmp_path / "facts" / "q.facts").write_text("fact\n")
    (tmp_path / "else" / "q.facts").write_text("secret\n")
    (tmp_path / "else" / "secret.txt").write_text("root:x:0:0:secret\n")
    (tmp_path / "else" / "more.dl").write_text('q("more").\n')
    os.symlink(tmp_path / "else", tmp_path / "facts" / "link")
    os.symlink(tmp_path / "else", tmp_path / "out" / "link")
    os.symlink(tmp_path / "else", tmp_path / "program" / "link")
    monkeypatch.chdir(tmp_path)


def written(text: str) -> Path:
    path = Path("program/rules.dl")
    path.write_text(DECL + text)
    return path


OUTSIDE = {
    "absolute input": '.input q(filename="{root}/else/q.facts")\n.output q',
    "input above": '.input q(filename="../else/q.facts")\n.output q',
    "input by a link": '.input q(filename="link/q.facts")\n.output q',
    "absolute output": '.output q(filename="{root}/else/q.csv")',
    "output above": '.output q(filename="../else/q.csv")',
    "output by a link": '.output q(filename="link/q.csv")',
    "include above": '.include "../else/more.dl"\n.output q',
    "include by a link": '.include "link/more.dl"\n.output q',
    "absolute include": '.include "{root}/else/more.dl"\n.output q',
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_confined(case, tmp_path):
    """What lies outside is refused before anything is read or written, and followed where nobody confines it."""
    program = written(OUTSIDE[case].format(root=tmp_path))
    before = sorted(Path("else").iterdir())
    calls = [lambda confined: run(program, "facts", "out", confined=confined)]
    if "output" not in case:
        calls.append(lambda confined: upheld.load(program, "facts", confined=confined))
    if "include" in case:
        calls.append(lambda confined: upheld.parse(program, confined=confined))
        calls.append(lambda confined: upheld.materialise(program, confined=confined))
        calls.append(lambda confined: upheld.check(program, confined=confined))
    for call in calls:
        with pytest.raises(ProgramError) as caught:
            call(True)
        assert caught.value.slugs == ("outside-folder",)
        assert str(caught.value).startswith("program/rules.dl:2:")
    assert sorted(Path("else").iterdir()) == before
    for call in calls:
        call(False)


def test_what_is_inside_is_used():
    """Names with `..` that stay inside, links that lead inside, and subfolders."""
    Path("facts/sub").mkdir()
    os.symlink("q.facts", "facts/same.facts")
    Path("program/more.dl").write_text('q("more").\n')
    program = written('.include "more.dl"\n.input q(filename="sub/../same.facts")\n.output q(filename="./q.csv")')
    run(program, "facts", "out", confined=True)
    assert Path("out/q.csv").read_text() == "fact\nmore\n"
    run(program, "facts", "-", confined=True)


@pytest.mark.parametrize("command", ["run", "apply", "query", "explain", "check"])
def test_the_command_line(command, capsys):
    """Each command that follows paths can be confined."""
    program = str(written('.include "../else/more.dl"\n.output q'))
    more = {"apply": ["--updates", "none"], "query": ["q(x)"], "explain": ['q("more")']}.get(command, [])
    assert main([command, "--confined", program, *more]) == 2
    assert "[outside-folder]" in capsys.readouterr().err


def test_check_looks_at_directives():
    """`check` finds the paths that a run in the current folder would refuse."""
    with pytest.raises(ProgramError) as caught:
        upheld.check(written('.input q(filename="../a")\n.output q(filename="/b")'), confined=True)
    assert caught.value.slugs == ("outside-folder", "outside-folder")


def test_included_files_that_are_not_programs_are_not_shown():
    """An error may be read by people who may not read the file."""
    with pytest.raises(ProgramError) as caught:
        upheld.check(written('.include "../else/secret.txt"'))
    assert caught.value.slugs == ("not-a-program",)
    assert "root" not in str(caught.value) and "secret:" not in str(caught.value)
    Path("program/bad.dl").write_text("q(.\n")
    with pytest.raises(ProgramError) as caught:
        upheld.check(written('.include "bad.dl"'))
    assert "q(." in str(caught.value)
