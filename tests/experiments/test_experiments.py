"""The experiments: every table has its columns, samples are nested, and a run that was stopped goes on."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import upheld
from experiments import commands
from experiments.__main__ import main
from experiments.catalogue import experiments
from experiments.data.facts import count
from experiments.data.lubm import lubm
from experiments.data.streams import edges, generated_track
from experiments.measuring import measure
from experiments.measuring.breakeven import Deletions, bisect
from experiments.measuring.measure import folder_of, load, wanted
from experiments.measuring.sampling import sample
from experiments.measuring.statistics import average, mean, middle, pearson, scores
from experiments.papers import paper3
from experiments.programs import graph_patterns, profile, uobm
from experiments.programs import lubm as lubm_rules
from experiments.programs.equality import aliased, iri, names
from experiments.programs.instances import instance, profile_of
from experiments.published import Printed, printed
from experiments.registry import Cell, Measured, Settings
from experiments.report.claims import CONFIRMED, CONTRADICTED, OPEN, Claim, Outcome, faster, judged
from experiments.report.findings import sizes, write_findings
from experiments.report.plots import agreement, agreements
from experiments.report.questions import CLAIMS, QUESTIONS, SPARK
from experiments.report.tables import Table, number
from upheld.base.errors import Problem

TINY = Settings("tiny")
MEASURED = [each for each in experiments().values() if each.measure is not None]
IN_MEMORY = [each for each in MEASURED if "spark" not in each.id]


# -- every table at a size of seconds ------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", IN_MEMORY, ids=lambda each: each.id)
def test_every_table_is_measured(experiment):
    """A cell of each way gives a table with the paper's columns and our numbers in them."""
    cells = [cell for cell in wanted(experiment, TINY) if cell.seed == wanted(experiment, TINY)[0].seed]
    first, *_ = cells
    mine = [cell for cell in cells if all(getattr(cell, name) == getattr(first, name) for name in experiment.process)]
    # Two ways of one stratification are enough to see the frame; the algorithms have tests of their own.
    mine = [cell for cell in mine if cell.strat == mine[0].strat][:2]
    found = [json.loads(json.dumps(values)) for _, values in experiment.measure(TINY, mine)]
    measured = Measured({"cell": vars(cell), **values} for cell, values in zip(mine, found, strict=True))
    for each in experiments().values():
        if each.measured_by == experiment.id:
            table = each.table(measured)
            # The paper prints what figure 8 shows of a panel, and no points of it.
            paper = printed("" if each.id == "p1-figure8" else each.id)
            assert set(paper.columns) <= set(table.columns)
            assert set(paper.rows) <= set(table.rows)
            assert any(entry.ours is not None for row in table.rows.values() for entry in row.values()), each.id
            assert table.to_markdown().count("|") > 10 and table.title in table.to_text()


@pytest.mark.parametrize("experiment", experiments().values(), ids=lambda each: each.id)
def test_unmeasured_tables_have_the_papers_numbers(experiment):
    """Without a measurement a table shows what the paper prints, and nothing of ours."""
    table = experiment.table(Measured())
    assert all(entry.ours is None for row in table.rows.values() for entry in row.values())
    assert len(table.rows) >= len(printed("" if experiment.id == "p1-figure8" else experiment.id).rows)


# -- running -------------------------------------------------------------------------------------------------------


FILES = {"cells.jsonl", "machine.json", "table.md", "table.csv", "figure.svg"}


