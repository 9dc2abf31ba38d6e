"""Looking at a materialisation: pages for notebooks, profile, memory and log."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

import upheld
from tests.base.test_markup import parsed
from upheld.algebra.meter import Meter
from upheld.materialisation.reports import progress_display
from upheld.materialisation.reports.profile import UPDATES_KEPT, Costs

RULES = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). far(x) :- path(x, y), !edge(x, y)."
CHAIN = {"edge": [(i, i + 1) for i in range(30)]}
ENGINES = ["memory", "reference"]


@pytest.fixture(scope="module")
def m():
    return upheld.materialise(RULES, CHAIN)


# -- pages -------------------------------------------------------------------------------------------------------------


def test_pages_of_everything_that_notebooks_show(m):
    """Each is HTML whose elements are nested well."""
    change = m.preview(insert={"edge": [(40, 41)]}, delete={"edge": [(3, 4)]})
    no_change = m.preview(insert={"edge": [(0, 1)]})
    shown = (m, m["path"], change, no_change, change.inserted, no_change.inserted, change.statistics, m.plans())
    for thing in (*shown, m.memory(), m.profile(), m.explain("path(0, 9)"), m.explain("path(9, 0)")):
        assert parsed(thing._repr_html_()).seen, thing


def test_a_proof_folds(m):
    """A proof is a tree of facts with the rules that derive them, in which the first levels are open."""
    html = m.explain("path", (0, 5))._repr_html_()
    assert parsed(html).deepest == 5
    assert html.count("<details open>") == 3
    assert "path(x, z) :- path(x, y), edge(y, z)." in html


def test_values_of_facts_are_escaped():
    """No value of a fact becomes HTML."""
    facts = upheld.materialise(".decl p(x:symbol)", {"p": ["<script>alert(1)</script>"]})
    for html in (facts["p"]._repr_html_(), facts.explain("p", ("<script>alert(1)</script>",))._repr_html_()):
        assert "<script>" not in html and "&lt;script&gt;" in html


def test_a_relation_without_columns():
    """Its page says whether it holds."""
    facts = upheld.materialise(".decl p() p().")
    assert "1 row" in facts["p"]._repr_html_()


def test_plans_are_text(m):
    """`plans` returns lines of text as before."""
    assert isinstance(m.plans(), str) and m.plans().startswith("path(x, y) :- edge(x, y).")


def test_answers_of_sparql():
    """The page of a SELECT query has its variables and terms; an unbound variable is empty."""
    solutions = upheld.rdf.Solutions(("x", "y"), [("<http://e/a>", None)])
    assert "&lt;http://e/a&gt;" in solutions._repr_html_() and "None" not in solutions._repr_html_()


# -- profile -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ["adaptive", "dred", "counting"])
def test_the_profile_adds_up(engine, algorithm):
    """Instances by rule, stratum and phase have the same sum: the instances of all runs."""
    m = upheld.materialise(RULES, CHAIN, engine=engine, algorithm=algorithm)
    made = [m.update(delete={"edge": [(7, 8)]}), m.update(insert={"edge": [(7, 9)]})]
    profile = m.profile()
    instances = sum(m.statistics.instances.values()) + sum(sum(c.statistics.instances.values()) for c in made)
    for costs in (profile.rules, profile.strata, profile.phases):
        assert sum(cost.instances for cost in costs) == instances
    assert sum(run.instances for run in profile.runs) == instances
    seconds = sum(run.seconds for run in profile.runs)
    assert sum(cost.seconds for cost in profile.rules) == pytest.approx(seconds)
    assert sum(cost.seconds for cost in profile.phases) == pytest.approx(seconds)
    assert [(run.inserted, run.deleted) for run in profile.runs[1:]] == [
        (sum(len(change.inserted[name]) for name in m), sum(len(change.deleted[name]) for name in m)) for change in made
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_facts_that_a_rule_derives(engine):
    """The facts of a rule are the distinct heads of its instances, those of others derive or not."""
    m = upheld.materialise(RULES, CHAIN, engine=engine)
    facts = {rule.name: rule.facts for rule in m.profile().rules}
    assert facts["path(x, y) :- edge(x, y)."] == 30
    assert facts["path(x, z) :- path(x, y), edge(y, z)."] == len(m["path"]) - 30
    assert facts["far(x) :- path(x, y), !edge(x, y)."] == len(m["far"])


def test_the_profile_of_rewritten_rules():
    """Where constants are rewritten, rules have no facts of their own."""
    rules = upheld.parse(
        "PREFIX : <a:> [?x, :q, ?y] :- [?x, :p, ?y]. [?x, owl:sameAs, ?y] :- [?x, :e, ?y].", dialect="dlog"
    )
    m = upheld.materialise(
        rules, {"triple": [("<a:a>", "<a:p>", "<a:b>"), ("<a:a>", "<a:e>", "<a:c>")]}, equality="rewrite"
    )
    m.update(insert={"triple": [("<a:b>", "<a:e>", "<a:c>")]})
    profile = m.profile()
    assert {rule.facts for rule in profile.rules if rule.place} == {None}
    assert sum(rule.instances for rule in profile.rules) == sum(run.instances for run in profile.runs)


def test_a_profile_changes_nothing(m):
    """Profiles may be asked for at any time; they do not count themselves."""
    first, before = m.profile(), m.facts()
    assert (m.profile().rules, m.facts()) == (first.rules, before)


def test_the_profile_as_data_and_as_a_page(m, tmp_path):
    """JSON has every number, and the page is one file."""
    profile = m.profile()
    assert json.loads(profile.to_json())["rules"][0]["instances"] == profile.rules[0].instances
    profile.save(tmp_path / "profile.html")
    assert parsed((tmp_path / "profile.html").read_text()).seen.count("rect") >= len(profile.rules)


def test_a_page_that_cannot_be_written(m, tmp_path):
    """The error names the folder that is not there."""
    with pytest.raises(upheld.UpheldError, match="there is no folder"):
        m.profile().save(tmp_path / "no" / "profile.html")


def test_what_is_kept_for_profiles_is_bounded():
    """Of many updates the last ones are kept one by one, and the totals of all."""
    m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
    change, costs = m.update(insert={"p": [2]}), Costs()
    for _ in range(UPDATES_KEPT + 5):
        costs.note(change, m._engine.meter.done)
    profile = costs.profile("adaptive", {}, lambda rule: 0)
    assert (profile.updates, len(profile.runs), profile.runs[1].update) == (UPDATES_KEPT + 5, UPDATES_KEPT + 1, 6)
    assert f"the last {UPDATES_KEPT:,} of {UPDATES_KEPT + 5:,}" in profile.to_html()


def test_rules_in_one_piece_of_work_share_its_time():
    """The time of one kernel call for several rules is divided by their instances."""
    meter, rules = Meter(), upheld.materialise(RULES, CHAIN)._core.rules
    meter._reported -= 4.0
    meter.instances_together(rules[:2], [1, 3])
    seconds = [work.seconds for work in meter.done.by_rule().values()]
    assert seconds == pytest.approx([1.0, 3.0], abs=0.5)


# -- memory ------------------------------------------------------------------------------------------------------------


def test_memory_by_relation():
    """Rows, indexes, texts and bookkeeping are counted for each relation; texts are one dictionary."""
    rules = ".decl p(x:symbol, y:number) .decl q(x:symbol) .decl r(y:number) q(x) :- p(x, _). r(y) :- p(_, y)."
    m = upheld.materialise(rules, {"p": [("ab", i) for i in range(100)]})
    memory = m.memory()
    assert list(memory.relations) == ["p", "q", "r"]
    assert memory["p"].entries == 100 and memory["p"].rows >= 100 * 8
    assert (memory["p"].texts, memory["q"].texts, memory["r"].texts) == (2, 2, 0)
    assert memory["q"].bookkeeping > 0
    tables = sum(size.rows + size.indexes + size.bookkeeping for size in memory.relations.values())
    assert memory.total == memory.texts + tables == m._engine.context.nbytes()


def test_memory_of_helper_relations():
    """Relations that nobody has written are counted together."""
    m = upheld.materialise(".decl p(x:number) .decl q(x:number) p(1). q(x) :- x = sum y : { p(y) }.")
    assert "(helper relations)" in m.memory().relations
    with pytest.raises(upheld.UpheldError, match="unknown relation"):
        m.memory()["nothing"]


def test_memory_of_the_reference_engine():
    """It counts rows of its sets."""
    m = upheld.materialise("q(x) :- p(x).", {"p": [1, 2]}, engine="reference")
    assert m.memory()["q"].entries == 2 and m.memory()["q"].rows > 0


# -- log and progress --------------------------------------------------------------------------------------------------


def test_runs_are_logged(caplog):
    """Under `upheld`, with what they did; nothing is printed unless somebody asks for the log."""
    with caplog.at_level(logging.INFO, "upheld"):
        m = upheld.materialise("q(x) :- p(x).", {"p": [1]})
        m.update(insert={"p": [2]})
    messages = [record.getMessage() for record in caplog.records if record.name == "upheld"]
    assert len(messages) == 2
    assert messages[0].startswith("materialised in ")
    assert not any(isinstance(value, upheld.Change) for record in caplog.records for value in record.args or ())
    assert messages[1].startswith("update 1: <Change +1 p, +1 q>, in ") and messages[1].endswith("by adaptive")


def test_numba_logs_nothing_at_debug():
    """Whoever logs everything gets messages of Upheld and none of Numba."""
    code = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
import upheld, upheld.engines.memory.kernels.machine_code
from upheld.engines.memory.kernels.jit import compile_kernels
import numba
numba.njit(lambda x: x + 1)(1)
upheld.materialise("q(x) :- p(x).", {"p": [1]})
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    loggers = {line.split(":")[1] for line in ran.stdout.splitlines() if line.count(":") > 1}
    assert {name.split(".")[0] for name in loggers} == {"upheld"}


class Cell:
    """Stands for the output of a notebook's cell: what it shows, in the order in which that changed."""

    def __init__(self, monkeypatch):
        self.shown: list[str] = []
        package, display = ModuleType("IPython"), ModuleType("IPython.display")
        package.get_ipython = lambda: SimpleNamespace(kernel=self)
        display.HTML = str
        display.display = lambda html, display_id: self.update(html) or self
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def update(self, html):
        self.shown.append(html)


