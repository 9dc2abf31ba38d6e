"""A state that keeps its feed: the history of a fact reaches back to where the feed begins, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import upheld
from tests.helpers.streams.histories import follow_history
from tests.reliability.faults.disk import Disk
from upheld.cli import main
from upheld.facts.change import Change
from upheld.materialisation.lifecycle import draft_of
from upheld.store.files import LocalFiles
from upheld.store.versions import Store

RULES = "path(x, y) :- edge(x, y), !closed(y). path(x, z) :- path(x, y), edge(y, z), !closed(z)."
STEP = "path(x, z) :- path(x, y), edge(y, z), !closed(z)."
FACTS = {"edge": [(1, 2), (2, 3)], "closed": [9]}


def new() -> upheld.Materialisation:
    return upheld.materialise(RULES, FACTS, engine="reference")


def opened(folder: Path, **options: object) -> upheld.Materialisation:
    return upheld.restore(RULES, folder, engine="reference", **options)


def events(m: upheld.Materialisation, fact: str = "path(1, 3)") -> list[tuple[int, int | None, bool, tuple[str, ...]]]:
    return [(e.update, e.version, e.appeared, e.causes) for e in m.history(fact).events]


def story(folder: Path) -> None:
    """Three versions: one begins the feed, one has two updates, one has a rule change."""
    m = new()
    m.save(folder, feed=True)
    m.update(delete={"edge": [(2, 3)]})
    m.update(insert={"edge": [(2, 3)]})
    m.save(folder)
    m = opened(folder)
    m.change_rules(remove=STEP)
    m.save(folder)


TOLD = [
    (1, 2, False, ("edge(2, 3) vanished",)),
    (2, 2, True, ("edge(2, 3) appeared",)),
    (3, 3, False, (f"rule {STEP} was removed",)),
]


def segments(folder: Path) -> list[Path]:
    return sorted((folder / "feed").rglob("*.json"))


# -- what history says -------------------------------------------------------------------------------------------------


def test_history_across_versions_and_rule_changes(tmp_path):
    """Each event has its update and its version; what is not saved yet comes last, and nothing changes on disk."""
    story(tmp_path)
    m = upheld.restore("path(x, y) :- edge(x, y), !closed(y).", tmp_path, engine="reference")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert events(m) == TOLD
    m.update(insert={"edge": [(1, 3)]})
    assert events(m) == [*TOLD, (4, None, True, ("edge(1, 3) appeared",))]
    history = m.history("path(1, 3)")
    assert (history.since, history.since_version, history.held_before, history.holds) == (1, 1, True, True)
    assert history.to_text().splitlines()[1] == ("  held before update 1, in version 1, which the feed reaches back to")
    assert history.to_dict()["events"][2]["version"] == 3
    assert files == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert m.history("path(7, 7)").events == () and not m.history("path(7, 7)").held_before


def test_an_edited_program_is_an_update_of_the_feed(tmp_path):
    """It opens the state, and the next version has the rule change as a step."""
    new().save(tmp_path, feed=True)
    m = upheld.restore("path(x, y) :- edge(x, y), !closed(y).", tmp_path, engine="reference", edited=True)
    assert events(m) == [(1, None, False, (f"rule {STEP} was removed",))]
    m.save(tmp_path)
    again = upheld.restore("path(x, y) :- edge(x, y), !closed(y).", tmp_path, engine="reference")
    assert events(again) == [(1, 2, False, (f"rule {STEP} was removed",))]


def test_updates_written_as_changes_and_transactions(tmp_path):
    """Streams write the change of each update; a transaction is one update; saving nothing adds nothing."""
    m = new()
    m.save(tmp_path, feed=True)
    store = Store.open(tmp_path)
    change: Change = m.update(insert={"closed": [3]})
    draft_of(m, store, change).commit()
    with m.transaction():
        m.update(delete={"closed": [3]})
        m.update(insert={"closed": [2]})
    draft_of(m, store, None).commit()
    m.save(tmp_path)
    assert len(segments(tmp_path)) == 3
    told = [(1, 2, False, ("closed(3) appeared",))]
    assert events(m) == told and events(opened(tmp_path)) == told
    assert events(opened(tmp_path), "path(2, 3)") == [*told, (2, 3, True, ("closed(3) vanished",))]


def test_a_copy_in_another_folder_does_not_end_the_feed(tmp_path):
    """The feed of one folder goes on, whatever is saved elsewhere between two of its versions."""
    m = new()
    m.save(tmp_path / "a", feed=True)
    m.update(insert={"closed": [3]})
    m.save(tmp_path / "b")
    m.update(delete={"closed": [3]})
    m.save(tmp_path / "a")
    assert [event[:3] for event in events(opened(tmp_path / "a"))] == [(1, 2, False), (2, 2, True)]


def test_other_facts_begin_the_feed_anew(tmp_path):
    """A materialisation that does not go on from the last version has no updates to add, and a warning says so."""
    story(tmp_path)
    m = new()
    m.update(insert={"closed": [3]})
    m.save(tmp_path / "other", feed=True)
    with pytest.warns(upheld.UpheldWarning, match="feed-begun-anew"):
        new().save(tmp_path / "other")
    m = opened(tmp_path / "other")
    m.update(insert={"closed": [2]})
    assert m.history("path(1, 2)").since_version == 2
    m.save(tmp_path / "other")
    m.update(insert={"closed": [1]})
    m.save(tmp_path / "other")
    assert [path.name[:6] for path in segments(tmp_path / "other")] == ["000002", "000003", "000004"]


def test_a_feed_that_ends(tmp_path):
    """Its files go when no kept version has them; the history is then what the process remembers."""
    story(tmp_path)
    rules = "path(x, y) :- edge(x, y), !closed(y)."
    m = upheld.restore(rules, tmp_path, engine="reference")
    m.save(tmp_path, feed=False)
    m.save(tmp_path)
    assert segments(tmp_path) == []
    m.update(insert={"edge": [(1, 3)]})
    assert events(m) == [(1, None, True, ("edge(1, 3) appeared",))]


def test_a_relation_with_other_types_ends_what_can_be_replayed(tmp_path):
    """History begins after the rule change by which a relation of this name became another one."""
    old, between = ".decl p(x:number) .decl q(x:number) q(x) :- p(x).", ".decl p(x:number)"
    now = ".decl p(x:number) .decl q(x:symbol) q(to_string(x)) :- p(x)."
    upheld.materialise(old, {"p": [1]}, engine="reference").save(tmp_path, feed=True)
    upheld.restore(between, tmp_path, engine="reference", edited=True).save(tmp_path)
    m = upheld.restore(now, tmp_path, engine="reference", edited=True)
    m.save(tmp_path)
    m = upheld.restore(now, tmp_path, engine="reference")
    m.update(delete={"p": [1]})
    history = m.history('q("1")')
    assert (history.since, history.since_version) == (2, 2)
    assert [(e.update, e.version, e.appeared) for e in history.events] == [(2, 3, True), (3, None, False)]


def test_values_of_all_types(tmp_path):
    """Facts are kept as they are: floats that are no numbers, texts, records, dates, nulls."""
    rules = """
    .type Pair = [a:number, b:symbol]
    .decl e(f:float, s:symbol, u:unsigned, r:Pair, d:date, n:number?)
    .decl q(f:float) q(f) :- e(f, _, _, _, _, _).
    """
    nan, infinite = float("nan"), float("inf")
    rows = [(nan, 'a"\n', 2**63, (1, "x"), "2026-11-17", None), (infinite, "", 0, (2, "ü"), "1970-01-01", 4)]
    m = upheld.materialise(rules, {"e": rows[:1]}, engine="reference")
    m.save(tmp_path, feed=True)
    m.update(insert={"e": rows[1:]}, delete={"e": rows[:1]})
    m.update(insert={"e": rows[:1]})
    m.save(tmp_path)
    again = upheld.restore(rules, tmp_path, engine="reference")
    for value, expected in ((nan, [False, True]), (infinite, [True])):
        assert [event.appeared for event in again.history("q", (value,)).events] == expected


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("seed", [1, 3, 5])
def test_random_histories(seed, kept, tmp_path):
    """After updates, rule changes, saves and reopening, history says of each moment what recomputation says.

    With `kept` it is read from the feed; without, it is what the process remembers, across rule changes.
    """
    follow_history(seed, "reference", ("adaptive", "dred")[seed % 2], str(tmp_path), kept)


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("damage", ["remove", "flip", "empty"])
def test_a_damaged_file_is_named(tmp_path, which, damage):
    """The state opens, as its facts are whole; history names the file, and never leaves something out."""
    story(tmp_path)
    path = segments(tmp_path)[which]
    data = path.read_bytes()
    match damage:
        case "remove":
            path.unlink()
        case "flip":
            path.write_bytes(data[:50] + bytes([data[50] ^ 1]) + data[51:])
        case "empty":
            path.write_bytes(b"")
    m = upheld.restore("path(x, y) :- edge(x, y), !closed(y).", tmp_path, engine="reference")
    before = m.facts()
    with pytest.raises(upheld.UpheldError) as error:
        m.history("path(1, 3)")
    assert error.value.slugs == ("bad-state",) and error.value.problems[0].place == str(path)
    assert m.facts() == before
    path.write_bytes(data)
    assert events(m) == TOLD


def test_the_last_file_is_checked_when_the_state_opens(tmp_path):
    """It is named by the manifest, with all other files of the version."""
    story(tmp_path)
    segments(tmp_path)[-1].write_bytes(b"{}")
    with pytest.raises(upheld.UpheldError, match="bad-state"):
        upheld.restore("path(x, y) :- edge(x, y), !closed(y).", tmp_path, engine="reference")


def test_a_killed_save_adds_nothing(tmp_path, monkeypatch):
    """What it left is removed by the next save, which has the updates once."""
    m = new()
    m.save(tmp_path, feed=True)
    m.update(insert={"closed": [3]})

    def kill(self: object, path: str, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "create", kill)
        patched.setattr(LocalFiles, "remove", lambda self, path: None)  # nor does a killed process tidy up
        with pytest.raises(KeyboardInterrupt):
            m.save(tmp_path)
    assert len(segments(tmp_path)) == 2
    assert events(opened(tmp_path)) == []
    assert m.save(tmp_path) == 2 and len(segments(tmp_path)) == 2
    assert events(opened(tmp_path)) == [(1, 2, False, ("closed(3) appeared",))]


def test_a_power_loss_keeps_the_feed_of_the_last_version():
    """On a disk that loses all that was not synced, history has what was reported as saved."""
    disk, m, folder = Disk(), new(), "/data/of/state"
    with disk.mounted():
        m.save(folder, feed=True)
        m.update(insert={"closed": [3]})
        m.save(folder)
    with disk.after_power_loss(lambda kind: False, len).mounted():
        assert events(opened(Path(folder))) == [(1, 2, False, ("closed(3) appeared",))]


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rules = ".decl p(x:number) .input p .decl q(x:number) q(x) :- p(x), !r(x). .decl r(x:number) .output q"
    (tmp_path / "p.dl").write_text(rules)
    (tmp_path / "p.facts").write_text("1\n")
    (tmp_path / "one.txt").write_text("+p(2).\ncommit.\n+r(1).\ncommit.\n")
    (tmp_path / "two.txt").write_text("-r(1).\ncommit.\n")
    return tmp_path / "p.dl"


def run(*arguments: str) -> int:
    return main([*arguments, "--engine", "reference"])


def test_explain_when_of_a_state(program, capsys):
    """Updates of several runs, each of which saves a version."""
    assert run("apply", "p.dl", "--state", "state", "--feed", "--updates", "one.txt") == 0
    assert run("apply", "p.dl", "--state", "state", "--updates", "two.txt") == 0
    capsys.readouterr()
    assert run("explain", "p.dl", "q(1)", "--when", "--state", "state") == 0
    told = capsys.readouterr().out
    assert "held before update 1, in version 1, which the feed reaches back to" in told
    assert "update 2 (version 2): vanished\n    because r(1) appeared" in told
    assert "update 3 (version 3): appeared\n    because r(1) vanished" in told
    assert run("explain", "p.dl", "q(9)", "--when", "--state", "state", "--json") == 1
    assert json.loads(capsys.readouterr().out)["events"] == []
    assert run("explain", "p.dl", "q(2)", "--state", "state") == 0
    assert "p(2)  explicit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--when", "--state", "plain"], "this state keeps no feed [no-feed]"),
        (["--when", "--state", "nowhere"], "[missing-state]"),
        (["--when", "--state", "plain", "--updates", "two.txt"], "`--when` needs either `--updates FILE` or"),
        (["--when"], "`--when` needs either `--updates FILE` or `--state DIR`"),
    ],
)
def test_what_has_no_history(program, capsys, arguments, told):
    """One error each, and nothing is changed."""
    assert run("run", "p.dl", "--state", "plain") == 0
    files = sorted(Path("plain").rglob("*"))
    capsys.readouterr()
    assert run("explain", "p.dl", "q(1)", *arguments) == 2
    assert told in capsys.readouterr().err
    assert sorted(Path("plain").rglob("*")) == files and not Path("nowhere").exists()


def test_a_feed_needs_a_state(program, capsys):
    assert run("run", "p.dl", "--feed") == 2
    assert "`--feed` needs `--state`" in capsys.readouterr().err
    assert run("apply", "p.dl", "--updates", "one.txt", "--feed") == 2
    assert "`--feed` needs `--state`" in capsys.readouterr().err


def test_run_begins_a_feed(program, capsys):
    """Also for a state that has no feed yet, even if nothing has changed; then it goes on by itself."""
    assert run("run", "p.dl", "--state", "state") == 0
    assert run("run", "p.dl", "--state", "state", "--feed") == 0
    assert run("run", "p.dl", "--state", "state", "--feed") == 0
    manifest = Store.open("state").last()
    assert manifest.version == 2 and manifest.feed is not None and manifest.feed.since == 2
