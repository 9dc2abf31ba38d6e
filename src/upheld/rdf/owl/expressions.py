"""Class expressions of OWL 2, and how triples write them (OWL 2 Mapping to RDF Graphs, tables 10 to 14)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from upheld.language.terms.vocabulary import PREFIXES
from upheld.rdf.owl.graph import Graph, Malformed

_RDF, _RDFS, _OWL, _XSD = (PREFIXES[name] for name in ("rdf", "rdfs", "owl", "xsd"))


def owl(name: str) -> str:
    """Return a term of OWL's vocabulary."""
    return f"<{_OWL}{name}>"


def rdfs(name: str) -> str:
    """Return a term of RDFS's vocabulary."""
    return f"<{_RDFS}{name}>"


def rdf(name: str) -> str:
    """Return a term of RDF's vocabulary."""
    return f"<{_RDF}{name}>"


@dataclass(frozen=True)
class Property:
    """A property, or the inverse of one."""

    iri: str
    inverse: bool = False

    def inverted(self) -> Property:
        return Property(self.iri, not self.inverse)

    def __str__(self) -> str:
        return f"ObjectInverseOf({self.iri})" if self.inverse else self.iri


@dataclass(frozen=True)
class Named:
    """A named class."""

    iri: str

    def __str__(self) -> str:
        return self.iri


@dataclass(frozen=True)
class Data:
    """A datatype or a range of data: which literals it holds is not known here."""

    node: str

    def __str__(self) -> str:
        return "a data range" if self.node.startswith("_:") else self.node


class _Functional:
    """An expression of the functional syntax: its name there, and its fields as arguments."""

    _name: str

    def __init_subclass__(cls, name: str):
        cls._name = name

    def __str__(self) -> str:
        arguments = (" ".join(map(str, a)) if isinstance(a, tuple) else str(a) for a in vars(self).values())
        return f"{self._name}({' '.join(arguments)})"


@dataclass(frozen=True)
class And(_Functional, name="ObjectIntersectionOf"):
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Or(_Functional, name="ObjectUnionOf"):
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Not(_Functional, name="ObjectComplementOf"):
    part: Expression


@dataclass(frozen=True)
class OneOf(_Functional, name="ObjectOneOf"):
    members: tuple[str, ...]


@dataclass(frozen=True)
class Some(_Functional, name="ObjectSomeValuesFrom"):
    property: Property
    filler: Expression


@dataclass(frozen=True)
class Only(_Functional, name="ObjectAllValuesFrom"):
    property: Property
    filler: Expression


@dataclass(frozen=True)
class HasValue(_Functional, name="ObjectHasValue"):
    property: Property
    value: str


@dataclass(frozen=True)
class HasSelf(_Functional, name="ObjectHasSelf"):
    property: Property


@dataclass(frozen=True)
class AtLeast(_Functional, name="ObjectMinCardinality"):
    number: int
    property: Property
    filler: Expression


@dataclass(frozen=True)
class AtMost(_Functional, name="ObjectMaxCardinality"):
    number: int
    property: Property
    filler: Expression


Expression = Named | Data | And | Or | Not | OneOf | Some | Only | HasValue | HasSelf | AtLeast | AtMost

THING, NOTHING = Named(owl("Thing")), Named(owl("Nothing"))

_CARDINALITIES: dict[str, tuple[type[AtLeast] | type[AtMost], ...]] = {
    "minCardinality": (AtLeast,),
    "minQualifiedCardinality": (AtLeast,),
    "maxCardinality": (AtMost,),
    "maxQualifiedCardinality": (AtMost,),
    "cardinality": (AtLeast, AtMost),
    "qualifiedCardinality": (AtLeast, AtMost),
}
_COUNT = re.compile(r'"\+?0*([0-9]{1,4})"(?:\^\^<[^>]*>)?')


def property_of(node: str, graph: Graph) -> Property:
    """Return the property that a node stands for."""
    inverse = graph.value(node, owl("inverseOf")) if node.startswith("_:") else None
    if inverse is not None:
        return property_of(inverse, graph).inverted()
    if not node.startswith("<"):
        raise Malformed(f"{node} is not a property")
    return Property(node)


def is_data(node: str, graph: Graph) -> bool:
    """Tell whether a node is a datatype or a range of data."""
    if node.startswith(f"<{_XSD}") or node in (rdfs("Literal"), rdf("PlainLiteral"), rdf("XMLLiteral"), owl("real")):
        return True
    return bool({rdfs("Datatype"), owl("DataRange")} & set(graph.values(node, rdf("type"))))


def expression(node: str, graph: Graph, depth: int = 0) -> Expression:
    """Return the class expression that a node stands for; raise `Malformed` if it is none."""
    if depth > 200:
        raise Malformed(f"{node} is nested too deeply, or contains itself")
    if is_data(node, graph):
        return Data(node)
    if node.startswith("<"):
        return Named(node)
    result = construct(node, graph, depth)
    if result is None:
        raise Malformed(f"{node} is not a class expression")
    return result


def construct(node: str, graph: Graph, depth: int = 0) -> Expression | None:
    """Return the class expression that the triples of a node, named or not, construct; None if they do not."""
    for name, kind in (("intersectionOf", And), ("unionOf", Or)):
        if (members := graph.value(node, owl(name))) is not None:
            return kind(tuple(expression(m, graph, depth + 1) for m in graph.members(members)))
    if (part := graph.value(node, owl("complementOf"))) is not None:
        return Not(expression(part, graph, depth + 1))
    if (members := graph.value(node, owl("oneOf"))) is not None:
        return OneOf(tuple(graph.members(members)))
    on = graph.value(node, owl("onProperty"))
    return _restriction(node, property_of(on, graph), graph, depth) if on is not None else None


def _restriction(node: str, on: Property, graph: Graph, depth: int) -> Expression | None:
    if (filler := graph.value(node, owl("someValuesFrom"))) is not None:
        return Some(on, expression(filler, graph, depth + 1))
    if (filler := graph.value(node, owl("allValuesFrom"))) is not None:
        return Only(on, expression(filler, graph, depth + 1))
    if (value := graph.value(node, owl("hasValue"))) is not None:
        return HasValue(on, value)
    if graph.value(node, owl("hasSelf")) is not None:
        return HasSelf(on)
    qualifier = graph.value(node, owl("onClass")) or graph.value(node, owl("onDataRange"))
    filler_of = expression(qualifier, graph, depth + 1) if qualifier else THING
    for name, kinds in _CARDINALITIES.items():
        if (count := graph.value(node, owl(name))) is not None:
            number = _COUNT.fullmatch(count)
            if number is None:
                raise Malformed(f"{count} is not a number of values")
            parts = tuple(kind(int(number[1]), on, filler_of) for kind in kinds)
            return parts[0] if len(parts) == 1 else And(parts)
    return None
