"""Programs as text. The text of a parsed tree parses to an equal tree.

Nodes are split into strings and smaller nodes on an explicit stack, so trees of any height can be printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from upheld.language import ast
from upheld.language.ast import prints
from upheld.language.syntax import directives, rdfox, reserved
from upheld.language.syntax.parser import AND, COMPARISON, COMPARISONS, LITERAL, OR, POWER, PREFIX, TERM, TIGHTEST
from upheld.language.terms import vocabulary
from upheld.language.types.columns import ColumnType
from upheld.language.types.primitive import quoted

Node = ast.Term | ast.Formula
#: A text, or a node with the loosest level at which it needs no brackets.
Part = str | tuple[Node, int]
#: The level of a node's outermost operator, and what the node consists of.
Parts = tuple[int, list[Part]]


def to_text(thing: ast.Program | ast.Clause | ast.Formula | ast.Term, dialect: str = "dl") -> str:
    """Return a program, clause, formula or term as text; a program in its own dialect.

    >>> to_text(ast.Call("*", (ast.Call("+", (ast.Variable("x"), ast.Constant(1, "number"))), ast.Variable("y"))))
    '(x + 1) * y'
    """
    if isinstance(thing, ast.Program):
        return program_text(thing)
    if isinstance(thing, ast.Clause):
        if thing.constraint and thing.body is not None:
            return f".constraint {thing.heads[0].predicate} :- {to_text(thing.body, dialect)}."
        heads = ", ".join(to_text(head, dialect) for head in thing.heads)
        body = "" if thing.body is None else f" :- {to_text(thing.body, dialect)}"
        return f"{heads}{body} ." if dialect == "dlog" else f"{heads}{body}."
    return _render(thing, _dlog if dialect == "dlog" else _dl)


@prints(ast.Program)
def program_text(program: ast.Program) -> str:
    """Return a program as text of its dialect."""
    return "".join(f"{line}\n" for line in _lines(program))


def _render(node: Node, take_apart: Callable[[Node], Parts]) -> str:
    texts: list[str] = []
    pending: list[Part] = [(node, OR)]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            texts.append(part)
            continue
        own, parts = take_apart(part[0])
        pending.extend(reversed(parts if own >= part[1] else ["(", *parts, ")"]))
    return "".join(texts)


# -- both dialects ----------------------------------------------------------------------------------------------------


def _listed(before: str, nodes: Sequence[Node], after: str) -> Parts:
    """Return terms with commas between them, in brackets."""
    return TIGHTEST, [before, *_separated(nodes, ", ", TERM), after]


def _separated(nodes: Sequence[Node], separator: str, level: int) -> Iterator[Part]:
    for i, node in enumerate(nodes):
        if i:
            yield separator
        yield node, level


def _infix(operator: str, level: int, operands: Sequence[Node]) -> Parts:
    left, right = operands
    before = level + (level in (COMPARISON, POWER))
    behind = level + (level != POWER)
    return level, [(left, before), f" {operator} ", (right, behind)]


def _joined(node: ast.Conjunction | ast.Disjunction) -> Parts:
    if isinstance(node, ast.Conjunction):
        return AND, list(_separated(node.formulas, ", ", LITERAL))
    return OR, list(_separated(node.formulas, "; ", AND))


def _constant(constant: ast.Constant) -> str:
    if isinstance(constant.type, ColumnType):
        return constant.type.literal(constant.value)
    match constant.type:
        case "boolean":
            return "true" if constant.value else "false"
        case "symbol":
            return quoted(str(constant.value))
        case "unsigned":
            return f"{constant.value}u"
        case "float":
            return repr(float(constant.value))
        case _:
            return str(constant.value)


# -- .dl --------------------------------------------------------------------------------------------------------------


def _dl(node: Node) -> Parts:
    match node:
        case ast.Variable(name=name):
            return TIGHTEST, [name]
        case ast.Wildcard():
            return TIGHTEST, ["_"]
        case ast.Constant():
            text = _constant(node)
            return (PREFIX if text.startswith("-") else TIGHTEST), [text]
        case ast.Call(functor=functor, arguments=(_, _) as operands) if functor in reserved.OPERATORS:
            return _infix(functor, reserved.OPERATORS[functor], operands)
        case ast.Call(functor=functor, arguments=(operand,)) if functor in reserved.PREFIXES:
            if functor != "-":
                return PREFIX, [f"{functor} ", (operand, PREFIX)]
            return PREFIX, ["-(", (operand, TERM), ")"] if _is_literal(operand) else ["-", (operand, PREFIX)]
        case ast.Call(functor="[]", arguments=terms):
            return _listed("[", terms, "]")
        case ast.Call(functor=name, arguments=terms) | ast.Atom(predicate=name, terms=terms):
            return _listed(f"{name}(", terms, ")")
        case ast.Test(operator=operator, terms=terms) if operator in COMPARISONS:
            return _infix(operator, COMPARISON, terms)
        case ast.Test(operator=operator, terms=terms):
            return _listed(f"{operator}(", terms, ")")
        case ast.Aggregate(function=function, target=target, body=body):
            before: list[Part] = [] if target is None else ["(", (target, TERM), ")"]
            return TIGHTEST, [function, *before, " : { ", (body, OR), " }"]
        case ast.Truth(value=value):
            return TIGHTEST, ["true" if value else "false"]
        case ast.Negation(formula=inner):
            # `!x = y` would do, and be read wrongly by people.
            return LITERAL, ["!", (inner, TERM if isinstance(inner, ast.Test) else LITERAL)]
        case ast.Exists() | ast.Grouping() | ast.Values():
            raise AssertionError("a formula of the other dialect")
        case _:
            return _joined(node)


def _is_literal(term: ast.Term) -> bool:
    """Tell whether a minus sign before the text of a term would make it a negative number."""
    match term:
        case ast.Constant(type="number" | "float"):
            return not _constant(term).startswith("-")
        case _:
            return False


def _lines(program: ast.Program) -> Iterator[str]:
    qualifiers: dict[str, list[str]] = {}
    hints: list[ast.Hint] = []
    for hint in program.hints:
        if hint.text.startswith(".decl "):
            _, relation, word = hint.text.split()
            qualifiers.setdefault(relation, []).append(word)
        else:
            hints.append(hint)
    for declared in program.types:
        yield _type_declaration(declared)
    for functor in program.functors:
        arguments = ", ".join(f"{a.name}: {a.type}" if a.name else a.type for a in functor.arguments)
        yield f".functor {functor.name}({arguments}): {functor.result}"
    for declaration in program.declarations:
        yield " ".join((_declaration(declaration), *qualifiers.pop(declaration.name, ())))
    for directive in program.directives:
        yield _directive(directive)
    for hint in hints:
        yield hint.text
    for clause in program.clauses:
        yield to_text(clause, program.dialect)
    for subsumption in program.subsumptions:
        dominated, dominating = map(to_text, (subsumption.dominated, subsumption.dominating))
        yield f"{dominated} <= {dominating} :- {to_text(subsumption.body)}."


def _type_declaration(declared: ast.TypeDeclaration) -> str:
    if declared.kind == "record":
        (only,) = declared.branches
        return f".type {declared.name} = [{_attributes(only.fields)}]"
    if declared.kind == "adt":
        branches = (f"{branch.name[1:]} {{{_attributes(branch.fields)}}}" for branch in declared.branches)
        return f".type {declared.name} = {' | '.join(branches)}"
    sign = "=" if declared.kind == "union" else "<:"
    return f".type {declared.name} {sign} {' | '.join(declared.parents)}"


def _attributes(attributes: Sequence[ast.Attribute]) -> str:
    return ", ".join(f"{a.name}: {a.type}" for a in attributes)


def _declaration(declaration: ast.Declaration) -> str:
    return f".decl {declaration.name}({_attributes(declaration.attributes)})" + (
        f" {directives.EQUIVALENCE}" if declaration.equivalence else ""
    )


def _directive(directive: ast.Directive) -> str:
    options = ", ".join(f"{key}={quoted(value)}" for key, value in directive.options)
    return f".{directive.kind} {directive.relation}" + (f"({options})" if options else "")


# -- .dlog ------------------------------------------------------------------------------------------------------------


def _dlog(node: Node) -> Parts:
    match node:
        case ast.Variable(name=name):
            return TIGHTEST, [f"?{name}"]
        case ast.Wildcard():
            return TIGHTEST, ["_"]
        case ast.Constant():
            return TIGHTEST, [_constant(node)]
        case ast.Call(functor="IN", arguments=(term, *members)):
            return COMPARISON, [(term, TERM), " IN (", *_separated(members, ", ", TERM), ")"]
        case ast.Call(functor="&&" | "||" as functor, arguments=operands):
            level = rdfox.OPERATORS[functor]
            return level, list(_separated(operands, f" {functor} ", level + 1))
        case ast.Call(functor=functor, arguments=(_, _) as operands) if functor in rdfox.OPERATORS:
            return _infix(functor, rdfox.OPERATORS[functor], operands)
        case ast.Call(functor="-" | "+" | "!" as functor, arguments=(operand,)):
            return PREFIX, [functor, (operand, PREFIX)]
        case ast.Call(functor=functor, arguments=terms):
            return _listed(f"{rdfox.SPELLINGS.get(functor, functor)}(", terms, ")")
        case ast.Atom(predicate=vocabulary.TRIPLE, terms=(_, _, _) as terms):
            return _listed("[", terms, "]")
        case ast.Atom(predicate=name, terms=terms):
            return _listed(f"{name}(", terms, ")")
        case ast.Test(operator="=", terms=(ast.Variable(name=name), ast.Call() | ast.Constant() as value)):
            return TIGHTEST, ["BIND(", (value, TERM), f" AS ?{name})"]
        case ast.Test() | ast.Truth():
            return TIGHTEST, ["FILTER(", *_condition(node), ")"]
        case ast.Negation(formula=ast.Test() | ast.Truth() as inner):
            return TIGHTEST, ["FILTER(!(", *_condition(inner), "))"]
        case ast.Negation(formula=formula):
            return LITERAL, ["NOT ", (formula, LITERAL)]
        case ast.Exists(local=local, body=body):
            return TIGHTEST, ["EXISTS ", *_separated(local, ", ", TERM), " IN (", (body, OR), ")"]
        case ast.Values(variables=names, rows=rows):
            table: list[Part] = [p for row in rows for p in ("(", *_separated(row, " ", TERM), ") ")]
            return TIGHTEST, ["VALUES (", *_separated(names, " ", TERM), ") { ", *table, "}"]
        case ast.Grouping(body=body, groups=groups, results=results):
            by: list[Part] = [" ON ", *_separated(groups, " ", TERM)] if groups else []
            return TIGHTEST, ["AGGREGATE(", (body, OR), *by, *(p for result in results for p in _result(result)), ")"]
        case ast.Aggregate():
            raise AssertionError("an aggregate of the other dialect")
        case _:
            return _joined(node)


def _result(result: ast.Result) -> list[Part]:
    arguments: list[Part] = list(_separated(result.arguments, ", ", TERM)) or ["*"]
    distinct = "DISTINCT " if result.distinct else ""
    return [f" BIND {result.function}({distinct}", *arguments, f") AS ?{result.variable.name}"]


def _condition(test: ast.Test | ast.Truth) -> list[Part]:
    if isinstance(test, ast.Truth):
        return ["true" if test.value else "false"]
    if test.operator in COMPARISONS:
        return _infix(test.operator, COMPARISON, test.terms)[1]
    return [(test.terms[0], OR)]
