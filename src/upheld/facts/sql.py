"""SQL over relations, evaluated by DuckDB on their Arrow tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from upheld.base.errors import Problem, UsageError, nearest, quote, require
from upheld.facts.relation import Relation, missing_package

if TYPE_CHECKING:
    import pyarrow

Parameters = Sequence[object] | Mapping[str, object]

#: The words that ask for the plan of a query instead of its answers.
_EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?", re.IGNORECASE)


def answer(
    text: str, parameters: Parameters | None, names: Iterable[str], relation: Callable[[str], Relation]
) -> pyarrow.Table:
    """Return the answer to a query. Only relations whose names occur in it are read."""
    require(isinstance(text, str), "text", "a string", text)
    is_right = isinstance(parameters, Mapping | Sequence | None) and not isinstance(parameters, str)
    require(is_right, "parameters", "a list of values, a dictionary of values by name, or None", parameters)
    try:
        import duckdb
    except ImportError:
        raise missing_package("duckdb", "sql") from None
    known = list(names)
    # Tables are relations, never variables of Python that happen to have the name.
    with duckdb.connect(config={"python_enable_replacements": False}) as connection:
        try:
            explain = _EXPLAIN.match(text)
            statements = connection.extract_statements(text[explain.end() :] if explain else text)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                note = "SQL reads relations; `update` changes them"
                raise UsageError(Problem("bad-sql", "the text is not one query", note=note, hint="write one `select`"))
            for name in known:
                if name.lower() in text.lower():
                    connection.register(name, _table(relation(name)))
            return connection.sql(text, params=parameters or None).to_arrow_table()
        except duckdb.Error as error:
            raise UsageError(_problem(str(error), known)) from None


def _table(relation: Relation) -> Any:
    """Return a relation as an Arrow table; one without columns has a column `holds`, as DuckDB has no such tables."""
    import pyarrow

    return relation.to_arrow() if relation.columns else pyarrow.table({"holds": [True] * len(relation)})


def _problem(message: str, known: list[str]) -> Problem:
    first, *rest = message.splitlines()
    unknown = first.partition("Table with name ")[2].partition(" does not exist")[0]
    known_to_duckdb = [line for line in rest if line.startswith(("LINE ", "Candidate bindings"))]
    note = "; ".join([*known_to_duckdb, f"the relations are {', '.join(map(quote, known[:20]))}"])
    return Problem("bad-sql", f"DuckDB cannot evaluate the query: {first}", note=note, hint=nearest(unknown, known))
