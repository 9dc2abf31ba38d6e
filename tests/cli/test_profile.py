"""`--profile`: a page of where time went, written beside the outputs."""

from __future__ import annotations

import pytest

from upheld.cli import main

PROGRAM = ".decl p(x:number) .input p .decl q(x:number) q(x) :- p(x). .output q"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "p.facts").write_text("1\n2\n")
    (tmp_path / "updates.txt").write_text("+p(3).\ncommit.\n-p(1).\ncommit.\n")
    return tmp_path


def arguments(folder, command, *more):
    return [command, str(folder / "p.dl"), "-F", str(folder), "-D", str(folder), *more]


def test_the_profile_of_a_run(folder):
    """The page names the rules, and outputs are written as ever."""
    page = folder / "profile.html"
    assert main(arguments(folder, "run", "--profile", str(page))) == 0
    assert "q(x) :- p(x)." in page.read_text()
    assert (folder / "q.csv").read_text() == "1\n2\n"


def test_the_profile_of_updates(folder):
    """The page has a point for each update."""
    page = folder / "profile.html"
    more = ["--updates", str(folder / "updates.txt"), "--profile", str(page)]
    assert main(arguments(folder, "apply", *more)) == 0
    text = page.read_text()
    assert "seconds of each update" in text and "update 2:" in text


@pytest.mark.parametrize("command", ["run", "apply"])
def test_a_folder_that_is_not_there(folder, command, capsys):
    """It is refused before the work: no outputs are written."""
    more = ["--updates", str(folder / "updates.txt")] if command == "apply" else []
    assert main(arguments(folder, command, *more, "--profile", str(folder / "no" / "page.html"))) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert not (folder / "q.csv").exists()