def test_a_run_writes_its_files_and_goes_on_after_a_kill(tmp_path, monkeypatch, capfd):
    """A line that a kill has cut short is measured again; the other cells are not, and nothing is measured twice."""
    folder = commands.run("p1-table2", TINY, tmp_path)
    assert {file.name for file in folder.iterdir()} == FILES
    file = folder / "cells.jsonl"
    whole = file.read_text().splitlines(keepends=True)
    assert len(whole) == 2
    file.write_text(whole[0] + whole[1][:20])
    asked = []
    real = measure._measure
    monkeypatch.setattr(measure, "_measure", lambda e, s, cells, f: asked.extend(cells) or real(e, s, cells, f))
    commands.run("p1-table2", TINY, tmp_path)
    assert [cell.row for cell in asked] == ["ChEMBL-R"]
    assert file.read_text().splitlines(keepends=True) == whole
    commands.run("p1-table2", TINY, tmp_path)
    assert len(asked) == 1
    about = json.loads((folder / "machine.json").read_text())
    assert about["settings"]["programs"] == "generated" and about["cores"] >= 1 and len(about["load"]) == 2
    assert about["measure"].startswith("CPU seconds")


def test_cells_that_take_too_long_are_given_up(tmp_path, monkeypatch):
    """The cell at work and the others of its name are stopped; the remaining ones get a process of their own."""
    monkeypatch.setitem(measure.PATIENCE, "tiny", 0.0)
    monkeypatch.setattr(measure, "LOOK", 0.0)
    done = measure.run(experiments()["p1-table2"], TINY, tmp_path)
    assert len(done.values) == 2
    assert all("stopped" in values for values in done.values.values())
    assert list(done.of()) == []


def test_all_experiments_run_and_one_that_fails_does_not_keep_others(tmp_path, monkeypatch):
    """The error of the one that failed comes at the end; what is measured is not measured again."""
    asked = []

    def pretend(experiment, settings, cells, file):
        asked.append(experiment.id)
        if experiment.id == "p4-table2":
            raise upheld.UpheldError(Problem("failed-experiment", "it failed"))
        with file.open("a") as out:
            out.writelines(json.dumps({"cell": vars(cell), "stopped": 1.0}) + "\n" for cell in cells)
        return []

    monkeypatch.setattr(measure, "_measure", pretend)
    with pytest.raises(upheld.UpheldError, match="it failed"):
        commands.run_all(TINY, tmp_path)
    assert {each.id for each in MEASURED} == set(asked)
    asked.clear()
    with pytest.raises(upheld.UpheldError, match="it failed"):
        commands.run_all(TINY, tmp_path)
    assert set(asked) == {"p4-table2"}


