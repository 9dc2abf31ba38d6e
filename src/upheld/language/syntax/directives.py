"""The directives of the `.dl` dialect: declarations, types, components, functors, inputs and outputs, and hints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NoReturn

from upheld.base.errors import nearest, quote
from upheld.base.source import Source, Span
from upheld.language import ast
from upheld.language.syntax.components import COMPONENT_DEPTH, OVERRIDABLE, Component, Contents, Instance, Reference
from upheld.language.syntax.lexer import Scanner, string_value
from upheld.language.syntax.parser import OR, Draft, Parser
from upheld.language.syntax.reserved import NO_RELATIONS
from upheld.language.types.primitive import DL_ESCAPES, quoted

#: The qualifier that is acted upon, and those that are not.
EQUIVALENCE = "eqrel"
QUALIFIERS = ("inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", OVERRIDABLE)

#: Why a program may not ask for a value that depends on the time, on chance or on the order of evaluation.
DIFFERS = "its value would differ each time it is evaluated"

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
    ".constraint",
    *REFUSED_DIRECTIVES,
)

NAME = r"[A-Za-z_?][A-Za-z0-9_?]*+"
QUALIFIED = rf"{NAME}(?:\.{NAME})*+"
_BRANCH = re.compile(rf"{QUALIFIED}[ \t\r\n]*+\{{")


class DirectiveParser(Parser):
    """Reads directives into a draft. `include` reads another file there, named by a string at a place."""

    def __init__(self, source: Source, scanner: Scanner, draft: Draft, include: Callable[[str, Span], None]):
        super().__init__(source, scanner, draft)
        self.include = include

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
                self.draft.hints.append(ast.Hint(text, self.since(start)))
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
            case ".constraint":
                self.constraint(start)
            case ".plan":
                self.draft.hints.append(ast.Hint(f".plan {self.plan()}", self.since(start)))
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
                note = "which facts are found before the limit depends on the order of evaluation"
                hint = "end evaluation with an error by the limit `--max-facts`, or `limits=Limits(facts=n)` in Python"
                self.refuse("unmaintainable", "`.limitsize` cannot be maintained exactly", span, note=note, hint=hint)

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

    def constraint(self, start: int) -> None:
        """Read the rest of `.constraint name :- body.`."""
        name = self.relation_name("the name of a constraint")
        if self.token.kind == "(":
            hint = f"write `.constraint {name[:60]} :- ...`; the variables of the body are its columns"
            self.refuse("syntax", "found `(`, expected `:-`: a constraint has no terms", self.here(), hint=hint)
        self.expect(":-")
        body = self.formula(self.expression(OR))
        span = self.since(start)
        self.full_stop("an operator, `,`, `;` or `.`")
        self.check([body])
        head = ast.Atom(name, bound_variables(body), span)
        self.draft.clauses.append(ast.Clause((head,), body, span, constraint=True))

    def functor_declaration(self, start: int) -> None:
        """Read the rest of `.functor name(argument:type, ...):result`."""
        name = self.expect("name", "the name of a functor").text
        opened = self.token.start
        self.expect("(")
        arguments: list[ast.Attribute] = []
        while self.token.kind != ")" or arguments:
            begin = self.token.start
            word = self.type_name("the name or the type of an argument")
            named = self.accept(":")
            type = self.type_name() if named else word
            arguments.append(ast.Attribute(word if named else "", type, self.since(begin)))
            if not self.accept(","):
                break
        self.close(")", opened)
        self.expect(":")
        result = self.type_name("the type of the result")
        span = self.since(start)
        if self.token.kind == "name" and self.token.text == "stateful":
            what = "a `stateful` functor cannot be maintained exactly"
            self.refuse("unmaintainable", what, self.here(), note=DIFFERS)
        if not arguments:
            hint = "write the value where it is used, or in a relation of one fact"
            self.refuse("unsupported-functor", "a functor without arguments is not supported", span, hint=hint)
        self.draft.functors.append(ast.FunctorDeclaration(name, tuple(arguments), result, span))

    def declaration(self) -> None:
        relations = self.names("the name of a relation")
        attributes = self.attributes("(", ")", "the name of an attribute")
        equivalence = self.qualifiers([name for name, _ in relations])
        for name, span in relations:
            self.draft.declarations.append(ast.Declaration(name, attributes, equivalence, span))

    def qualifiers(self, relations: list[str]) -> bool:
        """Read what stands behind a declaration, and return whether that makes the relations equivalences."""
        words, equivalence = [], False
        while self.token.kind == "name" and not self.begins_clause():
            span, word = self.here(), self.token.text
            if word == "choice":
                self.refuse(
                    "unmaintainable",
                    "`choice-domain` cannot be maintained exactly",
                    span,
                    note="which fact is chosen depends on the order of evaluation",
                    hint="choose by an order: `chosen(x, y) :- r(x, y), y = min z : { r(x, z) }.`",
                )
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
        hints = (ast.Hint(f".decl {relation} {word}", span) for relation in relations for word, span in words)
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
        self.draft.types.append(ast.TypeDeclaration(name, kind, tuple(parents), span=span))

    def structure(self, name: str, span: Span) -> None:
        """Read the fields of a record type, or the branches of an algebraic data type."""
        if self.token.kind == "[":
            start = self.token.start
            fields = self.attributes("[", "]", "the name of a field")
            branches = [ast.Branch("[]", fields, self.since(start))]
            kind = "record"
        else:
            branches, kind = [self.branch()], "adt"
            while self.accept("|"):
                branches.append(self.branch())
        self.draft.types.append(ast.TypeDeclaration(name, kind, (), tuple(branches), span))

    def branch(self) -> ast.Branch:
        start = self.token.start
        name = self.relation_name("the name of a branch")
        span = self.since(start)
        return ast.Branch(f"${name}", self.attributes("{", "}", "the name of a field"), span)

    def attributes(self, opening: str, closing: str, expected: str) -> tuple[ast.Attribute, ...]:
        """Read names with types, in brackets."""
        opened = self.token.start
        self.expect(opening)
        attributes: list[ast.Attribute] = []
        while self.token.kind != closing or attributes:
            start = self.token.start
            name = self.expect("name", expected).text
            self.expect(":")
            attributes.append(ast.Attribute(name, self.type_name(), self.since(start)))
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
            self.draft.directives.append(ast.Directive(kind, name, tuple(options), span))

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

    # -- names and strings ---------------------------------------------------------------------------------------------

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

    def string(self) -> str:
        """Read a string and return what it says."""
        if self.token.kind != "string":
            self.fail("a string")
        token = self.advance()
        return string_value(self.source, token, DL_ESCAPES, code_points=False)


def bound_variables(body: ast.Formula) -> tuple[ast.Variable, ...]:
    """Return the variables that a body binds, each once, in the order in which they occur.

    Of a disjunction these are the variables that each of its parts binds.

    >>> from upheld.language.syntax.files import read_query
    >>> body = read_query("p(x, y), !q(y, _), (r(z, u) ; z = 1), n = count : { r(x, w) }, n > 2", "dl")
    >>> [v.name for v in bound_variables(body)]
    ['x', 'y', 'z', 'n']
    """
    by_name: dict[str, ast.Variable] = {}
    for variable in _bound(body):
        by_name.setdefault(variable.name, variable)
    return tuple(by_name.values())


def _bound(formula: ast.Formula) -> Iterator[ast.Variable]:
    match formula:
        case ast.Atom():
            yield from ast.variables(formula, in_aggregates=False)
        case ast.Test(operator="=", terms=terms):
            yield from (term for term in terms if isinstance(term, ast.Variable))
        case ast.Conjunction(formulas=parts):
            for part in parts:
                yield from _bound(part)
        case ast.Disjunction(formulas=parts):
            first, *others = (list(_bound(part)) for part in parts)
            names = [{variable.name for variable in other} for other in others]
            yield from (variable for variable in first if all(variable.name in some for some in names))
        case _:
            return
