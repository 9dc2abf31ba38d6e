"""Components: `.comp` and `.init`, expanded before anything else reads the program.

An instance `.init x = C` adds the contents of the component `C` to the program, with `x.` before the names of the
relations and types that `C` declares. The program that results has no components.

A name within an instance means the innermost declaration: in an instance `x.y`, `r` is `x.y.r`, else `x.r`, else `r`.
A parameter means what its argument means where the argument was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any

from upheld.base.errors import Problem, count, nearest, quote
from upheld.base.limits import look
from upheld.base.source import Span
from upheld.language import ast

#: Instances of a program, with those that they contain, and components within each other or derived from each other.
INSTANCE_COUNT = 10_000
COMPONENT_DEPTH = 50

OVERRIDABLE = "overridable"


@dataclass
class Contents:
    """The statements of a program or of a component."""

    types: list[ast.TypeDeclaration] = field(default_factory=list)
    declarations: list[ast.Declaration] = field(default_factory=list)
    directives: list[ast.Directive] = field(default_factory=list)
    clauses: list[ast.Clause] = field(default_factory=list)
    subsumptions: list[ast.Subsumption] = field(default_factory=list)
    qualifiers: list[ast.Hint] = field(default_factory=list)
    hints: list[ast.Hint] = field(default_factory=list)
    components: list[Component] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    #: The relations named by `.override`.
    overridden: list[tuple[str, Span]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Reference:
    """`Name<arguments>`, as a base of a component or behind `.init`."""

    name: str
    arguments: tuple[str, ...]
    span: Span


@dataclass(frozen=True, eq=False)
class Instance:
    """`.init name = component`."""

    name: str
    component: Reference
    span: Span


@dataclass(frozen=True, eq=False)
class Component:
    """`.comp name<parameters> : bases { contents }`."""

    name: str
    parameters: tuple[str, ...]
    bases: tuple[Reference, ...]
    contents: Contents
    span: Span


def expanded(contents: Contents, problems: list[Problem]) -> Contents:
    """Return the contents of a program with its instances in place of its components.

    Mistakes in components are appended to `problems`.
    """
    if not contents.components and not contents.instances:
        return contents
    scopes = _Scopes(contents)
    problems += scopes.problems
    return contents if scopes.problems else _Expansion(contents, scopes, problems).program()


class _Scopes:
    """The components of a program and the scopes they stand in. `problems` holds the mistakes in their headers."""

    def __init__(self, contents: Contents):
        self.problems: list[Problem] = []
        self._top = {component.name: component for component in contents.components}
        self._parents: dict[Component, Component | None] = {}
        self._check_names(contents)
        pending: list[tuple[Component, Component | None]] = [(c, None) for c in reversed(contents.components)]
        while pending:
            component, parent = pending.pop()
            self._parents[component] = parent
            pending += ((inner, component) for inner in reversed(component.contents.components))
        for instance in contents.instances:
            self._check(instance.component, None)
        for component in self._parents:
            self._check_component(component)

    def component(self, name: str, scope: Component | None) -> Component | None:
        """Return the component that a name means within another one: in it, in its bases, around it, or None."""
        while scope is not None:
            for component in (scope, *self.ancestors(scope)):
                for inner in component.contents.components:
                    if inner.name == name:
                        return inner
            scope = self._parents[scope]
        return self._top.get(name)

    def around(self, component: Component) -> Component | None:
        """Return the component that another one stands in, where the names of its bases are looked up."""
        return self._parents[component]

    def ancestors(self, component: Component) -> Iterator[Component]:
        """Yield the components that a component is derived from, as far as they do not depend on its parameters."""
        seen: set[Component] = set()
        pending = [component]
        while pending:
            derived = pending.pop()
            for reference in derived.bases:
                base = (
                    None
                    if reference.name in derived.parameters
                    else self.component(reference.name, self.around(derived))
                )
                if base is not None and base not in seen:
                    seen.add(base)
                    pending.append(base)
                    yield base

    def names(self, scope: Component | None) -> list[str]:
        """Return the names of the components that can be meant within another one."""
        names = [*self._top]
        while scope is not None:
            names += (
                inner.name for component in (scope, *self.ancestors(scope)) for inner in component.contents.components
            )
            scope = self._parents[scope]
        return names

    # -- checks -------------------------------------------------------------------------------------------------------

    def _check_component(self, component: Component) -> None:
        self._check_names(component.contents)
        for name in dict.fromkeys(component.parameters):
            if component.parameters.count(name) > 1:
                message = f"component {quote(component.name)} has two parameters {quote(name)}"
                hint = "give each parameter its own name"
                self.problems.append(Problem("component-parameters", message, component.span, hint=hint))
        before = len(self.problems)
        for base in component.bases:
            self._check(base, self._parents[component], component.parameters)
        sound = len(self.problems) == before
        for instance in component.contents.instances:
            self._check(instance.component, component, component.parameters)
        ancestors = list(self.ancestors(component))
        if component in ancestors:
            message = f"component {quote(component.name)} is derived from itself"
            note = "a component cannot be among its own bases, nor among the bases of these"
            self.problems.append(Problem("cyclic-component", message, component.span, note=note))
        elif sound:
            unknown = any(reference.name in c.parameters for c in (component, *ancestors) for reference in c.bases)
            self.problems += override_problems(component, ancestors, complete=not unknown)

    def _check(self, reference: Reference, scope: Component | None, parameters: Sequence[str] = ()) -> None:
        """Check a reference whose name is looked up in `scope`, unless it is one of `parameters`."""
        if reference.name in parameters:
            return
        component = self.component(reference.name, scope)
        problem = self.unknown(reference, scope) if component is None else mismatch(reference, component)
        if problem is not None:
            self.problems.append(problem)

    def unknown(self, reference: Reference, scope: Component | None) -> Problem:
        return Problem(
            "unknown-component",
            f"unknown component {quote(reference.name)}",
            reference.span,
            hint=nearest(reference.name, self.names(scope)) or f"add `.comp {reference.name[:60]} {{ ... }}`",
        )

    def _check_names(self, contents: Contents) -> None:
        components: dict[str, Span] = {}
        for component in contents.components:
            if component.name in components:
                related = (("declared here first", components[component.name]),)
                message = f"component {quote(component.name)} is declared twice"
                self.problems.append(Problem("duplicate-component", message, component.span, related=related))
            components.setdefault(component.name, component.span)
        instances: dict[str, Span] = {}
        for instance in contents.instances:
            if instance.name in instances:
                self.problems.append(initialised_twice(instance.name, instance.span, instances[instance.name]))
            instances.setdefault(instance.name, instance.span)


def initialised_twice(name: str, span: Span, first: Span) -> Problem:
    related = (("initialised here first", first),)
    return Problem("duplicate-instance", f"instance {quote(name)} is initialised twice", span, related=related)


def mismatch(reference: Reference, component: Component) -> Problem | None:
    """Return the problem of a reference with another number of arguments than its component has parameters."""
    expected, number = len(component.parameters), len(reference.arguments)
    if expected == number:
        return None
    message = f"component {quote(component.name)} has {count(expected, 'parameter')}, not {number}"
    return Problem("component-parameters", message, reference.span, related=(("declared here", component.span),))


def override_problems(component: Component, ancestors: Sequence[Component], *, complete: bool) -> Iterator[Problem]:
    """Yield the problems of the `.override` lines of a component; `complete` says that it has no other ancestors."""
    own = {declaration.name for declaration in component.contents.declarations}
    inherited = [(a, d) for a in ancestors for d in a.contents.declarations]
    for name, span in component.contents.overridden:
        declared = [(a, d) for a, d in inherited if d.name == name]
        note = f"`.override` replaces the rules of an inherited relation that is declared `{OVERRIDABLE}`"
        if name in own:
            message = f"{quote(name)} is declared in {quote(component.name)} itself, not inherited"
            yield Problem("bad-override", message, span, note=note, hint="leave the `.override` out")
        elif not declared and complete:
            message = f"{quote(component.name)} inherits no relation {quote(name)}"
            hint = nearest(name, [d.name for _, d in inherited])
            yield Problem("bad-override", message, span, note=note, hint=hint)
        for ancestor, declaration in declared:
            if ast.Hint(f".decl {name} {OVERRIDABLE}") not in ancestor.contents.qualifiers:
                related = (("declared here", declaration.span),) if declaration.span else ()
                message = f"relation {quote(name)} of {quote(ancestor.name)} is not overridable"
                hint = f"write `{OVERRIDABLE}` behind its declaration"
                yield Problem("bad-override", message, span, note=note, hint=hint, related=related)


# -- instances --------------------------------------------------------------------------------------------------------

#: The names of instances that lead to an instance, outermost first; empty for the program itself.
Path = tuple[str, ...]


@dataclass(frozen=True)
class _Argument:
    """A name that a parameter stands for, with the instance and the component in which the name was written."""

    name: str
    path: Path
    scope: Component | None


_Binding = Mapping[str, _Argument]


@dataclass(frozen=True)
class _Piece:
    """A component's own part of an instance: its contents are to be added under a path."""

    component: Component
    path: Path
    binding: _Binding
    #: The `.init` of the instance.
    origin: Span
    #: Inherited relations whose rules are replaced.
    overridden: frozenset[str]


