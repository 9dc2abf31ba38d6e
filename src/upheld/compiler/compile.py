"""From a program as written to the core: the passes, then types, then rules of the core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from upheld.base.errors import Problem, ProgramError, quote
from upheld.base.interruptions import collector_paused
from upheld.base.limits import look
from upheld.compiler.passes import PASSES
from upheld.language import ast
from upheld.language.ast import (
    Aggregate,
    Call,
    Clause,
    Constant,
    Negation,
    Program,
    Term,
    Test,
    Variable,
    Wildcard,
    variables,
)
from upheld.language.core import (
    Aggregation,
    Apply,
    Atom,
    Builtin,
    Core,
    CoreTerm,
    Expression,
    Fact,
    Predicate,
    Rule,
    expression_variables,
    unnamed_columns,
)
from upheld.language.disjunction import literals
from upheld.language.draft import Draft
from upheld.language.inference.inference import FACTS, Inference, decimal_of
from upheld.language.inference.subtypes import check_subtypes
from upheld.language.syntax.parser import LOOK_EVERY, first_problems
from upheld.language.terms.regex import NotARegex, with_flags
from upheld.language.terms.terms import NoValue, boolean, string_of
from upheld.language.terms.vocabulary import COLUMNS, VIOLATION
from upheld.language.types.columns import ColumnType, NotAValue, column_type, plain_name
from upheld.language.types.functors import HOLDS, NEGATED, Undefined, constraint, functor, is_test, signatures_of
from upheld.language.types.primitive import INTEGER_RANGES
from upheld.language.types.records import RECORD, Field, is_functor, names_of_types
from upheld.language.values import Value, normalise_float


@dataclass(frozen=True)
class Compiled:
    """The core of a program, and what is odd but not wrong about it."""

    core: Core
    warnings: tuple[Problem, ...]


@collector_paused()
def compile_program(
    program: Program, known_types: Mapping[str, tuple[str, ...]] | None = None, *, closed: bool = False
) -> Compiled:
    """Check a program and bring it to core form; raise `ProgramError` with everything that is wrong with it.

    `known_types` gives the column types of relations whose facts are at hand, for programs that declare none. With
    `closed`, bodies may use no other relations than those.
    """
    draft = Draft(program, known_types or {}, closed)
    for step in PASSES:
        if len(program.clauses) >= LOOK_EVERY:
            look("the program")
        step(draft)
    types = Inference(draft)
    check_subtypes(draft, types)
    if draft.problems:
        raise ProgramError(first_problems(sorted(draft.problems, key=_by_place)))
    return _Builder(draft, types).build()


def _by_place(problem: Problem) -> tuple[str, int]:
    return (problem.span.source.name, problem.span.start) if problem.span else ("", 0)


class _Builder:
    """Makes the core out of a draft without problems."""

    def __init__(self, draft: Draft, types: Inference):
        self.draft, self.types = draft, types
        self.number = FACTS
        self.declared = {d.name: d for d in reversed(draft.program.declarations)}

    def build(self) -> Compiled:
        draft = self.draft
        predicates = {name: self._predicate(name) for name in draft.arities}
        facts = {fact for clause in draft.facts for fact in self._fact(clause, predicates)}
        rules: dict[tuple[object, ...], Rule] = {}
        for self.number, clause in enumerate(draft.rules):
            rule = self._rule(clause, predicates)
            if rule is not None:  # a program is a set of rules: the same rule twice is one rule
                rules.setdefault((rule.head, rule.positive, rule.negative, rule.builtins), rule)
        if draft.problems:
            raise ProgramError(first_problems(sorted(draft.problems, key=_by_place)))
        program = draft.program
        core = Core(
            program.dialect,
            predicates,
            tuple(rules.values()),
            frozenset(facts),
            program.directives,
            program.prefixes,
            tuple(d.name for d in program.declarations if d.equivalence),
            aggregations=tuple(map(self._aggregation, draft.aggregations.values())),
            types=program.types,
            program=program,
        )
        return Compiled(core, (*draft.warnings, *_warnings(program, core)))

    def _predicate(self, name: str) -> Predicate:
        declared = self.declared.get(name)
        types = self.types.column_types(name)
        columns = COLUMNS.get(name, ()) if self.draft.program.dialect == "dlog" else ()
        if declared:
            columns = tuple(a.name for a in declared.attributes)
        if (head := self.draft.constraints.get(name)) is not None:
            columns = tuple(v.name for v in variables(head))
        if len(columns) != len(types):
            columns = unnamed_columns(len(types))
        is_constraint = head is not None or (self.draft.program.dialect == "dlog" and name == VIOLATION)
        return Predicate(name, columns, types, hidden=name in self.draft.hidden, constraint=is_constraint)

    def _aggregation(self, aggregation: Aggregation) -> Aggregation:
        columns = self.types.column_types(aggregation.body)
        aggregation = replace(aggregation, group_types=tuple(columns[group] for group in aggregation.groups))
        return aggregation if aggregation.target is None else replace(aggregation, type=columns[aggregation.target])

    def _fact(self, clause: Clause, predicates: dict[str, Predicate]) -> Iterator[Fact]:
        atom = clause.heads[0]
        try:
            values = tuple(
                self._evaluate(self._expression(term, type), term)
                for term, type in zip(atom.terms, predicates[atom.predicate].types, strict=True)
            )
        except (Undefined, NoValue) as e:
            self.draft.problem("undefined-result", f"this fact has no value: {e}", atom.span)
            return
        yield atom.predicate, values

    def _rule(self, clause: Clause, predicates: dict[str, Predicate]) -> Rule | None:
        """Return the rule, or None if one of its built-ins is plainly false."""
        positive, negative, builtins = [], [], []
        for literal in literals(clause):
            match literal:
                case ast.Atom():
                    positive.append(self._atom(literal, predicates))
                case Negation(formula=ast.Atom() as atom):
                    negative.append(self._atom(atom, predicates))
                case Test():
                    builtins.append(self._builtin(literal))
        head = self._atom(clause.heads[0], predicates)
        builtins = _bound_once(builtins, {name for atom in positive for name in atom.variables()})
        truths = {builtin: _known_truth(builtin) for builtin in builtins}
        if False in truths.values():
            return None
        builtins = [builtin for builtin in builtins if truths[builtin] is None]
        # Comparisons that compute nothing come first: they guard the computations, which may have no result.
        builtins.sort(key=lambda b: any(isinstance(a, Apply) for a in b.arguments))
        # An atom written twice is one condition, not two: a body is a set.
        return Rule(
            head,
            tuple(dict.fromkeys(positive)),
            tuple(dict.fromkeys(negative)),
            tuple(dict.fromkeys(builtins)),
            clause.span,
            types=_types(positive, predicates),
        )

    def _atom(self, atom: ast.Atom, predicates: dict[str, Predicate]) -> Atom:
        types = predicates[atom.predicate].types
        return Atom(atom.predicate, tuple(self._plain(t, type) for t, type in zip(atom.terms, types, strict=True)))

    def _plain(self, term: Term, type: str) -> CoreTerm:
        match term:
            case Variable(name=name):
                return Variable(name)
            case Constant():
                return self._constant(term, type)
        raise AssertionError("an expression or wildcard left in an atom")

    def _builtin(self, test: Test) -> Builtin:
        type = self.types.operand_type(self.number, test)
        if test.operator in (HOLDS, NEGATED[HOLDS]):
            return self._condition(self._expression(test.terms[0], type), test.operator == HOLDS)
        if test.operator.endswith("is_null"):
            with_nulls = column_type(f"{type}?")
            assert isinstance(with_nulls, ColumnType), "a type without nulls"
            null = Constant(with_nulls.null, with_nulls)
            return Builtin(
                "!=" if test.operator[0] == "!" else "=", type, (self._expression(test.terms[0], type), null)
            )
        left, right = (self._expression(t, type) for t in test.terms)
        if test.operator.endswith("match") and isinstance(left, Constant):
            self._check_pattern(str(left.value), "", test.terms[0])
        return Builtin(test.operator, type, (left, right))

    def _condition(self, value: Expression, holds: bool) -> Builtin:
        """Return the test that a term is true, or that it is false: that it equals `true`, or `false`."""
        if not isinstance(value, Apply) or not is_test(value.functor.name):
            value, holds = Apply(functor("!", 1, "term"), (value,)), not holds
        return Builtin("==", "term", (value, Constant(boolean(holds), "term")))

    def _check_call(self, call: Call) -> None:
        """Report a constant of a function of regular expressions that is not one."""
        at = {"REGEX": 2, "REPLACE": 3}.get(call.functor)
        if at is None or not isinstance(call.arguments[1], Constant):
            return
        flags = call.arguments[at] if len(call.arguments) > at else Constant('""', "term")
        if isinstance(flags, Constant):
            pattern, letters = (string_of(str(c.value)) for c in (call.arguments[1], flags))
            if pattern is not None and letters is not None:
                self._check_pattern(pattern, letters, call.arguments[1])

    def _check_pattern(self, pattern: str, flags: str, place: Term) -> None:
        try:
            with_flags(pattern, flags)
        except NotARegex as e:
            self.draft.problem(
                "invalid-regex",
                f"{quote(pattern)} is not a regular expression: {e}",
                place.span,
                note="patterns follow RE2, without backreferences and lookaround; `match` compares the whole "
                "string, `REGEX` searches it",
                hint="write `\\\\` before a character to match it literally",
            )

    def _expression(self, term: Term, type: str) -> Expression:
        match term:
            case Variable(name=name):
                return Variable(name)
            case Constant():
                return self._constant(term, type)
            case Call(functor=name, arguments=arguments) if is_functor(name):
                if Field.of(name) is not None:
                    parts = [self._expression(arguments[0], RECORD)]
                    taken = plain_name(self.types.operand_type(self.number, term))
                    return Apply(functor(name, 1, taken), tuple(parts))
                types = self.types.field_types(self.number, term)
                parts = [self._expression(a, t) for a, t in zip(arguments, types, strict=True)]
                return Apply(functor(name, len(parts), names_of_types(types)), tuple(parts))
            case Call(functor=name, arguments=arguments) if self.draft.program.dialect == "dlog":
                self._check_call(term)
                return Apply(
                    functor(name, len(arguments), "term"), tuple(self._expression(a, "term") for a in arguments)
                )
            case Call(functor=name, arguments=arguments):
                chosen = self.types.operand_type(self.number, term)
                signatures = signatures_of(name)
                signature = next((s for s in signatures if len(s.arguments) == len(arguments)), signatures[0])
                applied = plain_name(chosen)
                if signature.result == "decimal":
                    applied = f"{applied}>{decimal_of(term)}"
                expected = [chosen if a == "T" else column_type(a) or a for a in signature.arguments]
                expected += [chosen] * (len(arguments) - len(expected))
                parts = [self._expression(a, t) for a, t in zip(arguments, expected, strict=True)]
                arity = len(signature.arguments)
                result = Apply(functor(name, arity, applied), tuple(parts[:arity]))
                for part in parts[arity:]:  # min(a, b, c) is min(min(a, b), c)
                    result = Apply(functor(name, arity, applied), (result, part))
                return result
            case Wildcard() | Aggregate():
                raise AssertionError("a wildcard or an aggregate where a value is needed")

    def _constant(self, term: Constant, type: str) -> Constant:
        """Give a literal the type of its place, and check that it fits."""
        value = term.value
        if isinstance(type, ColumnType):
            return Constant(self._code(term, type), type)
        if term.type == "null":
            self.draft.problem(
                "missing-value",
                "a null in a column without nulls",
                term.span,
                note="a column may hold nulls if it is declared so",
                hint=f"declare the column with `{type}?`",
            )
        if isinstance(value, int) and type in INTEGER_RANGES:
            low, high = INTEGER_RANGES[type]
            if not low <= value <= high:
                self.draft.problem(
                    "number-out-of-range",
                    f"{quote(value)} does not fit a 64-bit {type}",
                    term.span,
                    note=f"it lies between {low} and {high}",
                )
        if type == "float" and not isinstance(value, str):
            value = normalise_float(float(value))
        return replace(term, value=value, type=type, span=None)

    def _code(self, term: Constant, type: ColumnType) -> Value:
        """Return the code of a literal in a place of a type whose values are codes."""
        value = term.value
        if isinstance(term.type, ColumnType):
            return value
        try:
            if term.type == "null":
                return type.code(None)
            if type.kind == "boolean":
                return value
            if isinstance(value, float) and type.kind == "decimal" and term.span is not None:
                value = term.span.source.text[term.span.start : term.span.end].replace(" ", "")  # with all its digits
            code = type.code(value)
        except NotAValue as e:
            hint = "declare the column with `?` behind its type" if e.slug == "missing-value" else None
            shown = "a null" if term.type == "null" else quote(str(value))
            self.draft.problem(e.slug, f"{shown}, which {e}", term.span, note=type.expected, hint=hint)
            return 0
        if type.is_null(code):
            message = f"{quote(str(value))} stands for the null in a column of type `{type}`"
            self.draft.problem("number-out-of-range", message, term.span, hint="write `null` for a null")
        return code

    def _evaluate(self, expression: Expression, term: Term) -> Value:
        match expression:
            case Constant(value=value):
                return value
            case Apply(functor=function, arguments=arguments):
                parts = (partial(self._evaluate, a, term) for a in arguments)
                return function.evaluate(*(parts if function.lazy else (part() for part in parts)))
        raise AssertionError("a variable in a fact")


def _types(atoms: list[Atom], predicates: dict[str, Predicate]) -> dict[str, str]:
    """Return the types of the variables of atoms whose values are codes."""
    return {
        term.name: type
        for atom in atoms
        for term, type in zip(atom.terms, predicates[atom.predicate].types, strict=True)
        if isinstance(type, ColumnType) and isinstance(term, Variable)
    }


def _bound_once(builtins: list[Builtin], bound: set[str]) -> list[Builtin]:
    """Return built-ins of which one equation at most binds a variable of RDF terms; all others compare by value.

    The first that can bind does: whether a variable is 5 or 5.0 must not depend on the order of evaluation.
    """
    equations = {b: None for b in builtins if b.operator == "=" and b.type == "term"}
    binding: set[Builtin] = set()
    while equation := next((b for b in equations if b not in binding and _binds(b, bound)), None):
        binding.add(equation)
        bound = {*bound, *_binds(equation, bound)}
    return [replace(b, operator="==") if b in equations and b not in binding else b for b in builtins]


def _binds(equation: Builtin, bound: set[str]) -> set[str]:
    """Return the variable that an equation binds, if it does when others are bound."""
    left, right = equation.arguments
    for variable, value in ((left, right), (right, left)):
        if isinstance(variable, Variable) and bound.issuperset(expression_variables(value)):
            return {variable.name} - bound
    return set()


def _known_truth(builtin: Builtin) -> bool | None:
    """Return whether a built-in on constants holds; None if it depends on variables or has no value."""
    left, right = builtin.arguments
    if not isinstance(left, Constant) or not isinstance(right, Constant):
        return None
    try:
        return constraint(builtin.operator, builtin.type)(left.value, right.value)
    except Undefined:
        return None  # told with its rule when it is evaluated
    except NoValue:
        return False


def _warnings(program: Program, core: Core) -> Iterator[Problem]:
    """Yield what is odd: relations nobody uses, hints that are not acted upon."""
    used = {atom.predicate for rule in core.rules for atom in rule.atoms}
    used |= {aggregation.body for aggregation in core.aggregations}
    used |= {directive.relation for directive in program.directives if directive.kind != "input"}
    # A relation of a component that one of its instances uses is of use, although others do not need it.
    places = {_place(d) for d in program.declarations if d.name in used}
    for declaration in program.declarations:
        if declaration.name not in used and _place(declaration) not in places:
            places.add(_place(declaration))
            yield Problem(
                "unused-relation",
                f"relation {quote(declaration.name)} is neither used in a rule body nor output",
                declaration.span,
                severity="warning",
            )
    if program.hints:
        words = dict.fromkeys(_hint_word(hint) for hint in program.hints)
        verb = "is a hint and has" if len(words) == 1 else "are hints and have"
        message = f"{', '.join(map(quote, words))} {verb} no effect"
        yield Problem("hint-ignored", message, program.hints[0].span, severity="note")


def _place(declaration: ast.Declaration) -> object:
    """Return where a declaration stands, which is the same for all instances of a component."""
    span = declaration.span
    return (span.source, span.start) if span is not None else declaration.name


def _hint_word(hint: ast.Hint) -> str:
    """Return the directive of a hint, or the qualifier of a declaration."""
    first, _, rest = hint.text.partition(" ")
    return rest.split()[-1] if first == ".decl" else first
