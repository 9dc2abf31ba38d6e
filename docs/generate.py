"""Write the pages of docs/reference that can be read off the code, and the figures on reliability: `make docs`.

A test fails when a page is not what this writes, when a functor has no meaning below, and when a public name has no
docstring. Results of examples are computed, never typed.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import upheld
from upheld import testing
from upheld.cli import parser
from upheld.language.syntax.rdfox import SPELLINGS
from upheld.language.terms.functions import CASTS, FUNCTIONS
from upheld.language.terms.terms import FALSE, TRUE
from upheld.language.types.columns import CODED
from upheld.language.types.functors import CONSTRAINTS, HOLDS, SIGNATURES, Signature
from upheld.language.types.primitive import PRIMITIVE_TYPES

DOCS = Path(__file__).parent
WIDTH = 120

GENERATED = "<!-- Written by docs/generate.py: change the code it reads, then `make docs`. -->"

# -- functors ---------------------------------------------------------------------------------------------------------

#: Meaning and example of each functor of the `.dl` dialect, by name and number of arguments.
MEANINGS: dict[str, tuple[str, str]] = {
    "+/2": ("sum", "2 + 3"),
    "-/2": ("difference", "2 - 3"),
    "-/1": ("negative", "-(2 + 3)"),
    "*/2": ("product", "2 * 3"),
    "//2": ("quotient; of integers it is rounded towards zero", "-7 / 2"),
    "%/2": ("remainder of `/`, with the sign of the first argument", "-7 % 2"),
    "^/2": ("power", "2 ^ 10"),
    "band/2": ("bitwise and", "6 band 3"),
    "bor/2": ("bitwise or", "6 bor 3"),
    "bxor/2": ("bitwise exclusive or", "6 bxor 3"),
    "bnot/1": ("bitwise not", "bnot 6"),
    "bshl/2": ("bits moved left; only the last six bits of the second argument count", "3 bshl 2"),
    "bshr/2": ("bits moved right, keeping the sign", "-8 bshr 1"),
    "bshru/2": ("bits moved right, filled with zeros", "-8 bshru 60"),
    "land/2": ("logical and: 0 is false, all else true", "6 land 0"),
    "lor/2": ("logical or", "6 lor 0"),
    "lxor/2": ("logical exclusive or", "6 lxor 3"),
    "lnot/1": ("logical not", "lnot 6"),
    "min/2": ("the least of two or more values", "min(3, 1, 2)"),
    "max/2": ("the greatest of two or more values", 'max("ash", "elm")'),
    "cat/2": ("two or more symbols joined", 'cat("a", "b", "c")'),
    "ord/1": ("a number for a symbol: a fixed hash, the same in every run", 'ord("a")'),
    "strlen/1": ("number of characters", 'strlen("Zoë")'),
    "substr/3": ("characters from a start, counted from 0, and their number; to the end if it is negative",
                 'substr("maintain", 4, 2)'),
    "to_number/1": ("as a number; floats are cut towards zero", 'to_number("0x1f")'),
    "to_unsigned/1": ("as an unsigned number", 'to_unsigned("7")'),
    "to_float/1": ("as a float", 'to_float("0.5")'),
    "to_string/1": ("as a symbol", "to_string(0.5)"),
    "to_date/1": ("as a date: the day of a timestamp in UTC, or an ISO 8601 text", 'to_date("2024-02-29")'),
    "to_timestamp/1": ("as a timestamp: midnight of a date in UTC, or an ISO 8601 text",
                       'to_timestamp("2024-02-29T12:30+01:00")'),
    "to_boolean/1": ("as a Boolean: `true` or `false`, or 1 or 0", 'to_boolean("true")'),
    "to_decimal/3": ("as a decimal with that many digits, and that many of them after the point; rounded, halves away "
                     "from zero", "to_decimal(2.345, 10, 2)"),
    "year/1": ("the year", 'year("2024-02-29")'),
    "quarter/1": ("the quarter of the year, from 1", 'quarter("2024-02-29")'),
    "month/1": ("the month, from 1", 'month("2024-02-29")'),
    "week/1": ("the week of the year by ISO 8601", 'week("2024-02-29")'),
    "day/1": ("the day of the month", 'day("2024-02-29")'),
    "day_of_week/1": ("the day of the week, Monday is 1", 'day_of_week("2024-02-29")'),
    "day_of_year/1": ("the day of the year, from 1", 'day_of_year("2024-02-29")'),
    "hour/1": ("the hour in UTC", 'hour("2024-02-29T12:30:05.5Z")'),
    "minute/1": ("the minute", 'minute("2024-02-29T12:30:05.5Z")'),
    "second/1": ("the second", 'second("2024-02-29T12:30:05.5Z")'),
    "microsecond/1": ("the microseconds of the second", 'microsecond("2024-02-29T12:30:05.5Z")'),
    "truncate/2": ("the beginning of the year, quarter, month, week, day, hour, minute or second",
                   'truncate("2024-02-29", "quarter")'),
    "add_days/2": ("some days later", 'add_days("2024-02-28", 2)'),
    "add_months/2": ("some months later, on the last day of the month if it is shorter",
                     'add_months("2024-01-31", 1)'),
    "add_seconds/2": ("some seconds later", 'add_seconds("2024-02-29T12:30:05Z", 60)'),
    "add_microseconds/2": ("some microseconds later", 'add_microseconds("2024-02-29T12:30:05Z", 500)'),
    "days_between/2": ("whole days from the first to the second", 'days_between("2024-02-28", "2024-03-01")'),
    "months_between/2": ("whole months from the first to the second", 'months_between("2024-01-31", "2024-03-30")'),
    "seconds_between/2": ("whole seconds from the first to the second",
                          'seconds_between("2024-02-29T12:30:05Z", "2024-02-29T12:31:00Z")'),
    "microseconds_between/2": ("microseconds from the first to the second",
                               'microseconds_between("2024-02-29T12:30:05Z", "2024-02-29T12:30:05.5Z")'),
    "range/2": ("each value from the first up to but not including the second; downwards if the second is less",
                "range(2, 5)"),
    "range/3": ("the same with a step", "range(0, 10, 4)"),
}  # fmt: skip

CONSTRAINT_MEANINGS: dict[str, tuple[str, str]] = {
    "=": ("equal; binds a variable that stands alone on one side", "1 = 1"),
    "!=": ("not equal", '"a" != "b"'),
    "<": ("less; symbols are compared character by character", '"ash" < "elm"'),
    "<=": ("less or equal", "2 <= 2"),
    ">": ("greater", "2 > 2"),
    ">=": ("greater or equal", "2 >= 2"),
    "match": ("the whole of the second argument matches the regular expression that is the first",
              'match("a[sh]*", "ash")'),
    "!match": ("it does not", '!match("a", "ash")'),
    "contains": ("the first argument occurs in the second", 'contains("sh", "ash")'),
    "!contains": ("it does not", '!contains("s", "ash")'),
    "is_null": ("the argument, of a column with nulls, is null", "is_null(5)"),
    "!is_null": ("it is not", "!is_null(5)"),
}  # fmt: skip

#: The same for the functions of the `.dlog` dialect.
FUNCTION_MEANINGS: dict[str, tuple[str, str]] = {
    "+": ("sum, of the wider type: integer, decimal, float, double", "1 + 2.5"),
    "-": ("difference, or negative", "1 - 2"),
    "*": ("product", "2 * 3"),
    "/": ("quotient; of integers it is a decimal, with 28 digits", "7 / 2"),
    "ABS": ("absolute value", "ABS(-2.5)"),
    "CEIL": ("the least whole number that is not below", "CEIL(2.5)"),
    "FLOOR": ("the greatest whole number that is not above", "FLOOR(-2.5)"),
    "ROUND": ("the nearest whole number, the greater of two", "ROUND(-2.5)"),
    "= != < <= > >=": ("comparison by value of numbers, strings, booleans, dateTimes, dates, times and durations; `=` "
                       "and `!=` of other terms by identity, without a value for literals of other datatypes",
                       "5 = 5.0"),
    "&& || !": ("logic; `true || x` and `false && x` have a value where `x` has none", "!(1 > 2)"),
    "IN": ("is equal to one of the terms; `NOT IN` is to none", "5 IN (1, 5.0)"),
    "IF": ("the second argument if the first is true, else the third", 'IF(2 > 1, "more", "less")'),
    "COALESCE": ("the first argument that has a value", "COALESCE(1 / 0, 0)"),
    "STR": ("the characters of an IRI or of any literal", "STR(<https://example.org/a>)"),
    "STRLEN": ("number of characters of a string", 'STRLEN("Zoë")'),
    "SUBSTR": ("characters from a position, counted from 1, and their number", 'SUBSTR("maintain", 5, 2)'),
    "UCASE": ("in upper case", 'UCASE("Zoë")'),
    "LCASE": ("in lower case", 'LCASE("Zoë")'),
    "CONCAT": ("strings joined; in a language if all are", 'CONCAT("a"@en, "b"@en)'),
    "STRSTARTS": ("the first argument begins with the second", 'STRSTARTS("ash", "a")'),
    "STRENDS": ("the first argument ends with the second", 'STRENDS("ash", "a")'),
    "CONTAINS": ("the second argument occurs in the first", 'CONTAINS("ash", "sh")'),
    "STRBEFORE": ("the part before the second argument", 'STRBEFORE("ash-elm", "-")'),
    "STRAFTER": ("the part after the second argument", 'STRAFTER("ash-elm", "-")'),
    "ENCODE_FOR_URI": ("percent-encoded", 'ENCODE_FOR_URI("a b")'),
    "REGEX": ("some part of the first argument matches the regular expression that is the second; the third has flags",
              'REGEX("Ash", "^a", "i")'),
    "REPLACE": ("matches of the second argument replaced by the third, in which `$1` is a group; the fourth has flags",
                'REPLACE("ash", "(s)", "[$1]")'),
    "LANG": ("language tag of a literal", 'LANG("a"@en)'),
    "LANGMATCHES": ("a tag is in a range of languages", 'LANGMATCHES("en-gb", "en")'),
    "MD5": ("hash of a string, in hexadecimal digits", 'MD5("a")'),
    "SHA1": ("the same", 'SHA1("a")'),
    "SHA256": ("the same", 'SHA256("a")'),
    "SHA384": ("the same", 'SHA384("a")'),
    "SHA512": ("the same", 'SHA512("a")'),
    "YEAR": ("year of a dateTime or date", 'YEAR("2024-05-17"^^xsd:date)'),
    "MONTH": ("month of a dateTime or date", 'MONTH("2024-05-17"^^xsd:date)'),
    "DAY": ("day of a dateTime or date", 'DAY("2024-05-17"^^xsd:date)'),
    "HOURS": ("hour of a dateTime or time", 'HOURS("12:30:01.5"^^xsd:time)'),
    "MINUTES": ("minute of a dateTime or time", 'MINUTES("12:30:01.5"^^xsd:time)'),
    "SECONDS": ("second of a dateTime or time", 'SECONDS("12:30:01.5"^^xsd:time)'),
    "TIMEZONE": ("zone as a duration; none without a zone", 'TIMEZONE("2024-05-17-05:00"^^xsd:date)'),
    "TZ": ("zone as a string, which may be empty", 'TZ("2024-05-17Z"^^xsd:date)'),
    "IRI": ("the IRI of a string, which is absolute, or relative to the second argument; `URI` is the same",
            'IRI("a", <https://example.org/>)'),
    "STRDT": ("literal with a datatype", 'STRDT("5", xsd:integer)'),
    "STRLANG": ("literal with a language", 'STRLANG("chat", "fr")'),
    "DATATYPE": ("the datatype of a literal", "DATATYPE(5.0)"),
    "CANONICAL": ("one literal for all of the same value; of a literal without a value there is none",
                  'CANONICAL("05.0"^^xsd:decimal)'),
    "SKOLEM": ("a blank node for its arguments: the same one for the same terms, in every run",
               'SKOLEM("job", 7)'),
    "isIRI": ("is an IRI; `isURI` is the same", "isIRI(5)"),
    "isBlank": ("is a blank node", "isBlank(_:b)"),
    "isLiteral": ("is a literal", "isLiteral(5)"),
    "isNumeric": ("is a number", 'isNumeric("5")'),
    "sameTerm": ("is the same term", "sameTerm(5, 5.0)"),
    "BOUND": ("always true: each variable of a rule has a value", ""),
    "xsd:string": ("conversion from any literal or IRI", "xsd:string(5)"),
    "xsd:boolean": ("conversion from numbers and strings", 'xsd:boolean("0")'),
    "xsd:integer": ("conversion from numbers, booleans and strings; cut towards zero", "xsd:integer(-2.9)"),
    "xsd:decimal": ("the same", 'xsd:decimal("2.50")'),
    "xsd:float": ("the same", 'xsd:float("0.5")'),
    "xsd:double": ("the same", "xsd:double(2)"),
    "xsd:dateTime": ("conversion from dates and strings", 'xsd:dateTime("2024-05-17"^^xsd:date)'),
    "xsd:date": ("conversion from dateTimes and strings", 'xsd:date("2024-05-17T12:30:00Z"^^xsd:dateTime)'),
    "xsd:time": ("conversion from dateTimes and strings", 'xsd:time("2024-05-17T12:30:00Z"^^xsd:dateTime)'),
    "xsd:duration": ("conversion from strings and durations", 'xsd:duration("P1Y")'),
    "xsd:yearMonthDuration": ("the same", 'xsd:yearMonthDuration("P1Y")'),
    "xsd:dayTimeDuration": ("the same", 'xsd:dayTimeDuration("PT36H")'),
}  # fmt: skip


#: Where functions of terms depart from SPARQL 1.1.
DEPARTURES = (
    "Regular expressions follow RE2: no backreferences, no lookaround, no classes of XML such as `\\i`, no class "
    "subtraction. The flags are `i`, `m`, `s`, `x` and `q`. A constant that is not a regular expression is an "
    "[error](errors.md#invalid-regex); a computed one has no match and no value.",
    "Integers have no bound. Sums and products of decimals are exact.",
    "Literals of two different datatypes with values are unequal, as in SPARQL 1.2; SPARQL 1.1 has an error.",
    "A dateTime without a zone and one with a zone are compared by the order of XML Schema: there is none within 14 "
    "hours.",
    "Durations are ordered where XML Schema orders them. There is no arithmetic with dates and durations.",
    "`NOW`, `RAND`, `UUID`, `STRUUID` and `BNODE` are [refused](errors.md#unsupported-function): their values differ "
    "from call to call.",
)


def function_names() -> set[str]:
    """Return the functions of the `.dlog` dialect as they are written, operators apart."""
    named = {SPELLINGS.get(name, name) for name in FUNCTIONS if name[0].isalpha()}
    return named | {f"xsd:{name}" for name in CASTS}


def evaluated(expression: str) -> str:
    """Return the values of an expression of the `.dl` dialect."""
    m = upheld.materialise(f"p(x) :- x = {expression}.")
    return ", ".join(f"`{shown(value)}`" for (value,) in m["p"])


def shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def holds(text: str) -> str:
    return "holds" if len(upheld.materialise(f"p() :- {text}.")["p"]) else "does not hold"


def evaluated_function(expression: str) -> str:
    """Return the value of an expression of the `.dlog` dialect."""
    from upheld.language.syntax.files import read_text

    if not expression:
        return ""
    rows = upheld.materialise(read_text(f"p(?x) :- BIND({expression} AS ?x).", "dlog"))["p"].to_rows()
    if str(rows[0][0]) in (TRUE, FALSE):
        return f"`{'true' if rows[0][0] == TRUE else 'false'}`"
    return re.sub(r"<http://www\.w3\.org/2001/XMLSchema#(\w+)>", r"xsd:\1", str(rows[0][0])).join("``")


def types(signature: Signature) -> tuple[str, str]:
    """Return the types of the arguments and of the result, in words."""
    over = [t for t in (*PRIMITIVE_TYPES[:4], *CODED) if t in signature.ranges_over]
    generic = "any" if len(over) == 4 + len(CODED) else " or ".join(filter(None, (", ".join(over[:-1]), over[-1])))
    distinct = [generic if a == "T" else a for a in dict.fromkeys(signature.arguments)]
    result = signature.result
    if result == "T":
        result = "the same" if len(over) > 1 else over[0]
    return ", ".join(distinct if "T" in signature.arguments else signature.arguments), result


def functors() -> str:
    lines = [
        "# Functors",
        GENERATED,
        "The parts of expressions. Expressions may stand in heads, in atoms of bodies and in comparisons; their "
        "variables are bound elsewhere. The values of the examples were computed by Upheld.",
        "## The `.dl` dialect",
        "All arguments of a functor are of one type where the table names several. A result that does not fit 64 bits "
        "is an [error](errors.md#undefined-result), and so is division of integers by zero. Floats follow IEEE 754: "
        "`1.0 / 0.0` is `inf`. The bit functors never overflow.",
    ]
    table = [("functor", "arguments", "result", "meaning", "example", "value")]
    for name, signatures in SIGNATURES.items():
        for signature in signatures:
            meaning, example = MEANINGS[f"{name}/{len(signature.arguments)}"]
            table.append((f"`{name}`", *types(signature), meaning, f"`{example}`", evaluated(example)))
    lines.append(as_table(table))
    lines.append(
        "`range` gives several values, and a rule with it holds for each of them. Operators bind as in Soufflé, from "
        "loose to tight: `lor`, `lxor`, `land`, `bor`, `bxor`, `band`, shifts, `+ -`, `* / %`, prefixes, `^`."
    )
    lines.append("### Comparisons")
    table = [("comparison", "arguments", "meaning", "example", "")]
    for name, signature in CONSTRAINTS.items():
        if HOLDS in name:
            continue  # a condition of the other dialect
        meaning, example = CONSTRAINT_MEANINGS[name]
        table.append((f"`{name}`", types(signature)[0], meaning, f"`{example}`", holds(example)))
    lines.append(as_table(table))
    lines.append(
        "Regular expressions follow [RE2](https://github.com/google/re2/wiki/Syntax), matched in linear time. In "
        "a string a backslash is written twice."
    )
    lines.append("## The `.dlog` dialect")
    lines.append(
        "Arguments and results are RDF terms. As in SPARQL, an expression over terms for which it means nothing has no "
        "value, and the rule does not match."
    )
    table = [("function", "meaning", "example", "value")]
    assert function_names() <= set(FUNCTION_MEANINGS), "a function without a meaning"
    for name, (meaning, example) in FUNCTION_MEANINGS.items():
        table.append((f"`{name}`", meaning, f"`{example}`" if example else "", evaluated_function(example)))
    lines.append(as_table(table))
    lines.append("### Where functions depart from SPARQL 1.1")
    lines.extend(f"- {departure}" for departure in DEPARTURES)
    return "\n\n".join(map(wrapped, lines)) + "\n"


#: The meaning of each exit code.
EXIT_CODES = (
    ("0", "done; for `query` and `explain`, something holds"),
    ("1", "done; the query has no answers, the fact to explain does not hold, or, with `--fail-on-violation`, the "
     "relation `violation` has facts"),
    ("2", "an error: bad options, a bad program or bad facts, a file that cannot be read or written, a limit reached"),
    ("130", "stopped from the keyboard"),
)  # fmt: skip

# -- the command line -------------------------------------------------------------------------------------------------


def command_line() -> str:
    top = parser()
    lines = [
        "# The command line",
        GENERATED,
        f"{top.description} `upheld --version` prints the version; each command has `--help`.",
        "Errors and warnings go to standard error. A command that fails or is stopped leaves all files as they were, "
        "unless its message says that outputs had been written. The exit code says how a command ended:",
        as_table([("code", ""), *EXIT_CODES]),
        "A reader of standard output may go away, as in `upheld query ... | head -1`: the command still completes, "
        "and has the same exit code.",
    ]
    for name, command in subcommands(top).items():
        lines.append(f"## upheld {name}")
        lines.append(f"```text\n{command.usage}\n```")
        lines.append(command.description or "")
        # argparse keeps its groups to itself, and lays its help out differently from one Python to the next.
        for group in command._action_groups:
            actions = [a for a in group._group_actions if a.dest != "help"]
            if not actions:
                continue
            if group.description:
                lines.append(group.description)
            title = group.title or ""
            lines.append(
                as_table([(title[:1].upper() + title[1:], ""), *((spelled(a), a.help or "") for a in actions)])
            )
        lines.append(f"```text\n{command.epilog}```")
    return "\n\n".join(map(wrapped, lines)) + "\n"


def subcommands(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise AssertionError("a command line without commands")


def metavar(action: argparse.Action) -> str:
    return str(action.metavar or action.dest.upper())


def spelled(action: argparse.Action) -> str:
    value = f" {metavar(action)}" if action.nargs != 0 else ""
    if not action.option_strings:
        return f"`{metavar(action)}`"
    return ", ".join(f"`{option}{value}`" for option in action.option_strings)


# -- the Python names -------------------------------------------------------------------------------------------------

FUNCTIONS_FIRST = (
    "materialise",
    "restore",
    "load",
    "read_updates",
    "read_table",
    "table_files",
    "check",
    "parse",
    "functor",
    "spark_session",
)


def api() -> str:
    lines = [
        "# The Python API",
        GENERATED,
        "Everything in `upheld.__all__`. Other names of the package may change at any time.",
    ]
    # `materialize` is `materialise`, whose docstring is printed once.
    functions = [n for n in upheld.__all__ if inspect.isfunction(getattr(upheld, n)) and n != "materialize"]
    assert sorted(functions) == sorted(FUNCTIONS_FIRST), "give each function its place in FUNCTIONS_FIRST"
    lines.append("## Functions")
    for name in FUNCTIONS_FIRST:
        lines += described(f"### {name}", f"upheld.{name}", getattr(upheld, name))
    lines.append("## Classes")
    for name in upheld.__all__:
        if inspect.isclass(getattr(upheld, name)):
            lines += described_class(name, getattr(upheld, name))
    lines += ["## upheld.testing", *paragraphs(testing)]
    lines += described("### check_updates", "upheld.testing.check_updates", testing.check_updates)
    lines += described_class("Oracle", testing.Oracle)
    lines += ["## upheld.rdf", *paragraphs(upheld.rdf)]
    for name in upheld.rdf.__all__:
        value = getattr(upheld.rdf, name)
        heading = f"rdf.{name}"
        lines += (
            described_class(heading, value)
            if inspect.isclass(value)
            else described(f"### {heading}", f"upheld.{heading}", value)
        )
    return "\n\n".join(map(wrapped, lines)) + "\n"


def described(heading: str, name: str, function: Callable[..., Any]) -> list[str]:
    return [heading, f"```python\n{signature_of(name, function)}\n```", *paragraphs(function)]


def described_class(name: str, cls: type) -> list[str]:
    lines = [f"### {name}", *paragraphs(cls)]
    if dataclasses.is_dataclass(cls):
        fields = zip(dataclasses.fields(cls), comments(cls), strict=True)
        rows = [(f"`{f.name}`", f"`{f.type}`{default_of(f)}", told) for f, told in fields]
        lines.append(as_table([("field", "type", ""), *rows]))
    for member, value in members(cls):
        if isinstance(value, property) and not member.startswith("_"):
            lines += [f"#### {name}.{member}", *paragraphs(value)]
        elif member == "__getitem__":
            lines += [f"#### {name}[{list(inspect.signature(value).parameters)[1]}]", *paragraphs(value)]
        elif inspect.isfunction(value) and not member.startswith("_"):
            lines += described(f"#### {name}.{member}", member, value)
    return lines


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the members of a class: first the members of its base classes in the same package, then its own."""
    for base in reversed(cls.__mro__):
        if base.__module__.rpartition(".")[0] == cls.__module__.rpartition(".")[0]:
            yield from vars(base).items()


