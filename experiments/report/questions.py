"""The papers, the questions of a reader, and the claims under each question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from experiments.report.claims import Claim, Outcome, Tables, at_most, faster, pairs, range_of
from experiments.report.plots import is_summary
from experiments.report.tables import number

PAPERS = {
    1: "B. Motik, Y. Nenov, R. Piro, I. Horrocks: Maintenance of Datalog Materialisations Revisited. Artificial "
    "Intelligence 269, 2019.",
    2: "P. Hu, B. Motik, I. Horrocks: Optimised Maintenance of Datalog Materialisations. AAAI 2018.",
    3: "B. Motik, Y. Nenov, R. Piro, I. Horrocks: Combining Rewriting and Incremental Materialisation Maintenance for "
    "Datalog Programs with Equality. IJCAI 2015.",
    4: "X. Zhang, P. Hu, Y. Nenov, I. Horrocks: Enhancing Datalog Reasoning with Hypertree Decompositions. IJCAI 2023.",
    5: "M. Illich, B. Glimm: Backward/Forward with Marking for Update Streams. 2025.",
}

MISSING = (
    "The rewritten (R) programs of papers 1 and 2 come from a tool that is not published. Programs with the same "
    "recursive rules, rules and levels stand in for them, scaled down where they have thousands of rules.",
    "The data of ChEMBL, UniProt, Claros, DBpedia, Reactome, OpenCyc and YAGO is not used: facts are generated over "
    "the relations of each program. Published rule sets are used where one has them (`--programs`).",
    "Of the three GPS tracks of paper 5 one is published; drives over generated streets stand in for the others.",
    "Table 1 of the appendix of paper 4 (peak memory) is not in the copy that we have, so ours stands alone.",
    "UOBM's ontology is not used, since its licence is not stated: rules of our own with the published number of rules "
    "stand in for it, over generated universities. OpenCyc is not published any more; a deep hierarchy of classes with "
    "idle rules, which paper 3 names as its traits, stands in for it.",
)

ALGORITHMS = (
    "Three families of algorithms keep derived facts up to date. *Counting* knows how often each fact was derived. "
    "*DRed* deletes everything that might have gone and derives again what still holds. *FBF* (also B/F) looks for "
    "another derivation first. `ranked` and `adaptive`, which is the default, are Upheld's own: they also know in "
    "which round a fact was derived."
)

SMALL = "Which algorithm for a small update?"
STRATA = "Do strata help?"
AGAIN = "When is it better to start again?"
COUNTERS = "What do counters bring?"
EQUALITY = "What does rewriting of equal names bring?"
CYCLES = "What does decomposing cyclic rules bring?"
SPARK = "Does Spark help?"
AHEAD = "Does a look at the next update pay?"


@dataclass(frozen=True)
class Question:
    """The background of the claims under a question, and the measured answer in a sentence, if there is one."""

    about: str
    answer: Callable[[Tables], str | None] = lambda tables: None


# -- answers -----------------------------------------------------------------------------------------------------------


def best_of(table: str, columns: dict[str, str], strata: tuple[str, ...], what: str) -> Callable[[Tables], str | None]:
    """Answer with the column that is least in most rows, and the median multiple of the least that each takes."""

    def answer(tables: Tables) -> str | None:
        t = tables[table]
        scored: dict[str, list[float]] = {column: [] for column in columns}
        for key in t.rows:
            values = {column: t.ours(key, column) for column in columns}
            known = {column: value for column, value in values.items() if value}
            if len(known) == len(columns) and (not strata or key[-1] in strata) and not is_summary(key):
                least = min(known.values())
                for column, value in known.items():
                    scored[column].append(value / least)
        if not all(scored.values()):
            return None
        wins = {column: sum(score == 1 for score in mine) for column, mine in scored.items()}
        best = max(wins, key=lambda column: wins[column])
        others = sorted((median(mine), columns[c]) for c, mine in scored.items() if c != best)
        slower = ", ".join(f"{name} {number(multiple)}" for multiple, name in others)
        return (
            f"{what}, {columns[best]} was the fastest in {wins[best]} of {len(scored[best])} programs. The others took "
            f"longer than the best by these factors, in the median: {slower}."
        )

    return answer


def ratio(table: str, left: str, right: str, what: str) -> Callable[[Tables], str | None]:
    """Answer with the range of left over right."""

    def answer(tables: Tables) -> str | None:
        numbers = pairs(tables[table], left, right, where=lambda key: not is_summary(key))
        if not numbers:
            return None
        return (
            f"{what} times {number(min(numbers))} to {number(max(numbers))}, in the median {number(median(numbers))}."
        )

    return answer


def decompositions(tables: Tables) -> str | None:
    """Answer with the range of what standard evaluation takes, beside the combined one, on cyclic rules."""
    ratios = pairs(tables["p4-table2"], "standard", "combined", where=lambda key: key[0] != "LUBM L")
    if not ratios:
        return None
    return (
        f"On programs with cyclic rules it made tasks up to {number(max(ratios))} times faster, and at worst "
        f"{number(1 / min(ratios))} times slower; faster in {sum(r > 1 for r in ratios)} of {len(ratios)} tasks."
    )


def reductions(tables: Tables) -> str | None:
    parts, all_saved = [], []
    for table, name in (("p5-table2", "simple rules"), ("p5-table1", "paths"), ("p5-table3", "GPS tracks")):
        if numbers := range_of(tables[table], "reduction %"):
            all_saved += numbers
            parts.append(f"{name} {number(min(numbers))} to {number(max(numbers))} %")
    if not parts:
        return None
    gains = sum(saved > 0 for saved in all_saved)
    first = "It never saved time" if gains == 0 else f"It saved time in {gains} of {len(all_saved)} streams"
    return f"{first}. The saving (negative: a loss) was: {'; '.join(parts)}."


def strata_ratios(tables: Tables) -> str | None:
    key, columns = ("Average ratio unstratified/stratified", ""), ("CNT", "DRed", "FBF")
    ratios = {way: tables["p1-table3"].ours(key, f"time {way}") for way in columns}
    parts = [f"{OURS[way]} {number(value)} times" for way, value in ratios.items() if value is not None]
    return (
        f"With all rules at once, updates took longer or less than level by level: {', '.join(parts)}."
        if parts
        else None
    )


def break_even(tables: Tables) -> str | None:
    """Answer with the range of the break-even points of each algorithm, in per cent of the explicit facts."""
    parts = []
    for way, name in {"CNT": "counting as printed", "DRed": "DRed", "FBF": "FBF", "adaptive": "adaptive"}.items():
        if points := range_of(tables["p1-table7"], f"{way} %"):
            low, middle, high = number(min(points)), number(median(points)), number(max(points))
            parts.append(f"{name} {low} to {high} % (median {middle})")
    if not parts:
        return None
    return (
        f"Part of the facts that can go before starting again is faster: {'; '.join(parts)}. The search ends "
        "at 0.4 % (at 1.6 % at size `small`), so a point there means that or less."
    )


def rewriting(tables: Tables) -> str | None:
    """Answer with what axioms take, beside rewriting, to materialise and to delete few facts."""
    materialise = pairs(tables["p3-table1-datasets"], "TA", "T=")
    delete = pairs(tables["p3-table1"], "B/FA T", "B/F= T", where=lambda key: key[1] == "100")
    if not materialise or not delete:
        return None
    return (
        f"Axioms take {number(median(materialise))} times as long as rewriting to materialise, and "
        f"{number(median(delete))} times to delete few facts, in the median."
    )


def on_spark(tables: Tables) -> str | None:
    """Answer with the CPU time of each mode, as a multiple of that of one process without Spark."""
    parts = []
    for mode in ("driver", "distributed"):
        if ratios := pairs(tables["spark-modes"], f"CPU {mode}", "CPU memory"):
            parts.append(f"{mode} {number(min(ratios))} to {number(max(ratios))}")
    return f"CPU time as a multiple of that of one process without Spark: {'; '.join(parts)}." if parts else None


OURS = {"CNT": "counting as printed", "DRed": "DRed", "FBF": "FBF", "counting": "our counting"}
EVERY = {f"time {way}": name for way, name in {**OURS, "ranked": "ranked", "adaptive": "adaptive"}.items()}

QUESTIONS = {
    SMALL: Question(
        "Deleted and added are few facts, drawn at random from all explicit ones or met along a random walk.",
        best_of("p1-table3", EVERY, ("Y",), "When few facts are deleted and rules are in levels"),
    ),
    STRATA: Question(
        "Rules can be processed all at once (N) or level by level (Y), so that a rule runs when its inputs are final.",
        strata_ratios,
    ),
    AGAIN: Question(
        "An update can be so large that it takes longer than deriving everything again. The *break-even point* of an "
        "algorithm is the number of deleted facts at which the two take the same time.",
        break_even,
    ),
    COUNTERS: Question(
        "The -c variants of DRed and B/F count the nonrecursive derivations of each fact, so that they need not search "
        "for those backwards.",
        ratio("p2-table1", "DRed", "DRed-c", "DRed without counters takes the time of DRed with them"),
    ),
    EQUALITY: Question(
        "When two names mean the same thing, rules can copy every fact (axioms), or one name can stand for both "
        "(rewriting).",
        rewriting,
    ),
    CYCLES: Question(
        "A rule whose body forms a cycle can be joined in parts along a hypertree decomposition. *standard* decomposes "
        "no rule, *HD* all, *combined* the cyclic ones.",
        decompositions,
    ),
    AHEAD: Question(
        "When the next update of a stream has arrived already, B/F with marking notes which facts it will touch while "
        "it makes the present one.",
        reductions,
    ),
    SPARK: Question(
        "The papers use one machine. Upheld also runs on Spark: it can read there and derive in one process "
        "(*driver*), or have tasks exchange facts (*distributed*). These tables are ours, so there is nothing to "
        "compare them with.",
        on_spark,
    ),
}

# -- predicates --------------------------------------------------------------------------------------------------------

Test = Callable[[Tables], Outcome | None]


def row_wise(table: str, left: str, right: str, share: float = 0.5, only: tuple[str, ...] = ()) -> Test:
    """Test that left is less than right in more than a share of the rows, of all or of those that are named."""
    return lambda t: faster(
        t[table], left, right, share, where=lambda key: not is_summary(key) and (not only or key[0] in only)
    )


def median_at_most(table: str, left: str, right: str, bound: float) -> Test:
    return lambda t: at_most(t[table], left, right, bound, where=lambda key: not is_summary(key))


def summary(table: str, row: str, strat: str, columns: dict[str, str], holds: Callable[[list[float]], bool]) -> Test:
    """Test numbers of a row below the line."""

    def test(tables: Tables) -> Outcome | None:
        numbers = [tables[table].ours((row, strat), column) for column in columns]
        if any(value is None for value in numbers):
            return None
        values = [value for value in numbers if value is not None]
        words = ", ".join(f"{name} {number(value)}" for name, value in zip(columns.values(), values, strict=True))
        return Outcome(holds(values), words)

    return test


def fewer_deletions(t: Tables) -> Outcome | None:
    table, saved = t["p5-table2"], []
    for key in table.rows:
        old, new = table.ours(key, "deletions old"), table.ours(key, "deletions new")
        if old and new is not None:
            saved.append(100 * (1 - new / old))
    if not saved:
        return None
    return Outcome(all(abs(s - 24.5) < 1 for s in saved), f"{min(saved):.1f} to {max(saved):.1f} % fewer")


def saves_time(table: str) -> Test:
    def test(t: Tables) -> Outcome | None:
        numbers = range_of(t[table], "reduction %")
        return (
            Outcome(all(f > 0 for f in numbers), f"{number(min(numbers))} to {number(max(numbers))} %")
            if numbers
            else None
        )

    return test


def small_gain_large_loss(t: Tables) -> Outcome | None:
    numbers = range_of(t["p5-table1"], "reduction %")
    if len(numbers) < 2:
        return None
    return Outcome(
        numbers[0] > 0 > numbers[-1], f"{number(numbers[0])} % (smallest), {number(numbers[-1])} % (largest)"
    )


def points_in_order(t: Tables) -> Outcome | None:
    """Test that counting has the largest break-even points, then FBF, then DRed, in the median."""
    medians = {way: median(points) for way in PAPER1 if (points := range_of(t["p1-table7"], f"{way} %"))}
    if len(medians) < len(PAPER1):
        return None
    words = ", ".join(f"{way} {number(value)} %" for way, value in medians.items())
    return Outcome(medians["CNT"] > medians["FBF"] > medians["DRed"], f"medians: {words}")


def point_of(way: str, most: float) -> Test:
    """Test that the break-even point of an algorithm is at most this part of the facts, in every row."""

    def test(t: Tables) -> Outcome | None:
        points = range_of(t["p1-table7"], f"{way} %")
        return Outcome(max(points) <= most, f"{number(min(points))} to {number(max(points))} %") if points else None

    return test


def fastest(table: str, column: str, columns: tuple[str, ...], share: float) -> Test:
    """Test that a column is the least of some in at least a share of the rows."""

    def test(t: Tables) -> Outcome | None:
        rows = [[t[table].ours(key, c) for c in columns] for key in t[table].rows if not is_summary(key)]
        known = [[value for value in row if value is not None] for row in rows]
        complete = [row for row in known if len(row) == len(columns)]
        if not complete:
            return None
        wins = sum(row[columns.index(column)] == min(row) for row in complete)
        return Outcome(wins >= share * len(complete), f"fastest in {wins} of {len(complete)} cases")

    return test


def few_facts(left: str, right: str, least: float) -> Test:
    """Test that, when the paper deletes 100 facts, left takes this many times as long as right in every row."""

    def test(t: Tables) -> Outcome | None:
        ratios = pairs(t["p3-table1"], left, right, where=lambda key: key[1] == "100")
        if not ratios:
            return None
        return Outcome(min(ratios) >= least, f"{number(min(ratios))} to {number(max(ratios))} times")

    return test


def materialises_faster(t: Tables) -> Outcome | None:
    ratios = pairs(t["p3-table1-datasets"], "TA", "T=")
    return Outcome(min(ratios) > 1, f"{number(min(ratios))} to {number(max(ratios))} times") if ratios else None


def fewer_derivations(t: Tables) -> Outcome | None:
    ratios = pairs(t["p3-table1-datasets"], "DA", "D=")
    return Outcome(min(ratios) > 1, f"{number(min(ratios))} to {number(max(ratios))} times") if ratios else None


def equilibrium(t: Tables) -> Outcome | None:
    points = [p for row in ROWS3 if (p := t["p3-table1-datasets"].ours((row,), "equilibrium %")) is not None]
    if not points:
        return None
    return Outcome(
        5 <= median(points) <= 20, f"{number(min(points))} to {number(max(points))} %, median {median(points):.3g}"
    )


def large_class(t: Tables) -> Outcome | None:
    """Test that taking a large class apart costs at least half of starting again."""
    key = ("UOBM-100-U", "5000")
    ours, again = t["p3-table1"].ours(key, "B/F= T"), t["p3-table1"].ours(key, "Remat= T")
    return Outcome(ours >= again / 2, f"{number(ours / again)} times as long") if ours and again else None


def less_memory(t: Tables) -> Outcome | None:
    numbers = range_of(t["p4-appendix2"], "times")
    return Outcome(max(numbers) <= 2.3, f"{number(min(numbers))} to {number(max(numbers))} times") if numbers else None


COSTS = "Here rules run on batches of facts, so fixed costs of a round weigh more than single derivations."
PAPER1 = ("CNT", "DRed", "FBF")
ROWS3 = ("UOBM-100-L", "Claros-L", "DBpedia-L", "UniProt-L")
RECURSIVE = ("ChEMBL-R", "Claros-LE", "Reactome-R", "UOBM-R")
TIMES = {"time CNT": "CNT", "time DRed": "DRed", "time FBF": "FBF"}
DERIVED = {"derivations CNT": "CNT", "derivations DRed": "DRed", "derivations FBF": "FBF"}

CLAIMS: tuple[Claim, ...] = (
    Claim(SMALL, 1, "Counting makes the fewest derivations on small deletions (median score 1; DRed 5.48, FBF 2.38).",
          summary("p1-table3", "Median score", "All", DERIVED, lambda v: v[0] <= min(v[1:])),
          {"confirmed": "It visits the derivations that go or come, and no others.",
           "contradicted": "With all rules in one stratum it makes more derivations than DRed here."}),
    Claim(SMALL, 1, "Counting as printed is the slowest on small deletions (median score 61; DRed 2.29, FBF 1.00).",
          summary("p1-table3", "Median score", "All", TIMES, lambda v: v[0] > max(v[1:])),
          {"confirmed": "It rebuilds the old and new facts of every round, which costs a pass over all facts.",
           "contradicted": COSTS}),
    Claim(SMALL, 1, "FBF beats DRed on small deletions (median score 1.00 beside 2.29).",
          summary("p1-table3", "Median score", "All", TIMES, lambda v: v[2] < v[1]),
          {"contradicted": "A derivation found backwards costs more here than one found forwards in a batch.",
           "confirmed": "A fact that is proved is not deleted and derived again."}),
    Claim(SMALL, 1, "FBF makes fewer derivations than DRed (median score 2.38 beside 5.48).",
          summary("p1-table3", "Median score", "All", DERIVED, lambda v: v[2] < v[1]),
          {"confirmed": "A fact that is proved is not overdeleted.",
           "contradicted": "Few facts of the generated data have a second derivation, so most searches are in vain."}),
    Claim(SMALL, 1, "FBF beats DRed by ten times on the highly recursive programs.",
          lambda t: at_most(t["p1-table3"], "time FBF", "time DRed", 0.1, where=lambda key: key[0] in RECURSIVE),
          {"confirmed": "Overdeletion runs through the whole recursion; a proof stops it.",
           "contradicted": "At this size overdeletion stays small, and it runs in a few batches."}),
    Claim(SMALL, 1, "The time of DRed follows its derivations (correlation 1.00).",
          summary("p1-table3", "Correlation of time and # derivations", "All", TIMES, lambda v: v[1] >= 0.9),
          {"contradicted": COSTS,
           "confirmed": "Each derivation is about as much work as another."}),
    Claim(SMALL, 1, "The time of FBF follows its derivations (correlation 0.99).",
          summary("p1-table3", "Correlation of time and # derivations", "All", TIMES, lambda v: v[2] >= 0.9),
          {"contradicted": COSTS,
           "confirmed": "Each derivation is about as much work as another."}),
    Claim(SMALL, 1, "The time of counting follows the size of the materialisation (0.99), not its derivations (0.15).",
          summary("p1-table3", "Correlation of time and mat. size", "All", TIMES, lambda v: v[0] >= 0.9),
          {"confirmed": "It passes over all facts in every round.",
           "contradicted": "The number of rounds and strata differs more between programs than the number of facts."}),
    Claim(SMALL, 1, "On additions DRed and FBF are faster than counting (median score 540).",
          row_wise("p1-table6", "time DRed/FBF", "time CNT"),
          {"confirmed": "They only run rules forwards on what is new.",
           "contradicted": "Fixed costs of a round hide the difference at this size."}),
    Claim(SMALL, 1, "On additions DRed makes no more derivations than counting.",
          median_at_most("p1-table6", "derivations DRed/FBF", "derivations CNT", 1.0),
          {"confirmed": "Each new derivation is made once, which is the least possible.",
           "contradicted": "Facts that are derived twice in one round count for both derivations."}),
    Claim(SMALL, 1, "Along random walks on Claros-LE, DRed and FBF are faster than counting.",
          row_wise("p1-table5", "time DRed", "time CNT"),
          {"confirmed": "Walks rarely meet the large clique.",
           "contradicted": "The walk meets the clique, whose facts DRed deletes and derives again."}),
    Claim(STRATA, 1, "Levels make DRed much faster: 5.85 times (tested: more than twice).",
          summary("p1-table3", "Average ratio unstratified/stratified", "", {"time DRed": "N/Y"}, lambda v: v[0] > 2),
          {"contradicted": "A stratum has a fixed cost here, which small updates feel; derivations do fall.",
           "confirmed": "A rule of a higher level does not see facts that come back later."}),
    Claim(STRATA, 1, "Levels change little for counting (1.07) and FBF (1.02) (tested: 0.8 to 1.25).",
          summary("p1-table3", "Average ratio unstratified/stratified", "", {"time CNT": "CNT", "time FBF": "FBF"},
                  lambda v: all(0.8 <= x <= 1.25 for x in v)),
          {"confirmed": "They do not delete facts that come back, so there is little to avoid.",
           "contradicted": "In one stratum all rules count as recursive, so both run them in more rounds."}),
    Claim(STRATA, 1, "Levels lower the derivations of DRed, 7.52 times (tested: at all).",
          summary("p1-table3", "Average ratio unstratified/stratified", "", {"derivations DRed": "N/Y"},
                  lambda v: v[0] > 1),
          {"confirmed": "A rule of a higher level does not see facts that come back later.",
           "contradicted": "The generated data has few facts that come back."}),
    Claim(AGAIN, 1, "Counting has the largest break-even points, then FBF, then DRed.", points_in_order,
          {"confirmed": "Counting never searches for other derivations, so it degrades least.",
           "contradicted": "DRed works in large batches, so its time grows slowest with the update."}),
    Claim(AGAIN, 1, "The break-even points of counting reach 76 % of the facts (tested: at least 50 % somewhere).",
          lambda t: (lambda o: Outcome(max(o) >= 50, f"{number(min(o))} to {number(max(o))} %") if o else None)(
              range_of(t["p1-table7"], "CNT %")),
          {"confirmed": "Counting is compared with starting again with counters, which takes longer.",
           "contradicted": "Starting again is faster here, beside updates, than in the paper."}),
    Claim(AGAIN, 1, "The break-even points of FBF are at 58 % at most.", point_of("FBF", 58),
          {"confirmed": "Searches fail more often the more facts go.",
           "contradicted": "Without other derivations to look for, FBF is as fast as the deletion itself."}),
    Claim(AGAIN, 1, "The break-even points of DRed are at 44 % at most.", point_of("DRed", 44),
          {"confirmed": "More facts go than stay, so deriving those that stay is less work.",
           "contradicted": "With rules in levels DRed deletes in few large batches."}),
    Claim(AGAIN, 1, "Deleting the largest of these points, counting is the fastest of the three in 19 of 24 cases.",
          fastest("p1-table8", "time CNT", ("time CNT", "time DRed", "time FBF"), 19 / 24),
          {"contradicted": "DRed deletes in few large batches here, and a batch costs little more than its facts.",
           "confirmed": "It touches only derivations that go."}),
    Claim(AGAIN, 1, "Counting derivations while starting again costs little (mean score 1.23 beside 1.02; tested: a "
          "median of at most 1.25 times).",
          median_at_most("p1-table8", "time CRemat", "time Remat", 1.25),
          {"contradicted": "Starting again derives millions of facts a second here; recording each is slower.",
           "confirmed": "A number more for each derivation is little beside the join that finds it."}),
    Claim(AGAIN, 1, "Adding as many facts, DRed and FBF are faster than counting (median score 1.76).",
          row_wise("p1-table9", "time DRed/FBF", "time CNT"),
          {"confirmed": "They only run rules forwards on what is new.",
           "contradicted": "At this size both take the time of the rounds."}),
    Claim(COUNTERS, 2, "DRed-c is faster than DRed on all inputs.",
          row_wise("p2-table1", "DRed-c", "DRed", 0.999),
          {"confirmed": "Counters replace every backward evaluation of nonrecursive rules.",
           "contradicted": "Backward evaluation is indexed here, and keeping counters has a price."}),
    Claim(COUNTERS, 2, "On SSPE DRed-c is more than a hundred times faster than DRed.",
          lambda t: at_most(t["p2-table1"], "DRed-c", "DRed", 0.01, where=lambda key: key[0] == "SSPE"),
          {"contradicted": "The atom to evaluate next is chosen per binding, so DRed is not quadratic here.",
           "confirmed": "Backward evaluation of its rule meets every edge into a node."}),
    Claim(COUNTERS, 2, "B/F-c is about as fast as B/F on highly recursive programs (tested: median ratio 0.67 to 1.5).",
          lambda t: (lambda o: o and Outcome(0.67 <= median(o) <= 1.5, f"median ratio {number(median(o))}"))(
              pairs(t["p2-table1"], "B/F-c", "B/F", lambda key: key[0].endswith("-R"))) or None,
          {"confirmed": "Counters do not concern recursive rules.",
           "contradicted": "The generated programs also have nonrecursive rules, for which counters save searches."}),
    Claim(COUNTERS, 2, "B/F-c beats DRed-c on all inputs but SSPE.",
          lambda t: faster(t["p2-table1"], "B/F-c", "DRed-c", 0.999, where=lambda key: key[0] != "SSPE"),
          {"contradicted": "A search backwards costs more here than overdeleting in a batch.",
           "confirmed": "A fact that is proved is not overdeleted."}),
    Claim(COUNTERS, 2, "On SSPE DRed-c beats B/F-c.",
          row_wise("p2-table1", "DRed-c", "B/F-c", only=("SSPE",)),
          {"confirmed": "It evaluates no rule backwards at all.",
           "contradicted": "Overdeletion runs through the whole graph; a proof stops it."}),
    Claim(COUNTERS, 2, "Both counters add at most 7 % to materialisation (tested: a median of at most 1.07 times).",
          median_at_most("p2-table2", "Remat-2C", "Remat", 1.07),
          {"contradicted": "Deriving is cheap here, so that counting weighs more beside it.",
           "confirmed": "A number more for each derivation is little beside the join that finds it."}),
    Claim(COUNTERS, 2, "On large deletions too, DRed-c is faster than DRed on all inputs.",
          row_wise("p2-table2", "DRed-c", "DRed", 0.999),
          {"confirmed": "Counters replace every backward evaluation of nonrecursive rules.",
           "contradicted": "Backward evaluation is indexed here, and keeping counters has a price."}),
    Claim(COUNTERS, 2, "On large deletions B/F-c is faster than B/F on all inputs but SSPE.",
          lambda t: faster(t["p2-table2"], "B/F-c", "B/F", 0.999, where=lambda key: key[0] != "SSPE"),
          {"confirmed": "Counters answer many searches at once.",
           "contradicted": "Where most rules are recursive, counters answer few searches and have a price."}),
    Claim(EQUALITY, 3, "Deleting 100 facts, rewriting with B/F beats starting again by 9 to 273 times (tested: by any "
          "factor in every row).",
          few_facts("Remat= T", "B/F= T", 1),
          {"contradicted": "Generated facts of this size are rewritten in a moment, and B/F has fixed costs.",
           "confirmed": "Few facts are in doubt, and few of all facts are touched."}),
    Claim(EQUALITY, 3, "It beats B/F with axioms by 6 to 350 times (tested: by any factor in every row).",
          few_facts("B/FA T", "B/F= T", 1),
          {"confirmed": "Axioms make every fact of a thing with several names a candidate for a proof.",
           "contradicted": "Where classes are small, axioms add few derivations, and plain B/F has less to keep."}),
    Claim(EQUALITY, 3, "Rewriting materialises 1.8 to 47 times faster than axioms (tested: faster in every row).",
          materialises_faster,
          {"contradicted": "With classes of few names there is little to save, and merging classes costs rounds.",
           "confirmed": "A fact is derived for the representatives alone, not for every name."}),
    Claim(EQUALITY, 3, "Rewriting makes fewer derivations than axioms in every row (2 to 85 times).",
          fewer_derivations,
          {"confirmed": "A fact is derived for the representatives alone, not for every name.",
           "contradicted": "Facts that change their representatives are derived again."}),
    Claim(EQUALITY, 3, "Starting again takes over at 5 to 20 % of the facts (tested: the median).", equilibrium,
          {"confirmed": "Proving costs several times as much as deriving, so a part of the facts suffices.",
           "contradicted": "Starting again is faster here, beside proving, than in the paper."}),
    Claim(EQUALITY, 3, "Taking names out of a class of thousands costs about as much as starting again (tested: half).",
          large_class,
          {"confirmed": "The remaining facts have to derive again that the names are equal.",
           "contradicted": "A class of this size is proved in a few rounds."}),
    Claim(CYCLES, 4, "Combined is at least 53 times faster than standard on large tasks with cyclic rules.",
          lambda t: at_most(t["p4-table2"], "combined", "standard", 1 / 53,
                            where=lambda key: key[0] != "LUBM L" and key[1] in ("materialisation", "large deletions")),
          {"contradicted": "The standard joins here are set at a time and indexed, so they lose less on cycles.",
           "confirmed": "Parts of a cycle are joined once, not once for each way around it."}),
    Claim(CYCLES, 4, "Combined is faster than standard on most tasks with cyclic rules.",
          lambda t: faster(t["p4-table2"], "combined", "standard", where=lambda key: key[0] != "LUBM L"),
          {"confirmed": "Parts of a cycle are joined once, not once for each way around it.",
           "contradicted": "At this size the parts are small, and keeping them costs as much as it saves."}),
    Claim(CYCLES, 4, "HD alone is 8 to 123 times slower than standard on the simple rules of LUBM L (tested: by half).",
          lambda t: (lambda o: Outcome(median(o) > 1.5, f"median ratio {number(median(o))}") if o else None)(
              pairs(t["p4-table2"], "HD", "standard", lambda key: key[0] == "LUBM L")),
          {"confirmed": "Every rule keeps the results of its parts, which simple rules never need.",
           "contradicted": "Rules of two atoms have one part, so there is nothing more to keep."}),
    Claim(CYCLES, 4, "Combined takes up to 2.3 times the memory of standard.", less_memory,
          {"confirmed": "The parts of cyclic rules are kept.",
           "contradicted": "At this size what Python itself keeps decides the ratio."}),
    Claim(AHEAD, 5, "On P_seq marking makes 24.5 % fewer rule applications in deletion.", fewer_deletions,
          {"confirmed": "The algorithm is the paper's, and the order of facts does not matter on this program.",
           "contradicted": "The streams are generated, and fewer facts are marked in them."}),
    Claim(AHEAD, 5, "On P_seq marking saves time for updates of every size, 15 to 21 % (tested: any time).",
          saves_time("p5-table2"),
          {"confirmed": "Fewer rule applications are less work here too.",
           "contradicted": "A rule application costs microseconds in a batch; keeping the marks costs more."}),
    Claim(AHEAD, 5, "On P_trans marking saves time for small updates (8 %) and costs time for large ones (11 %).",
          small_gain_large_loss,
          {"confirmed": "Marks cost as many steps as an update has facts.",
           "contradicted": "Deletion is a small part of the work on this program; marking adds to the larger part."}),
    Claim(AHEAD, 5, "Along GPS tracks marking saves time, 1 to 7 % (tested: any time).",
          saves_time("p5-table3"),
          {"confirmed": "The next position deletes facts whose consequences the present one has just derived.",
           "contradicted": "Few facts are marked, and looking for them costs more than it saves."}),
)  # fmt: skip
