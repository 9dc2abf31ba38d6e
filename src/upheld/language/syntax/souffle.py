"""The `.dl` dialect: Soufflé's language as far as it can be maintained, the rest refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isinf

from upheld.base.errors import nearest, quote
from upheld.base.limits import look
from upheld.base.source import Source, Span
from upheld.language import ast
from upheld.language.syntax.directives import DIFFERS, DIRECTIVES, NAME, QUALIFIED, DirectiveParser
from upheld.language.syntax.lexer import BLANKS, COMMENT, NUMBER_LENGTH, STRING, Scanner, Token, pattern
from upheld.language.syntax.parser import LITERAL, LOOK_EVERY, OR, PREFIX, TERM, Draft
from upheld.language.syntax.reserved import (
    AGGREGATES,
    BUILT_IN_TESTS,
    CONSTANT_WORDS,
    FILE,
    LINE,
    NO_RELATIONS,
    OPERATORS,
    RESERVED,
)
from upheld.language.types.primitive import INTEGER_RANGES

#: Functors whose value differs from one evaluation to the next.
UNSTABLE = ("autoinc", "random", "rand", "time", "now", "timestamp", "date", "today", "uuid")
_DIGITS = r"0[xX][0-9a-fA-F]++u?|0[bB][01]++u?|[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?u?"
_DIRECTIVE = rf"(?:{'|'.join(map(re.escape, DIRECTIVES))})(?![A-Za-z0-9_?])"
_TOKENS = pattern(
    # A line marker, `# 1 "file"` or `#line 1`, is what a preprocessor leaves behind.
    rf"{BLANKS}|//[^\n]*+|{COMMENT}|\#(?:line)?[ \t]+[0-9][^\n]*+",
    rf"(?P<name>{NAME})",
    rf"(?P<number>(?:{_DIGITS})(?![A-Za-z0-9_?]))",
    r"(?P<bad_number>[0-9][A-Za-z0-9_?]*+)",
    rf"(?P<directive>{_DIRECTIVE})",
    r"(?P<sign>:-|<:|<=|>=|!=|[.,;:()\[\]{}!=<>+*%^|@\-]|/(?!\*))",
    rf"(?P<branch>\${NAME}(?:\.{NAME})*+)",
    r"(?P<preprocessor>\#[^\n]*+)",
)

_LANDMARKS = re.compile(
    rf"//[^\n]*+|{COMMENT}|/\*[\s\S]*+|{STRING}|[0-9]\.[0-9]|(?P<statement>{_DIRECTIVE})"
    rf"|(?<=[A-Za-z0-9_?])\.(?=[A-Za-z_?])|(?P<stop>\.)|^[ \t]*+(?P<clause>(?={QUALIFIED}[ \t]*+\())"
    rf"|^[ \t]*+(?P<close>\}})",
    re.MULTILINE,
)

# A fact of plain numbers and strings, which most long programs consist of, is read in one step.
_PLAIN = r'-?[0-9]{1,18}+(?![0-9a-zA-Z_?.])|"[^"\\\x00-\x1f\x7f\ud800-\udfff]*+"'
_SHORT_NAME = r"[A-Za-z_?][A-Za-z0-9_?]{0,999}+"
_FACT = re.compile(
    rf"[ \t\r\n]*+({_SHORT_NAME}(?:\.{_SHORT_NAME})*+)\((?:{_PLAIN})(?:,[ ]?(?:{_PLAIN}))*+\)\.(?![A-Za-z0-9_?])"
)
_VALUES = re.compile(_PLAIN)
_HEAD = re.compile(rf"{QUALIFIED}[ \t\r\n]*+\(")


class SouffleParser(DirectiveParser):
    """Reads a `.dl` text into a draft. `include` reads another file there, named by a string at a place."""

    negation_sign = "!"
    operators = OPERATORS
    landmarks = _LANDMARKS

    def __init__(self, source: Source, draft: Draft, include: Callable[[str, Span], None]):
        super().__init__(source, Scanner(source, _TOKENS, RESERVED), draft, include)

    # -- statements ---------------------------------------------------------------------------------------------------

    def begins_statement(self, token: Token) -> bool:
        return token.kind == "directive" or (token.kind == "}" and self.within_braces > 0)

    def begins_clause(self) -> bool:
        return self.token.kind == "name" and _HEAD.match(self.source.text, self.token.start) is not None

    def statement(self) -> None:
        kind, text = self.token.kind, self.token.text
        if kind == "name":
            self.plain_facts()
            if self.token.kind == "name":
                head = self.head()
                if self.token.kind == "<=":
                    self.subsumption(head)
                else:
                    self.clause(head)
        elif kind == "directive":
            self.directive(text)
        elif kind == ".":
            name = self.following()
            if name.kind != "name" or name.start != self.token.end:
                self.fail("a fact, a rule or a directive")
            span = Span(self.source, self.token.start, name.end)
            self.advance()
            hint = nearest(f".{name.text}", DIRECTIVES)
            self.refuse("unknown-directive", f"there is no directive {quote('.' + name.text)}", span, hint=hint)
        elif kind == "%":
            self.fail("a fact, a rule or a directive", hint="a comment starts with `//`")
        elif self.token.problem and text.startswith("#"):
            self.draft.problems.append(self.token.problem)
            self.advance()
        else:
            self.fail("a fact, a rule or a directive")

    def plain_facts(self) -> None:
        """Read as many facts of plain numbers and strings as there are next to each other."""
        source, text, clauses = self.source, self.source.text, self.draft.clauses
        at = start = self.token.start
        while (found := _FACT.match(text, at)) and NO_RELATIONS.isdisjoint((name := found[1]).split(".")):
            at = found.end()
            begin, end = found.span(1)
            terms = []
            for value in _VALUES.finditer(text, end + 1, at - 2):
                written, span = value[0], Span(source, *value.span())
                if written[0] == '"':
                    terms.append(ast.Constant(written[1:-1], "symbol", span))
                else:
                    terms.append(ast.Constant(int(written), "number", span))
            if len(clauses) % LOOK_EVERY == LOOK_EVERY - 1:
                look(source.name)
            span = Span(source, begin, at - 1)
            clauses.append(ast.Clause((ast.Atom(name, tuple(terms), span),), None, span))
        if at > start:
            self.seen = at
            self.token = self.scan(at)
            self.start = self.token.start

    def head(self) -> ast.Atom:
        start = self.token.start
        name = self.relation_name("the name of a relation")
        if self.token.kind != "(":
            self.fail("`(`")
        return ast.Atom(name, self.terms(")"), self.since(start))

    def subsumption(self, dominated: ast.Atom) -> None:
        """Read the rest of a subsumption, whose first atom has been read."""
        self.expect("<=")
        dominating = self.head()
        self.expect(":-")
        body = self.formula(self.expression(OR))
        span = self.since(self.start)
        self.full_stop("an operator, `,`, `;` or `.`")
        self.check([dominated, dominating, body])
        self.draft.subsumptions.append(ast.Subsumption(dominated, dominating, body, span))

    # -- terms and formulas -------------------------------------------------------------------------------------------

    def operand(self, level: int) -> ast.Term | ast.Formula:
        token = self.token
        match token.kind:
            case "name":
                return self.named(level)
            case "number":
                self.advance()
                return self.number(token, token.start)
            case "string":
                return ast.Constant(self.string(), "symbol", self.since(token.start))
            case "(":
                return self.bracketed()
            case "!" if level <= LITERAL:
                self.advance()
                return ast.Negation(self.formula(self.expression(LITERAL)), self.since(token.start))
            case "-" | "bnot" | "lnot":
                return self.prefixed()
            case word if word in RESERVED and self.following().kind == "(":
                self.advance()
                return ast.Call(word, self.terms(")"), self.since(token.start))
            case "[":
                return self.constructed("[]", self.terms("]"), token.start)
            case "branch":
                self.advance()
                fields = self.terms(")") if self.token.kind == "(" else ()
                return self.constructed(token.text, fields, token.start)
            case "@":
                return self.user_functor()
            case "stray" if token.text == "$":
                what = "`$` (`autoinc`) cannot be maintained exactly"
                self.refuse("unmaintainable", what, self.here(), note=DIFFERS)
            case _:
                self.fail("an atom or a comparison" if level <= LITERAL else "a term")

    def constructed(self, functor: str, fields: tuple[ast.Term, ...], start: int) -> ast.Term:
        """Return a record or the value of a branch; without fields it is a constant."""
        span = self.since(start)
        return ast.Call(functor, fields, span) if fields else ast.Constant(functor, "record", span)

    def named(self, level: int) -> ast.Term | ast.Formula:
        """Read what begins with a name: an atom, a term, or something refused."""
        token = self.advance()
        name, start = token.text, token.start
        if level <= LITERAL and name not in NO_RELATIONS and _HEAD.match(self.source.text, start):
            name += self.qualified(token.end)
        if self.token.kind == "(":
            if name == "as":
                self.refuse("unsupported-cast", "casts (`as`) are not supported", self.since(start))
            terms = self.terms(")")
            if self.token.kind == ":" and name in AGGREGATES:
                if len(terms) != 1:
                    self.fail("one term before `:`")
                return self.aggregate(token, terms[0])
            span = self.since(start)
            if level > LITERAL:
                return self.functor_call(name, terms, span)
            return ast.Test(name, terms, span) if name in BUILT_IN_TESTS else ast.Atom(name, terms, span)
        if name in AGGREGATES and self.token.kind == ":":
            return self.aggregate(token, None)
        if name in AGGREGATES and self.token.kind in ("name", "number", "string", "-", "[", "@", "branch"):
            return self.aggregate(token, self.term(self.expression(TERM)))
        if name == "_":
            return ast.Wildcard(self.since(start))
        if name == FILE:
            return ast.Constant(self.source.name, "symbol", self.since(start))
        if name == LINE:
            return ast.Constant(self.source.position(start)[0], "number", self.since(start))
        if name == "nil":
            return ast.Constant("nil", "record", self.since(start))
        if name == "null":
            return ast.Constant("null", "null", self.since(start))
        if name in CONSTANT_WORDS:
            span = self.since(start)
            return (
                ast.Truth(name == "true", span)
                if level <= LITERAL
                else ast.Constant(int(name == "true"), "boolean", span)
            )
        return ast.Variable(name, self.since(start))

    def aggregate(self, function: Token, target: ast.Term | None) -> ast.Aggregate:
        """Read the rest of an aggregate: a colon, and a body in braces or an atom."""
        name = function.text
        if (target is None) != (name == "count"):
            span = Span(self.source, function.start, self.token.start)
            message = f"{quote(name)} has {'a' if target is not None else 'no'} target"
            note = "`count` counts bindings and has no target; the other aggregates have one, as in `sum x : { ... }`"
            self.refuse("aggregate-target", message, span, note=note)
        self.expect(":")
        opened = self.token.start
        if self.accept("{"):
            body = self.formula(self.expression(OR))
            self.close("}", opened)
        else:
            body = self.formula(self.operand(LITERAL))
        return ast.Aggregate(name, target, body, self.since(function.start))

    def user_functor(self) -> ast.Call:
        """Read `@name(terms)`."""
        start = self.advance().start
        name = self.expect("name", "the name of a functor").text
        if name in UNSTABLE:
            what = f"{quote('@' + name)} cannot be maintained exactly"
            self.refuse("unmaintainable", what, self.since(start), note=DIFFERS)
        if self.token.kind != "(":
            self.fail("`(`")
        return ast.Call(f"@{name}", self.terms(")"), self.since(start))

    def functor_call(self, name: str, terms: tuple[ast.Term, ...], span: Span) -> ast.Term:
        if name in UNSTABLE:
            self.refuse("unmaintainable", f"{quote(name)} cannot be maintained exactly", span, note=DIFFERS)
        return ast.Call(name, terms, span)

    def prefixed(self) -> ast.Term:
        """Read a prefix operator and its operand. Minus before a number makes a negative number."""
        operator = self.advance()
        number = self.token
        literal = number.kind == "number" and not number.text.endswith("u")
        if operator.kind == "-" and literal and self.following().kind != "^":
            self.advance()
            return self.number(number, operator.start)
        operand = self.term(self.expression(PREFIX))
        return ast.Call(operator.kind, (operand,), self.since(operator.start))

    def number(self, token: Token, start: int) -> ast.Constant:
        """Return the constant of a number that has just been read; its minus sign, if any, stands at `start`."""
        text, span = token.text, self.since(start)
        if len(text) > NUMBER_LENGTH:
            self.refuse("number-out-of-range", f"a number of {len(text):,} characters", span)
        sign = -1 if start < token.start else 1
        base = {"0x": 16, "0b": 2}.get(text[:2].lower(), 10)
        digits = text.removesuffix("u")
        unsigned = digits != text
        if base == 10 and not digits.isdigit():
            if unsigned:
                self.refuse("bad-number", f"{quote(text)} is not a number", span, note="only integers are unsigned")
            real = sign * float(digits)
            if isinf(real):
                self.refuse("number-out-of-range", f"{quote(text)} is too large for a float", span)
            return ast.Constant(real, "float", span)
        value = sign * int(digits, base)
        lowest, highest = INTEGER_RANGES["unsigned" if unsigned else "number"]
        if not lowest <= value <= highest:
            kind = "an unsigned number" if unsigned else "a number"
            hint = f"write `{text}u` for an unsigned number" if 2**63 <= value < 2**64 else None
            note = f"{kind} lies between {lowest:,} and {highest:,}".replace(",", " ")
            self.refuse("number-out-of-range", f"{quote(text)} is out of range", span, note=note, hint=hint)
        return ast.Constant(value, "unsigned" if unsigned else "number", span)
