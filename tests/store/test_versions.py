"""Versions on disk: what was saved is what is restored, and whoever is killed leaves a whole version."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import upheld
from tests.helpers.programs.strategies import cases, typed_cases
from tests.helpers.streams.streams import Recomputed, assert_recomputed
from upheld.materialisation.lifecycle import draft_of
from upheld.store import draft as module
from upheld.store.files import LocalFiles
from upheld.store.versions import Store

ALGORITHMS = ("adaptive", "dred", "dred-c", "bf-c", "counting")

REACH = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def explicit(m: upheld.Materialisation) -> dict[str, set]:
    return {name: m.explicit(name).to_set() for name in m.relations}


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object], version: int = 1) -> None:
    """Change the content of a manifest, and its checksum accordingly."""
    path = folder / f"manifest-{version:06d}.json"
    content = json.loads(path.read_text())
    del content["format"], content["sha256"]
    change(content)
    body = json.dumps(content).removeprefix("{") + "\n"
    path.write_text(f'{{"format": 2, "sha256": "{sha256(body.encode()).hexdigest()}",\n{body}')


def record(m: upheld.Materialisation, change: upheld.Change, store: Store) -> None:
    draft_of(m, store, change).commit()


@pytest.mark.parametrize("strategy", [cases(updates=4), typed_cases(updates=4)], ids=["cases", "typed"])
def test_every_version_is_restored(strategy, tmp_path_factory, monkeypatch):
    """After each update, of whatever types, the last version is the materialisation, on another engine.

    All that algorithms go by is that of recomputation: as it was saved, or derived anew for an algorithm that relies on
    something else.
    """
    monkeypatch.setattr(module, "_MOST_ROWS", 8)  # so that relations are written whole now and then

    @settings(max_examples=8)
    @given(case=strategy, algorithm=st.sampled_from(ALGORITHMS), other=st.sampled_from(ALGORITHMS))
    def check(case, algorithm, other):
        store = Store.open(tmp_path_factory.mktemp("state"))
        try:
            m = upheld.materialise(case.program, case.facts, engine="reference", algorithm=algorithm)
        except upheld.UpheldError:  # division by zero and the like
            return
        m.save(store.folder)
        store.look()
        for number, u in enumerate(case.updates, start=2):
            try:
                change = m.update(delete=u.deletions, insert=u.insertions)
            except upheld.UpheldError:  # so it changes nothing
                return
            record(m, change, store)
            assert store.version == number
            again = upheld.restore(case.program, store.folder, engine="memory", algorithm=other)
            assert (explicit(again), again.facts()) == (explicit(m), m.facts())
            stated = {(name, row) for name, rows in explicit(m).items() for row in rows}
            assert_recomputed(again, Recomputed(again._core, again._strata, stated))

    check()


# -- books -------------------------------------------------------------------------------------------------------------


def taken_over(m: upheld.Materialisation) -> bool:
    """Return whether nothing was derived to restore a materialisation."""
    return any(choice.startswith("took over") for choice in m.statistics.choices) and not m.statistics.instances


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_books_are_restored(tmp_path, engine):
    """What each algorithm knows of the facts is read, if it is what the algorithm at work relies on."""
    serves = {
        "adaptive": {"adaptive", "ranked", "dred"},
        "dred-c": {"dred-c", "bf-c", "dred"},
        "bf-c": {"bf-c", "dred"},
        "dred": {"dred"},
        "counting": set(),
    }
    for saver, readers in serves.items():
        m = upheld.materialise(REACH, {"edge": [(1, 2), (2, 3), (3, 1)]}, engine=engine, algorithm=saver)
        m.update(delete={"edge": [(3, 1)]}, insert={"path": [(9, 9)]})
        m.save(tmp_path / saver)
        for reader in {"ranked", *serves}:
            again = upheld.restore(REACH, tmp_path / saver, algorithm=reader)
            assert taken_over(again) == (reader in readers), (saver, reader)
            update = {"delete": {"edge": [(1, 2)]}, "insert": {"edge": [(3, 2)]}}
            again.update(**update)
            oracle = upheld.restore(REACH, tmp_path / saver, engine="reference", algorithm="rematerialise")
            oracle.update(**update)
            assert again.facts() == oracle.facts()


def test_changes_since_the_books_are_made_up_for(tmp_path):
    """A version after the books is reached from them by one update, until they are written anew."""
    m = upheld.materialise(REACH, {"edge": [(i, i + 1) for i in range(30)]})
    m.save(tmp_path)
    store = Store.open(tmp_path)
    for i in range(3):
        record(m, m.update(delete={"edge": [(10 * i, 10 * i + 1)]}, insert={"edge": [(100 + i, i)]}), store)
    assert store.last().books.changed == 6
    again = upheld.restore(REACH, store)
    assert taken_over(again) and again.facts() == m.facts()


def test_classes_are_saved_without_bookkeeping(tmp_path):
    """Facts that stand for others are derived anew when they are restored: their counters are not saved."""
    equivalence = ".decl e(x:number, y:number) eqrel  .decl p(x:number)  e(1, 2). e(2, 3). p(x) :- e(x, 3)."
    m = upheld.materialise(equivalence, equality="rewrite")
    m.save(tmp_path)
    assert Store.open(tmp_path).last().books is None
    again = upheld.restore(equivalence, tmp_path, equality="rewrite")
    assert again.facts() == m.facts() == upheld.materialise(equivalence).facts()


def test_nodes_of_a_decomposition_are_restored(tmp_path):
    """Hidden relations, which nobody sees, are kept beside; rules that are taken apart otherwise derive all anew."""
    rules = "c(a, d) :- e(a, b), e(b, c), e(c, d), e(d, a)."
    edges = [(i, (i * 7 + 1) % 20) for i in range(20)] + [(i, (i * 3 + 2) % 20) for i in range(20)]
    m = upheld.materialise(rules, {"e": edges}, decompose="always")
    m.save(tmp_path)
    again = upheld.restore(rules, tmp_path, decompose="always")
    assert taken_over(again) and any(p.hidden for p in again._core.predicates.values())
    plain = upheld.restore(rules, tmp_path, decompose="never")
    assert not taken_over(plain)
    for one in (m, again, plain):
        one.update(delete={"e": edges[:5]}, insert={"e": [(0, 0)]})
    assert m.facts() == again.facts() == plain.facts()


def test_states_without_books(tmp_path):
    """A state without bookkeeping is derived anew, and has some from its next version on."""
    m = upheld.materialise(REACH, {"edge": [(1, 2), (2, 3)]})
    m.save(tmp_path)
    rewrite(tmp_path, lambda content: content.update(books=None))
    again = upheld.restore(REACH, tmp_path)
    assert again.facts() == m.facts() and not taken_over(again)
    record(again, again.update(insert={"edge": [(3, 4)]}), Store.open(tmp_path))
    assert taken_over(upheld.restore(REACH, tmp_path))


def test_values_of_every_type(tmp_path):
    """NaN is one value, an unsigned number has 64 bits, and a relation without columns holds or does not."""
    program = """
    .decl e(n:number, u:unsigned, f:float, s:symbol)
    .decl on()
    .decl q()
    .decl odd(status:symbol)
    q() :- on().
    odd("stated").
    """
    rows = [(-(2**63), 2**64 - 1, float("nan"), "é\n\t"), (5, 0, 0.5, "")]
    m = upheld.materialise(program, {"e": rows, "on": [()]})
    m.save(tmp_path)
    store = Store.open(tmp_path)
    for update in ({"delete": {"e": rows[:1], "on": [()], "odd": ["stated"]}}, {"insert": {"e": rows[:1], "on": [()]}}):
        record(m, m.update(**update), store)
        again = upheld.restore(program, tmp_path)
        assert str(again["e"].to_rows()) == str(m["e"].to_rows())  # NaN is unlike itself
        assert explicit(again)["on"] == explicit(m)["on"] and again["q"] == m["q"] and not again["odd"].to_set()
    assert upheld.restore(program, tmp_path, engine="reference")["e"].to_rows()[1] == rows[1]


def test_files_cost_what_changes(tmp_path):
    """A version adds files for the relations that changed alone, and old files go when they are two versions old."""
    m = upheld.materialise(REACH, {"edge": [(i, i + 1) for i in range(50)]})
    m.save(tmp_path)
    store = Store.open(tmp_path)
    first = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    record(m, m.update(insert={"edge": [(99, 100)]}), store)
    added = [path for path in tmp_path.rglob("*.parquet") if path not in first]
    assert sorted(path.name.partition(".")[2] for path in added) == ["changes.parquet"] * 2
    assert {path: path.stat().st_mtime_ns for path in first} == first
    for _ in range(2):
        m.save(tmp_path)
    kept = {file for n in (3, 4) for file in _files(tmp_path, n)}
    there = [*tmp_path.rglob("*.parquet"), *tmp_path.rglob("*.dl")]
    assert {str(path.relative_to(tmp_path)) for path in there} == kept
    manifests = sorted(path.name for path in tmp_path.glob("*.json"))
    assert manifests == ["manifest-000004.json", "superseded-000003.json"]


def _files(folder: Path, version: int) -> set[str]:
    return Store.open(folder, version=version).last().files()


# -- faults -----------------------------------------------------------------------------------------------------------


class Killing(LocalFiles):
    """A file system whose user is killed before some operation, counted from one, or in the middle of a writing."""

    def __init__(self, at: int):
        self.left = at

    def _step(self) -> None:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)

    def written(self, path):
        self._step()
        outer = super().written(path)
        killing = self

        class Written:
            def __enter__(self):
                self.file = outer.__enter__()
                self.file.write(b"")
                return self.file

            def __exit__(self, *error):
                self.file.flush()
                killing._step()  # all bytes are there, and the name need not last
                return outer.__exit__(*error)

        return Written()

    def create(self, path, data):
        self._step()
        super().create(path, data)
        self._step()

    def move(self, path, target):
        self._step()
        super().move(path, target)

    def remove(self, path):
        self._step()
        super().remove(path)


def test_killed_at_any_point_of_an_update(tmp_path):
    """The process is killed before and after every write of a version, and what is left is the old one or the new."""
    m = upheld.materialise(REACH, {"edge": [(1, 2), (2, 3), (3, 4)]}, engine="reference")
    m.save(tmp_path)
    m.save(tmp_path)  # so that the next version sweeps the first
    old = m.facts()
    update = {"delete": {"edge": [(2, 3)]}, "insert": {"edge": [(2, 4)], "path": [(3, 4)]}}
    oracle = upheld.restore(REACH, tmp_path, engine="reference")
    oracle.update(**update)
    new, outcomes, at = oracle.facts(), [], 0
    while True:
        at += 1
        child = os.fork()
        if child == 0:
            mine = upheld.restore(REACH, tmp_path, engine="reference")
            record(mine, mine.update(**update), Store.open(tmp_path, Killing(at)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        left = upheld.restore(REACH, tmp_path, engine="reference")
        assert left.facts() in (old, new)
        outcomes.append("new" if left.facts() == new else "old")
        if not os.WIFSIGNALED(status):
            break
        if outcomes[-1] == "new":  # back to where we were, over whatever is left
            left.update(delete={"edge": [(2, 4)], "path": [(3, 4)]}, insert={"edge": [(2, 3)]})
            left.save(tmp_path)
    assert len(outcomes) > 8
    assert outcomes == sorted(outcomes, reverse=True) and set(outcomes) == {"old", "new"}
    left.save(tmp_path)
    left.save(tmp_path)
    kept = {
        file for n in (Store.open(tmp_path).version - 1, Store.open(tmp_path).version) for file in _files(tmp_path, n)
    }
    there = [*tmp_path.rglob("*.parquet"), *tmp_path.rglob("*.dl")]
    assert {str(path.relative_to(tmp_path)) for path in there} == kept


def test_one_run_at_a_time(tmp_path):
    """Of two that make the same version the second is told, and nothing of it is to be seen."""
    m = upheld.materialise(REACH, {"edge": [(1, 2)]})
    m.save(tmp_path)
    one, other = Store.open(tmp_path), Store.open(tmp_path)
    change = m.update(insert={"edge": [(2, 3)]})
    other.check_last()
    record(m, change, one)
    with pytest.raises(upheld.UpheldError, match="state-changed"):
        other.check_last()
    with pytest.raises(upheld.UpheldError) as refusal:
        record(m, change, other)
    assert refusal.value.slugs == ("state-changed",)
    assert upheld.restore(REACH, tmp_path)["path"].to_set() == {(1, 2), (2, 3), (1, 3)}


# -- what is refused ---------------------------------------------------------------------------------------------------


def _break(folder: Path, how: str) -> None:
    manifest, data = folder / "manifest-000001.json", next(folder.rglob("*.explicit.parquet"))
    match how:
        case "no manifest":
            manifest.unlink()
        case "no JSON":
            manifest.write_text("{")
        case "another format":
            manifest.write_text(manifest.read_text().replace('"format": 2', '"format": 99'))
        case "an older format":
            manifest.write_text(manifest.read_text().replace('"format": 2', '"format": 1'))
        case "no checksum of its own":
            manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"sha256": None}))
        case "no program":
            rewrite(folder, lambda content: content.update(source=None))
        case "another version":
            manifest.rename(folder / "manifest-000002.json")
        case "no list":
            rewrite(folder, lambda content: content["relations"]["path"]["sizes"].append(7))
        case "other sizes":
            rewrite(folder, lambda content: content["relations"]["path"].update(sizes=[0, 9, 0]))
        case "a file elsewhere":
            rewrite(folder, lambda content: content["relations"]["path"].update(facts="relations/../../x/000001-y"))
        case "a file without a checksum":
            rewrite(folder, lambda content: content["checksums"].popitem())
        case "an unknown type":
            rewrite(folder, lambda content: content["relations"]["path"].update(types=["number", "numbre"]))
        case "no sums":
            rewrite(folder, lambda content: content["books"]["sums"].clear())
        case "no books of a relation":
            rewrite(folder, lambda content: content["books"]["relations"].popitem())
        case "no data":
            data.unlink()
        case "shorter data":
            data.write_bytes(data.read_bytes()[:-1])
        case "other data":
            data.write_bytes(data.read_bytes().replace(b"PAR1", b"PAR2"))


@pytest.mark.parametrize(
    "how, slug, message, place",
    [
        ("no manifest", "missing-state", "this folder has no saved materialisation", ""),
        ("no JSON", "bad-state", "this is not the manifest of version 1", "/manifest-000001.json"),
        ("another format", "bad-state", "the manifest has the format 99", "/manifest-000001.json"),
        ("an older format", "bad-state", "the manifest has the format 1", "/manifest-000001.json"),
        ("no checksum of its own", "bad-state", "this is not the manifest of version 1", "/manifest-000001.json"),
        ("no program", "bad-state", "this is not the manifest of version 1", "/manifest-000001.json"),
        ("another version", "bad-state", "this is not the manifest of version 2", "/manifest-000002.json"),
        ("no list", "bad-state", "this is not the manifest of version 1", "/manifest-000001.json"),
        ("other sizes", "bad-state", "`path` has 3 facts where 9 were saved", ""),
        ("a file elsewhere", "bad-state", "this is not the manifest of version 1", "/manifest-000001.json"),
        ("a file without a checksum", "bad-state", "this is not the manifest of version 1", "/manifest-000001.json"),
        ("an unknown type", "bad-state", "this is not the manifest of version 1", "/manifest-000001.json"),
        ("no sums", "bad-state", "this is not the manifest of version 1", "/manifest-000001.json"),
        ("no books of a relation", "bad-state", "this is not the manifest of version 1", "/manifest-000001.json"),
        ("no data", "bad-state", "the file is missing", ".explicit.parquet"),
        ("shorter data", "bad-state", "the file is damaged: it has ", ".explicit.parquet"),
        ("other data", "bad-state", "the file is damaged: its SHA-256 differs", ".explicit.parquet"),
    ],
)
def test_refused_states(tmp_path, how, slug, message, place):
    """A damaged state is refused, and the error names the file."""
    upheld.materialise(REACH, {"edge": [(1, 2), (2, 3)]}, engine="reference").save(tmp_path)
    _break(tmp_path, how)
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.restore(REACH, tmp_path, engine="reference")
    (problem,) = refusal.value.problems
    assert problem.slug == slug and problem.message.startswith(message)
    assert problem.place is not None and problem.place.startswith(str(tmp_path)) and problem.place.endswith(place)


def test_another_program(tmp_path):
    upheld.materialise(REACH, {"edge": [(1, 2)]}).save(tmp_path)
    assert upheld.restore(f"// the same\n{REACH}\n", tmp_path)["path"].to_set() == {(1, 2)}
    for other in ("path(x, y) :- edge(y, x).", REACH + " path(7, 7)."):
        with pytest.raises(upheld.UpheldError) as refusal:
            upheld.restore(other, tmp_path)
        assert refusal.value.slugs == ("other-program",)


def test_the_same_program_written_otherwise(tmp_path):
    """Names of variables, and the order of declarations, rules and atoms, mean nothing, also for the bookkeeping."""
    rules = """
    .decl edge(x:number, y:number)
    .decl path(x:number, y:number)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z), x != z.
    """
    same = """
    .decl path(x:number, y:number)
    .decl edge(x:number, y:number)
    path(a, c) :- a != c, edge(b, c), path(a, b).
    path(u, v) :- edge(u, v).
    """
    m = upheld.materialise(rules, {"edge": [(1, 2), (2, 3), (3, 1)]}, engine="reference")
    m.save(tmp_path)
    again = upheld.restore(same, tmp_path, engine="reference")
    assert again.facts() == m.facts() and taken_over(again)
    assert again.save(tmp_path) == 2
    with pytest.raises(upheld.UpheldError, match="other-program"):
        upheld.restore(same.replace("edge(b, c)", "edge(c, b)"), tmp_path, engine="reference")


def test_columns_that_were_renamed(tmp_path):
    """A state is not opened with its columns under other names; to save replaces the names with the facts."""
    rules = ".decl edge(source:number, target:number)"
    m = upheld.materialise(rules, {"edge": [(1, 2)]}, engine="reference")
    m.save(tmp_path)
    swapped = ".decl edge(target:number, source:number)"
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.restore(swapped, tmp_path, engine="reference")
    assert refusal.value.slugs == ("other-program",)
    assert "`source, target`, and are `target, source`" in str(refusal.value)
    assert upheld.materialise(swapped, {"edge": [(2, 1)]}, engine="reference").save(tmp_path) == 2
    assert upheld.restore(swapped, tmp_path, engine="reference")["edge"].to_set() == {(2, 1)}
