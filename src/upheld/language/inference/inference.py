"""Types of columns, variables and expressions, by declaration or by use.

Each of them is a *slot* with the primitive types it may still have. Using one value in two places makes their slots
one; a slot with no type left is a clash, told with both places. A number literal may be any numeric type, and is a
`number` where nothing says otherwise. The slot of a record has a *shape* as well: a declared type, or slots for its
fields.
"""

from __future__ import annotations

from collections.abc import Sequence

from upheld.base.errors import count, nearest, quote
from upheld.base.source import Span
from upheld.language.ast import Atom, Call, Clause, Constant, FunctorDeclaration, Negation, Term, Test, Variable
from upheld.language.core import Aggregation
from upheld.language.disjunction import literals
from upheld.language.draft import Draft
from upheld.language.inference.declared import TypeTable
from upheld.language.types.aggregates import COLUMNS, is_of_terms
from upheld.language.types.columns import ColumnType, column_type, plain_name
from upheld.language.types.functors import (
    ALL,
    CONSTRAINTS,
    DATES,
    NUMERIC,
    ORDERED,
    PLAIN,
    SIGNATURES,
    Signature,
    is_user_defined,
    signatures_of,
)
from upheld.language.types.records import BRACKETS, NIL, RECORD, Field, RecordType, is_functor

#: The types that a literal may have. Of several, the first one of `_PREFERRED` is chosen where nothing else decides.
_LITERALS = {
    "number": NUMERIC | {"decimal"},
    "unsigned": frozenset({"unsigned"}),
    "float": frozenset({"float", "decimal"}),
    "symbol": DATES | {"symbol"},
    "boolean": frozenset({"boolean"}),
    "record": frozenset({"record"}),
    "term": frozenset({"term"}),
    "null": ORDERED,
}
_PREFERRED = ("symbol", "number", "float", "date")

#: The types of what aggregates keep for a group and of their results, where the type of the values does not matter.
_KEPT = {"n": "number", "exact": "symbol", "mean": "float", "decimals": "number", "result": "term"}

#: The types that the facts at hand may have. As with literals, whole numbers fit every numeric type: use decides.
_KNOWN = {"number": NUMERIC}

#: The types of the fields of records.
_IN_RECORDS = ALL - {"term"}

#: The number of all facts; rules are numbered from zero.
FACTS = -1


class Shape:
    """The records that a slot holds: their declared type, or the slots of their fields, or neither."""

    def __init__(self, declared: RecordType | None = None, fields: tuple[Slot, ...] | None = None):
        self.declared, self.fields = declared, fields
        self._type: RecordType | None = declared

    def type(self) -> RecordType:
        """Return the type of the records in the end."""
        if self._type is None:
            self._type = RecordType("[...]")  # before its fields, which may be such records themselves
            if self.fields is not None:
                self._type.branches[BRACKETS] = tuple(slot.type() for slot in self.fields)
        return self._type

    def __str__(self) -> str:
        if self.declared is not None:
            return quote(self.declared.name)
        return "a record" if self.fields is None else f"a record of {count(len(self.fields), 'field')}"


class Slot:
    """A place for a type. `allowed` is what it may still be, `reason` and `span` what last narrowed it."""

    __slots__ = ("allowed", "parent", "reason", "shape", "span")

    def __init__(
        self, allowed: frozenset[str] = ALL, reason: str = "", span: Span | None = None, shape: Shape | None = None
    ):
        self.allowed, self.reason, self.span, self.shape = allowed, reason, span, shape
        self.parent: Slot | None = None

    def root(self) -> Slot:
        slot = self
        while slot.parent is not None:
            if slot.parent.parent is not None:
                slot.parent = slot.parent.parent  # halves the path for the next walk
            slot = slot.parent
        return slot

    def type(self) -> str:
        """Return the type the slot has in the end."""
        root = self.root()
        allowed = root.allowed
        if allowed == _LITERALS[RECORD]:
            root.shape = root.shape or Shape()
            return root.shape.type()
        if len(allowed) == 1:
            (only,) = allowed
            return column_type(only) or only
        chosen = next((type for type in _PREFERRED if type in allowed), "symbol")
        return column_type(chosen) or chosen


