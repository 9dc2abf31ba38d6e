"""The common base of both parsers: a cursor over tokens, operator precedence, and error recovery.

Terms and formulas are parsed by one climb over the operators' levels, and distinguished afterwards: only the text after
`(f(x))` shows whether it was an atom or a term. The climb refuses to go deeper than `NESTING_LIMIT`, and every tree it
returns is at most that high, so whoever walks a tree may recur.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, NoReturn

from upheld.base.errors import Problem, ProgramError, quote
from upheld.base.limits import look
from upheld.base.source import Source, Span
from upheld.language import ast
from upheld.language.syntax.components import Contents, expanded
from upheld.language.syntax.lexer import Scanner, Token

NESTING_LIMIT = 200
PROBLEM_LIMIT = 20
#: Statements read between two looks at the limits of the call.
LOOK_EVERY = 64

#: Levels of operators, loosest first. Levels of terms start at `TERM`, and differ between the dialects.
OR, AND, LITERAL, COMPARISON, TERM = range(5)
PREFIX, POWER, TIGHTEST = 18, 19, 20

#: Signs and words of other languages, with what to write here.
_ELSEWHERE = {
    "==": "equality is written `=`",
    "<>": "inequality is written `!=`",
    "'": 'strings are written in double quotes, as in `"a"`',
    "<-": "a rule is written with `:-`",
    ":=": "a rule is written with `:-`",
    "--": "a comment starts with `//`",
}
_WORDS = {"and": "write `,` for and", "or": "write `;` for or"}

COMPARISONS = dict.fromkeys(("=", "!=", "<", "<=", ">", ">="), COMPARISON)


def first_problems(problems: Sequence[Problem], place: str | None = None) -> Sequence[Problem]:
    """Return the problems as they are shown: the first twenty, and where they go on if there are more."""
    if len(problems) <= PROBLEM_LIMIT:
        return problems
    message = f"there are more problems; the first {PROBLEM_LIMIT} are shown"
    return [*problems[:PROBLEM_LIMIT], Problem("too-many-problems", message, problems[PROBLEM_LIMIT].span, place=place)]


@dataclass
class Draft(Contents):
    """A program in the making, or the component of it that is being read, and the problems met so far."""

    prefixes: dict[str, str] = field(default_factory=dict)
    functors: list[ast.FunctorDeclaration] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def hopeless(self) -> bool:
        """Whether there are more problems than will be shown."""
        return len(self.problems) > PROBLEM_LIMIT

    def check(self) -> None:
        """Raise the problems, if there are any."""
        if self.problems:
            raise ProgramError(first_problems(self.problems))

    def program(self, dialect: str) -> ast.Program:
        """Return the program without components, or raise its problems."""
        self.check()
        contents = expanded(self, self.problems)
        self.check()
        return ast.Program(
            dialect,
            tuple(contents.types),
            tuple(contents.declarations),
            tuple(contents.directives),
            tuple(contents.clauses),
            (*contents.qualifiers, *contents.hints),
            tuple(self.prefixes.items()),
            tuple(self.functors),
            tuple(contents.subsumptions),
        )

    def exchange(self, contents: Contents) -> Contents:
        """Go on with other contents, and return those until now."""
        until_now = Contents()
        for part in fields(Contents):
            setattr(until_now, part.name, getattr(self, part.name))
            setattr(self, part.name, getattr(contents, part.name))
        return until_now


class Parser:
    """A cursor over the tokens of a source.

    `token` is the next one, all before `seen` has been read, and the statement being read begins at `start`.
    """

    #: The sign of negation.
    negation_sign: ClassVar[str]
    #: The level of each infix operator.
    operators: dict[str, int]
    #: Groups `stop`, `statement`, `clause`, `close` and `open_string` match where statements seem to end; the rest is
    #: skipped.
    landmarks: ClassVar[re.Pattern[str]]

    def __init__(self, source: Source, scanner: Scanner, draft: Draft):
        self.source = source
        self.draft = draft
        self.scan = scanner.at
        self.token = scanner.at(0)
        self.seen = self.start = self.depth = 0
        #: Number of components around the statement being read.
        self.within_braces = 0

    # -- the cursor ---------------------------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Step over the next token and return it."""
        token = self.token
        self.seen = token.end
        self.token = self.scan(token.end)
        return token

    def accept(self, kind: str) -> bool:
        """Step over the next token if it is of this kind, and tell whether it was."""
        if self.token.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, expected: str | None = None) -> Token:
        """Step over the next token, which must be of this kind."""
        if self.token.kind != kind:
            self.fail(expected or f"`{kind}`")
        return self.advance()

    def following(self) -> Token:
        """Return the token after the next one."""
        return self.scan(self.token.end)

    def since(self, start: int) -> Span:
        """Return the span from an offset to the end of the last token read."""
        return Span(self.source, start, self.seen)

    def here(self) -> Span:
        """Return the span of the next token."""
        return Span(self.source, self.token.start, self.token.end)

    # -- problems -----------------------------------------------------------------------------------------------------

    def refuse(self, slug: str, message: str, span: Span, note: str | None = None, hint: str | None = None) -> NoReturn:
        raise ProgramError(Problem(slug, message, span, note=note, hint=hint))

    def fail(self, expected: str, hint: str | None = None) -> NoReturn:
        """Refuse the next token, where something else was expected."""
        if self.token.problem:
            raise ProgramError(self.token.problem)
        message = f"found {self.described()}, expected {expected}"
        self.refuse("syntax", message, self.here(), hint=hint or self.meant())

    def meant(self) -> str | None:
        """Return how the dialects write what the next token means in other languages."""
        text, start, end = self.source.text, self.token.start, self.token.end
        around = text[max(start - 1, 0) : end + 1]
        for sign, hint in _ELSEWHERE.items():
            if sign in around and self.token.text[:1] in sign:
                return hint
        return _WORDS.get(self.token.text.lower()) if self.token.kind == "name" else None

    def described(self) -> str:
        """Return words for the next token."""
        match self.token.kind:
            case "end":
                return "the end of the text"
            case "string" | "number" | "name" as kind:
                return f"the {kind} {quote(self.token.text)}"
            case _:
                return quote(self.token.text)

    def full_stop(self, expected: str) -> None:
        """Step over the full stop of a clause. One that is missing at the end of a line is reported and made up."""
        if self.accept("."):
            return
        if self.token.kind in (")", "]"):
            self.refuse("missing-bracket", f"{quote(self.token.text)} closes no bracket", self.here())
        if self.token.kind == "end" or self.begins_statement(self.token) or self.begins_next():
            where = Span(self.source, self.seen, self.seen)
            note = "facts and rules end with `.`"
            hint = "put a `.` here, or a `,` if the rule goes on" if self.token.kind != "end" else "put a `.` here"
            self.draft.problems.append(Problem("missing-full-stop", "a `.` is missing", where, note=note, hint=hint))
        elif self.token.kind == ":-":
            self.fail(expected, hint="does the preceding rule end with `.`?")
        else:
            self.fail(expected)

    def close(self, bracket: str, opened: int) -> None:
        """Step over the closing bracket of the one opened at an offset."""
        if self.accept(bracket):
            return
        ended = self.token.kind in (".", ":-", "end", ")", "]", "}")
        if ended or self.begins_statement(self.token) or self.begins_next():
            where = Span(self.source, self.seen, self.seen)
            opening = ("opened here", Span(self.source, opened, opened + 1))
            raise ProgramError(Problem("missing-bracket", f"`{bracket}` is missing", where, related=(opening,)))
        self.fail(f"`,` or `{bracket}`")

    # -- statements ---------------------------------------------------------------------------------------------------

    def begins_statement(self, token: Token) -> bool:
        """Return whether a token begins a statement that is not a clause."""
        raise NotImplementedError

    def begins_clause(self) -> bool:
        """Tell whether the next token could be the first one of a clause."""
        raise NotImplementedError

    def begins_next(self) -> bool:
        """Tell whether the next token seems to begin a clause after this statement: one no more indented than it."""
        if "\n" not in self.source.text[self.seen : self.token.start] or not self.begins_clause():
            return False
        return self.source.position(self.token.start)[1] <= self.source.position(self.start)[1]

    def statement(self) -> None:
        """Read a statement into the draft."""
        raise NotImplementedError

    def read(self, closing: str = "end") -> None:
        """Read all statements up to a token into the draft. Each faulty one leaves a problem there instead."""
        statements = 0
        while self.token.kind not in ("end", closing) and not self.draft.hopeless:
            statements += 1
            if statements % LOOK_EVERY == 0:
                look(self.source.name)
            self.start = self.token.start
            self.depth = 0
            try:
                self.statement()
            except ProgramError as error:
                self.draft.problems.extend(error.problems)
                self.recover()
            except RecursionError:  # below the limit of nesting only where the caller had used up the stack
                self.draft.problems.append(too_deep(self.here()))
                self.recover()

    def recover(self) -> None:
        """Go from inside a faulty statement to where the next one seems to begin.

        The next one begins after a full stop, or at the first word of a directive. A directive itself has no full stop,
        so it is over too where a line begins like a clause. The statements of a component end at a line with its brace.
        """
        if self.within_braces and self.token.kind == "}":
            return
        directive = self.begins_statement(self.scan(self.start))
        resume = len(self.source.text)
        for found in self.landmarks.finditer(self.source.text, self.token.start):
            kind = found.lastgroup
            if kind == "stop" or (kind == "open_string" and found[0].rstrip().endswith(".")):
                resume = found.end()
                break
            ended = kind == "statement" or (kind == "clause" and directive) or (kind == "close" and self.within_braces)
            if ended and found.start() > self.start:
                resume = found.start()
                break
        self.seen = resume
        self.token = self.scan(resume)

    def clause(self, first: ast.Atom | None = None) -> None:
        """Read a fact or a rule, or the rest of one whose first head has been read, into the draft."""
        heads = [first or self.head()]
        while self.accept(","):
            heads.append(self.head())
        body = None
        if self.accept(":-"):
            if self.token.kind == ".":
                hint = "a fact is written without `:-`"
                self.refuse("empty-body", "a rule without a body", self.here(), hint=hint)
            body = self.formula(self.expression(OR))
        clause = ast.Clause(tuple(heads), body, self.since(self.start))
        self.full_stop("`:-`, `,` or `.`" if body is None else "an operator, `,`, `;` or `.`")
        self.check(heads if body is None else [*heads, body])
        self.draft.clauses.append(clause)

    def head(self) -> ast.Atom:
        raise NotImplementedError

    def query(self) -> ast.Formula:
        """Read the whole text as a body, with or without a full stop."""
        if self.token.kind in (".", "end"):
            self.refuse("empty-body", "a query without a body", self.here())
        try:
            formula = self.formula(self.expression(OR))
        except RecursionError:
            raise ProgramError(too_deep(self.here())) from None
        self.accept(".")
        if self.token.kind != "end":
            self.fail("an operator, `,`, `;` or the end of the query")
        self.check([formula])
        return formula

    def check(self, formulas: Sequence[ast.Formula]) -> None:
        """Report what is wrong with a statement as a whole: trees above the limit, such as that of a long sum."""
        if self.seen - self.start < 2 * NESTING_LIMIT:
            return  # each operator and each operand took a character
        pending: list[tuple[ast.Term | ast.Formula, int]] = [(formula, 0) for formula in formulas]
        while pending:
            node, height = pending.pop()
            if height > NESTING_LIMIT:
                assert node.span, "a parsed node has a span"
                self.draft.problems.append(too_deep(node.span))
                return
            match node:
                case ast.Call(arguments=parts) | ast.Atom(terms=parts) | ast.Test(terms=parts):
                    pending.extend((part, height + 1) for part in parts)
                case ast.Conjunction(formulas=inside) | ast.Disjunction(formulas=inside):
                    pending.extend((part, height + 1) for part in inside)
                case (
                    ast.Negation(formula=inner)
                    | ast.Aggregate(body=inner)
                    | ast.Grouping(body=inner)
                    | ast.Exists(body=inner)
                ):
                    pending.append((inner, height + 1))
                case _:
                    pass

    # -- terms and formulas -------------------------------------------------------------------------------------------

    def operand(self, level: int) -> ast.Term | ast.Formula:
        """Read what stands between infix operators; at a `level` of terms nothing but a term can."""
        raise NotImplementedError

    def functor_call(self, name: str, terms: tuple[ast.Term, ...], span: Span) -> ast.Term:
        """Return the term `name(terms)`."""
        raise NotImplementedError

    def expression(self, level: int) -> ast.Term | ast.Formula:
        """Read terms and formulas joined by operators of this level and tighter ones."""
        self.depth += 1
        if self.depth > NESTING_LIMIT:
            raise ProgramError(too_deep(self.here()))
        start = self.token.start
        node = self.operand(level)
        links = 0
        while (found := self.operators.get(self.token.kind, -1)) >= level:
            if found <= AND:
                node = self.joined(node, found, start)
                continue
            links += 1
            if links > NESTING_LIMIT:
                raise ProgramError(too_deep(self.here()))
            if found == COMPARISON and links > 1:
                node = Parser.term(self, node)  # refuses `x < y < z`
            node = self.infix(node, found, start)
        self.depth -= 1
        return node

    def infix(self, left: ast.Term | ast.Formula, level: int, start: int) -> ast.Term | ast.Formula:
        """Read an operator of a level and its right operand."""
        one = self.term(left)
        operator = self.advance().kind
        other = self.term(self.expression(POWER if level == POWER else level + 1))
        return (ast.Test if level == COMPARISON else ast.Call)(operator, (one, other), self.since(start))

    def joined(self, first: ast.Term | ast.Formula, level: int, start: int) -> ast.Formula:
        """Read the rest of a conjunction or disjunction."""
        parts = [self.formula(first)]
        while self.operators.get(self.token.kind) == level:
            self.advance()
            parts.append(self.formula(self.expression(level + 1)))
        return (ast.Conjunction if level == AND else ast.Disjunction)(tuple(parts), self.since(start))

    def bracketed(self) -> ast.Term | ast.Formula:
        """Read what stands in round brackets."""
        opened = self.advance().start
        inner = self.expression(OR)
        self.close(")", opened)
        return inner

    def terms(self, closing: str) -> tuple[ast.Term, ...]:
        """Read terms with commas between them, in brackets."""
        opened = self.advance().start
        if self.accept(closing):
            return ()
        terms = [self.term(self.expression(TERM))]
        while self.accept(","):
            terms.append(self.term(self.expression(TERM)))
        self.close(closing, opened)
        return tuple(terms)

    def term(self, node: ast.Term | ast.Formula) -> ast.Term:
        """Return a node as a term, which it must be."""
        match node:
            case ast.Variable() | ast.Wildcard() | ast.Constant() | ast.Call() | ast.Aggregate():
                return node
            case ast.Atom(predicate=name, terms=terms, span=Span() as span):
                return self.functor_call(name, terms, span)
            case _:
                assert node.span, "a parsed node has a span"
                self.refuse("syntax", "found a formula, expected a term", node.span)

    def formula(self, node: ast.Term | ast.Formula) -> ast.Formula:
        """Return a node as a formula, which it must be."""
        match node:
            case ast.Atom() | ast.Test() | ast.Truth() | ast.Negation() | ast.Conjunction() | ast.Disjunction():
                return node
            case ast.Exists() | ast.Grouping() | ast.Values():
                return node
            case _:
                assert node.span, "a parsed node has a span"
                shown = self.source.text[node.span.start : node.span.end]
                hint = f"an atom without terms is written `{shown}()`" if shown.isidentifier() else None
                if shown.lower() == "not":
                    hint = f"negation is written `{self.negation_sign}`"
                message = f"found the term {quote(shown)}, expected an atom or a comparison"
                self.refuse("syntax", message, node.span, hint=hint)


def too_deep(span: Span) -> Problem:
    note = f"terms and formulas nest at most {NESTING_LIMIT} deep"
    hint = "split the rule, with a relation for a part of it"
    return Problem("nested-too-deep", "nested too deeply", span, note=note, hint=hint)