def default_of(field: dataclasses.Field[Any]) -> str:
    return "" if field.default is dataclasses.MISSING else f", by default `{field.default}`"


def signature_of(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parts, keyword_only = [], False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword_only = True
            parts.append(f"*{parameter.name}: {parameter.annotation}")
            continue
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        parts.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    result = f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(parts)}){result}"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {p},\n" for p in parts) + f"){result}"


def paragraphs(thing: object) -> Iterator[str]:
    """Yield the paragraphs of a docstring, its examples as code and its parameters as a table."""
    text = inspect.getdoc(thing) or ""
    assert text, f"{thing} has no docstring"
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("Args:"):
            yield as_table([("parameter", ""), *parameters(paragraph)])
        else:
            yield f"```python\n{paragraph}\n```" if paragraph.startswith(">>>") else paragraph


def parameters(section: str) -> Iterator[tuple[str, ...]]:
    """Yield the names and descriptions of an `Args:` section."""
    for entry in re.split(r"\n    (?=\S)", section)[1:]:
        parameter, _, meaning = " ".join(entry.split()).partition(": ")
        yield f"`{parameter}`", meaning


def comments(cls: type) -> Iterator[str]:
    """Yield for each field of a dataclass what the `#:` lines before it say."""
    said: list[str] = []
    names = {f.name for f in dataclasses.fields(cls)}
    for line in inspect.getsource(cls).splitlines():
        if line.strip().startswith("#:"):
            said.append(line.strip()[2:].strip())
        elif (found := re.match(r"    (\w+):", line)) and found[1] in names:
            yield " ".join(said)
            said = []