class Inference:
    """The types of a program whose clauses have been brought to flat form."""

    def __init__(self, draft: Draft):
        self.draft = draft
        self.table = TypeTable(draft.program.types, draft)
        self.columns: dict[str, tuple[Slot, ...]] = {}
        self.declared: dict[str, tuple[str, ...]] = {}
        self._variables: dict[tuple[int, str], Slot] = {}
        # By clause and object: alternatives of one disjunction share objects, but not the types of their variables.
        self._uses: dict[tuple[int, int], Slot] = {}
        self._functors = {f"@{f.name}": self._has_function(f) for f in draft.program.functors}
        self._fields: dict[tuple[int, int], tuple[Slot, ...]] = {}
        self._declare()
        for fact in draft.facts:
            self._fact(fact.heads[0])
        for number, clause in enumerate(draft.rules):
            self._clause(number, clause)
        for aggregation in draft.aggregations.values():
            self._aggregation(aggregation)

    # -- what the core is made from ------------------------------------------------------------------------------------

    def column_types(self, predicate: str) -> tuple[str, ...]:
        types = [slot.type() for slot in self.columns[predicate]]
        nullable = self.draft.nullable.get(predicate)
        if nullable is None:
            return tuple(types)
        return tuple(column_type(f"{t}?") or t if null else t for t, null in zip(types, nullable, strict=True))

    def operand_type(self, number: int, operation: Call | Test) -> str:
        """Return the type that an operation of a clause works on: that of `T`, or of its first argument."""
        return self._uses[number, id(operation)].type()

    def field_types(self, number: int, constructed: Call) -> tuple[str, ...]:
        """Return the types of the fields of a record that a clause constructs."""
        return tuple(slot.type() for slot in self._fields[number, id(constructed)])

    # -- slots ---------------------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        for declaration in self.draft.program.declarations:
            slots = []
            for attribute in declaration.attributes:
                primitive = self.table.known(attribute.type, attribute.span, self.draft)
                allowed = frozenset({primitive}) if primitive else ALL
                type = self.table.without_sign(attribute.type)
                shape = Shape(structure) if (structure := self.table.structure(type)) else None
                slots.append(Slot(allowed, f"declared {attribute.type} here", attribute.span, shape))
            self.columns.setdefault(declaration.name, tuple(slots))
            names = tuple(self.table.without_sign(a.type) for a in declaration.attributes)
            self.declared.setdefault(declaration.name, names)
        everything_is = frozenset({"term"}) if self.draft.program.dialect == "dlog" else ALL - {"term"}
        for name, arity in self.draft.arities.items():
            if name in self.columns:
                continue
            known = self.draft.known_types.get(name)
            if known is not None and len(known) == arity and self.draft.program.dialect != "dlog":
                self.columns[name] = tuple(
                    Slot(_known(t), f"{t} in the facts given", shape=self._known_shape(t)) for t in known
                )
            else:
                # An aggregate may keep a number for a group where everything else is a term.
                allowed = ALL if name in self.draft.aggregations else everything_is
                self.columns[name] = tuple(Slot(allowed) for _ in range(arity))

    def _known_shape(self, type: str) -> Shape | None:
        """Return the shape of records that are known by their type."""
        if not isinstance(type, RecordType) or not type.branches:
            return None
        if (declared := self.table.structure(type.name)) or BRACKETS not in type.branches:
            return Shape(declared or type)
        known: dict[int, Shape] = {}

        def shape(type: RecordType) -> Shape:
            if id(type) not in known:
                known[id(type)] = new = Shape()  # before its fields, which may be such records themselves
                new.fields = tuple(
                    Slot(_known(f), shape=shape(f) if isinstance(f, RecordType) and f.branches else None)
                    for f in type.branches[BRACKETS]
                )
            return known[id(type)]

        return shape(type)

    def _fact(self, atom: Atom) -> None:
        for term, column in zip(atom.terms, self.columns[atom.predicate], strict=True):
            if isinstance(term, Constant) and term.type != RECORD:  # most terms by far: no slot of their own
                self._narrow(column, _LITERALS[term.type], f"{_kind(term)} here", term.span)
            else:
                self._join(self._slot(FACTS, term), column, term.span)

    def _clause(self, number: int, clause: Clause) -> None:
        self._atom(number, clause.heads[0])
        for literal in literals(clause):
            match literal:
                case Atom():
                    self._atom(number, literal)
                case Negation(formula=Atom() as atom):
                    self._atom(number, atom)
                case Test(operator=operator, terms=terms):
                    self._uses[number, id(literal)] = self._apply(number, CONSTRAINTS[operator], terms)

    def _aggregation(self, aggregation: Aggregation) -> None:
        """Unify the column types of an aggregate's relation with the types of the aggregated facts."""
        span, function = aggregation.span, aggregation.function
        columns, body = self.columns[aggregation.relation], self.columns[aggregation.body]
        for column, group in zip(columns, aggregation.groups):
            self._join(column, body[group], span)
        numbers = dict(zip(COLUMNS[function], columns[len(aggregation.groups) :], strict=True))
        if aggregation.target is not None:
            target = body[aggregation.target]
            what, of = NUMERIC | {"decimal"}, "numbers"
            if is_of_terms(function):
                what, of = frozenset({"term"}), "terms"
            elif function in ("min", "max"):
                what, of = what | DATES | {"boolean"}, "numbers and dates"
            self._narrow(target, what, f"{quote(function)} is of {of}", span)
            for name in ("sum", "min", "max"):
                if name in numbers:
                    self._join(numbers[name], target, span)
        for name, type in _KEPT.items():
            if name in numbers:
                self._narrow(numbers[name], frozenset({type}), f"a result of {function} here", span)

    def _atom(self, number: int, atom: Atom) -> None:
        for term, column in zip(atom.terms, self.columns[atom.predicate], strict=True):
            self._join(self._slot(number, term), column, term.span)

    def _slot(self, number: int, term: Term) -> Slot:
        match term:
            case Variable(name=name):
                return self._variables.setdefault((number, name), Slot())
            case Constant(type="record", value=constructor):
                return self._constructed(str(constructor), (), term.span)
            case Constant():
                return Slot(_LITERALS[term.type], f"{_kind(term)} here", term.span)
            case Call(functor=functor) if field := Field.of(functor):
                return self._taken(number, term, field)
            case Call(functor=functor, arguments=arguments) if is_functor(functor):
                fields = tuple(self._slot(number, a) for a in arguments)
                for part, argument in zip(fields, arguments):
                    self._narrow(part, _IN_RECORDS, "a field of a record here", argument.span)
                self._fields[number, id(term)] = fields
                return self._constructed(functor, fields, term.span, arguments)
            case Call(arguments=arguments) if self.draft.program.dialect == "dlog":
                self._uses[number, id(term)] = whole = Slot(_LITERALS["term"])
                for argument in arguments:
                    self._join(self._slot(number, argument), whole, argument.span)
                return whole
            case Call():
                return self._call(number, term)
        raise AssertionError("a wildcard where a value is needed")

    def _has_function(self, declared: FunctorDeclaration) -> bool:
        """Check a user-defined functor; return whether a Python function of its types is registered."""
        attributes = [(a.type, a.span) for a in declared.arguments] + [(declared.result, declared.span)]
        types = [self.table.known(type, span, self.draft) for type, span in attributes]
        if None in types:
            return False
        defined = signatures_of(f"@{declared.name}")
        if not defined:
            self.draft.problem(
                "missing-functor",
                f"there is no Python function for `@{declared.name}`",
                declared.span,
                note="a program declares a functor, and Python defines it",
                hint=f'decorate one with `@upheld.functor("{declared.name}", {types})`, and name its file with '
                "`--functors`",
            )
            return False
        (signature,) = defined
        if [*signature.arguments, signature.result] != types:
            registered = f"({', '.join(signature.arguments)}): {signature.result}"
            message = f"the Python function for `@{declared.name}` is registered with the types `{registered}`"
            note = "the primitive types of the declaration must equal the function's"
            self.draft.problem("functor-types", message, declared.span, note=note)
            return False
        return True

    def _is_defined(self, name: str) -> bool:
        """Return whether a user-defined functor can be called: by a program that declares it, or by any query."""
        return bool(signatures_of(name)) if self.draft.closed else self._functors.get(name, False)

    def _constructed(
        self, constructor: str, fields: tuple[Slot, ...], span: Span | None, terms: Sequence[Term] = ()
    ) -> Slot:
        """Return the slot of a record with such fields."""
        slot = Slot(_LITERALS[RECORD], "a record here", span, Shape(fields=fields))
        if constructor == NIL:
            slot.shape = Shape(fields=None)
        elif constructor != BRACKETS:
            declared = self.table.branches.get(constructor)
            if declared is None:
                self.draft.problem(
                    "unknown-branch",
                    f"unknown branch {quote(constructor)}",
                    span,
                    note="the branches are those that a `.type` declares, as in `.type Shape = Square {side: number}`",
                    hint=nearest(constructor, self.table.branches),
                )
                slot.shape = None
                return slot
            type, branch = declared
            slot.shape = Shape(type)
            if len(branch.fields) != len(fields):
                self.draft.problem(
                    "wrong-argument-count",
                    f"branch {quote(constructor)} has {count(len(branch.fields), 'field')}, not {len(fields)}",
                    span,
                    related=(("declared here", branch.span),) if branch.span else (),
                    note="a branch has a fixed number of fields",
                    hint="write `_` for a field that does not matter",
                )
                return slot
            for field, expected, term in zip(fields, self._field_slots(type, constructor), terms):
                self._join(field, expected, term.span)
        return slot

    def _field_slots(self, type: RecordType, constructor: str) -> tuple[Slot, ...]:
        """Return slots for the fields of a declared type."""
        return tuple(
            Slot(
                frozenset({field.plain_name if isinstance(field, ColumnType) else str(field)}),
                f"{field} (a field of {type.name})",
                shape=Shape(field) if isinstance(field, RecordType) else None,
            )
            for field in type.branches[constructor]
        )

    def _taken(self, number: int, call: Call, field: Field) -> Slot:
        """Return the slot of a field of a record."""
        fields = tuple(Slot() for _ in range(field.fields))
        (record,) = call.arguments
        whole = self._constructed(field.constructor, fields, call.span, (record,) * field.fields)
        self._join(whole, self._slot(number, record), call.span)
        taken = Slot(frozenset({"number"})) if field.index is None else fields[field.index]
        self._uses[number, id(call)] = taken
        return taken

    def _call(self, number: int, call: Call) -> Slot:
        if is_user_defined(call.functor) and not self._is_defined(call.functor):
            if call.functor not in self._functors:
                self.draft.problem(
                    "unknown-functor",
                    f"unknown functor {quote(call.functor)}",
                    call.span,
                    hint=nearest(call.functor, self._functors)
                    or f"declare it: `.functor {call.functor[1:]}(...): ...`",
                )
            return Slot()
        signatures = signatures_of(call.functor)
        if not signatures:
            self.draft.problem(
                "unknown-functor",
                f"unknown functor {quote(call.functor)}",
                call.span,
                # Short names are all similar: `log` is not a misspelt `lor`.
                hint=(nearest(call.functor, SIGNATURES) if len(call.functor) > 3 else None)
                or "the reference lists every functor",
            )
            return Slot()
        fitting = [s for s in signatures if len(s.arguments) == len(call.arguments)]
        if not fitting and signatures[0].folds and len(call.arguments) > 2:
            fitting = [Signature(("T",) * len(call.arguments), "T", signatures[0].ranges_over)]
        if not fitting:
            counts = sorted({len(s.arguments) for s in signatures})
            takes = " or ".join(map(str, counts)) + (" or more" if signatures[0].folds else "")
            self.draft.problem(
                "wrong-argument-count",
                f"functor {quote(call.functor)} takes {takes} {'argument' if counts == [1] else 'arguments'}, "
                f"not {len(call.arguments)}",
                call.span,
                note="a functor has a fixed number of arguments",
                hint="add the missing arguments, or remove the extra ones",
            )
            return Slot()
        signature = fitting[0]
        hint = "`cat` joins texts, as in `cat(x, y)`" if call.functor == "+" else None
        first = self._apply(number, signature, call.arguments, hint)
        self._uses[number, id(call)] = first
        if signature.result == "T":
            return first
        if signature.result == "decimal":
            return self._decimal(call)
        return Slot(frozenset({signature.result}), f"a result of {call.functor} here", call.span)

    def _decimal(self, call: Call) -> Slot:
        """Return the slot of a decimal whose digits are arguments."""
        if (type := decimal_of(call)) is None:
            self.draft.problem(
                "unknown-type",
                f"{quote(call.functor)} names no type of decimals",
                call.span,
                note="its second and third argument are numbers: the digits of the result, and those after the point",
                hint="write for example `to_decimal(x, 10, 2)`",
            )
            return Slot(frozenset({"decimal"}))
        return Slot(frozenset({type.plain_name}), f"a result of {call.functor} here", call.span)

    def _apply(self, number: int, signature: Signature, terms: Sequence[Term], hint: str | None = None) -> Slot:
        """Fit terms to the arguments of a signature; return the slot of `T`, or of the first argument."""
        shared = Slot(signature.ranges_over)
        slots = []
        for argument, term in zip(signature.arguments, terms, strict=True):
            slot = self._slot(number, term)
            if argument == "T":
                self._join(slot, shared, term.span, hint)
            else:
                self._narrow(slot, frozenset({argument}), f"must be {argument} here", term.span)
            slots.append(slot)
        return shared if "T" in signature.arguments else slots[0]

    def _narrow(self, slot: Slot, allowed: frozenset[str], reason: str, span: Span | None) -> None:
        root = slot.root()
        both = root.allowed & allowed or _decimals(root.allowed, allowed)
        if not both:
            self._clash(_own(slot, allowed), allowed, reason, span)
        elif both != root.allowed:
            root.allowed, root.reason, root.span = both, reason, span

    def _join(self, one: Slot, other: Slot, span: Span | None, hint: str | None = None) -> None:
        a, b = one.root(), other.root()
        if a is b:
            return
        both = a.allowed & b.allowed or _decimals(a.allowed, b.allowed)
        if not both:
            self._clash(_own(other, a.allowed), a.allowed, a.reason, a.span or span, span, hint)
            return
        keep, drop = (a, b) if len(a.allowed) <= len(b.allowed) and a.span else (b, a)
        if keep.allowed != both:
            keep.reason, keep.span = drop.reason, drop.span
        keep.allowed = both
        drop.parent = keep
        self._join_shapes(keep, a.shape, b.shape, span)

    def _join_shapes(self, slot: Slot, one: Shape | None, other: Shape | None, span: Span | None) -> None:
        """Give a slot what two shapes say together; report it if they contradict each other."""
        slot.shape = one or other
        if one is None or other is None:
            return
        known, second = one, other
        if one.declared is None and (other.declared is not None or one.fields is None):
            known, second = other, one
        slot.shape = known  # before its fields, which may hold such records themselves
        if known.declared is None:
            fits = self._joined_fields(second.fields, known.fields, span)
        elif second.declared is None:
            fields = self._field_slots(known.declared, BRACKETS) if BRACKETS in known.declared.branches else None
            fits = fields is not None and self._joined_fields(second.fields, fields, span)
        else:
            fits = second.declared is known.declared  # as strings, all record types are equal
        if not fits:
            self.draft.problem(
                "type-clash",
                f"{one} where {other} is needed",
                span,
                note="a record has the fields of its type; values of two declared types are never equal",
            )

    def _joined_fields(
        self, fields: tuple[Slot, ...] | None, expected: tuple[Slot, ...] | None, span: Span | None
    ) -> bool:
        """Return whether records may have both fields, which are joined then. `nil` has none."""
        if fields is None or expected is None:
            return True
        if len(fields) != len(expected):
            return False
        for field, other in zip(fields, expected):
            self._join(field, other, span)
        return True

    def _clash(
        self,
        slot: Slot,
        allowed: frozenset[str],
        reason: str,
        span: Span | None,
        at: Span | None = None,
        hint: str | None = None,
    ) -> None:
        here = ALL if self.draft.program.dialect == "dlog" else ALL - {"term"}
        one, other = _spell(allowed & here or allowed), _spell(slot.allowed & here or slot.allowed)
        related = []
        if at is not None and span is not None and span is not at:
            related.append((f"{one}: {reason}", span))
        if slot.span:
            related.append((f"{other}: {slot.reason}", slot.span))
        elif slot.reason:
            other = slot.reason
        self.draft.problem(
            "type-clash",
            f"{one} where {other} is needed",
            at or span,
            related=tuple(related),
            note="a variable or column has one type everywhere",
            hint=hint if "symbol" in allowed and not allowed & NUMERIC else None,
        )


