"""One version of a materialisation, which stays true while updates go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn, Protocol, Self, SupportsIndex

from upheld.base.errors import UsageError
from upheld.base.turns import Turns
from upheld.engines import EngineChoice
from upheld.facts.change import unknown_relation
from upheld.facts.columns import Row
from upheld.facts.relation import Relation
from upheld.language.core import Core, Fact
from upheld.language.values import Value
from upheld.materialisation.versions.views import not_copied

if TYPE_CHECKING:
    from upheld.compiler.queries import Query
    from upheld.explain import Explanation


class Source(Protocol):
    """A materialisation, as its snapshots see it."""

    @property
    def relations(self) -> tuple[str, ...]: ...
    @property
    def prefixes(self) -> dict[str, str]: ...
    @property
    def version(self) -> int: ...
    @property
    def _turns(self) -> Turns: ...

    def query(self, text: str) -> Relation: ...
    def explain(self, fact: str, row: object = None) -> Explanation: ...
    def equals(self, constant: Value, relation: str | None = None) -> list[Value]: ...
    def representative(self, constant: str) -> str: ...

    def _compile_query(self, text: str) -> Query: ...
    def _answer(self, query: Query) -> Relation: ...
    def _compile_fact(self, fact: str, row: object) -> tuple[Fact, dict[str, str]]: ...
    def _explain(self, goal: Fact, prefixes: Mapping[str, str]) -> Explanation: ...
    def _copy_with(
        self,
        explicit: Iterable[tuple[str, Iterable[Row]]],
        engine: str | EngineChoice | None = None,
        core: Core | None = None,
    ) -> Self: ...


class Snapshot:
    """A fixed version of a materialisation, returned by `m.snapshot()`. It is immutable and safe to use in any thread.

    >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2), (2, 3)]})
    >>> before = m.snapshot()
    >>> change = m.update(delete={"edge": [(2, 3)]})
    >>> (1, 3) in m["path"], (1, 3) in before["path"], before.query("path(x, 3)").to_rows()
    (False, True, [(1,), (2,)])
    """

    def __init__(
        self, source: Source, core: Core, version: int, facts: Mapping[str, Relation], explicit: Mapping[str, Relation]
    ) -> None:
        self._source, self._core, self._facts, self._explicit = source, core, facts, explicit
        #: The number of updates that were made before it.
        self.version = version
        self._turns = Turns()
        self._copy: Source | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations of the program."""
        return tuple(self._facts)

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that a `.dlog` program declares."""
        return dict(self._core.prefixes)

    def __getitem__(self, name: str) -> Relation:
        """Return the facts of a relation, explicit and derived.

        Args:
            name: Name of the relation.
        """
        return self._relation(self._facts, name)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the relations."""
        return iter(self.relations)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a relation of this name."""
        return name in self.relations

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.relations)

    def explicit(self, name: str) -> Relation:
        """Return the explicit facts of a relation.

        Args:
            name: Name of the relation.
        """
        return self._relation(self._explicit, name)

    def _relation(self, relations: Mapping[str, Relation], name: str) -> Relation:
        if not isinstance(name, str) or name not in relations:
            raise UsageError(unknown_relation(name, self.relations))
        return relations[name]

    def facts(self) -> set[Fact]:
        """Return all facts, as pairs of relation name and row."""
        return {(name, row) for name, relation in self._facts.items() for row in relation.to_set()}

    def query(self, text: str) -> Relation:
        """Return the answers to a query, as `Materialisation.query` does.

        After an update of the materialisation, the first query or explanation derives all facts of the snapshot from
        its explicit facts, into a second materialisation, which answers from then on.

        Args:
            text: A rule body in the dialect of the program.
        """
        m = self._source
        if m.version == self.version:
            query = m._compile_query(text)
            with m._turns.work():
                if m.version == self.version:
                    return m._answer(query)
        return self._own().query(text)

    def explain(self, fact: str, row: object = None) -> Explanation:
        """Return an explanation of a fact, as `Materialisation.explain` does; `query` describes the cost.

        Args:
            fact: The fact as text, or the name of its relation.
            row: The values of the fact, if `fact` is the name of a relation.
        """
        m = self._source
        if m.version == self.version:
            asked = m._compile_fact(fact, row)
            with m._turns.work():
                if m.version == self.version:
                    return m._explain(*asked)
        return self._own().explain(fact, row)

    def equals(self, constant: Value, relation: str | None = None) -> list[Value]:
        """Return the constants equal to a constant, as `Materialisation.equals` does; `query` describes the cost.

        Args:
            constant: A term in N-Triples syntax, or a value of the relation.
            relation: Name of an `eqrel` relation of a `.dl` program.
        """
        m = self._source
        with m._turns.look():
            if m.version == self.version:
                return m.equals(constant, relation)
        return self._own().equals(constant, relation)

    def representative(self, constant: str) -> str:
        """Return the representative of a constant, as `Materialisation.representative` does; see `query` for the cost.

        Args:
            constant: A term in N-Triples syntax.
        """
        m = self._source
        with m._turns.look():
            if m.version == self.version:
                return m.representative(constant)
        return self._own().representative(constant)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(relation)}" for name, relation in self._facts.items())
        return f"<Snapshot {self.version} {sizes}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UsageError(not_copied("snapshot"))

    def _own(self) -> Source:
        """Return a materialisation of the facts of the snapshot, which is made when it is first needed."""
        with self._turns.work():
            if self._copy is None:
                explicit = ((name, r.unordered or r.stored_set()) for name, r in self._explicit.items())
                self._copy = self._source._copy_with(explicit, core=self._core)
            return self._copy