def test_a_failing_process_is_reported(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(measure, "asdict", lambda cell: {"row": "nonsense"})
    with pytest.raises(upheld.UpheldError, match="failed-experiment"):
        measure.run(experiments()["p1-table2"], TINY, tmp_path)


def test_commands(tmp_path, capsys):
    """`list`, `show` and `report` work on what is there, and on nothing."""
    at = ["--results", str(tmp_path / "results"), "--size", "tiny"]
    assert main(["list", *at]) == 0
    assert "p5-table2" in capsys.readouterr().out
    assert main(["show", "p5-table2", *at]) == 0
    assert "nothing is measured" in capsys.readouterr().out
    page = tmp_path / "findings.md"
    assert main(["report", *at, "--page", str(page)]) == 0
    assert f"{len(CLAIMS)} **open**" in page.read_text()
    assert main(["show", "p5-table22", *at]) == 2
    assert "unknown-experiment" in capsys.readouterr().err
    assert main(["show", "p5-table2", "--engine", "spark", *at]) == 2
    assert "p5-table2-spark" in capsys.readouterr().err
    assert main(["show", "p2-table1", "--engine", "spark", *at]) == 0
    assert "on Spark" in capsys.readouterr().out
    assert main(["run", *at]) == 2
    assert main(["run", "p1-table2", "--only", "Klaros", *at]) == 2


# -- break-even points ---------------------------------------------------------------------------------------------


def test_the_search_for_a_break_even_point():
    """It begins with half of the facts, halves what is left, and ends within 2.5 % or after ten steps."""
    line = list(bisect(1_000, lambda size: (size / 100, 3.0)))
    assert [step.size for step in line] == [500, 250, 375, 312, 281, 296]
    assert line[-1].is_even and not line[-2].is_even
    assert [step.size for step in bisect(1_000, lambda size: (0.0, 1.0), 3)] == [500, 750, 875]
    assert [step.size for step in bisect(1_000_000, lambda size: (1.0, 0.0))][-1] == 1_000_000 >> 10


def test_starting_again_is_measured_on_what_is_left():
    """The facts without the sample are derived once more, with and without counters; then all facts are there again."""
    facts = {"edge": np.array([[k, k + 1] for k in range(20)])}
    deletions = Deletions("path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z).", facts, "levels")
    before = len(deletions.m.facts())
    left = {"edge": [row for row in facts["edge"].tolist() if row not in sample(facts, 5, 0)["edge"].tolist()]}
    expected = upheld.materialise("path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z).", left)
    for counters_of in ("", "counting-by-rounds", "dred-c"):
        again = deletions.again(5, counters_of)
        assert again["total"] == expected.statistics.instances.total()
    deleted, added = deletions.deleted(5, "bf")
    assert deleted["changed"] == added["changed"] == before - len(expected.facts())
    assert len(deletions.m.facts()) == before


# -- equality ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ["OpenCyc-L", "UOBM-100-U"])
def test_names_of_one_thing_are_the_same(row):
    """Things with one key are equal by rewriting as by axioms, and no others are."""
    it = aliased(row, 200, "tiny", None)
    kept, every = (
        upheld.materialise(it.program, {"triple": it.triples}, equality=equality) for equality in ("rewrite", "axioms")
    )
    assert set(kept["triple"]) == set(every["triple"])
    classes = names(row, 200, "tiny", 1)
    for members in classes:
        assert kept.equals(iri(members[0])) == sorted(map(iri, members.tolist()))
    assert len(set(np.concatenate(classes).tolist())) == sum(map(len, classes))


def test_deletions_are_scaled_with_the_facts():
    """Small deletions of the paper are scaled by the size, large ones are the same part of all facts."""
    assert paper3.size_of("UOBM-100-L", "2500000", 24_500, "small") == 2_500
    assert paper3.size_of("UOBM-100-L", "5000", 24_500, "small") == 150
    assert paper3.size_of("OpenCyc-L", "5000", 100, "paper") == 50


# -- samples and data ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["uniform", "walk"])
def test_samples_are_nested(kind):
    """Samples of one seed grow by facts alone; another seed gives others; the largest has all facts, each once."""
    facts = instance("UOBM-L", 300, "tiny", None).facts
    smaller, larger = (rows_of(sample(facts, size, 1, kind)) for size in (20, 60))
    assert len(smaller) == 20 and len(larger) == 60 and smaller < larger
    assert rows_of(sample(facts, 20, 2, kind)) != smaller
    assert rows_of(sample(facts, count(facts), 1, kind)) == rows_of(facts)


def test_walks_go_along_values():
    """On a chain a walk meets neighbours, which a uniform sample seldom does."""
    chain = {"edge": np.stack([np.arange(500), np.arange(1, 501)], 1)}
    met = sorted(row[0] for _, row in rows_of(sample(chain, 20, 1, "walk")))
    assert sum(b - a == 1 for a, b in pairwise(met)) >= 10


def rows_of(facts):
    return {(relation, tuple(row)) for relation, rows in facts.items() for row in rows.tolist()}


def test_the_same_seed_gives_the_same_data():
    assert rows_of(lubm(1, departments=1)) == rows_of(lubm(1, departments=1))
    assert edges(20, 10, 1) == edges(20, 10, 1) != edges(20, 10, 2)
    assert generated_track(5, 1) == generated_track(5, 1)


def test_published_sizes():
    """LUBM(1, 0) has 100,543 triples in 15 departments, and LUBM L 98 rules; Exp has 3, the patterns on YAGO 23."""
    departments = [count(lubm(1, seed, departments=1)) for seed in range(8)]
    assert abs(sum(departments) / 8 / (100_543 / 15) - 1) < 0.1
    rules = [
        len(upheld.check(text).core.rules) for text in (lubm_rules.SIMPLE, lubm_rules.CYCLIC, graph_patterns.RULES)
    ]
    assert rules == [98, 16, 23]


def test_rules_in_the_manner_of_uobm():
    """Both bounds have the published number of rules; recursion is near the published one, 49 and 144."""
    for text, rules, recursive in ((uobm.LOWER, 210, 51), (uobm.UPPER, 279, 171)):
        strata = upheld.check(text, stratification="levels").strata
        assert sum(len(s.recursive) + len(s.nonrecursive) for s in strata) == rules
        assert sum(len(s.recursive) for s in strata) == recursive
    facts = instance("UOBM-L", 3_000, "small", None).facts
    assert abs(count(facts) / 3_000 - 1) < 0.05
    towns = facts["hasSameHomeTownWith"]
    assert len(np.unique(towns[:, 0])) == len(towns), "everybody names one neighbour, so towns are trees"


@pytest.mark.parametrize("row", ["ChEMBL-L", "Claros-L", "Reactome-R", "UOBM-R"])
def test_generated_programs_have_the_published_profile(row):
    """Recursive rules and rules of each level are those of the profile; a rule drawn twice counts once."""
    wished = profile.scaled(profile_of(row), 150)
    strata = upheld.check(profile.program(wished, 1)[0], stratification="levels").strata
    got = [(len(s.recursive), len(s.recursive) + len(s.nonrecursive)) for s in strata if s.recursive or s.nonrecursive]
    assert [recursive for recursive, _ in got] == [recursive for recursive, _ in wished]
    assert all(0 <= want - have <= 3 for (_, want), (_, have) in zip(wished, got, strict=True))


# -- the printed numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table, key, column, value", [
    ("p1-table1", ("Claros-LE",), "materialised", 533_300_000),
    ("p1-table2", ("UniProt-R", "5"), "rules", 10_397),
    ("p1-table3", ("Claros-LE", "N"), "time DRed", 5_450),
    ("p1-table3", ("Median score", "All"), "time CNT", 61.22),
    ("p1-table4", ("UOBM-L", "N"), "DRed bwd", 79_150),
    ("p1-table5", ("Claros-LE", "Y"), "derivations FBF", 114_090),
    ("p1-table6", ("Average ratio unstratified/stratified", ""), "time DRed/FBF", 0.86),
    ("p1-table7", ("Reactome-U", "Y"), "FBF", 79_300),
    ("p1-table8", ("Reactome-U", "Y"), "time DRed", 4_170),
    ("p1-table9", ("Reactome-R", "N"), "time CNT", 1_610),
    ("p2-table1", ("SSPE",), "DRed", 1684.97),
    ("p2-table2", ("Claros-LE",), "Remat-2C", 3_600),
    ("p3-table1", ("OpenCyc-L", "1000"), "B/F= T", 1_062),
    ("p4-table2", ("YAGO", "materialisation"), "standard", 155_022),
    ("p5-table2", ("40",), "deletions new", 5_910),
])  # fmt: skip
def test_printed_numbers(table, key, column, value):
    assert printed(table).number(key, column) == value