def _own(slot: Slot, allowed: frozenset[str]) -> Slot:
    """Return the slot itself if what it was declared as rules out these types, or else the one it has become part of.

    Columns of several relations that share a variable are one slot; the declaration that matters is the column's own.
    """
    return slot if slot.span is not None and not slot.allowed & allowed else slot.root()


def _kind(term: Constant) -> str:
    return "a string" if term.type == "symbol" else f"a {term.type}"


def _known(type: str) -> frozenset[str]:
    """Return the types that facts at hand of some type may have."""
    name = plain_name(type)
    return _KNOWN.get(name, frozenset({name}))


def decimal_of(call: Call) -> ColumnType | None:
    """Return the type of a decimal that a call names by its arguments."""
    digits = [a.value for a in call.arguments[1:] if isinstance(a, Constant) and a.type == "number"]
    type = column_type(f"decimal({', '.join(map(str, digits))})") if len(digits) == 2 else None
    return type if isinstance(type, ColumnType) else None


def _decimals(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Return the decimals with certain digits among types that are decimals of any digits, and types of other sets."""
    for some, certain in ((one, other), (other, one)):
        if "decimal" in some and len(certain) == 1 and next(iter(certain)).startswith("decimal("):
            return certain
    return frozenset()


def _spell(types: frozenset[str]) -> str:
    if types >= ORDERED:
        return "any type"
    if "symbol" in types:  # a string may be a date, which goes without saying
        types -= DATES
    if types & NUMERIC:
        types -= {"decimal"}
    if types == PLAIN:
        return "a number or symbol"
    return "number" if types == NUMERIC else " or ".join(sorted(types))
