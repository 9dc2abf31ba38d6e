"""The `.dlog` dialect: RDFox's rules over triples, and over relations of any arity.

RDF terms become constants of type `term`, whose value is their N-Triples text with canonical escapes. Prefixes are
resolved while reading, so they leave no trace in the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

from upheld.base.errors import Problem, count, nearest, quote
from upheld.base.source import Source, Span
from upheld.language import ast
from upheld.language.syntax.lexer import BLANKS, COMMENT, STRING, Scanner, Token, pattern
from upheld.language.syntax.parser import AND, COMPARISON, COMPARISONS, LITERAL, OR, PREFIX, TERM, Draft
from upheld.language.syntax.rdf_terms import TermParser
from upheld.language.terms.terms import boolean
from upheld.language.terms.vocabulary import QUAD, RDF, TRIPLE, XSD
from upheld.language.types.functors import HOLDS, is_test

if TYPE_CHECKING:
    from upheld.language.terms.functions import Function

T = TypeVar("T")

#: The operators inside expressions, where `,` ends an argument.
EXPRESSION = {
    "||": OR,
    "&&": AND,
    **COMPARISONS,
    **dict.fromkeys(("IN", "NOT"), COMPARISON),
    **dict.fromkeys(("+", "-"), TERM),
    **dict.fromkeys(("*", "/"), TERM + 1),
}
OPERATORS = {**EXPRESSION, ";": OR, ",": AND}
#: Functions that are not written in upper case, and other names of functions.
SPELLINGS = {name.upper(): name for name in ("isIRI", "isBlank", "isLiteral", "isNumeric", "sameTerm")}
ALIASES = {"URI": "IRI", "ISURI": "ISIRI"}
#: Functions that aggregate, with the number of their arguments.
ARGUMENTS = {"COUNT": 1, "SUM": 1, "AVG": 1, "MIN": 1, "MAX": 1, "SAMPLE": 1, "MIN_ARGMIN": 2, "MAX_ARGMAX": 2}
#: Functions whose value differs from call to call, with what to do instead.
SIDE_EFFECTS = {
    "NOW": "pass the time as a fact, and update it",
    "RAND": "pass the number as a fact",
    "UUID": "`SKOLEM(...)` has a blank node for each combination of its arguments",
    "STRUUID": "`SHA1(...)` has a text for each text",
    "BNODE": "`SKOLEM(...)` has a blank node for each combination of its arguments",
}
#: Functions and tables of RDFox and SPARQL that are not supported: no relation is called so, lest they pass for one.
OF_RDFOX = frozenset(
    "SHORTEST_PATH SQRT POW MIN MAX MINFN MAXFN COUNT SUM AVG SAMPLE GROUP_CONCAT INTERNALCONSTANT".split()
)
RESERVED = frozenset("NOT EXISTS EXIST IN FILTER BIND AS AGGREGATE VALUES PREFIX prefix BASE base true false".split())
_IRI = r'<[^\x00-\x20<>"{}|^`\ud800-\udfff]*+>'
_ESCAPED_SIGN = r"\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL = rf"(?:[\w:]|%[0-9A-Fa-f]{{2}}|{_ESCAPED_SIGN})(?:\.*+(?:[\w:\-]|%[0-9A-Fa-f]{{2}}|{_ESCAPED_SIGN}))*+"
_TOKENS = pattern(
    rf"{BLANKS}|//[^\n]*+|[#%][^\n]*+|{COMMENT}",
    rf"(?P<iri>{_IRI})",
    r"(?P<variable>[?$]\w++)",
    r"(?P<blank>_:\w(?:\.*+[\w\-])*+)",
    r"(?P<sign>:-|\^\^|&&|\|\||<=|>=|!=|[.,;()\[\]{}!=<>+*\-]|/(?![*/]))",
    rf"(?P<prefixed>(?:[^\W\d_][\w\-]*+)?:(?:{_LOCAL})?)",
    r"(?P<name>[^\W\d]\w*+)",
    r"(?P<number>[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?!\w))",
    r"(?P<bad_number>[0-9]\w*+)",
    r"(?P<tag>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+)",
)
_LANDMARKS = re.compile(
    rf"(?P<statement>^[ \t]*+(?:PREFIX|prefix|@prefix|BASE|base|@base)(?!\w))"
    rf"|^[ \t]*+(?P<clause>(?=\[|\w*+[(\[]|[^\W\d_][\w\-]*+:|:(?!-)|<))"
    rf"|//[^\n]*+|[#%][^\n]*+|{COMMENT}|/\*[\s\S]*+|{STRING}|<[^<>\n]*+>|[0-9]\.[0-9]|:{_LOCAL}|(?P<stop>\.)",
    re.MULTILINE,
)


def _functions() -> dict[str, Function]:
    """Return the functions of terms, which programs of the other dialect do not need."""
    from upheld.language.terms.functions import FUNCTIONS

    return FUNCTIONS


def _local(variable: ast.Variable) -> Problem:
    return Problem(
        "local-variable",
        f"the variable {quote(f'?{variable.name}')} of `EXISTS` occurs outside of it as well",
        variable.span,
        note="a variable that `EXISTS` names means nothing outside of its body",
        hint="give one of the two another name, or leave it out of the list before `IN` if they are to be equal",
    )


class RDFoxParser(TermParser):
    """Reads a `.dlog` text into a draft."""

    negation_sign = "NOT"
    operators = OPERATORS
    landmarks = _LANDMARKS

    def __init__(self, source: Source, draft: Draft):
        super().__init__(source, Scanner(source, _TOKENS, RESERVED), draft)
        #: The variables of the statement that exist only under a negation.
        self.existential: list[ast.Variable] = []
        #: Whether what is read is an expression, in which a comparison is a value and a value is a condition.
        self.in_expression = False

    # -- statements ---------------------------------------------------------------------------------------------------

    def begins_statement(self, token: Token) -> bool:
        return token.kind in ("PREFIX", "prefix", "BASE", "base") or token.text in ("@prefix", "@base")

    def begins_clause(self) -> bool:
        if self.token.kind in ("name", "prefixed", "iri"):
            return self.following().kind in ("(", "[")
        return self.token.kind == "["

    def statement(self) -> None:
        self.existential.clear()
        if self.token.kind in ("BASE", "base") or self.token.text == "@base":
            self.read_base()
        elif self.begins_statement(self.token):
            self.prefix()
        else:
            self.clause()

    def prefix(self) -> None:
        """Read `PREFIX p: <iri>` or `@prefix p: <iri> .`."""
        turtle = self.advance().kind == "tag"
        name = self.token.text
        if self.token.kind != "prefixed" or name.find(":") != len(name) - 1:
            self.fail("a prefix such as `ex:`")
        self.advance()
        self.prefixes.setdefault(name[:-1], "")  # where the IRI is wrong, this is the one problem of the prefix
        if self.token.kind not in ("iri", "<"):
            self.fail("an IRI in `<` and `>`")
        self.prefixes[name[:-1]] = self.draft.prefixes[name[:-1]] = self.iri()
        if turtle:
            self.full_stop("`.`")

    def read_base(self) -> None:
        """Read `BASE <iri>` or `@base <iri> .`, which the relative IRIs that follow in the file are resolved by."""
        turtle = self.advance().kind == "tag"
        if self.token.kind not in ("iri", "<"):
            self.fail("an IRI in `<` and `>`")
        self.base = self.iri()
        if turtle:
            self.full_stop("`.`")

    def head(self) -> ast.Atom:
        start = self.token.start
        atom = self.operand(OR) if self.token.kind in ("[", "name", "prefixed", "iri") else None
        if not isinstance(atom, ast.Atom):
            if atom is None:
                self.fail("a fact, a rule or a prefix")
            self.refuse("syntax", "expected an atom as the head of a rule", self.since(start))
        return atom

    def query(self) -> ast.Formula:
        while self.begins_statement(self.token):
            self.statement()
        return super().query()

    def check(self, formulas: Sequence[ast.Formula]) -> None:
        """Report also an existential variable that occurs outside its negation."""
        super().check(formulas)
        free = (
            {v.name for formula in formulas for v in ast.variables(formula, in_aggregates=False)}
            if self.existential
            else ()
        )
        self.draft.problems += [_local(variable) for variable in self.existential if variable.name in free]

    # -- terms and formulas -------------------------------------------------------------------------------------------

    def operand(self, level: int) -> ast.Term | ast.Formula:
        token = self.token
        match token.kind:
            case "variable":
                self.advance()
                return ast.Variable(token.text[1:], self.since(token.start))
            case "[":
                return self.triple()
            case "prefixed" | "iri":
                return self.resource(level)
            case "name":
                return self.named(level)
            case "string" | "number" | "blank":
                return ast.Constant(self.literal(""), "term", self.since(token.start))
            case "true" | "false" as word:
                self.advance()
                if level <= LITERAL and self.operators.get(self.token.kind, -1) <= AND:
                    return ast.Truth(word == "true", self.since(token.start))
                return ast.Constant(f'"{word}"^^<{XSD}boolean>', "term", self.since(token.start))
            case "(":
                return self.bracketed()
            case "-":
                return self.negative()
            case "+":
                self.advance()
                return ast.Call("+", (self.term(self.expression(PREFIX)),), self.since(token.start))
            case "!" if self.in_expression:
                self.advance()
                return ast.Negation(self.formula(self.expression(PREFIX)), self.since(token.start))
            case "NOT" | "!" if level <= LITERAL:
                return self.negation()
            case "FILTER" if level <= LITERAL:
                return self.filter()
            case "BIND" if level <= LITERAL:
                return self.bind()
            case "AGGREGATE" if level <= LITERAL:
                return self.grouping()
            case "VALUES" if level <= LITERAL:
                return self.values()
            case "<":
                self.bad_iri()
            case _:
                self.fail("an atom or a comparison" if level <= LITERAL and not self.in_expression else "a term")

    def triple(self) -> ast.Atom:
        """Read `[subject, predicate, object]`."""
        opened = self.advance().start
        subject = self.value()
        self.expect(",")
        if self.token.kind == "name" and self.token.text == "a":
            predicate: ast.Term = ast.Constant(f"<{RDF}type>", "term", self.here())
            self.advance()
        else:
            predicate = self.value()
        self.expect(",")
        terms = (subject, predicate, self.value())
        self.close("]", opened)
        return self.in_graph(terms, opened)

    def in_graph(self, terms: tuple[ast.Term, ast.Term, ast.Term], start: int) -> ast.Atom:
        """Return a triple, or a quad if the name of a graph follows on the line."""
        follows = self.token.kind in ("prefixed", "iri", "variable")
        if not follows or "\n" in self.source.text[self.seen : self.token.start]:
            return ast.Atom(TRIPLE, terms, self.since(start))
        token = self.token
        if token.kind == "variable":
            self.advance()
            graph: ast.Term = ast.Variable(token.text[1:], self.since(token.start))
        else:
            graph = ast.Constant(f"<{self.iri()}>", "term", self.since(token.start))
        return ast.Atom(QUAD, (*terms, graph), self.since(start))

    def resource(self, level: int) -> ast.Term | ast.Formula:
        """Read an IRI: a term, or the beginning of `:C[x]`, `:p[x, y]`, `:r(x, y, z)` or `xsd:integer(x)`."""
        start = self.token.start
        iri = ast.Constant(f"<{self.iri()}>", "term", self.since(start))
        if self.token.kind == "(" and (self.in_expression or level > LITERAL):
            return self.functor_call(str(iri.value), self.terms(")"), self.since(start))
        if self.token.kind == "(":
            return ast.Atom(str(iri.value), self.terms(")"), self.since(start))
        if self.token.kind != "[":
            return iri
        terms = self.terms("]")
        span = self.since(start)
        match terms:
            case (individual,):
                return self.in_graph((individual, ast.Constant(f"<{RDF}type>", "term", iri.span), iri), start)
            case (subject, value):
                return self.in_graph((subject, iri, value), start)
            case _:
                note = "`:C[x]` is a class with its member, `:p[x, y]` a property with subject and object"
                self.refuse("syntax", f"found {len(terms)} terms, expected one or two", span, note=note)

    def named(self, level: int) -> ast.Term | ast.Formula:
        """Read what begins with a bare name: an atom, a function, or a variable written in upper case."""
        token = self.advance()
        name, span = token.text, self.since(token.start)
        if self.token.kind == "(":
            if self.in_expression or level > LITERAL:
                return self.functor_call(name, self.terms(")"), self.since(token.start))
            if name == "SKOLEM":
                return self.skolem(self.terms(")"), self.since(token.start))
            if name in OF_RDFOX or name in SIDE_EFFECTS:
                self.unknown_function(name, self.since(token.start))
            if name in _functions() or name in SPELLINGS.values():
                return self.functor_call(name, self.terms(")"), self.since(token.start))
            return ast.Atom(name, self.terms(")"), self.since(token.start))
        if name == "_":
            return ast.Wildcard(span)
        if name[0] == "_" or name[0].isupper():
            return ast.Variable(name, span)
        hint = f'write `?{name}` for a variable, `"{name}"` for a string, `:{name}` for an IRI'
        if name == "not":
            hint = "negation is written `NOT`"
        self.refuse(
            "bare-name", f"the bare name {quote(name)} is not a term", span, hint=hint if len(name) < 40 else None
        )

    def negation(self) -> ast.Formula:
        start = self.advance().start
        if self.token.kind in ("EXISTS", "EXIST"):
            return ast.Negation(self.exists(), self.since(start))
        return ast.Negation(self.formula(self.expression(LITERAL)), self.since(start))

    def exists(self) -> ast.Atom | ast.Exists:
        """Read `EXISTS ?y IN (body)`. In a single atom, a variable that occurs once becomes a wildcard."""
        start = self.advance().start
        self.in_expression = False
        names: list[ast.Variable] = []
        while True:
            names.append(self.variable())
            if not self.accept(","):
                break
        self.expect("IN", "`,` or `IN`")
        if self.token.kind != "(":
            self.fail("`(`")
        inner = self.formula(self.bracketed())
        self.existential.extend(names)
        occurring = [v.name for v in ast.variables(inner)]
        if not isinstance(inner, ast.Atom) or any(occurring.count(v.name) > 1 for v in names):
            return ast.Exists(tuple(dict.fromkeys(names)), inner, self.since(start))
        hidden = {v.name for v in names}
        terms = tuple(
            ast.Wildcard(t.span) if isinstance(t, ast.Variable) and t.name in hidden else t for t in inner.terms
        )
        return ast.Atom(inner.predicate, terms, inner.span)

    def values(self) -> ast.Values:
        """Read `VALUES ?x { :a :b }` or `VALUES (?x ?y) { (:a :b) (:c :d) }`."""
        start = self.advance().start
        several = self.token.kind == "("
        names = self.in_brackets(self.variable) if several else [self.variable()]
        opened = self.token.start
        self.expect("{")
        rows: list[tuple[ast.Constant, ...]] = []
        while self.token.kind != "}":
            began = self.token.start
            row = self.in_brackets(self.constant) if several else [self.constant()]
            if len(row) != len(names):
                message = f"found {count(len(row), 'term')}, expected {len(names)}: one for each variable"
                self.refuse("syntax", message, self.since(began))
            rows.append(tuple(row))
        self.close("}", opened)
        return ast.Values(tuple(names), tuple(rows), self.since(start))

    def in_brackets(self, read: Callable[[], T]) -> list[T]:
        """Read some things in round brackets."""
        opened = self.token.start
        self.expect("(")
        things = []
        while self.token.kind != ")":
            things.append(read())
        self.close(")", opened)
        return things

    def constant(self) -> ast.Constant:
        """Read a term that is not a variable."""
        token, minus = self.token, self.accept("-")
        if token.kind == "name" and token.text == "UNDEF":
            self.refuse("syntax", "found `UNDEF`, expected a term", self.here(), note="a relation has no empty places")
        if not minus and token.kind in ("iri", "prefixed"):
            return ast.Constant(f"<{self.iri()}>", "term", self.since(token.start))
        if not minus and token.kind in ("true", "false"):
            self.advance()
            return ast.Constant(f'"{token.kind}"^^<{XSD}boolean>', "term", self.since(token.start))
        if self.token.kind == "number" or (not minus and self.token.kind in ("string", "blank")):
            return ast.Constant(self.literal("-" if minus else ""), "term", self.since(token.start))
        self.fail("a term without variables")

    def grouping(self) -> ast.Grouping:
        """Read `AGGREGATE(body ON ?g ?h BIND COUNT(?x) AS ?n BIND ...)`."""
        start = self.advance().start
        opened = self.token.start
        self.expect("(")
        body = self.formula(self.expression(OR))
        groups: list[ast.Variable] = []
        if self.token.kind == "name" and self.token.text == "ON":
            self.advance()
            groups.append(self.variable())
            while self.token.kind in ("variable", ","):
                self.accept(",")
                groups.append(self.variable())
        elif self.token.kind != "BIND":
            self.fail("`,`, `ON` or `BIND`")
        results = [self.result()]
        while self.token.kind == "BIND":
            results.append(self.result())
        self.close(")", opened)
        return ast.Grouping(body, tuple(dict.fromkeys(groups)), tuple(results), self.since(start))

    def result(self) -> ast.Result:
        """Read `BIND COUNT(DISTINCT ?x) AS ?n`."""
        start = self.expect("BIND", "`BIND`").start
        token = self.expect("name", "an aggregate function")
        name, named = token.text.upper(), self.since(token.start)
        if name not in ARGUMENTS:
            note = f"the functions that aggregate are {', '.join(ARGUMENTS)}"
            self.refuse("unsupported-aggregate", f"{quote(token.text)} does not aggregate", named, note)
        opened = self.token.start
        self.expect("(")
        distinct = self.token.kind == "name" and self.token.text == "DISTINCT"
        if distinct:
            self.advance()
        arguments: list[ast.Term] = []
        if name != "COUNT" or not self.accept("*"):
            arguments.append(self.value())
            while self.accept(","):
                arguments.append(self.value())
            self.check_count(name, tuple(arguments), ARGUMENTS[name], ARGUMENTS[name], self.since(token.start))
        self.close(")", opened)
        self.expect("AS", "`AS`")
        return ast.Result(name, tuple(arguments), distinct, self.variable(), self.since(start))

    def variable(self) -> ast.Variable:
        token = self.expect("variable", "a variable")
        return ast.Variable(token.text[1:], self.since(token.start))

    def filter(self) -> ast.Formula:
        self.advance()
        before, self.in_expression = self.in_expression, True
        try:
            formula = self.formula(self.expression(LITERAL))
        finally:
            self.in_expression = before
        pending = [formula]
        while pending:
            match pending.pop():
                case ast.Atom(predicate=name, span=Span() as span):
                    self.unknown_function(name, span)
                case ast.Negation(formula=inner):
                    pending.append(inner)
                case ast.Conjunction(formulas=parts) | ast.Disjunction(formulas=parts):
                    pending.extend(parts)
                case _:
                    pass
        return formula

    def bind(self) -> ast.Formula:
        """Read `BIND(term AS ?v)`."""
        start = self.advance().start
        opened = self.token.start
        self.expect("(")
        value = self.value()
        self.expect("AS", "an operator or `AS`")
        variable = self.variable()
        self.close(")", opened)
        return ast.Test("=", (variable, value), self.since(start))

    # -- expressions --------------------------------------------------------------------------------------------------

    def value(self) -> ast.Term:
        """Read an expression, which `,` ends."""
        before = self.operators, self.in_expression
        self.operators, self.in_expression = EXPRESSION, True
        try:
            return self.term(self.expression(OR))
        finally:
            self.operators, self.in_expression = before

    def terms(self, closing: str) -> tuple[ast.Term, ...]:
        """Read expressions with commas between them, in brackets."""
        opened = self.advance().start
        if self.accept(closing):
            return ()
        values = [self.value()]
        while self.accept(","):
            values.append(self.value())
        self.close(closing, opened)
        return tuple(values)

    def infix(self, left: ast.Term | ast.Formula, level: int, start: int) -> ast.Term | ast.Formula:
        negated = self.token.kind == "NOT"
        if self.token.kind not in ("IN", "NOT"):
            return super().infix(left, level, start)
        if negated and self.following().kind != "IN":
            self.fail("an operator, `,`, `;` or `.`")
        one = self.term(left)
        if negated:
            self.advance()
        self.expect("IN")
        if self.token.kind != "(":
            self.fail("`(`")
        among = ast.Test(HOLDS, (ast.Call("IN", (one, *self.terms(")")), self.since(start)),), self.since(start))
        return ast.Negation(among, among.span) if negated else among

    def term(self, node: ast.Term | ast.Formula) -> ast.Term:
        """Return a node as a term; in an expression, a condition is a boolean."""
        if not self.in_expression:
            return super().term(node)
        match node:
            case ast.Test(operator=operator, terms=terms):
                return terms[0] if operator == HOLDS else ast.Call(operator, terms, node.span)
            case ast.Negation(formula=inner):
                return ast.Call("!", (self.term(inner),), node.span)
            case ast.Conjunction(formulas=parts):
                return ast.Call("&&", tuple(map(self.term, parts)), node.span)
            case ast.Disjunction(formulas=parts):
                return ast.Call("||", tuple(map(self.term, parts)), node.span)
            case ast.Truth(value=value):
                return ast.Constant(boolean(value), "term", node.span)
            case _:
                return super().term(node)

    def formula(self, node: ast.Term | ast.Formula) -> ast.Formula:
        """Return a node as a formula; in an expression, each term is a condition, elsewhere each test."""
        match node:
            case ast.Call(functor=name) if self.in_expression or is_test(name):
                return ast.Test(HOLDS, (node,), node.span)
            case ast.Variable() | ast.Wildcard() | ast.Constant() if self.in_expression:
                return ast.Test(HOLDS, (node,), node.span)
            case _:
                return super().formula(node)

    def functor_call(self, name: str, terms: tuple[ast.Term, ...], span: Span) -> ast.Term:
        if name == TRIPLE:
            self.refuse("syntax", "found an atom, expected a term", span)
        upper = name if name.startswith("<") else name.upper()
        function = _functions().get(ALIASES.get(upper, upper))
        if function is None:
            self.unknown_function(name, span)
        self.check_count(name, terms, function.least, function.most, span)
        if function.name == "BOUND" and not isinstance(terms[0], ast.Variable):
            self.refuse("syntax", "`BOUND` takes a variable", span)
        return ast.Call(function.name, terms, span)

    def skolem(self, terms: tuple[ast.Term, ...], span: Span) -> ast.Formula:
        """Return `SKOLEM(x, y, z)` as a condition: `z` is the blank node of the other terms."""
        self.check_count("SKOLEM", terms, 2, None, span)
        *arguments, node = terms
        return ast.Test("=", (node, ast.Call("SKOLEM", tuple(arguments), span)), span)

    def unknown_function(self, name: str, span: Span) -> NoReturn:
        upper = name.upper()
        if upper in SIDE_EFFECTS:
            note = "its value differs from call to call, and a materialisation depends on its facts alone"
            self.refuse(
                "unsupported-function", f"the function {quote(name)} is refused", span, note, SIDE_EFFECTS[upper]
            )
        known = [SPELLINGS.get(name, name) for name in _functions() if name[0].isalpha()]
        note = f"the functions are {', '.join(known)}"
        if upper in OF_RDFOX:
            self.refuse("unsupported-function", f"the function {quote(name)} is not supported", span, note)
        self.refuse("unknown-functor", f"there is no function {quote(name)}", span, note, nearest(upper, known))

    def check_count(self, name: str, terms: tuple[ast.Term, ...], least: int, most: int | None, span: Span) -> None:
        if len(terms) < least or (most is not None and len(terms) > most):
            takes = f"{least} or more" if most is None else f"{least} to {most}" if least < most else str(least)
            message = f"{quote(name)} takes {takes} {'argument' if takes == '1' else 'arguments'}, not {len(terms)}"
            self.refuse("wrong-argument-count", message, span)
