"""Jobs, from files and from Python, before any data is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from upheld.pipeline.job import read_job

GOOD = """
[program]
text = "p(x) :- e(x)."

[[source]]
relation = "e"
path = ["more/*.csv", "s3a://bucket/e"]
columns = ["who", 2]
delimiter = ";"

[[sink]]
path = "out"

[[sink]]
format = "view"
prefix = "now_"

[stream]
path = "updates"
trigger = "continuous"
interval = 5

[run]
state = "state"
dictionary = "words"
quarantine = "/bad"
"""


@pytest.fixture
def read(tmp_path):
    def read(text: str):
        (tmp_path / "job.toml").write_text(text)
        return read_job(tmp_path / "job.toml")

    return read


@pytest.fixture
def refused(read):
    """Return the slug, place and message of each problem of a job file, the place without its folder."""

    def refused(text: str) -> list[tuple[str, str, str]]:
        with pytest.raises(upheld.UpheldError) as refusal:
            read(text)
        return [(p.slug, Path(p.place or "").name, p.message) for p in refusal.value.problems]

    return refused


def test_a_job_file(read, tmp_path):
    """Relative paths are taken from the folder of the file; those with a scheme, and absolute ones, are kept."""
    job = read(GOOD)
    (source,) = job.sources
    assert source.path == (f"{tmp_path}/more/*.csv", "s3a://bucket/e")
    assert (source.columns, source.delimiter, source.header) == (("who", 2), ";", None)
    assert [(sink.format, sink.path, sink.prefix) for sink in job.sinks] == [
        ("parquet", f"{tmp_path}/out", ""),
        ("view", None, "now_"),
    ]
    assert (job.settings.dictionary, job.settings.quarantine) == (f"{tmp_path}/words", "/bad")
    assert (job.stream.path, job.stream.trigger, job.stream.interval) == (f"{tmp_path}/updates", "continuous", 5)
    assert job.settings.state == f"{tmp_path}/state"
    assert len(job.program.clauses) == 1


def test_all_problems_come_at_once(refused):
    text = GOOD.replace('path = "out"', 'pth = "out"').replace('delimiter = ";"', 'delimiter = ";;"')
    assert refused(text.replace("dictionary", "dictionnary")) == [
        ("bad-job", "job.toml [[source]] 1", "the delimiter `;;` is not one character"),
        ("unknown-option", "job.toml [[sink]] 1", "there is no option `pth`"),
        ("bad-job", "job.toml [[sink]] 1", "the sink of format `parquet` has no path"),
        ("unknown-option", "job.toml [run]", "there is no option `dictionnary`"),
    ]


@pytest.mark.parametrize(
    "found, instead, slug, message",
    [
        ("[program]", "[prorgam]", "unknown-option", "a job has no table `prorgam`"),
        ("[program]", "", "unknown-option", "a job has no table `text`"),
        ("text =", "test =", "bad-job", "there is no program"),
        ("[[source]]", "[source]", "bad-job", "`source` is not a list of tables"),
        ('relation = "e"', "", "bad-job", "the source names no relation"),
        ('relation = "e"', 'relation = "e"\ntable = "t"', "bad-job", "nothing says where `e` comes from"),
        ('relation = "e"', 'relation = "e"\nheader = 1', "bad-job", "the option `header` is `1`"),
        ('relation = "e"', 'relation = "e"\nformat = "cvs"', "bad-job", "unknown format `cvs`"),
        ('columns = ["who", 2]', "columns = [1.5]", "bad-job", "the option `columns` is `[1.5]`"),
        ('prefix = "now_"', 'prefix = "now "', "bad-job", "`prefix` is `now `, which is not a prefix of view names"),
        ('state = "state"', 'state = "state"\nmemory = "much"', "bad-job", "the option `memory` is `much`"),
        ('prefix = "now_"', 'path = "x"', "bad-job", "a view has no path"),
        ('path = "out"', 'path = "out"\nfiles = 0', "bad-job", "`0` files for each relation"),
        (GOOD[GOOD.index("[program]") :], "run = 3", "bad-job", "`run` is not a table"),
        ("[run]", "[run", "bad-job", "this is not TOML: "),
        ('state = "state"', "", "bad-job", "a stream of updates has no state"),
        ('path = "updates"', "", "bad-job", "nothing says where updates come from"),
        ("interval = 5", "interval = -5", "bad-job", "`files` must be at least 1, and `interval` must not be negative"),
        ('trigger = "continuous"', 'trigger = "once"', "bad-job", "unknown trigger `once`"),
        ("[stream]", "[[stream]]", "bad-job", "`stream` is not a table"),
        ('path = "updates"', 'frame = "updates"', "unknown-option", "there is no option `frame`"),
        ("path = [", "frame = [", "unknown-option", "there is no option `frame`"),
    ],
)
def test_bad_jobs(refused, found, instead, slug, message):
    """Each is named, with its place in the job."""
    assert any(s == slug and m.startswith(message) for s, _, m in refused(GOOD.replace(found, instead, 1)))


def test_no_job(tmp_path):
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline.from_file(tmp_path / "job.toml")
    assert refusal.value.slugs == ("missing-file",)


def test_sources_from_python():
    """A path, a dictionary of options, a list of both."""
    pipeline = upheld.Pipeline("p(x) :- e(x).", {"e": ["a.csv", {"path": "b.tsv", "header": True}], "f": Path("c.nt")})
    sources = pipeline._job.sources
    assert [(s.relation, s.path, s.header) for s in sources] == [
        ("e", (str(Path("a.csv").absolute()),), None),
        ("e", (str(Path("b.tsv").absolute()),), True),
        ("f", (str(Path("c.nt").absolute()),), None),
    ]
    assert repr(pipeline) == "<Pipeline 3 sources, 0 sinks>"


def test_bad_arguments():
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline("p(x) :- e(x).", {"e": [{"pat": "x"}]}, [{"format": "csv"}], mode="cluster")
    assert [(p.slug, p.place) for p in refusal.value.problems] == [
        ("unknown-option", 'sources["e"][0]'),
        ("bad-job", 'sources["e"][0]'),
        ("bad-job", "sinks[0]"),
        ("bad-job", "settings"),
    ]


@pytest.mark.parametrize(
    "arguments, place",
    [
        ({"sources": ["e.csv"]}, "sources"),
        ({"sinks": {"path": "out"}}, "sinks"),
        ({"sinks": ["out"]}, "sinks[0]"),
        ({"sinks": None}, "sinks"),
        ({"sinks": ({"path": name} for name in ("a", "b"))}, "sinks"),
        ({"sources": {"e": "a\0b.csv"}}, 'sources["e"]'),
        ({"memory": "1.5 gigs"}, "settings"),
        ({"driver_memory": "much"}, "settings"),
        ({"cores": 0}, "settings"),
    ],
)
def test_arguments_of_other_kinds(arguments, place):
    given = {"sources": {"e": "e.csv"}, **arguments}
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline("p(x) :- e(x).", given.pop("sources"), **given)
    assert [(p.slug, p.place) for p in refusal.value.problems] == [("bad-job", place)]


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda p: upheld.Pipeline(5, {}), "program"),
        (lambda p: upheld.Pipeline("p(1).", {}, limits={"facts": 5}), "limits"),
        (lambda p: upheld.Pipeline.from_file(5), "path"),
        (lambda p: upheld.Pipeline.from_file("job.toml", memory=5), "memory"),
        (lambda p: upheld.Pipeline.from_file("job.toml", cores="2"), "cores"),
        (lambda p: upheld.Pipeline.from_file("job.toml", limits=5), "limits"),
        (lambda p: p.run(progress=5), "progress"),
        (lambda p: p.stream(progress=5), "progress"),
    ],
)
def test_arguments_of_wrong_types(call, name):
    """They are named before any work, as those of other functions are."""
    with pytest.raises(upheld.UpheldError, match=f"`{name}` of `Pipeline") as refusal:
        call(upheld.Pipeline("p(1).", {}))
    assert refusal.value.slugs == ("bad-argument",)


def test_paths_from_python():
    """A path may be a `Path` wherever it stands."""
    job = upheld.Pipeline("p(1).", {"e": {"path": [Path("a.csv")]}}, [{"path": Path("out")}], state=Path("s"))._job
    paths = (*job.sources[0].path, job.sinks[0].path, job.settings.state)
    assert paths == tuple(str(Path(name).absolute()) for name in ("a.csv", "out", "s"))


def test_settings_of_the_command(tmp_path):
    """They take the place of those in the job, and are checked as these are."""
    (tmp_path / "job.toml").write_text('[program]\ntext = "p(1)."\n[run]\ncores = 3\n')
    assert upheld.Pipeline.from_file(tmp_path / "job.toml", cores=1)._job.settings.cores == 1
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline.from_file(tmp_path / "job.toml", memory="lots", cores=0)
    assert refusal.value.slugs == ("bad-job", "bad-job")


def test_a_program_with_errors():
    """It is refused before Spark is started."""
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline("p(x) :- e(x", {})
    assert refusal.value.slugs == ("missing-bracket",)