# -- markdown ---------------------------------------------------------------------------------------------------------


def as_table(rows: list[tuple[str, ...]]) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    head, *body = rows
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, body)])


def wrapped(block: str) -> str:
    """Return a paragraph in lines of at most `WIDTH` characters; anything else as it is."""
    if block.startswith(("#", "|", "```", "<!--")):
        return block
    lines, line = [], ""
    for word in block.split():
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = ""
        line += f"{' ' if line else ''}{word}"
    return "\n".join([*lines, line])


# -- reliability -------------------------------------------------------------------------------------------------------

RESULTS = Path(__file__).parents[1] / "tests" / "reliability" / "results.jsonl"
#: The lines before and after the figures on the page on reliability.
FIGURES = "<!-- figures: written by docs/generate.py from tests/reliability/results.jsonl -->"
END_OF_FIGURES = "<!-- end of figures -->"


def reliability() -> str:
    """Return the page on reliability with the figures of the last run of each goal.

    A run that was interrupted is continued by the next one, with another seed.
    """
    page = (DOCS / "explanation" / "reliability.md").read_text(encoding="utf-8")
    before, rest = page.split(FIGURES)
    _, after = rest.split(END_OF_FIGURES)
    last: dict[str, dict[str, Any]] = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        earlier = last.get(result["id"], {})
        last[result["id"]] = continued(earlier, result) if "interrupted" in earlier else result
    rows = [("goal", "attack", "cases", "failures", "seed", "seconds", "further figures")]
    for result in sorted(last.values(), key=lambda result: int(result["id"].removeprefix("R"))):
        known = ("id", "title", "cases", "failures", "seed", "seconds", "failed")
        more = ", ".join(f"{name} {figure(value)}" for name, value in result.items() if name not in known)
        numbers = (f"{result['cases']:,}", f"{result['failures']:,}", str(result["seed"]), f"{result['seconds']:,.0f}")
        rows.append((result["id"], result["title"], *numbers, more))
    return f"{before}{FIGURES}\n\n{as_table(rows)}\n\n{END_OF_FIGURES}{after}"


def continued(before: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of an interrupted run and of the one that continues it, together."""
    numbers = {name: value for name, value in result.items() if type(value) in (int, float) and name != "seed"}
    summed = {name: value + before.get(name, 0) for name, value in numbers.items()}
    return {**result, **summed, "seed": f"{before['seed']}, {result['seed']}"}


def figure(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


PAGES: dict[str, Callable[[], str]] = {
    "reference/api.md": api,
    "reference/cli.md": command_line,
    "reference/functors.md": functors,
    "explanation/reliability.md": reliability,
}


def main() -> int:
    for name, page in PAGES.items():
        text = page()
        path = DOCS / name
        old = path.read_text(encoding="utf-8") if path.exists() else None
        path.write_text(text, encoding="utf-8")
        print(f"docs/{name}: {'as it was' if text == old else 'written'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