class _Expansion:
    """The instances of a program whose components have passed the checks of `_Scopes`."""

    def __init__(self, contents: Contents, scopes: _Scopes, problems: list[Problem]):
        self.contents, self.scopes, self.problems = contents, scopes, problems
        self.pieces: list[_Piece] = []
        self.instances: dict[Path, Span] = {}
        self.active: list[tuple[object, ...]] = []

    def program(self) -> Contents:
        for instance in self.contents.instances:
            self._instantiate(instance, None, {}, (), instance.span)
        if self.problems:
            return self.contents
        top = replace(self.contents, **{f.name: [*getattr(self.contents, f.name)] for f in fields(Contents)})
        relations = {declaration.name for declaration in top.declarations}
        types = {declared.name for declared in top.types}
        branches = {branch.name[1:] for declared in top.types for branch in declared.branches}
        for piece in self.pieces:
            prefix = ".".join(piece.path)
            relations.update(f"{prefix}.{d.name}" for d in piece.component.contents.declarations)
            constraints = (clause for clause in piece.component.contents.clauses if clause.constraint)
            relations.update(f"{prefix}.{clause.heads[0].predicate}" for clause in constraints)
            types.update(f"{prefix}.{t.name}" for t in piece.component.contents.types)
            branches.update(f"{prefix}.{b.name[1:]}" for t in piece.component.contents.types for b in t.branches)
        expanded: set[Component] = set()
        for piece in self.pieces:
            look("the program")
            _Copy(piece, relations, types, branches).add_to(top)
            if piece.component not in expanded:  # a hint has no effect, however many instances it is in
                top.hints += piece.component.contents.hints
            expanded.add(piece.component)
        top.components, top.instances = [], []
        return top

    def _instantiate(
        self, instance: Instance, scope: Component | None, binding: _Binding, outer: Path, origin: Span
    ) -> None:
        """Collect the pieces of an instance that stands in the component `scope`, of the instance at `outer`."""
        path = (*outer, instance.name)
        component = self._meant(instance.component, scope, binding, origin)
        if component is None or self._refuses(path, origin):
            return
        arguments = self._bound(component, instance.component, scope, binding, outer)
        # `A<B>` may contain `A<C>`: a component recurs only with the same arguments.
        own = [arguments[name] for name in component.parameters]
        meant = tuple(self.scopes.component(argument.name, argument.scope) or argument.name for argument in own)
        if (component, meant) in self.active:
            message = f"component {quote(component.name)} contains an instance of itself"
            note = f"this would be the instance {quote('.'.join(path))}"
            self.problems.append(Problem("cyclic-component", message, origin, note=note))
            return
        self.active.append((component, meant))
        self._collect(component, arguments, path, origin, frozenset(), ())
        self.active.pop()

    def _refuses(self, path: Path, origin: Span) -> bool:
        """Report an instance whose name is taken, or that is one too many."""
        if path in self.instances:
            self.problems.append(initialised_twice(".".join(path), origin, self.instances[path]))
            return True
        self.instances[path] = origin
        if len(self.instances) <= INSTANCE_COUNT and len(path) <= COMPONENT_DEPTH:
            return False
        if all(problem.slug != "too-many-components" for problem in self.problems):
            self.problems.append(_too_many(f"too many instances to initialise {quote('.'.join(path[-3:]))}", origin))
        return True

    def _collect(
        self,
        component: Component,
        binding: _Binding,
        path: Path,
        origin: Span,
        overridden: frozenset[str],
        derived: tuple[Component, ...],
    ) -> list[Component]:
        """Collect the piece of a component, after the pieces of its bases and instances; return its ancestors.

        `derived` are the components between the instance and this one, each derived from the next.
        """
        if component in derived:
            message = f"component {quote(component.name)} is derived from itself"
            self.problems.append(Problem("cyclic-component", message, origin))
            return []
        if len(derived) >= COMPONENT_DEPTH:
            message = f"component {quote(derived[0].name)} is derived through too many components"
            self.problems.append(_too_many(message, derived[0].span))
            return []
        replaced = overridden | {name for name, _ in component.contents.overridden}
        ancestors: list[Component] = []
        for reference in component.bases:
            base = self._meant(reference, self.scopes.around(component), binding, origin)
            if base is not None:
                arguments = self._bound(base, reference, component, binding, path)
                above = self._collect(base, arguments, path, origin, replaced, (*derived, component))
                ancestors += [base, *above]
        known = {(p.slug, p.span) for p in self.problems}
        mistakes = override_problems(component, ancestors, complete=True)
        self.problems += (p for p in mistakes if (p.slug, p.span) not in known)
        for instance in component.contents.instances:
            self._instantiate(instance, component, binding, path, within(instance.span, origin))
        self.pieces.append(_Piece(component, path, binding, origin, overridden))
        return ancestors

    def _meant(
        self, reference: Reference, scope: Component | None, binding: _Binding, origin: Span
    ) -> Component | None:
        """Return the component that a reference means, which may be the argument of a parameter."""
        argument = binding.get(reference.name)
        if argument is None:
            return self.scopes.component(reference.name, scope)
        component = self.scopes.component(argument.name, argument.scope) or self.scopes.component(argument.name, scope)
        named = replace(reference, name=argument.name, span=within(reference.span, origin))
        problem = self.scopes.unknown(named, argument.scope) if component is None else mismatch(named, component)
        if problem is not None:
            note = f"{quote(argument.name)} is the argument for the parameter {quote(reference.name)}"
            self.problems.append(replace(problem, note=note))
            return None
        return component

    def _bound(
        self, component: Component, reference: Reference, scope: Component | None, binding: _Binding, path: Path
    ) -> dict[str, _Argument]:
        """Return what the parameters of a component stand for, by a reference in the component `scope`.

        A component within another one may use the parameters of that one, too.
        """
        outer = binding if self.scopes.around(component) is not None else {}
        arguments = (binding.get(name, _Argument(name, path, scope)) for name in reference.arguments)
        return {**outer, **dict(zip(component.parameters, arguments, strict=True))}


