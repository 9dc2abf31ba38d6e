"""Texts of records: canonical forms, facts files, and Python objects."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld import Record
from upheld.language.terms.terms import NoValue
from upheld.language.types.functors import functor
from upheld.language.types.primitive import INT64_MAX, INT64_MIN, UINT64_MAX
from upheld.language.types.records import Field, NotARecord, RecordType, canonical, from_file, from_python, in_file
from upheld.language.values import normalise_float

LIST = RecordType("List")
LIST.branches["[]"] = ("number", LIST)
EXPR = RecordType("Expr")
EXPR.branches |= {"$Num": ("number",), "$Add": (EXPR, EXPR), "$Zero": ()}
MIXED = RecordType("Mixed", {"[]": ("symbol", "unsigned", "float", EXPR)})
EMPTY = RecordType("Empty", {"[]": ()})


@pytest.mark.parametrize(
    "type, text, expected",
    [
        (LIST, " [ 1 ,[0x10,nil]] ", "[1, [16, nil]]"),
        (LIST, "nil", "nil"),
        (EMPTY, "[ ]", "[]"),
        (EXPR, "$Add( $Num(-5),$Zero( ) )", "$Add($Num(-5), $Zero)"),
        (MIXED, '["a, \\"]\\n", 007, 1, $Zero]', '["a, \\"]\\n", 7, 1, $Zero]'),
        (MIXED, '["", 18446744073709551615u, 1e30, $Zero]', '["", 18446744073709551615u, 1e+30, $Zero]'),
    ],
)
def test_canonical(type, text, expected):
    """A value has one text, which is read again as the same value."""
    assert canonical(text, type) == expected
    assert canonical(expected, type) == expected


@pytest.mark.parametrize(
    "type, text, why",
    [
        (LIST, "", "has its end where `List` needs `[...]` or `nil`"),
        (LIST, "[1]", "has `]` where `,` is needed"),
        (LIST, "[1, nil, nil]", "has `, nil]` where `]` is needed"),
        (LIST, '["a", nil]', "where a `number` is needed"),
        (LIST, "[9223372036854775808, nil]", "where a `number` is needed"),
        (LIST, "[1, nil] x", "goes on with `x` after its end"),
        (LIST, "[1, $Zero]", "has `$Zero]` where `List` needs"),
        (EXPR, "nil", "needs `$Num` or `$Add` or `$Zero`"),
        (EXPR, "$Sub($Zero, $Zero)", "needs `$Num` or `$Add` or `$Zero`"),
        (EXPR, "$Num", "has its end where `(` is needed"),
        (MIXED, "[a, 1, 1, $Zero]", "has `a, 1, 1, $Zero]` where a `symbol` is needed"),
        (MIXED, '["\\q", 1, 1, $Zero]', "where a `symbol` is needed"),
        (MIXED, '["", -1, 1, $Zero]', "where a `unsigned` is needed"),
    ],
)
def test_not_a_record(type, text, why):
    """What is wrong with a text is said with the place."""
    with pytest.raises(NotARecord, match=None) as wrong:
        canonical(text, type)
    assert why in str(wrong.value)


symbols = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
floats = st.floats().map(normalise_float)
expressions = st.recursive(
    st.just(Record(branch="Zero")) | st.integers(INT64_MIN, INT64_MAX).map(lambda n: Record(n, branch="Num")),
    lambda inner: st.tuples(inner, inner).map(lambda pair: Record(*pair, branch="Add")),
    max_leaves=3,
)
mixed = st.tuples(symbols, st.integers(0, UINT64_MAX), floats, expressions)


@settings(max_examples=30)
@given(mixed)
def test_python_objects(values):
    """An object, a tuple and the text are the same value, and parsing gives the object again."""
    text = from_python(values, MIXED)
    assert from_python(Record(*values), MIXED) == from_python(text, MIXED) == canonical(text, MIXED) == text
    again = Record.parse(text)
    assert repr(again.fields[2]) in (repr(values[2]), repr(values[2]).removesuffix(".0"))
    assert [again.fields[i] for i in (0, 1, 3)] == [values[i] for i in (0, 1, 3)]


@settings(max_examples=30)
@given(mixed)
def test_fields(values):
    """A value that is constructed has the fields that it was constructed from, and no other branch."""
    types = MIXED.branches["[]"]
    arguments = (*values[:3], from_python(values[3], EXPR))
    text = functor("[]", 4, ",".join(types)).evaluate(*arguments)
    assert text == from_python(values, MIXED)
    for i, (type, value) in enumerate(zip(types, arguments)):
        taken = functor(Field("[]", i, 4).functor, 1, type).evaluate(text)
        assert taken == value or value != value
    assert functor(Field("[]", None, 4).functor, 1, "number").evaluate(text) == 1
    for other in ("nil", arguments[3]):
        with pytest.raises(NoValue):
            functor(Field("[]", 1, 4).functor, 1, "unsigned").evaluate(other)


@given(st.tuples(st.from_regex(r"[a-z( ]?[a-z ]{0,3}[a-z]", fullmatch=True), st.integers(0, UINT64_MAX), floats))
def test_files(values):
    """What is written to a file is read again, if symbols have no commas and brackets and begin with no blank."""
    text = from_python((values[0].lstrip(), *values[1:], Record(branch="Zero")), MIXED)
    assert from_file(in_file(text), MIXED) == text


def test_symbols_in_files():
    """Files have symbols without quotes, up to a comma or the closing bracket."""
    assert in_file('["a b", 18446744073709551615u, 1, $Zero]') == "[a b, 18446744073709551615, 1, $Zero]"
    assert from_file('[ "a" b(c) , 1, 1, $Zero]', MIXED) == '["\\"a\\" b(c) ", 1, 1, $Zero]'


def test_depth():
    """Values may be nested deeper than Python recurs."""
    value: object = None
    for i in range(2_000):
        value = (i, value)
    text = from_python(value, LIST)
    assert text.startswith("[1999, [1998, ") and text == canonical(text, LIST) == from_file(text, LIST)
    tail = functor(Field("[]", 1, 2).functor, 1, "record").evaluate(text)
    assert tail.startswith("[1998, ") and len(tail) == len(text) - len("[1999, ]")
    assert Record.parse(text).fields[0] == 1_999


def test_types_are_known_by_their_values():
    """The text of a type does not depend on names, and a type is the same in another process."""
    other = RecordType("Other")
    other.branches["[]"] = ("number", other)
    assert repr(other) == repr(LIST) != repr(EXPR)
    assert other == LIST == "record"
    there = pickle.loads(pickle.dumps(LIST))
    assert there.name == "List" and there.branches["[]"][1] is there


def test_record():
    """A record is a value: it compares, hashes, and cannot be changed."""
    one = Record(1, Record("a", None))
    assert one == Record(1, Record("a", None)) and hash(one) == hash(Record.parse(str(one)))
    assert one != Record(1, branch="A") and one != (1, ("a", None))
    assert pickle.loads(pickle.dumps(one)) == one
    assert Record.parse("nil") is None
    with pytest.raises(AttributeError):
        one.branch = "A"
    for text in ("", "1", "[1", "1]", "[x]", "[1] [2]"):
        with pytest.raises(ValueError, match="not "):
            Record.parse(text)


@pytest.mark.parametrize("value, why", [(True, "True"), (object(), "object"), (b"x", "bytes")])
def test_wrong_objects(value, why):
    """A field is a number, a text or a record."""
    with pytest.raises(NotARecord, match=why):
        from_python((value, None), LIST)
