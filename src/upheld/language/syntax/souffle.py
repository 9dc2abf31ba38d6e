"""The `.dl` dialect: Soufflé's language as far as it can be maintained, the rest refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isinf
from typing import NoReturn

from upheld.errors import nearest, quote
from upheld.language.syntax.ast import (
    Aggregate,
    Atom,
    Attribute,
    Branch,
    Call,
    Clause,
    Constant,
    Declaration,
    Directive,
    Formula,
    FunctorDeclaration,
    Hint,
    Negation,
    Subsumption,
    Term,
    Test,
    Truth,
    TypeDeclaration,
    Variable,
    Wildcard,
)
from upheld.language.syntax.components import COMPONENT_DEPTH, OVERRIDABLE, Component, Contents, Instance, Reference
from upheld.language.syntax.lexer import (
    BLANKS,
    COMMENT,
    ESCAPES,
    NUMBER_LENGTH,
    STRING,
    Scanner,
    Token,
    pattern,
    string_value,
)
from upheld.language.syntax.parser import (
    AND,
    COMPARISONS,
    LITERAL,
    LOOK_EVERY,
    OR,
    POWER,
    PREFIX,
    TERM,
    Draft,
    Parser,
)
from upheld.language.types.primitive import INTEGER_RANGES
from upheld.runtime.limits import look
from upheld.source import Source, Span

#: Infix operators by level, as in Soufflé's grammar.
OPERATORS = {
    ";": OR,
    ",": AND,
    **COMPARISONS,
    "lor": TERM,
    "lxor": TERM + 1,
    "land": TERM + 2,
    "bor": TERM + 3,
    "bxor": TERM + 4,
    "band": TERM + 5,
    **dict.fromkeys(("bshl", "bshr", "bshru"), TERM + 6),
    **dict.fromkeys(("+", "-"), TERM + 7),
    **dict.fromkeys(("*", "/", "%"), TERM + 8),
    "^": POWER,
}
PREFIXES = ("-", "bnot", "lnot")
BUILT_IN_TESTS = ("match", "contains", "is_null")
AGGREGATES = ("count", "sum", "min", "max", "mean")
#: Operators that look like names.
RESERVED = frozenset(word for word in (*OPERATORS, *PREFIXES) if word.isalpha())
CONSTANT_WORDS = ("true", "false", "nil")
#: Constants that say where they stand.
FILE, LINE = "__FILE__", "__LINE__"
NO_RELATIONS = RESERVED.union(BUILT_IN_TESTS, CONSTANT_WORDS, ("_", FILE, LINE))

#: The qualifier that is acted upon, and those that are not.
EQUIVALENCE = "eqrel"
QUALIFIERS = ("inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", OVERRIDABLE)
#: Functors whose value differs from one evaluation to the next.
UNSTABLE = ("autoinc", "random", "rand", "time", "now", "timestamp", "date", "today", "uuid")
ESCAPES_HERE = {**ESCAPES, "a": "\a", "v": "\v"}

REFUSED_DIRECTIVES = (".lattice", ".once", ".limitsize")
TYPE_DIRECTIVES = {".number_type": "number", ".symbol_type": "symbol"}
DIRECTIVES = (
    ".decl",
    ".type",
    *TYPE_DIRECTIVES,
    ".input",
    ".output",
    ".printsize",
    ".pragma",
    ".plan",
    ".include",
    ".comp",
    ".init",
    ".override",
    ".functor",
    *REFUSED_DIRECTIVES,
)

_NAME = r"[A-Za-z_?][A-Za-z0-9_?]*+"
_QUALIFIED = rf"{_NAME}(?:\.{_NAME})*+"
_DIGITS = r"0[xX][0-9a-fA-F]++u?|0[bB][01]++u?|[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?u?"
_DIRECTIVE = rf"(?:{'|'.join(map(re.escape, DIRECTIVES))})(?![A-Za-z0-9_?])"
_TOKENS = pattern(
    # A line marker, `# 1 "file"` or `#line 1`, is what a preprocessor leaves behind.
    rf"{BLANKS}|//[^\n]*+|{COMMENT}|\#(?:line)?[ \t]+[0-9][^\n]*+",
    rf"(?P<name>{_NAME})",
    rf"(?P<number>(?:{_DIGITS})(?![A-Za-z0-9_?]))",
    r"(?P<bad_number>[0-9][A-Za-z0-9_?]*+)",
    rf"(?P<directive>{_DIRECTIVE})",
    r"(?P<sign>:-|<:|<=|>=|!=|[.,;:()\[\]{}!=<>+*%^|@\-]|/(?!\*))",
    rf"(?P<branch>\${_NAME}(?:\.{_NAME})*+)",
    r"(?P<preprocessor>\#[^\n]*+)",
)

_LANDMARKS = re.compile(
    rf"//[^\n]*+|{COMMENT}|/\*[\s\S]*+|{STRING}|[0-9]\.[0-9]|(?P<statement>{_DIRECTIVE})"
    rf"|(?<=[A-Za-z0-9_?])\.(?=[A-Za-z_?])|(?P<stop>\.)|^[ \t]*+(?P<clause>(?={_QUALIFIED}[ \t]*+\())"
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
_HEAD = re.compile(rf"{_QUALIFIED}[ \t\r\n]*+\(")
_BRANCH = re.compile(rf"{_QUALIFIED}[ \t\r\n]*+\{{")


class SouffleParser(Parser):
    """Reads a `.dl` text into a draft. `include` reads another file there, named by a string at a place."""

    negation_sign = "!"
    operators = OPERATORS
    landmarks = _LANDMARKS

    def __init__(self, source: Source, draft: Draft, include: Callable[[str, Span], None]):
        super().__init__(source, Scanner(source, _TOKENS, RESERVED), draft)
        self.include = include

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
                    terms.append(Constant(written[1:-1], "symbol", span))
                else:
                    terms.append(Constant(int(written), "number", span))
            if len(clauses) % LOOK_EVERY == LOOK_EVERY - 1:
                look(source.name)
            span = Span(source, begin, at - 1)
            clauses.append(Clause((Atom(name, tuple(terms), span),), None, span))
        if at > start:
            self.seen = at
            self.token = self.scan(at)
            self.start = self.token.start

    def head(self) -> Atom:
        start = self.token.start
        name = self.relation_name("the name of a relation")
        if self.token.kind != "(":
            self.fail("`(`")
        return Atom(name, self.terms(")"), self.since(start))

    def subsumption(self, dominated: Atom) -> None:
        """Read the rest of a subsumption, whose first atom has been read."""
        self.expect("<=")
        dominating = self.head()
        self.expect(":-")
        body = self.formula(self.expression(OR))
        span = self.since(self.start)
        self.full_stop("an operator, `,`, `;` or `.`")
        self.check([dominated, dominating, body])
        self.draft.subsumptions.append(Subsumption(dominated, dominating, body, span))

    def relation_name(self, expected: str) -> str:
        """Read the name of a relation or type, which may be qualified by the name of an instance."""
        token = self.token
        if token.text in NO_RELATIONS:
            self.fail(expected)
        self.expect("name", expected)
        return token.text + self.qualified(token.end)

    def qualified(self, end: int) -> str:
        """Read the rest `.b.c` of a qualified name whose first part ends at an offset; there may be none."""
        rest = ""
        while self.token.kind == "." and self.token.start == end:
            part = self.following()
            if part.kind != "name" or part.start != self.token.end:
                break
            rest += f".{part.text}"
            end = part.end
            self.advance()
            self.advance()
        return rest

    def names(self, expected: str) -> list[tuple[str, Span]]:
        """Read names with commas between them."""
        found = []
        while True:
            span = self.here()
            found.append((self.relation_name(expected), span))
            if not self.accept(","):
                return found

    # -- directives ---------------------------------------------------------------------------------------------------

    def directive(self, name: str) -> None:
        if name in REFUSED_DIRECTIVES:
            self.refused_directive(name)
        start = self.advance().start
        match name:
            case ".decl":
                self.declaration()
            case ".type" | ".number_type" | ".symbol_type":
                self.type_declaration(name)
            case ".input" | ".output" | ".printsize":
                self.io_directive(name[1:])
            case ".pragma":
                texts = [self.string()]
                if self.token.kind == "string":
                    texts.append(self.string())
                text = " ".join((name, *map(quoted, texts)))
                self.draft.hints.append(Hint(text, self.since(start)))
            case ".comp":
                self.component(start)
            case ".init":
                name = self.expect("name", "the name of an instance").text
                self.expect("=")
                reference = self.reference()
                self.draft.instances.append(Instance(name, reference, self.since(start)))
            case ".override":
                self.override(start)
            case ".functor":
                self.functor_declaration(start)
            case ".plan":
                self.draft.hints.append(Hint(f".plan {self.plan()}", self.since(start)))
            case _:
                span = self.here()
                self.include(self.string(), span)

    def refused_directive(self, name: str) -> NoReturn:
        span = self.here()
        match name:
            case ".lattice":
                self.refuse("unsupported-lattice", "lattices are not supported", span)
            case ".once":
                self.refuse("unsupported-once", "`.once` is not supported", span)
            case _:
                self.refuse("unmaintainable", "`.limitsize` cannot be maintained exactly", span)

    def component(self, start: int) -> None:
        """Read the rest of a component, whose directive begins at an offset."""
        name = self.expect("name", "the name of a component").text
        parameters = self.arguments("the name of a parameter")
        bases: list[Reference] = []
        while self.accept("," if bases else ":"):
            bases.append(self.reference())
        span = self.since(start)
        opened = self.token.start
        self.expect("{", "`{`" if bases else "`<`, `:` or `{`")
        if self.within_braces >= COMPONENT_DEPTH:
            note = f"components nest at most {COMPONENT_DEPTH} deep"
            self.refuse("nested-too-deep", "nested too deeply", span, note=note)
        contents = Contents()
        around = self.draft.exchange(contents)
        self.within_braces += 1
        try:
            self.read("}")
        finally:
            self.within_braces -= 1
            self.draft.exchange(around)
        self.close("}", opened)
        self.draft.components.append(Component(name, parameters, tuple(bases), contents, span))

    def reference(self) -> Reference:
        """Read the name of a component with its arguments."""
        start = self.token.start
        name = self.expect("name", "the name of a component").text
        return Reference(name, self.arguments("an argument"), self.since(start))

    def arguments(self, expected: str) -> tuple[str, ...]:
        """Read names in angle brackets, if there are any."""
        opened = self.token.start
        if not self.accept("<"):
            return ()
        names = [name for name, _ in self.names(expected)]
        self.close(">", opened)
        return tuple(names)

    def override(self, start: int) -> None:
        span = self.here()
        name = self.expect("name", "the name of a relation").text
        if not self.within_braces:
            note = "`.override` replaces the rules of a relation that a component inherits"
            self.refuse("bad-override", "`.override` outside of a component", self.since(start), note=note)
        self.draft.overridden.append((name, span))

    def functor_declaration(self, start: int) -> None:
        """Read the rest of `.functor name(argument:type, ...):result`."""
        name = self.expect("name", "the name of a functor").text
        opened = self.token.start
        self.expect("(")
        arguments: list[Attribute] = []
        while self.token.kind != ")" or arguments:
            begin = self.token.start
            word = self.type_name("the name or the type of an argument")
            named = self.accept(":")
            type = self.type_name() if named else word
            arguments.append(Attribute(word if named else "", type, self.since(begin)))
            if not self.accept(","):
                break
        self.close(")", opened)
        self.expect(":")
        result = self.type_name("the type of the result")
        span = self.since(start)
        if self.token.kind == "name" and self.token.text == "stateful":
            self.refuse("unmaintainable", "a `stateful` functor cannot be maintained exactly", self.here())
        if not arguments:
            hint = "write the value where it is used, or in a relation of one fact"
            self.refuse("unsupported-functor", "a functor without arguments is not supported", span, hint=hint)
        self.draft.functors.append(FunctorDeclaration(name, tuple(arguments), result, span))

    def declaration(self) -> None:
        relations = self.names("the name of a relation")
        attributes = self.attributes("(", ")", "the name of an attribute")
        equivalence = self.qualifiers([name for name, _ in relations])
        for name, span in relations:
            self.draft.declarations.append(Declaration(name, attributes, equivalence, span))

    def qualifiers(self, relations: list[str]) -> bool:
        """Read what stands behind a declaration, and return whether that makes the relations equivalences."""
        words, equivalence = [], False
        while self.token.kind == "name" and not self.begins_clause():
            span, word = self.here(), self.token.text
            if word == "choice":
                self.refuse("unmaintainable", "`choice-domain` cannot be maintained exactly", span)
            if word not in (*QUALIFIERS, EQUIVALENCE):
                known = (".input", ".output", ".printsize")
                hint = f"write `.{word} {relations[0]}` on a line of its own" if f".{word}" in known else None
                message = f"there is no qualifier {quote(word)}"
                self.refuse("unknown-qualifier", message, span, hint=hint or nearest(word, (*QUALIFIERS, EQUIVALENCE)))
            self.advance()
            if word == EQUIVALENCE:
                equivalence = True
            else:
                words.append((word, span))
        hints = (Hint(f".decl {relation} {word}", span) for relation in relations for word, span in words)
        self.draft.qualifiers.extend(hints)
        return equivalence

    def type_declaration(self, directive: str) -> None:
        span = self.here()
        name = self.relation_name("the name of a type")
        kind, parents = "subtype", [TYPE_DIRECTIVES.get(directive, "symbol")]
        if directive == ".type" and self.accept("<:"):
            parents = [self.type_name()]
        elif directive == ".type" and self.accept("="):
            if self.token.kind == "[" or _BRANCH.match(self.source.text, self.token.start):
                self.structure(name, span)
                return
            kind, parents = "union", [self.type_name()]
            while self.accept("|"):
                parents.append(self.type_name())
        self.draft.types.append(TypeDeclaration(name, kind, tuple(parents), span=span))

    def structure(self, name: str, span: Span) -> None:
        """Read the fields of a record type, or the branches of an algebraic data type."""
        if self.token.kind == "[":
            start = self.token.start
            fields = self.attributes("[", "]", "the name of a field")
            branches = [Branch("[]", fields, self.since(start))]
            kind = "record"
        else:
            branches, kind = [self.branch()], "adt"
            while self.accept("|"):
                branches.append(self.branch())
        self.draft.types.append(TypeDeclaration(name, kind, (), tuple(branches), span))

    def branch(self) -> Branch:
        start = self.token.start
        name = self.relation_name("the name of a branch")
        span = self.since(start)
        return Branch(f"${name}", self.attributes("{", "}", "the name of a field"), span)

    def attributes(self, opening: str, closing: str, expected: str) -> tuple[Attribute, ...]:
        """Read names with types, in brackets."""
        opened = self.token.start
        self.expect(opening)
        attributes: list[Attribute] = []
        while self.token.kind != closing or attributes:
            start = self.token.start
            name = self.expect("name", expected).text
            self.expect(":")
            attributes.append(Attribute(name, self.type_name(), self.since(start)))
            if not self.accept(","):
                break
        self.close(closing, opened)
        return tuple(attributes)

    def type_name(self, expected: str = "a type") -> str:
        """Read the name of a type, which may have digits in brackets (`decimal(10, 2)`) and a sign of nulls (`?`)."""
        name = self.relation_name(expected)
        opened = self.token.start
        if name == "decimal" and self.accept("("):
            digits = self.expect("number", "the number of digits").text
            self.expect(",")
            name += f"({digits}, {self.expect('number', 'the number of digits after the point').text})"
            self.close(")", opened)
            if self.token.kind == "name" and self.token.text == "?":
                self.advance()
                name += "?"
        return name

    def io_directive(self, kind: str) -> None:
        relations = self.names("the name of a relation")
        options: list[tuple[str, str]] = []
        opened = self.token.start
        if self.accept("("):
            while self.token.kind != ")" or options:
                key = self.expect("name", "the name of an option").text
                self.expect("=")
                options.append((key, self.option_value()))
                if not self.accept(","):
                    break
            self.close(")", opened)
        for name, span in relations:
            self.draft.directives.append(Directive(kind, name, tuple(options), span))

    def option_value(self) -> str:
        if self.token.kind == "string":
            return self.string()
        if self.token.kind not in ("name", "number"):
            self.fail("the value of an option")
        return self.advance().text

    def plan(self) -> str:
        versions = []
        while True:
            version = self.expect("number", "the number of a plan").text
            self.expect(":")
            opened = self.token.start
            self.expect("(")
            order: list[str] = []
            while self.token.kind != ")" or order:
                order.append(self.expect("number", "the number of an atom").text)
                if not self.accept(","):
                    break
            self.close(")", opened)
            versions.append(f"{version}:({','.join(order)})")
            if not self.accept(","):
                return ", ".join(versions)

    # -- terms and formulas -------------------------------------------------------------------------------------------

    def operand(self, level: int) -> Term | Formula:
        token = self.token
        match token.kind:
            case "name":
                return self.named(level)
            case "number":
                self.advance()
                return self.number(token, token.start)
            case "string":
                return Constant(self.string(), "symbol", self.since(token.start))
            case "(":
                return self.bracketed()
            case "!" if level <= LITERAL:
                self.advance()
                return Negation(self.formula(self.expression(LITERAL)), self.since(token.start))
            case "-" | "bnot" | "lnot":
                return self.prefixed()
            case word if word in RESERVED and self.following().kind == "(":
                self.advance()
                return Call(word, self.terms(")"), self.since(token.start))
            case "[":
                return self.constructed("[]", self.terms("]"), token.start)
            case "branch":
                self.advance()
                fields = self.terms(")") if self.token.kind == "(" else ()
                return self.constructed(token.text, fields, token.start)
            case "@":
                return self.user_functor()
            case "stray" if token.text == "$":
                self.refuse("unmaintainable", "`$` (`autoinc`) cannot be maintained exactly", self.here())
            case _:
                self.fail("an atom or a comparison" if level <= LITERAL else "a term")

    def constructed(self, functor: str, fields: tuple[Term, ...], start: int) -> Term:
        """Return a record or the value of a branch; without fields it is a constant."""
        span = self.since(start)
        return Call(functor, fields, span) if fields else Constant(functor, "record", span)

    def named(self, level: int) -> Term | Formula:
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
            return Test(name, terms, span) if name in BUILT_IN_TESTS else Atom(name, terms, span)
        if name in AGGREGATES and self.token.kind == ":":
            return self.aggregate(token, None)
        if name in AGGREGATES and self.token.kind in ("name", "number", "string", "-", "[", "@", "branch"):
            return self.aggregate(token, self.term(self.expression(TERM)))
        if name == "_":
            return Wildcard(self.since(start))
        if name == FILE:
            return Constant(self.source.name, "symbol", self.since(start))
        if name == LINE:
            return Constant(self.source.position(start)[0], "number", self.since(start))
        if name == "nil":
            return Constant("nil", "record", self.since(start))
        if name == "null":
            return Constant("null", "null", self.since(start))
        if name in CONSTANT_WORDS:
            span = self.since(start)
            return Truth(name == "true", span) if level <= LITERAL else Constant(int(name == "true"), "boolean", span)
        return Variable(name, self.since(start))

    def aggregate(self, function: Token, target: Term | None) -> Aggregate:
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
        return Aggregate(name, target, body, self.since(function.start))

    def user_functor(self) -> Call:
        """Read `@name(terms)`."""
        start = self.advance().start
        name = self.expect("name", "the name of a functor").text
        if name in UNSTABLE:
            self.refuse("unmaintainable", f"{quote('@' + name)} cannot be maintained exactly", self.since(start))
        if self.token.kind != "(":
            self.fail("`(`")
        return Call(f"@{name}", self.terms(")"), self.since(start))

    def functor_call(self, name: str, terms: tuple[Term, ...], span: Span) -> Term:
        if name in UNSTABLE:
            note = "its value would differ each time it is evaluated"
            self.refuse("unmaintainable", f"{quote(name)} cannot be maintained exactly", span, note=note)
        return Call(name, terms, span)

    def prefixed(self) -> Term:
        """Read a prefix operator and its operand. Minus before a number makes a negative number."""
        operator = self.advance()
        number = self.token
        literal = number.kind == "number" and not number.text.endswith("u")
        if operator.kind == "-" and literal and self.following().kind != "^":
            self.advance()
            return self.number(number, operator.start)
        operand = self.term(self.expression(PREFIX))
        return Call(operator.kind, (operand,), self.since(operator.start))

    def number(self, token: Token, start: int) -> Constant:
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
            return Constant(real, "float", span)
        value = sign * int(digits, base)
        lowest, highest = INTEGER_RANGES["unsigned" if unsigned else "number"]
        if not lowest <= value <= highest:
            kind = "an unsigned number" if unsigned else "a number"
            hint = f"write `{text}u` for an unsigned number" if 2**63 <= value < 2**64 else None
            note = f"{kind} lies between {lowest:,} and {highest:,}".replace(",", " ")
            self.refuse("number-out-of-range", f"{quote(text)} is out of range", span, note=note, hint=hint)
        return Constant(value, "unsigned" if unsigned else "number", span)

    def string(self) -> str:
        """Read a string and return what it says."""
        if self.token.kind != "string":
            self.fail("a string")
        token = self.advance()
        return string_value(self.source, token, ESCAPES_HERE, code_points=False)


_ESCAPED = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def quoted(text: str) -> str:
    """Return a string literal that says `text`."""
    return f'"{text.translate(_ESCAPED)}"'
