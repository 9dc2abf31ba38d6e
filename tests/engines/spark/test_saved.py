"""What tasks hold is saved and restored, and opens in every engine."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import upheld
from tests.engines.spark.helpers.losing import Losing
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.sizes import usually
from upheld.base.errors import FactsError, Problem
from upheld.engines.spark import writing
from upheld.materialisation.lifecycle import draft_of
from upheld.materialisation.persistence import in_tasks, saved_rows
from upheld.materialisation.persistence.in_tasks import InTasks
from upheld.materialisation.persistence.saved_rows import SavedRows
from upheld.store.versions import Store

PROGRAM = """
.decl e(n:number, u:unsigned, f:float, s:symbol)
.decl p(s:symbol, f:float, u:unsigned, n:number)
.decl q(n:number)
.decl some()
.decl on()
p(s, f, u, n) :- e(n, u, f, s), on().
q(n) :- e(n, _, _, _).
q(n - 1) :- q(n), n > 0.
some() :- q(_).
"""

ROWS = [(-(2**63), 2**64 - 1, float("-inf"), "é\n\t"), (1, 0, 0.5, ""), (1, 2**63, 0.0, '"'), (1, 3, float("nan"), "x")]


def content(m: upheld.Materialisation) -> dict[str, tuple[set, set]]:
    """Return the explicit facts and all facts of each relation; texts, as NaN differs from itself."""
    return {name: ({*map(str, m.explicit(name))}, {*map(str, m[name])}) for name in m.relations}


def ranks_of(m: upheld.Materialisation) -> tuple[list[str], dict[str, int]]:
    """Return what is known of each fact, as texts, and of all together."""
    return sorted(map(str, m._state.bookkeeping.ranks.items())), m._state.bookkeeping.ranks.sums()


def test_there_and_back(tmp_path):
    """Values of every type go from tasks to the disk, to the memory engine, and back, with changes on the way."""
    store = Store.open(tmp_path / "a [odd] {name}")
    m = upheld.materialise(PROGRAM, {"e": ROWS, "on": [()]}, engine=Driven(2), algorithm="ranked")
    draft_of(m, store).commit()
    again = upheld.restore(PROGRAM, store)
    assert content(again) == content(m)
    assert not again.statistics.instances, "what was saved of each fact is derived anew"

    for number, update in enumerate(
        [
            {"delete": {"e": ROWS[3:], "on": [()]}, "insert": {"q": [(1,), (2,)]}},
            {"insert": {"on": [()], "e": [(1, 1, 1.5, "new")], "q": [(-5,)]}},
        ][: usually(1, 2)],
        start=2,
    ):
        change = again.update(**update)
        assert draft_of(again, store, change).commit() == number
        back = upheld.restore(PROGRAM, store, engine=Driven(2), algorithm="ranked")
        assert content(back) == content(again)
    back.save(store.folder)
    once_more = upheld.restore(PROGRAM, store.folder, engine=Driven(2), algorithm="ranked")
    assert ranks_of(once_more) == ranks_of(back)


@pytest.mark.parametrize("parts, then", [(2, 3), (3, 1)])
def test_tasks_write_what_they_have(tmp_path, monkeypatch, parts, then):
    """Facts and books of large relations go from tasks to files; any number of tasks opens them, and so does memory."""
    monkeypatch.setattr(saved_rows, "MANY", 2)
    facts = {"e": [*ROWS, *((n, n, n / 2, f"t{n}") for n in range(2, 30))], "on": [()]}
    m = upheld.materialise(PROGRAM, facts, engine=Driven(parts), algorithm="ranked")
    with monkeypatch.context() as no_rows:
        small = Small(m)
        no_rows.setattr(in_tasks, "InTasks", lambda *given: InTasks(*given[:-2], small, given[-1]))
        m.save(tmp_path)
    folders = {path.name.partition(".")[2]: path for path in tmp_path.glob("relations/*/*.*") if path.is_dir()}
    assert folders.keys() == {"explicit", "books", "facts"}
    assert len(list(folders["books"].glob("part-*.parquet"))) == parts
    for engine in ("memory", Driven(then)):
        again = upheld.restore(PROGRAM, tmp_path, engine=engine, algorithm="ranked")
        assert content(again) == content(m) and ranks_of(again) == ranks_of(m)
        assert not again.statistics.instances, "what was saved of each fact is derived anew"
    for update in ({"delete": {"e": facts["e"][:20]}}, {"insert": {"e": ROWS[:1]}, "delete": {"on": [()]}}):
        m.update(**update)
        m.save(tmp_path)
    assert content(upheld.restore(PROGRAM, tmp_path)) == content(m)


@pytest.mark.parametrize("saved_by, parts", [(2, 3), (3, 1), (None, 2)])
def test_tasks_read_what_was_saved(tmp_path, monkeypatch, saved_by, parts):
    """Each task reads a part of the facts with their counters, whichever engine has saved them, and the driver none."""
    monkeypatch.setattr(saved_rows, "MANY", 2)
    facts = {"e": [*ROWS, *((n, n, n / 2, f"t{n}") for n in range(2, 30))], "on": [()]}
    engine = "memory" if saved_by is None else Driven(saved_by)
    m = upheld.materialise(PROGRAM, facts, engine=engine, algorithm="ranked")
    m.save(tmp_path)
    read: dict[str, list[threading.Thread]] = {}
    part = SavedRows.part

    def noted(rows, number, of):
        read.setdefault(rows.relation, []).append(threading.current_thread())
        return part(rows, number, of)

    monkeypatch.setattr(SavedRows, "part", noted)
    monkeypatch.setattr(Store, "as_written", Explicit(Store.as_written).read)
    again = upheld.restore(PROGRAM, tmp_path, engine=Driven(parts), algorithm="ranked")
    assert read.keys() == {"e", "p", "q"} and all(len(set(by)) == parts for by in read.values())
    assert not any(threading.current_thread() in by for by in read.values())
    assert content(again) == content(m) and not again.statistics.instances
    if saved_by is not None:
        assert ranks_of(again) == ranks_of(m)
    for update in ({"delete": {"e": facts["e"][:20]}}, {"insert": {"e": ROWS[:1]}, "delete": {"on": [()]}}):
        m.update(**update)
        again.update(**update)
        assert content(again) == content(m)


class Explicit:
    """Reads explicit facts and facts of small relations alone."""

    def __init__(self, read):
        self._read = read

    @property
    def read(self):
        def read(store, saved, kind, numbers=0):
            assert kind == "explicit" or saved.sizes[1] < saved_rows.MANY, "the driver reads facts"
            return self._read(store, saved, kind, numbers)

        return read


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"PAR1")])
def test_a_file_that_a_task_cannot_read(tmp_path, monkeypatch, damage):
    """All tasks fail with the error of the one that finds it, and the state opens once the file is back."""
    monkeypatch.setattr(saved_rows, "MANY", 2)
    m = upheld.materialise("p(x) :- e(x).", {"e": range(30)}, engine=Driven(2), algorithm="ranked")
    m.save(tmp_path)
    file = sorted(tmp_path.glob("relations/p/*.books/*.parquet"))[-1]
    data, groups_of = file.read_bytes(), saved_rows._groups

    def damaged(path):
        groups = groups_of(path)
        if path == str(file):
            damage(file)
        return groups

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(saved_rows, "_groups", damaged)
        with pytest.raises(FactsError) as refusal:
            upheld.restore("p(x) :- e(x).", tmp_path, engine=Driven(2), algorithm="ranked")
    assert str(file) in str(refusal.value)
    file.write_bytes(data)
    assert len(upheld.restore("p(x) :- e(x).", tmp_path, engine=Driven(2), algorithm="ranked")["p"]) == 30


class Small:
    """Reads facts of small relations alone."""

    def __init__(self, m: upheld.Materialisation):
        self._m = m

    def __getitem__(self, name: str) -> upheld.Relation:
        return self._small(self._m[name])

    def explicit(self, name: str) -> upheld.Relation:
        return self._small(self._m.explicit(name))

    def _small(self, relation: upheld.Relation) -> upheld.Relation:
        assert len(relation) < saved_rows.MANY, f"the driver reads {relation.name}"
        return relation


def test_tasks_that_do_not_see_the_folder(tmp_path, monkeypatch):
    """The driver writes the files then; so it does on other file systems than that of this machine."""
    monkeypatch.setattr(saved_rows, "MANY", 1)
    names = iter(range(100))
    monkeypatch.setattr(writing, "identity", lambda folder: (next(names), 0))
    m = upheld.materialise("p(x) :- e(x).", {"e": range(30)}, engine=Driven(2), algorithm="dred")
    m.save(tmp_path)
    assert {path.suffix for path in tmp_path.glob("relations/*/*")} == {".parquet"}
    assert content(upheld.restore("p(x) :- e(x).", tmp_path, engine=Driven(1), algorithm="dred")) == content(m)


def test_a_task_that_fails_to_write(tmp_path, monkeypatch):
    """Nothing of the version stays, and the one before holds."""
    monkeypatch.setattr(saved_rows, "MANY", 1)
    m = upheld.materialise("p(x) :- e(x).", {"e": range(30)}, engine=Driven(2), algorithm="dred")
    m.save(tmp_path)
    m.update(insert={"e": range(30, 60)})
    before, write = sorted(tmp_path.rglob("*")), writing.write

    def full(context, written, folder):
        found = write(context, written, folder)
        if context.wire.me == 1 and folder.endswith(".facts"):
            raise FactsError(Problem("unwritable-file", "no space left", place=folder))
        return found

    monkeypatch.setattr(writing, "write", full)
    with pytest.raises(upheld.UpheldError) as refusal:
        m.save(tmp_path)
    assert refusal.value.slugs == ("unwritable-file",) and sorted(tmp_path.rglob("*")) == before
    monkeypatch.setattr(writing, "write", write)
    assert len(upheld.restore("p(x) :- e(x).", tmp_path)["p"]) == 30
    assert m.save(tmp_path) == 2 and len(upheld.restore("p(x) :- e(x).", tmp_path)["p"]) == 60


@pytest.mark.filterwarnings("ignore:.*started its tasks again")
def test_a_task_that_is_lost_while_it_writes(tmp_path, monkeypatch):
    """At a command or an exchange of a save: the version before holds, or this one, and the next save works."""
    monkeypatch.setattr(saved_rows, "MANY", 1)
    rules, engine, failed = "q(x) :- p(x), !r(x). r(x) :- s(x). q(x - 1) :- q(x), x > 30.", Losing([]), 0
    m = upheld.materialise(rules, {"p": range(40)}, engine=engine, algorithm="ranked")
    m.save(tmp_path)
    for step in range(1, 1_000, usually(4, 1)):
        before = content(m)
        m.update(insert={"p": [100 + step]}, delete={"p": [step % 40]})
        lost = engine.lost
        engine.lose_after(step)
        try:
            m.save(tmp_path)
        except upheld.UpheldError as error:
            engine.refuse_others(error)
            failed += 1
            assert content(upheld.restore(rules, tmp_path)) == before
            m.save(tmp_path)
        engine.lose_after(1 << 30)
        assert content(upheld.restore(rules, tmp_path)) == content(m)
        if engine.lost == lost:
            break
    assert failed > 2 and engine.lost >= failed


def test_files_that_tasks_wrote(tmp_path, monkeypatch):
    """A large relation is a folder of Parquet files; they are read, and checked as others."""
    monkeypatch.setattr(saved_rows, "MANY", 10)
    rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
    m = upheld.materialise(rules, {"edge": [(i, i + 1) for i in range(5)]}, engine=Driven(2), algorithm="dred")
    m.save(tmp_path)
    for engine in ("memory", Driven(2)):
        assert content(upheld.restore(rules, tmp_path, engine=engine, algorithm="dred")) == content(m)
    part = next(tmp_path.glob("relations/path/*/*.parquet"))
    data, more = part.read_bytes(), part.with_name("part-00009.parquet")
    for damage in ("a bit", "a file too many"):
        if damage == "a bit":
            part.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        else:
            more.write_bytes(data)
        for engine in ("memory", Driven(2)):
            with pytest.raises(upheld.UpheldError) as refusal:
                upheld.restore(rules, tmp_path, engine=engine)
            assert refusal.value.slugs == ("bad-state",)
            assert refusal.value.problems[0].place == str(part if damage == "a bit" else more)
        part.write_bytes(data)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "relations").write_text("a file where a folder is to be")
    m = upheld.materialise("p(x) :- e(x).", {"e": range(3)}, engine=Driven(2), algorithm="dred")
    with pytest.raises(upheld.UpheldError) as refusal:
        m.save(tmp_path)
    assert refusal.value.slugs == ("missing-file",)
