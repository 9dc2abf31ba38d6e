"""The kernels that read facts files: on any file they give the rows of the careful reader, or leave the file to it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from upheld.base.errors import FactsError
from upheld.base.threads import ONE_THREAD, Threads
from upheld.engines.memory.files import parts, reader
from upheld.engines.memory.files.reader import columns_in, parsed
from upheld.facts.columns import Columns, Texts
from upheld.facts.files.formats import Format
from upheld.facts.files.reading import read_bytes, rows_in

PATH = Path("r.facts")
TYPES = ("number", "unsigned", "float", "symbol", "term")

plain_fields = {
    "number": st.integers(-(2**63), 2**63 - 1).map(str),
    "unsigned": st.integers(0, 2**64 - 1).map(str),
    "float": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "symbol": st.text(st.characters(exclude_characters='\n\r\t,;"', exclude_categories=["Cs"]), max_size=20),
}
plain_fields["term"] = st.text("abé/1", max_size=9).map("<http://e/{}>".format) | st.sampled_from(["_:b", "_:b1"])
odd_numbers = ["", "-", "+5", "-0", "007", "0x1F", "0b11", " 3", "3 ", "1_0", "٣", "9" * 19, "9" * 20, "0" * 25 + "1"]
odd_numbers += ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"]
odd_numbers += ["18446744073709551615", "18446744073709551616", "-1", "99999999999999999999", "28446744073709551615"]
odd_floats = ["nan", "inf", "-inf", "1e999", "-1e999", "1e-999", ".", ".5", "5.", "-.5", "1e", "1e+", "e5", "1.2.3"]
odd_floats += ["-0.0", "0e5", "1E5", "1e+5", "1e-22", "1e22", "1e23", "9007199254740993", "0.1e1", "1" * 400, "1e-400"]
odd_floats += ["0.30000000000000004", "123456789012345678", "0." + "0" * 30 + "1", "5e-324", "1.7976931348623157e308"]
fields = st.one_of(st.sampled_from(odd_numbers + odd_floats), *plain_fields.values())


@st.composite
def plain_files(draw):
    """Rows of a few types as text that the kernels should take; files of integers alone have a kernel of their own."""
    kinds = draw(st.sampled_from([TYPES, TYPES[:2]]))
    types = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    delimiter = draw(st.sampled_from("\t,;"))
    rows = draw(st.lists(st.tuples(*(plain_fields[t] for t in types)), max_size=40))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = "".join(delimiter.join(row) + end for row in rows)
    headers = draw(st.booleans())
    text = ("any,header\tat all\n" if headers else "") + text
    if draw(st.booleans()) and rows and rows[-1] != ("",):
        text = text.removesuffix(end)
    return text.encode(), types, Format("r", (), delimiter=delimiter, headers=headers)


@st.composite
def any_files(draw):
    """Text that may be right or wrong in any way, and bytes that are no text."""
    types = draw(st.lists(st.sampled_from(draw(st.sampled_from([TYPES, TYPES[:2]]))), max_size=3))
    delimiter = draw(st.sampled_from(["\t", ",", " ", "ab", "é", "1", "-"]))
    widths = st.just(len(types)) if draw(st.booleans()) else st.integers(0, 3)
    rows = draw(st.lists(widths.flatmap(lambda n: st.lists(fields, min_size=n, max_size=n)), max_size=5))
    ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", ""])
    data = "".join(delimiter.join(row) + draw(ends) for row in rows).encode()
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from([b"\xff", b"\xc3", b"\xa9", b"\xed\xa0\x80", b'"', b"\0"])) + data[at:]
    flags = st.booleans()
    return data, types, Format("r", (), delimiter=delimiter, headers=draw(flags), rfc4180=draw(flags))


@contextmanager
def small_parts() -> Iterator[None]:
    """However small a file is, it is cut into parts of a few lines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "WORTH_SHARING", 0)
        patch.setattr(parts, "LINES_AT_A_TIME", 3)
        patch.setattr(reader, "LINES_AT_A_TIME", 3)
        patch.setattr(parts, "_BLOCK", 7)
        yield


def told(data, types, format, threads) -> list[object] | None:
    """Return all that parsing a file tells: the values, and of texts the codes and the dictionary."""
    found = parsed(data, PATH, types, format, threads)
    if found is None:
        return None
    columns: list[object] = [found.count, found.types]
    for column in found.columns:
        if isinstance(column, Texts):
            texts = column.dictionary.take(np.arange(len(column.dictionary))).tolist()
            columns.append((column.codes.tolist(), texts))
        else:
            columns.append((column.dtype, column.tobytes()))
    return columns


