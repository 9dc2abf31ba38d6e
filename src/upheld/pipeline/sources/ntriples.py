"""N-Triples by column expressions: a triple a line, each term in one form however the file writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.facts.stored import TEXTS
from upheld.language.terms.ntriples_grammar import CODE_ESCAPE, CONTROL, PLAIN_TRIPLE, SHORT_ESCAPES, TRIPLE
from upheld.language.terms.terms import XSD
from upheld.pipeline.sources.arrow import PlainTriples
from upheld.pipeline.sources.rows import Reading, columns, file_of_row, lines, numbered

NAMES = ("subject", "predicate", "object")

_STRING_TYPE = f"^^<{XSD}string>"
#: The characters that canonical N-Triples escapes by a letter or a sign.
_SHORT = {character: f"\\{sign}" for sign, character in SHORT_ESCAPES.items() if sign != "'"}


@dataclass(frozen=True)
class NTriples:
    """Files of triples. `scoped` says whether a label of a blank node is one in each file."""

    spark: SparkSession
    files: tuple[str, ...]
    place: str
    scoped: bool
    names: tuple[str, ...] = NAMES
    named: bool = False
    types: None = None

    def read(self, names: Sequence[str], types: Sequence[str]) -> Reading:
        def located() -> DataFrame:
            return self._rows(numbered(lines(self.spark, self.files)), names, "_row")

        def frame() -> DataFrame:
            return self._rows(lines(self.spark, self.files).select("value", file_of_row()), names)

        expected = "a triple as N-Triples writes it, with `.` at its end"
        plain = PlainTriples(self.files, tuple(map(NAMES.index, names))) if set(types) <= set(TEXTS) else None
        return Reading(frame, located, expected, plain, lambda rest: self._rows(rest, names), canonical=True)

    def _rows(self, frame: DataFrame, names: Sequence[str], *more: str) -> DataFrame:
        line, plain, parts = F.col("value"), F.col("plain"), F.col("parts")
        first = F.substring(F.ltrim(line, F.lit(" \t")), 1, 1)
        frame = frame.filter((first != "") & (first != "#")).select("*", line.rlike(PLAIN_TRIPLE).alias("plain"))
        # Each step names what the next one uses more than once, so that Spark computes it once.
        found = F.when(plain, F.split(line, " ", 3)).otherwise(_matched(line))
        frame = frame.select("value", "_file", "plain", found.alias("parts"), *more)
        terms = F.when(plain, _cut(parts)).when(parts[0] != "", _normal(parts, self.scoped))
        frame = frame.select("value", "_file", terms.alias("parts"), *more)
        wrong = parts.isNull()
        bad = F.when(~F.is_valid_utf8(line), "not-utf8").when(wrong, "bad-record")
        chosen = [parts[NAMES.index(name)] for name in names]
        record = F.when(wrong | ~F.is_valid_utf8(line), F.make_valid_utf8(line))
        return frame.select(*columns(chosen), "_file", bad.alias("_bad"), record.alias("_record"), *more)


def _cut(parts: Column) -> Column:
    """Return the terms of a plain line that was cut at its first two spaces: the last part has ` .` at its end."""
    last = F.substring(parts[2], F.lit(1), F.length(parts[2]) - 2)
    string = F.substring(parts[2], F.lit(1), F.length(parts[2]) - 2 - len(_STRING_TYPE))
    return F.array(parts[0], parts[1], F.when(parts[2].endswith(f"{_STRING_TYPE} ."), string).otherwise(last))


def _matched(line: Column) -> Column:
    """Return the terms of a line as written; they are empty if the line is not a triple."""
    return F.array(*(F.regexp_extract(line, TRIPLE, group) for group in (1, 2, 3)))


def _normal(terms: Column, scoped: bool) -> Column:
    """Return terms in their one form.

    The form is canonical N-Triples: quotes, backslashes and control characters are escaped, and nothing else. Tags of
    languages are in lower case, and blank nodes have the file in their label if they are `scoped`.
    """

    def bare(term: Column) -> Column:
        string = F.substring(term, F.lit(1), F.length(term) - len(_STRING_TYPE))
        return F.when(term.startswith('"') & term.endswith(_STRING_TYPE), string).otherwise(term)

    def lowered(term: Column) -> Column:
        # No quote follows the one that ends a literal, and in front of the tag stands no escaped one.
        at = F.length(F.substring_index(term, '"', -1))
        tag = F.substring(term, F.length(term) - at + 1, at)
        tagged = term.startswith('"') & tag.startswith("@")
        return F.when(tagged, F.concat(F.substring(term, F.lit(1), F.length(term) - at), F.lower(tag))).otherwise(term)

    def labelled(term: Column) -> Column:
        label = F.concat(F.lit("_:"), _scope(F.col("_file")), F.substring(term, F.lit(3), F.length(term)))
        return F.when(term.startswith("_:"), label).otherwise(term)

    def unescaped(term: Column) -> Column:
        return F.when(term.rlike(r"[\\\x00-\x1f\x7f]"), _unescaped(term)).otherwise(term)

    for step in (bare, lowered, *([labelled] if scoped else []), unescaped):
        terms = F.transform(terms, step)
    return terms


def _scope(file: Column) -> Column:
    """Return what sets the blank nodes of a file apart: the same whenever a file of this name is read."""
    code = F.crc32(F.substring_index(file, "/", -1).cast("binary"))
    return F.concat(F.lit("f"), F.lpad(F.lower(F.hex(code)), 8, "0"), F.lit("_"))


def _unescaped(text: Column) -> Column:
    tokens = F.regexp_extract_all(text, F.lit(rf"({CODE_ESCAPE}|\\.|{CONTROL}|[^\\\x00-\x1f\x7f]++)"), F.lit(1))
    return F.array_join(F.transform(tokens, _character), "")


def _character(token: Column) -> Column:
    code = F.lpad(F.substring(token, 3, 8), 8, "0")
    is_code = token.rlike(rf"^(?:{CODE_ESCAPE})$")
    character = F.when(is_code, F.decode(F.unhex(code), "UTF-32")).otherwise(token)
    # The first quote that is not escaped ends the literal.
    kept = F.when(character == "\\'", "'").when((character == '"') & ~is_code, '"')
    for one, escaped in _SHORT.items():
        kept = kept.when(character == one, escaped)
    controls = F.concat(F.lit("\\u00"), F.lpad(F.hex(F.ascii(character)), 2, "0"))
    return kept.when(character.rlike(f"^{CONTROL}$"), controls).otherwise(character)
