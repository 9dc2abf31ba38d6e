"""Valid programs that are probably not what was meant: misspelt names, and comparisons that never hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from upheld.base.errors import Problem, nearest, quote
from upheld.base.source import Source
from upheld.language.ast import Atom, Call, Clause, Constant, Formula, Program, Term, Test, nodes, variables
from upheld.language.terms.terms import number_of, string_of
from upheld.language.terms.vocabulary import COLUMNS

#: Warnings of one kind that are shown where nobody has asked for all of them.
WARNINGS_SHOWN = 5

_ORDERINGS = frozenset(("<", "<=", ">", ">="))
_ON_NUMBERS = frozenset(("+", "-", "*", "/", "ABS", "CEIL", "FLOOR", "ROUND"))
_ON_STRINGS = frozenset(
    "STRLEN UCASE LCASE CONCAT STRSTARTS STRENDS CONTAINS STRBEFORE STRAFTER ENCODE_FOR_URI REGEX REPLACE LANGMATCHES "
    "MD5 SHA1 SHA256 SHA384 SHA512".split()
)


def lint(program: Program) -> Iterator[Problem]:
    """Yield a warning for each variable that occurs once in its rule, and each operation on terms without a value.

    In rules over triples, a variable that occurs once is reported only if another one has nearly its name.
    """
    expanded: set[tuple[Source, int]] = set()  # rules of components, which are in the program once for each instance
    for clause in program.clauses:
        if clause.body is not None:
            if clause.span is not None and clause.span.origin is not None:
                place = (clause.span.source, clause.span.start)
                if place in expanded:
                    continue
                expanded.add(place)
            yield from _used_once(program, clause)
            if program.dialect == "dlog":
                yield from _never(clause.body)


def without_facts(program: Program, given: Collection[str], way_out: str | None = None) -> Iterator[Problem]:
    """Yield a warning for each undeclared relation in a body that has no rules, no facts and is not among `given`.

    `given` are the relations whose facts are passed, which may be none. `way_out` says how to pass them; by default it
    is what `materialise` takes.
    """
    filled = _filled(program, given)
    for number, (name, atom) in enumerate(_empty(program, filled).items()):
        # A search for the nearest of many names takes long: programs with more misspelt names than this have none.
        meant = nearest(name, filled) if number < WARNINGS_SHOWN else None
        yield Problem(
            "no-facts",
            f"relation {quote(name)} has no facts and no rules",
            atom.span,
            note="a relation that only updates fill must be declared, or passed with an empty list of facts",
            hint=meant or way_out or f'pass `{{"{name[:60]}": []}}` with the facts',
            severity="warning",
        )


def _filled(program: Program, given: Collection[str]) -> set[str]:
    """Return the relations that are declared, or have rules or facts."""
    filled = {head.predicate for clause in program.clauses for head in clause.heads} | set(given)
    filled |= {declaration.name for declaration in program.declarations}
    filled |= {directive.relation for directive in program.directives if directive.kind == "input"}
    return filled | COLUMNS.keys() if program.dialect == "dlog" else filled


def _empty(program: Program, filled: Collection[str]) -> dict[str, Atom]:
    """Return the other relations in bodies, each with the first atom of it."""
    empty: dict[str, Atom] = {}
    for clause in program.clauses:
        for part in nodes(*clause.heads, clause.body) if clause.body is not None else ():
            if isinstance(part, Atom) and part.predicate not in filled:
                empty.setdefault(part.predicate, part)
    return empty


def unused_facts(program: Program, given: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each relation among `given` that a program without declarations does not use.

    It is an error if its name is nearly that of a relation without facts and rules, and else a warning: given facts
    make a relation, which queries may ask for. A program without clauses has no names to go by.
    """
    if program.declarations or not program.clauses:
        return
    filled = _filled(program, ())
    used = filled | _empty(program, filled).keys()
    for name in given:
        if name in used:
            continue
        missing = nearest(name, list(_empty(program, _filled(program, given))))
        note = f"the relations of the program are {', '.join(map(quote, list(used)[:20]))}"
        if missing:
            yield Problem("unknown-relation", f"unknown relation {quote(name)}", note=note, hint=missing)
        else:
            message = f"the program does not use the facts of {quote(name)}"
            yield Problem("unused-facts", message, note=note, hint=nearest(name, used), severity="warning")


def some(warnings: Sequence[Problem]) -> list[Problem]:
    """Return the first warnings of each kind, and say how many there are besides."""
    counts: Counter[str] = Counter()
    shown = []
    for warning in warnings:
        counts[warning.slug] += 1
        if counts[warning.slug] <= WARNINGS_SHOWN:
            shown.append(warning)
    if len(shown) < len(warnings):
        message = f"{len(warnings) - len(shown)} more warnings are not shown"
        hint = "`upheld check` and `upheld.check` report all of them"
        shown.append(Problem("more-warnings", message, hint=hint, severity="warning"))
    return shown


def _used_once(program: Program, clause: Clause) -> Iterator[Problem]:
    assert clause.body is not None, "a fact has no variables"
    found = [v for part in (*clause.heads, clause.body) for v in variables(part)]
    counts = Counter(v.name for v in found)
    for variable in found:
        name = variable.name
        if counts[name] == 1 and name[0] != "_":
            hint = nearest(name, [other for other in counts if other != name]) if len(name) > 2 else None
            if program.dialect == "dlog" and hint is None:
                continue  # in a triple of which two terms matter, the third is a variable by custom
            yield Problem(
                "variable-once",
                f"variable {quote(name)} occurs only once in its rule",
                variable.span,
                note="a variable joins the places where it occurs; one that occurs once stands for any value",
                hint=hint or "write `_` for a value that does not matter",
                severity="warning",
            )


def _never(body: Formula) -> Iterator[Problem]:
    """Yield a warning for each operation with a constant for which it never has a value."""
    for part in nodes(body):
        if not isinstance(part, Test):
            continue
        pending: list[Test | Term] = [part]
        while pending:
            match pending.pop():
                case Call(functor="IF" | "COALESCE" | "||" | "&&" | "IN"):
                    continue  # which have values where an argument has none
                case Test(operator=operator, terms=terms) | Call(functor=operator, arguments=terms):
                    pending += terms
                    for term in terms:
                        if isinstance(term, Constant) and (wanted := _unfit(operator, str(term.value))):
                            yield _never_holds(operator, term, wanted)
                case _:
                    continue


def _unfit(operator: str, term: str) -> str | None:
    """Return what an operator works on, if a term is nothing of the sort."""
    from upheld.language.terms.values import is_by_identity  # which programs without RDF do not need

    is_number, is_string = number_of(term) is not None, string_of(term) is not None
    if operator in _ORDERINGS:
        ordered = is_string or not is_by_identity(term)
        return None if ordered else "only numbers, strings, booleans, dates, times and durations are ordered"
    if operator in _ON_NUMBERS:
        return None if is_number else "arithmetic works on numbers"
    return "this works on strings" if operator in _ON_STRINGS and not is_string else None


def _never_holds(operator: str, constant: Constant, wanted: str) -> Problem:
    is_literal = str(constant.value).startswith('"')
    return Problem(
        "never-holds",
        f"{quote(operator)} has no value for {quote(constant.value)}, so this condition never holds",
        constant.span,
        note=wanted,
        hint="compare the texts, as in `STR(?d) < STR(?e)`" if is_literal and operator in _ORDERINGS else None,
        severity="warning",
    )