@given(st.one_of(plain_files(), any_files()), st.sampled_from([2, 5]))
@example((b"", ["number"], Format("r", ())), 2)
@example((b"a\n", ["symbol"], Format("r", (), headers=True)), 2)
@example((b"1\n" * 6, ["number"], Format("r", ())), 2)
@example((b"1\n" * 6 + b"2", ["number"], Format("r", ())), 2)
def test_the_same_with_several_threads(file, threads):
    """Rows, codes and dictionaries are the same, and so are the files that are left to the careful reader."""
    with small_parts():
        assert told(*file, Threads(threads)) == told(*file, ONE_THREAD)


@pytest.mark.parametrize("types", [("symbol", "number", "symbol"), ("number",) * 3], ids=["texts", "numbers"])
@pytest.mark.parametrize("threads", [2, 5])
def test_files_of_many_lines_in_parts(types, threads):
    """A file of many chunks has the codes, and a mistake in it the line, that one thread finds."""
    data = "".join(f"{i * 7 % 5000}\t{i}\t{i * i % 90_000}\n" for i in range(150_000)).encode()
    assert len(data) > parts.WORTH_SHARING
    assert told(data, types, Format("r", ()), Threads(threads)) == told(data, types, Format("r", ()), ONE_THREAD)
    for wrong in (b"1\tx\t2\n", b"1\t2\n"):
        with pytest.raises(FactsError) as caught:
            columns_in(data + wrong + data, PATH, types, Format("r", ()), Threads(threads))
        assert caught.value.problems[0].place == "r.facts:150001"


def bits(rows):
    """Rows with floats told apart bit by bit."""
    return [tuple(np.float64(v).tobytes() if isinstance(v, float) else v for v in row) for row in rows]


@given(plain_files())
def test_plain_files_are_parsed(file):
    data, types, format = file
    found = parsed(data, Path("e.facts"), types, format)
    assert found is not None and found.types == tuple(types)
    assert bits(found) == bits(rows_in(data, PATH, types, format)) and len(found) == len(list(found))


@given(any_files())
@example((b"\xc3\ta9\n\xa9\tb\n", ["symbol", "symbol"], Format("r", ())))
@example((b"a\t\xa9\nb\t\xc3", ["symbol", "symbol"], Format("r", ())))
def test_any_file_is_read_as_by_the_careful_reader(file):
    data, types, format = file
    found = parsed(data, Path("e.facts"), types, format)
    try:
        expected = rows_in(data, PATH, types, format)
    except FactsError:
        assert found is None
    else:
        assert found is None or bits(found) == bits(expected)


@given(any_files())
def test_errors_are_those_of_the_careful_reader(file):
    data, types, format = file

    def outcome(read):
        try:
            return bits(read(data, PATH, types, format))
        except FactsError as error:
            return error.problems

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "WORTH_A_KERNEL", 0)
        patch.setattr(reader, "WORTH_A_COMPILED_KERNEL", 0)
        assert outcome(columns_in) == outcome(rows_in)


@pytest.mark.parametrize("packed", [False, True])
def test_many_rows(tmp_path, packed):
    """More rows than are parsed at a time, and more texts than the dictionary first has room for."""
    n = 100_000
    text = "".join(f"{i}\tnode {i % 50_000}\té{i % 7}\t{i / 8}\n" for i in range(n)).encode()
    path = tmp_path / "r.facts"
    path.write_bytes(gzip.compress(text) if packed else text)
    found = columns_in(read_bytes(path), path, ("number", "symbol", "symbol", "float"), Format("r", ()))
    assert isinstance(found, Columns)
    assert list(found) == [(i, f"node {i % 50_000}", f"é{i % 7}", i / 8) for i in range(n)]


def test_many_integers():
    """More rows than are parsed at a time, by the kernel of integers alone."""
    rows = [(i, 7 * i, -i) for i in range(100_000)]
    data = "".join(f"{x}\t{y}\t{z}\n" for x, y, z in rows).encode()
    found = columns_in(data, PATH, ("number", "unsigned", "number"), Format("r", ()))
    assert isinstance(found, Columns) and list(found) == rows


def test_small_files_need_no_kernel():
    assert columns_in(b"1\n", PATH, ("number",), Format("r", ())) == [(1,)]


def test_a_row_wrong_at_the_end_of_a_large_file():
    data = b"1\t2\n" * 100_000 + b"1\tx\n"
    with pytest.raises(FactsError) as caught:
        columns_in(data, PATH, ("number", "number"), Format("r", ()))
    (problem,) = caught.value.problems
    assert (problem.slug, problem.place) == ("ill-typed-value", "r.facts:100001")