def test_printed_tables_are_consistent():
    """Sums and ratios that the papers print follow from their other numbers."""
    two = printed("p1-table2").rows
    for row in {key[0] for key in two}:
        levels = [values for key, values in two.items() if key[0] == row and key[1] != "all"]
        # The levels of DBpedia-L and UniProt-L print up to a few rules more or fewer than their total.
        assert abs(sum(v["recursive"] for v in levels) - two[row, "all"]["recursive"]) <= 1
    three = printed("p1-table3")
    times = [three.number((row, "N"), "time CNT") for row in {key[0] for key in two}]
    assert sum(times) / 12 == pytest.approx(three.number(("Average value", "N"), "time CNT"), abs=0.01)
    for key, values in printed("p5-table1").rows.items():
        saved = 100 * (values["time old"] - values["time new"]) / values["time old"]
        assert saved == pytest.approx(values["reduction %"], abs=0.1), key


# -- statistics, tables and claims ---------------------------------------------------------------------------------


def test_statistics():
    """Values worked out by hand."""
    found = mean([2.0, 4.0, 4.0, 6.0])
    assert found.value == 4 and found.interval == pytest.approx(1.96 * math.sqrt(8 / 3) / 2) and found.count == 4
    assert mean([]) is None and mean([3.0]).interval is None
    assert scores([3.0, 1.5, None]) == [2.0, 1.0, None] and scores([0.0, 2.0]) == [1.0, 1.0]
    assert middle([1.0, None, 5.0]) == 3.0 and average([None]) is None
    assert pearson([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert pearson([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert pearson([1, 1], [1, 2]) is None and pearson([1], [1]) is None


def test_a_table_shows_both_numbers():
    table = Table("t", ("row",), [])
    table.put(("a",), "x", mean([1.0, 3.0]))
    table.put(("a",), "y", 1_500.0, 2_000_000.0)
    assert table.cells() == [["row", "x", "y"], ["a", "2 ±1.96", "1.5 k (2 M)"]]
    assert list(csv.reader(io.StringIO(table.to_csv())))[2] == ["a", "y", "1500.0", "", "2000000.0"]
    assert number(0.5) == "0.5"


def test_rows_of_our_own_follow_the_paper_s_rows_of_the_program():
    table = Table("t", ("row", "strata"), [])
    for key in (("b", "fine"), ("a", "fine"), ("b", "Y"), ("ours", "Y")):
        table.put(key, "x", 1.0)
    table.beside(Printed("a paper", ("x",), {("a", "Y"): {"x": 2.0}, ("b", "N"): {}, ("b", "Y"): {"x": 3.0}}))
    assert list(table.rows) == [("a", "Y"), ("a", "fine"), ("b", "N"), ("b", "Y"), ("b", "fine"), ("ours", "Y")]


def test_verdicts_are_computed():
    """A claim is confirmed or contradicted by the numbers, and open without them."""
    table = Table("t", ("row",), [])
    claim = Claim(next(iter(QUESTIONS)), 1, "a is faster", lambda t: faster(t["t"], "a", "b"), {CONFIRMED: "so it is"})
    assert judged([claim], {"t": table})[0].verdict == OPEN
    for row, a, b in (("1", 1.0, 2.0), ("2", 1.0, 2.0), ("3", 3.0, 2.0)):
        table.put((row,), "a", a)
        table.put((row,), "b", b)
    assert (judged([claim], {"t": table})[0].verdict, judged([claim], {"t": table})[0].why) == (CONFIRMED, "so it is")
    table.put(("2",), "a", 4.0)
    assert judged([claim], {"t": table})[0].verdict == CONTRADICTED
    assert isinstance(claim.test({"t": table}), Outcome)


def test_every_claim_is_under_a_question_and_open_without_cells():
    tables = {id: each.table(Measured()) for id, each in experiments().items()}
    # On Spark there is nothing to compare with.
    assert {claim.question for claim in CLAIMS} == set(QUESTIONS) - {SPARK}
    assert {each.verdict for each in judged(CLAIMS, tables)} == {OPEN}
    assert all(set(claim.because) == {CONFIRMED, CONTRADICTED} for claim in CLAIMS), "a reason for either verdict"
    assert all(question.answer(tables) is None for question in QUESTIONS.values())


def test_agreement_of_rankings(tmp_path):
    """Rows count in which the paper orders two columns; the figure is drawn if there are any."""
    table = Table("t", ("row",), [])
    for row, ours, paper in (("1", (1, 2), (10, 20)), ("2", (2, 1), (10, 20)), ("3", (1, 2), (5, 5))):
        for column, mine, theirs in zip(("time old", "time new"), ours, paper, strict=True):
            table.put((row,), column, float(mine), float(theirs))
    assert agreements(table, ("time old", "time new")) == {("time old", "time new"): (1, 2)}
    assert agreement({"p5-table2": table}, tmp_path / "a.svg") and (tmp_path / "a.svg").exists()
    assert not agreement({}, tmp_path / "b.svg")


RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def test_the_page_of_findings_is_what_the_committed_cells_give(tmp_path, monkeypatch):
    """No number of the page is typed by hand."""
    root = RESULTS.parents[1]
    monkeypatch.chdir(root)
    page = root / "docs" / "findings.md"
    before = page.read_text()
    assert load(folder_of(RESULTS, Settings("default"), "p5-table2"))
    written = tmp_path / "docs" / "findings.md"
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "results").symlink_to(RESULTS)
    monkeypatch.setattr("experiments.report.findings.plots.agreement", lambda tables, file: file.exists())
    monkeypatch.setattr(Path, "write_text", _only(written, Path.write_text))
    results = tmp_path / "experiments" / "results"
    write_findings(sizes(results), results, written)
    assert written.read_text() == before


def test_the_page_for_browsers_has_no_markdown():
    """Links lead to headings of the page, and emphasis is not left as it was written."""
    page = (RESULTS / "findings.html").read_text()
    links = re.findall(r'href="#([^"]+)"', page)
    assert links and all(f'id="{name}"' in page for name in links)
    text = re.sub(r"<(svg|code).*?</\1>", "", page, flags=re.DOTALL)
    assert "](" not in text and not re.search(r"\*\w+\*", text)


def test_committed_cells_are_those_of_the_experiments():
    """A cell that no experiment asks for, as of a row or way that has been renamed, would stay in the tables."""
    files = sorted(RESULTS.glob("*/*/cells.jsonl"))
    assert files
    for file in files:
        settings, experiment = Settings(file.parents[1].name), experiments()[file.parent.name]
        assert set(load(file.parent).values) <= set(wanted(experiment, settings)), file
        assert json.loads((file.parent / "machine.json").read_text())["cores"] >= 1


def test_each_committed_table_has_its_files():
    """A table that shows the cells of another has all but these, and says whose they are."""
    for experiment in experiments().values():
        folder = folder_of(RESULTS, Settings("default"), experiment.id)
        there = {file.name for file in folder.iterdir()}
        assert there == (FILES - {"cells.jsonl"} if experiment.cells_of else FILES), experiment.id
        about = json.loads((folder / "machine.json").read_text())
        assert about.get("cells_of", "") == experiment.cells_of


def test_a_table_is_shown_at_the_size_at_which_most_of_it_is_measured(tmp_path):
    """Of two sizes with as many rows, the larger one counts; nothing is shown at the size of tests."""

    def pretend(size, rows):
        folder = folder_of(tmp_path, Settings(size), "p1-table2")
        folder.mkdir(parents=True, exist_ok=True)
        cells = [vars(Cell(f"row {k}", "", "")) for k in range(rows)]
        (folder / "cells.jsonl").write_text("".join(json.dumps({"cell": c, "levels": []}) + "\n" for c in cells))

    for size, rows in (("tiny", 3), ("small", 2), ("default", 1)):
        pretend(size, rows)
    assert sizes(tmp_path)["p1-table2"].size == "small"
    pretend("default", 2)
    assert sizes(tmp_path)["p1-table2"].size == "default"
    assert sizes(tmp_path, "tiny")["p1-table2"].size == "tiny"
    assert sizes(tmp_path)["p5-table1"].size == "small"


def _only(allowed, write):
    return lambda self, *args, **more: write(self, *args, **more) if self == allowed else 0


def test_cells_are_told_apart_by_all_fields():
    assert Cell("a", "N", "dred", seed=1) != Cell("a", "N", "dred", seed=2)
    assert Cell("a", "", "dred").name == "a dred"
