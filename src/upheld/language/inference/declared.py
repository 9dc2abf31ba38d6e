"""The types that a program declares: subtypes and unions of the primitive ones, records and algebraic data types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from upheld.base.errors import nearest, quote
from upheld.base.source import Span
from upheld.language.ast import Branch, TypeDeclaration
from upheld.language.draft import Draft
from upheld.language.types.columns import CODED, MOST_DIGITS, NULLS, column_type, plain_name
from upheld.language.types.records import RECORD, RecordType

#: The primitive types that programs name. A record type has the name that its declaration gives it, and a program may
#: declare a type with the name of any other type.
_NAMED = (*NULLS, "term")

#: Names of the types in other languages.
_ELSEWHERE = {
    elsewhere: f"write `{type}`"
    for type, names in {
        "number": "int integer long int32 int64 i32 i64 bigint",
        "unsigned": "uint uint32 uint64 u32 u64",
        "float": "double real f64 float64",
        "symbol": "string str text varchar char",
        "boolean": "bool bit",
        "timestamp": "datetime timestamptz time",
        "decimal(18, 2)": "decimal numeric money",
    }.items()
    for elsewhere in names.split()
}
_TYPES = (
    "the types are `number`, `unsigned`, `float`, `symbol`, `date`, `timestamp`, `boolean`, `decimal(p, s)`, and the "
    "types that the program declares"
)


class TypeTable:
    """Declared types. Each stands on one primitive type; `below` are the types whose values all belong to it.

    Record types and algebraic data types have values of their own, and stand on the type `record` that has no name.
    """

    def __init__(self, declarations: Sequence[TypeDeclaration], draft: Draft):
        self._primitive: dict[str, str] = {name: name for name in _NAMED}
        self._below: dict[str, frozenset[str]] = {}
        self._declared: dict[str, TypeDeclaration] = {}
        self._structures: dict[str, RecordType] = {}
        #: The branches of algebraic data types by constructor, each with its type.
        self.branches: dict[str, tuple[RecordType, Branch]] = {}
        for declaration in declarations:
            if declaration.name in self._declared or declaration.name in _NAMED:
                draft.problem(
                    "duplicate-type",
                    f"type {quote(declaration.name)} is declared twice",
                    declaration.span,
                    related=_declared_at(self._declared.get(declaration.name)),
                )
                continue
            self._declared[declaration.name] = declaration
        for name, declaration in self._declared.items():
            if declaration.branches:
                self._primitive[name] = RECORD
                self._structures[name] = RecordType(name)
            else:
                self._resolve(name, declaration, draft)
        for name, declaration in self._declared.items():
            self._structure(name, declaration, draft)
        self._fill_below()

    def _built_in(self, name: str) -> str | None:
        """Return the name of a type that no program declares, without the sign of nulls."""
        type = None if name in self._declared else column_type(name)
        return None if type is None or type == RECORD else plain_name(type)

    def without_sign(self, name: str) -> str:
        """Return the name of the type of the values of a column that are not null: `T` for `T?`."""
        return name if name in self._declared else name.removesuffix("?")

    def structure(self, name: str) -> RecordType | None:
        """Return the record type or algebraic data type of that name, or None for any other type."""
        return self._structures.get(name)

    def below(self, name: str) -> frozenset[str]:
        """Return the types whose values all belong to this one, itself included."""
        return self._below.get(name, frozenset({name}))

    def known(self, name: str, span: Span | None, draft: Draft) -> str | None:
        """Return the built-in type that `name` stands on; report it if there is no such type."""
        plain = self.without_sign(name)
        if (built_in := self._built_in(plain)) is not None:
            return built_in
        if plain not in self._primitive and plain not in self._declared:
            digits = f"a decimal has 1 to {MOST_DIGITS} digits, as many or fewer of them after the point"
            draft.problem(
                "unknown-type",
                f"unknown type {quote(name)}",
                span,
                note=_TYPES,
                hint=_ELSEWHERE.get(plain.lower())
                or (digits if plain.startswith("decimal(") else None)
                or nearest(plain, [*NULLS, *CODED, *self._declared])
                or "use one of these, or declare it with `.type`",
            )
        if plain != name and self._primitive.get(plain) == RECORD:
            draft.problem(
                "unsupported-null",
                f"{quote(name)} is a record type with nulls",
                span,
                note="a record type has the value `nil`, and its columns have no nulls",
                hint=f"write `{plain[:40]}`",
            )
        return self._primitive.get(plain)

    def _resolve(self, name: str, declaration: TypeDeclaration, draft: Draft) -> None:
        """Find the primitive types that a declared type rests on; there must be exactly one."""
        found: set[str] = set()
        seen: set[str] = set()
        pending = list(declaration.parents)
        while pending:
            parent = pending.pop()
            if parent == name:
                draft.problem(
                    "cyclic-type",
                    f"type {quote(name)} is defined by itself",
                    declaration.span,
                    note="each type is derived from one that needs no declaration, such as `number`",
                )
                return
            if (built_in := self._built_in(parent)) is not None and parent.endswith("?"):
                draft.problem(
                    "unsupported-null",
                    f"type {quote(name)} is derived from {quote(parent)}",
                    declaration.span,
                    note="columns have nulls, types do not",
                    hint=f"write `?` behind the type of a column, as in `.decl p(x: {name[:40]}?)`",
                )
                return
            if built_in is not None:
                found.add(built_in)
            elif parent in self._declared and self._declared[parent].branches:
                if declaration.kind == "subtype" or len(declaration.parents) > 1:
                    draft.problem(
                        "record-subtype",
                        f"type {quote(name)} is a subtype or union of {quote(parent)}",
                        declaration.span,
                        note="record types and algebraic data types have no subtypes and are in no unions",
                        hint=f"write `.type {name[:40]} = {parent[:40]}` for another name of the type",
                    )
                    return
                found.add(parent)
            elif parent in self._declared:
                if parent not in seen:
                    seen.add(parent)
                    pending.extend(self._declared[parent].parents)
            else:
                self.known(parent, declaration.span, draft)
                return
        if len(found) == 1:
            (only,) = found
            self._primitive[name] = RECORD if only in self._declared else only
        elif found:
            draft.problem(
                "mixed-union",
                f"type {quote(name)} joins {' and '.join(sorted(found))}",
                declaration.span,
                note="all members of a union have the same primitive type",
            )

    def _structure(self, name: str, declaration: TypeDeclaration, draft: Draft) -> None:
        """Enter the fields of a record type, of each branch of an algebraic data type, or of what a name stands for."""
        if not declaration.branches:
            if self._primitive.get(name) == RECORD:
                self._structures[name] = self._aliased(declaration)
            return
        structure = self._structures[name]
        for branch in declaration.branches:
            for i, field in enumerate(branch.fields):
                if field.name in [f.name for f in branch.fields[:i]]:
                    draft.problem(
                        "duplicate-attribute",
                        f"field {quote(field.name)} of {quote(name)} is declared twice",
                        field.span,
                        hint="give each field its own name",
                    )
                if self.known(field.type, field.span, draft) and self.without_sign(field.type) != field.type:
                    draft.problem(
                        "unsupported-field",
                        f"field {quote(field.name)} of {quote(name)} may be null",
                        field.span,
                        note="columns of relations hold nulls, fields of records do not",
                        hint="make it an algebraic data type with a branch that has no such field",
                    )
            structure.branches[branch.name] = tuple(self._field_type(f.type) for f in branch.fields)
            if declaration.kind == "record":
                continue
            if branch.name in self.branches:
                _, first = self.branches[branch.name]
                draft.problem(
                    "duplicate-branch",
                    f"branch {quote(branch.name)} is declared twice",
                    branch.span,
                    related=(("declared here first", first.span),) if first.span else (),
                    note="a branch belongs to one type, which its name alone must show",
                )
                continue
            self.branches[branch.name] = structure, branch

    def _field_type(self, name: str) -> str:
        if self._primitive.get(name) == RECORD:
            return self._structures.get(name) or self._aliased(self._declared[name])
        primitive = self._built_in(self.without_sign(name)) or self._primitive.get(name, "symbol")
        return column_type(primitive) or primitive

    def _aliased(self, declaration: TypeDeclaration) -> RecordType:
        """Return the type that the declaration gives another name to."""
        while not declaration.branches:
            declaration = self._declared[declaration.parents[0]]
        return self._structures[declaration.name]

    def _fill_below(self) -> None:
        """A subtype is below its parent; the members of a union are below the union."""
        lower: dict[str, set[str]] = defaultdict(set)  # of faulty types too, as members of others
        for name, declaration in self._declared.items():
            if name not in self._primitive:
                continue
            for parent in declaration.parents:
                if declaration.kind == "subtype":
                    lower[parent].add(name)
                else:
                    lower[name].add(parent)
                    if len(declaration.parents) == 1:  # an alias
                        lower[parent].add(name)
            # Whatever its declaration, a type is part of its primitive type.
            lower[self._primitive[name]].add(name)
        for name in {*self._primitive, *self._primitive.values()}:
            seen, pending = {name}, [name]
            while pending:
                for other in lower[pending.pop()] - seen:
                    seen.add(other)
                    pending.append(other)
            self._below[name] = frozenset(seen)


def _declared_at(declaration: TypeDeclaration | None) -> tuple[tuple[str, Span], ...]:
    return (("declared here first", declaration.span),) if declaration and declaration.span else ()
