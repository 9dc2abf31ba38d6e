"""Where rules are applied: the choice, its reasons, and the same facts whichever it is."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import upheld
from tests.engines.spark.helpers.jobs import Jobs
from tests.pipeline.test_run import REACH, read, rows_of
from upheld.base.errors import LimitReached
from upheld.engines.spark.joins.replication import SMALL
from upheld.pipeline.job import Settings
from upheld.pipeline.modes import choosing
from upheld.pipeline.modes.choosing import Cost, Rates, Sizes, choose

pytestmark = pytest.mark.xdist_group("spark")

SIZES = Sizes(facts=1000, values=2000, texts=100, characters=500)
LARGE = Sizes(facts=2_000_000, values=4_000_000, texts=0, characters=0)

#: Costs that are easy to add up: a microsecond a fact in the driver, and three in partitions.
RATES = {
    "driver": Rates(Cost(0), Cost(1e-6), Cost(1e-6), Cost(1e-6)),
    "distributed": Rates(Cost(2), Cost(0, 3e-6), Cost(1e-6), Cost(0, 3e-6)),
}


@pytest.fixture
def rates(monkeypatch):
    monkeypatch.setattr(choosing, "RATES", RATES)


@pytest.mark.parametrize(
    "settings, mode",
    [
        (Settings(), "driver"),
        (Settings(driver_memory="1k"), "distributed"),
        (Settings(driver_memory="1k", mode="distributed"), "distributed"),
        (Settings(mode="distributed"), "distributed"),
        (Settings(mode="driver"), "driver"),
        (Settings(state="s"), "driver"),
        (Settings(state="s", driver_memory="1k"), "distributed"),
    ],
)
def test_the_choice(settings, mode):
    chosen, choice = choose(settings, SIZES, tasks=2, is_recursive=True)
    assert chosen == mode
    assert "1,000 facts and 100 texts take about" in choice.why
    assert choice.why.startswith("it was asked for") == (settings.mode != "auto")


def test_what_must_fit_and_does_not():
    with pytest.raises(LimitReached) as refusal:
        choose(Settings(driver_memory="1k", mode="driver"), SIZES, tasks=2, is_recursive=True)
    assert refusal.value.slugs == ("too-large-for-driver",)


@pytest.mark.parametrize(
    "settings, sizes, tasks, is_recursive, mode",
    [
        (Settings(), LARGE, 2, True, "driver"),
        (Settings(), SIZES, 16, True, "driver"),
        (Settings(), LARGE, 4, True, "driver"),
        (Settings(), LARGE, 16, True, "distributed"),
        (Settings(), LARGE, 16, False, "driver"),  # little is derived
        (Settings(state="s"), LARGE, 16, True, "driver"),
        (Settings(driver_memory="50k"), SIZES, 2, True, "distributed"),
    ],
)
def test_the_choice_by_costs(settings, sizes, tasks, is_recursive, mode, rates):
    """Tasks are for much that many of them derive, and for what the driver has no room for."""
    assert choose(settings, sizes, tasks, is_recursive)[0] == mode


def test_the_cheapest_mode_is_chosen_from_the_margin_on(rates):
    """The driver takes 11 microseconds for an explicit fact; 16 tasks a fifth of that, two seconds and the loading."""
    for facts, mode in ((500_000, "driver"), (860_000, "driver"), (880_000, "distributed"), (2_000_000, "distributed")):
        chosen, choice = choose(Settings(), Sizes(facts, 0, 0, 0), 16, is_recursive=True)
        total = 11e-6 * facts
        in_tasks = 2 + 3 * total / 15 + 1e-6 * min(facts, SMALL)
        assert choice.costs == pytest.approx({"driver": total, "distributed": in_tasks})
        assert chosen == mode == ("distributed" if total > choosing.MARGIN * in_tasks else "driver")


def test_the_reason_has_the_costs(rates):
    _, choice = choose(Settings(), LARGE, tasks=8, is_recursive=True)
    assert "with 8 tasks at once and 10 facts derived for each explicit one it would take" in choice.why
    assert "in the driver 22.0 s, in partitions 12.5 s" in choice.why
    _, choice = choose(Settings(driver_memory="50k"), SIZES, tasks=1, is_recursive=True)
    assert choice.costs.keys() == {"distributed"}
    _, choice = choose(Settings(mode="driver"), SIZES, tasks=1, is_recursive=True)
    assert choice.costs == {}


def test_relations_in_each_task(rates):
    """Tasks load replicated relations by themselves, as many facts as these may have."""
    work = choosing.Work.of(1_000_000, 0, is_recursive=False)
    assert choosing.seconds("distributed", work, 1_000_000) == pytest.approx(2 + 1, abs=0.001)
    more = choosing.Work.of(100_000_000, 0, is_recursive=False)
    assert choosing.seconds("distributed", more, 10**9) == pytest.approx(2 + SMALL * 1e-6, abs=0.001)


def test_the_measured_costs():
    """More tasks are never slower, and few facts are for the driver."""
    for mode in choosing.RATES:
        took = [choosing.seconds(mode, choosing.Work.of(10**8, 10**6, True), tasks) for tasks in (1, 2, 8, 64)]
        assert took == sorted(took, reverse=True)
    assert choose(Settings(), SIZES, tasks=64, is_recursive=True)[0] == "driver"
    assert choose(Settings(), LARGE, tasks=1, is_recursive=True)[0] == "driver"
    assert choose(Settings(), LARGE, tasks=16, is_recursive=True)[0] == "distributed"


def test_distributed(spark):
    """The same facts as in the driver, from the tasks of one job, which has ended when the run has."""
    program = """
    .decl e(x:number, u:unsigned, f:float, s:symbol)
    .decl next(x:number, y:number)
    .decl q(x:number, y:number)
    .decl many(x:number, n:number)
    .decl some()
    next(x, x + 1) :- e(x, _, _, _).
    q(x, y) :- next(x, y).
    q(x, z) :- q(x, y), next(y, z).
    many(x, n) :- e(x, _, _, _), n = count : { q(x, _) }.
    some() :- e(_, _, f, s), f > 0.5, !e(0, _, f, s).
    """
    rows = [(i, Decimal(2**63 + i), i / 2, f"é{i}") for i in range(9)]
    frame = spark.createDataFrame(rows, "x bigint, u decimal(20,0), f double, s string")
    outputs, jobs = {}, Jobs(spark)
    for mode in ("driver", "distributed"):
        run = upheld.Pipeline(program, {"e": frame}, [{"path": mode}], mode=mode).run(spark)
        outputs[mode] = [rows_of(read(spark, Path(mode, name))) for name in ("q", "many", "some")]
        outputs[mode] += [rows_of(run["many"]), run.report.relations]
        jobs.active(0)
    assert outputs["driver"] == outputs["distributed"]
    assert run.report.choices[0].plan == "partitions, in the tasks of one Spark job"
    assert (0, 9) in outputs["distributed"][1]


def test_values_of_every_type_in_tasks(spark):
    """The same facts as in the driver, for every type, and a feed that begins with them."""
    program = """
    .decl e(n:number, u:unsigned, f:float, s:symbol)
    .decl p(s:symbol, f:float, u:unsigned, n:number)
    .decl q(n:number)
    .decl some()
    p(s, f, u, n) :- e(n, u, f, s).
    q(n) :- e(n, _, _, _).
    q(n - 1) :- q(n), n > 0.
    some() :- e(_, _, _, _).
    """
    rows = [
        (-(2**63), Decimal(2**64 - 1), float("-inf"), "é\n\t"),
        (5, Decimal(0), 0.5, ""),
        (5, Decimal(2**63), 0.0, '"'),
        (7, Decimal(3), 1e300, "x"),
    ]
    frame = spark.createDataFrame([*rows, rows[0]], "n bigint, u decimal(20,0), f double, s string")
    sinks = [{"path": "out"}, {"format": "changes", "path": "feed"}]
    run = upheld.Pipeline(program, {"e": frame}, sinks, mode="distributed").run(spark)
    assert run.report.relations["q"] == {"explicit": 0, "facts": 9} and run.report.relations["e"]["explicit"] == 4
    assert rows_of(run["p"]) == {(s, f, u, n) for n, u, f, s in rows} == rows_of(read(spark, Path("out/p")))
    assert rows_of(run["some"]) == {(True,)}
    assert rows_of(read(spark, Path("feed/q"))) == {("+", n, 1) for n in (-(2**63), *range(8))}


def test_too_large_for_the_driver(spark):
    """What does not fit is not refused, but goes to tasks, some at a time."""
    Path("e.csv").write_text("x,y\na,b\nb,c\n")
    run = upheld.Pipeline(REACH, {"edge": "e.csv"}, driver_memory="100").run(spark)
    assert rows_of(run["path"]) == {("a", "b"), ("b", "c"), ("a", "c")}
    assert run.report.choices[0].plan == "partitions, in the tasks of one Spark job"