def test_progress_in_a_notebook(monkeypatch):
    """A run that takes longer than a moment shows a bar, which is gone at its end."""
    monkeypatch.setattr(Meter, "_TELL_EVERY", 0.0)
    monkeypatch.setattr(progress_display, "DELAY", 0.0)
    cell = Cell(monkeypatch)
    m = upheld.materialise(RULES, CHAIN, progress=True)
    assert len(cell.shown) > 3 and cell.shown[-1] == ""
    assert "<progress max=" in cell.shown[-2] and "facts" in cell.shown[-2]
    cell.shown.clear()
    m.update(insert={"edge": [(30, 31)]})
    assert cell.shown and cell.shown[-1] == ""


def test_short_runs_show_no_progress(monkeypatch):
    """Below half a second nothing is shown."""
    monkeypatch.setattr(Meter, "_TELL_EVERY", 0.0)
    monkeypatch.setattr(progress_display, "DELAY", 1e9)
    cell = Cell(monkeypatch)
    upheld.materialise(RULES, CHAIN, progress=True)
    assert cell.shown == []


def test_progress_on_standard_error(monkeypatch, capsys):
    """Elsewhere it is a line on standard error."""
    monkeypatch.setattr(Meter, "_TELL_EVERY", 0.0)
    monkeypatch.setattr(progress_display, "DELAY", 0.0)
    upheld.materialise(RULES, CHAIN, progress=True)
    assert "stratum" in capsys.readouterr().err


@pytest.mark.parametrize("progress", [1, "yes", []])
def test_progress_of_another_type(progress):
    """It is a function or a truth value."""
    with pytest.raises(upheld.UpheldError, match="a function, True, False or None"):
        upheld.materialise("q(x) :- p(x).", {"p": [1]}, progress=progress)


def test_the_end_of_a_run_is_reported_if_it_fails():
    """The bar of a run that reaches a limit is removed as well."""
    m = upheld.materialise(".decl n(x:number) n(0). n(x + 1) :- n(x), x < 5.", limits=upheld.Limits(rounds=50))
    ended = []
    m._engine.meter.ended = ended.append
    m._engine.meter.limits = upheld.Limits(rounds=1)
    with pytest.raises(upheld.UpheldError, match="limit of 1 rounds"):
        m.update(insert={"n": [-50]})
    assert len(ended) == 1
