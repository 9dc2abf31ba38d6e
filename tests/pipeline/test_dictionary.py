"""The dictionary: ids that stay, that no two texts share, and that outlive a load that was cut short."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def pairs(spark):
    """Return distinct texts with their ids."""
    from pyspark.sql import functions as F

    from upheld.pipeline import dictionary

    def pairs(*texts: str):
        frame = spark.createDataFrame([(text,) for text in texts], "text string")
        return frame.select(dictionary.identify(F.col("text")).alias("id"), "text")

    return pairs


def opened(spark, folder: Path | None):
    from upheld.pipeline.dictionary import Dictionary

    return Dictionary.open(spark, None if folder is None else str(folder))


def extend(dictionary, pairs, count: int) -> None:
    from upheld.pipeline.sinks import Writer

    writer = Writer(dictionary.spark)
    dictionary.add(dictionary.missing(pairs), count, writer)
    writer.commit()


def texts_in(frame) -> list[str]:
    return sorted(row["text"] for row in frame.collect())


def test_later_loads_extend_it(spark, pairs, tmp_path):
    """Ids stay the same, known texts are not stored again, and a part without a manifest does not count."""
    folder = tmp_path / "words"
    first = opened(spark, folder)
    assert first.pairs() is None
    extend(first, pairs("a", "b", ""), 3)
    before = {row["text"]: row["id"] for row in opened(spark, folder).pairs().collect()}
    second = opened(spark, folder)
    missing = second.missing(pairs("b", "c"))
    assert texts_in(missing) == ["c"]
    pairs("lost").write.parquet(f"{folder}/part-000002")  # a load that was killed before its manifest
    assert texts_in(opened(spark, folder).pairs()) == ["", "a", "b"]
    extend(second, pairs("b", "c"), 1)
    third = opened(spark, folder)
    assert (third.size, texts_in(third.pairs())) == (4, ["", "a", "b", "c"])
    assert before.items() <= {row["text"]: row["id"] for row in third.pairs().collect()}.items()


def test_nothing_new(spark, pairs, tmp_path):
    """Then nothing is written."""
    one = opened(spark, tmp_path)
    extend(one, pairs("a"), 1)
    extend(one, pairs("a"), 0)
    assert opened(spark, tmp_path).parts == ("part-000001",)


def test_collisions(spark, pairs, tmp_path, monkeypatch):
    """Two texts of one id are refused, whether both are new or one is known."""
    from pyspark.sql import functions as F

    from upheld.pipeline import dictionary

    monkeypatch.setattr(dictionary, "identify", lambda text: F.length(text).cast("bigint"))
    one = opened(spark, tmp_path)
    with pytest.raises(upheld.UpheldError, match=r"`(ab|cd)` and `(ab|cd)` have the same.*\[colliding-texts\]"):
        one.missing(pairs("ab", "cd", "e"))
    extend(one, pairs("ab"), 1)
    with pytest.raises(upheld.UpheldError, match=r"`cd` and `ab` have the same.*\[colliding-texts\]"):
        opened(spark, tmp_path).missing(pairs("cd", "e"))


@pytest.mark.parametrize("text", ["[]", "no JSON", '{"version": 2, "parts": [], "texts": 0}'])
def test_a_bad_manifest(spark, tmp_path, text):
    (tmp_path / "dictionary.json").write_text(text)
    with pytest.raises(upheld.UpheldError) as refusal:
        opened(spark, tmp_path)
    assert refusal.value.slugs == ("bad-dictionary",)


def test_encoding(spark):
    """Texts become their ids, unsigned numbers their 64 bits."""
    from decimal import Decimal

    from upheld.pipeline.dictionary import encoded

    frame = spark.createDataFrame(
        [("a", 1, Decimal(2**64 - 1), 0.5), ("a", 2, Decimal(2**63), 1.0), ("b", 3, Decimal(5), 2.0)],
        "c0 string, c1 bigint, c2 decimal(20,0), c3 double",
    )
    rows = encoded(frame, ("symbol", "number", "unsigned", "float")).collect()
    assert rows[0]["c0"] == rows[1]["c0"] != rows[2]["c0"]
    assert [tuple(row)[1:] for row in rows] == [(1, -1, 0.5), (2, -(2**63), 1.0), (3, 5, 2.0)]
