"""Sources of facts in update files, in `upheld apply`, and in streams of `Update` objects."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from upheld.base.errors import FactsError, UpheldError
from upheld.cli import main

REACH = """
.decl edge(x:symbol, y:symbol)
.input edge
.decl path(x:symbol, y:symbol)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

UPDATES = """
source "feed-7".
+edge("b", "c").
+edge("c", "d").
commit.
+edge("b", "c").
source "feed \\"8\\"".  // the order does not matter
commit.
+edge("x", "y").
commit.
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("reach.dl").write_text(REACH)
    Path("edge.facts").write_text("a\tb\n")
    Path("first.updates").write_text(UPDATES)


def apply(*options: str) -> int:
    return main(["apply", "reach.dl", "--state", "state", "--verify", *options])


def kept() -> upheld.Materialisation:
    return upheld.restore("reach.dl", "state")


def test_transactions_of_a_file_have_sources():
    m = upheld.materialise("reach.dl", {"edge": [("a", "b")]})
    updates = list(upheld.read_updates("first.updates", m))
    assert [u.source for u in updates] == ["feed-7", 'feed "8"', None]
    assert repr(updates[1]) == '<Update 2: +1 edge from `feed "8"`>'
    for _ in m.stream(updates):
        pass
    assert m.sources() == {"feed-7": 2, 'feed "8"': 1}


def test_apply_with_sources():
    assert apply("--updates", "first.updates") == 0
    assert kept().sources() == {"feed-7": 2, 'feed "8"': 1}
    Path("second.updates").write_text('retract "feed-7".\ncommit.\n+edge("q", "r").\ncommit.\n')
    assert apply("--updates", "second.updates", "--source", "monday", "--changes", "changes.txt") == 0
    assert kept()["edge"].to_set() == {("a", "b"), ("b", "c"), ("x", "y"), ("q", "r")}
    assert kept().sources() == {"feed-7": 0, 'feed "8"': 1, "monday": 1}
    assert '-path("c", "d").' in Path("changes.txt").read_text()


def test_retract():
    """Retracting comes first, as a change of its own; updates may follow."""
    apply("--updates", "first.updates")
    assert apply("--retract", 'feed "8"', "--changes", "changes.txt") == 0
    assert ("b", "c") in kept()["edge"]  # the other source claims it
    assert Path("changes.txt").read_text() == "commit.\n"
    Path("more.csv").write_text("relation,operation,x,y\nedge,-,c,d\nedge,+,c,e\n")
    assert apply("--retract", "feed-7", "--updates", "more.csv", "--source", "file", "--changes", "changes.txt") == 0
    assert kept()["edge"].to_set() == {("a", "b"), ("x", "y"), ("c", "e")}
    assert kept().sources() == {"feed-7": 0, 'feed "8"': 0, "file": 1}
    assert Path("changes.txt").read_text().count("commit.") == 2


def test_a_source_that_deletes_deletes_its_claims_alone():
    apply("--updates", "first.updates")
    Path("minus.updates").write_text('-edge("b", "c").\n-edge("a", "b").\ncommit.\n')
    assert apply("--updates", "minus.updates", "--source", "feed-7") == 0
    assert kept()["edge"].to_set() == {("a", "b"), ("b", "c"), ("c", "d"), ("x", "y")}
    Path("snapshot.updates").write_text('source "feed-7". =edge("z", "z"). commit.')
    assert apply("--updates", "snapshot.updates") == 0
    assert kept()["edge"].to_set() == {("a", "b"), ("b", "c"), ("x", "y"), ("z", "z")}


@pytest.mark.parametrize(
    "text, slug, place",
    [
        ('source "a".\nsource "b".\n+edge("x", "y").\ncommit.', "mixed-sources", "bad.updates:2:1"),
        ('source "a".\nretract "b".\ncommit.', "mixed-sources", "bad.updates:2:1"),
        ('+edge("x", "y").\nretract "a".\ncommit.', "mixed-sources", "bad.updates:1"),
        ('source "".\n+edge("x", "y").\ncommit.', "syntax", "bad.updates:1:8"),
        ('source feed.\n+edge("x", "y").\ncommit.', "syntax", "bad.updates:1:1"),
        ('+edge("x", "y").\nsource "a"\ncommit.', "missing-full-stop", "bad.updates:2:11"),
        ('retract "feed-9".\ncommit.', "unknown-source", "bad.updates:1"),
        ('source "feed-9".\n-edge("a", "b").\ncommit.', "unknown-source", "bad.updates:1"),
    ],
)
def test_bad_sources_change_nothing(text, slug, place, capsys):
    apply("--updates", "first.updates")
    before = kept()
    Path("bad.updates").write_text(text)
    assert apply("--updates", "bad.updates") == 2
    said = capsys.readouterr().err
    assert f"[{slug}]" in said and f"{place}: error" in said
    assert kept().facts() == before.facts() and kept().sources() == before.sources()
    assert kept().version == before.version


def test_bad_options(capsys):
    apply("--updates", "first.updates")
    assert apply("--retract", "feed-9") == 2 and apply() == 2
    said = capsys.readouterr().err
    assert "[unknown-source]" in said and "[no-updates]" in said
    assert apply("--updates", "first.updates", "--source", "") == 2 and apply("--retract", "") == 2
    said = capsys.readouterr().err
    assert "`--source` needs a name" in said and "`--retract` needs a name" in said


def test_streams_that_retract():
    m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
    updates = [{"insert": {"p": [2, 3]}, "source": "a"}, {"insert": {"p": [3]}, "source": "b"}, {"retract": "a"}]
    assert [str(change) for change in m.stream(updates)][-1] == "<Change -1 p, -1 q>"
    before = m.facts(), m.sources()
    for bad, slug in (
        ({"retract": "c"}, "unknown-source"),
        ({"retract": "a", "insert": {"p": [9]}}, "mixed-sources"),
        ({"retract": "a", "source": "b"}, "mixed-sources"),
        ({"retract": 7}, "bad-argument"),
        ({"source": ""}, "bad-argument"),
    ):
        with pytest.raises(UpheldError, match=slug):
            list(m.stream([bad]))
        assert (m.facts(), m.sources()) == before


def test_update_files_of_terms():
    rules = upheld.parse("PREFIX : <http://e/> [?x, :q, ?y] :- [?x, :p, ?y].", dialect="dlog")
    m = upheld.materialise(rules, {"triple": [("<http://e/a>", "<http://e/p>", '"1"')]})
    Path("terms.updates").write_text(
        'PREFIX : <http://e/>\nsource "feed".\n+[:b, :p, "2"].\ncommit.\nretract "feed". commit.'
    )
    changes = list(m.stream(upheld.read_updates("terms.updates", m)))
    assert [len(c.inserted["triple"]) - len(c.deleted["triple"]) for c in changes] == [2, -2]
    Path("bad.updates").write_text('source "\\q". commit.')
    with pytest.raises(FactsError, match="bad-escape"):
        list(upheld.read_updates("bad.updates", m))