def within(span: Span, origin: Span) -> Span:
    """Return the place of a statement of a component in the instance made by the `.init` at `origin`."""
    return Span(span.source, span.start, span.end, origin)


def _too_many(message: str, span: Span) -> Problem:
    note = f"at most {INSTANCE_COUNT:,} instances are made, at most {COMPONENT_DEPTH} inside or derived from each other"
    return Problem("too-many-components", message, span, note=note)


#: The fields that hold names of relations, of types and, if they begin with `$`, of branches.
_RELATION_FIELDS = {(ast.Atom, "predicate"), (ast.Declaration, "name"), (ast.Directive, "relation")}
_TYPE_FIELDS = {(ast.Attribute, "type"), (ast.TypeDeclaration, "name"), (ast.TypeDeclaration, "parents")}
_BRANCH_FIELDS = {(ast.Branch, "name"), (ast.Call, "functor")}


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


class _Copy:
    """The statements of a piece, with the names that they have in the program and the places of its instance."""

    def __init__(self, piece: _Piece, relations: set[str], types: set[str], branches: set[str]):
        self.piece, self.relations, self.types, self.branches = piece, relations, types, branches

    def add_to(self, program: Contents) -> None:
        contents, overridden = self.piece.component.contents, self.piece.overridden
        program.types += map(self._copied, contents.types)
        program.declarations += map(self._copied, contents.declarations)
        program.directives += map(self._copied, contents.directives)
        for hint in contents.qualifiers:
            _, relation, word = hint.text.split()
            if word != OVERRIDABLE:
                text = f".decl {self._relation(relation)} {word}"
                program.qualifiers.append(ast.Hint(text, self._copied(hint.span)))
        for clause in contents.clauses:
            heads = tuple(head for head in clause.heads if head.predicate not in overridden)
            if heads:
                program.clauses.append(self._copied(replace(clause, heads=heads)))
        for subsumption in contents.subsumptions:
            if subsumption.dominated.predicate not in overridden:
                program.subsumptions.append(self._copied(subsumption))

    def _relation(self, name: str) -> str:
        return _resolved(name, self.piece.path, self.relations)

    def _type(self, name: str) -> str:
        argument = self.piece.binding.get(name)
        if argument is not None:
            return _resolved(argument.name, argument.path, self.types)
        return _resolved(name, self.piece.path, self.types)

    def _branch(self, name: str) -> str:
        """Return the name of a branch in the program; other functors and constants have the same one everywhere."""
        return f"${_resolved(name[1:], self.piece.path, self.branches)}" if name.startswith("$") else name

    def _copied(self, thing: Any) -> Any:
        """Return a tree with the names and places that it has in the instance."""
        if isinstance(thing, tuple):
            return tuple(map(self._copied, thing))
        if isinstance(thing, Span):
            return within(thing, self.piece.origin)
        kind: type = type(thing)
        if not is_dataclass(kind):
            return thing
        changed: dict[str, Any] = {}
        for name in _fields(kind):
            value = getattr(thing, name)
            if (kind, name) in _RELATION_FIELDS:
                changed[name] = self._relation(value)
            elif (kind, name) in _TYPE_FIELDS:
                changed[name] = tuple(map(self._type, value)) if isinstance(value, tuple) else self._type(value)
            elif (kind, name) in _BRANCH_FIELDS or (name == "value" and thing == ast.Constant(value, "record")):
                changed[name] = self._branch(value)
            else:
                changed[name] = self._copied(value)
        return kind(**changed)


def _resolved(name: str, path: Path, declared: set[str]) -> str:
    """Return the innermost declared name that a name means in the instance at a path, or the name if there is none."""
    for depth in range(len(path), 0, -1):
        qualified = ".".join((*path[:depth], name))
        if qualified in declared:
            return qualified
    return name
