"""The axioms of an ontology, brought to few kinds: inclusions of classes and of properties, keys, and facts.

Other axioms of OWL are shorthand for these: a domain is an inclusion of `ObjectSomeValuesFrom`, a functional property
one of `owl:Thing` in `ObjectMaxCardinality`, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from upheld.language.terms.vocabulary import PREFIXES
from upheld.rdf.owl.expressions import (
    NOTHING,
    THING,
    And,
    AtMost,
    Expression,
    HasSelf,
    Malformed,
    Named,
    Not,
    OneOf,
    Only,
    Or,
    Property,
    Some,
    construct,
    expression,
    is_data,
    owl,
    property_of,
    rdf,
    rdfs,
)
from upheld.rdf.owl.graph import TYPE, Graph


@dataclass(frozen=True)
class SubClassOf:
    """Whatever is in `sub` is in `super`. `said` is how the ontology has it."""

    sub: Expression
    super: Expression
    said: str


@dataclass(frozen=True)
class SubPropertyOf:
    """Whatever a chain of properties relates, `super` does; without it, nothing is so related."""

    chain: tuple[Property, ...]
    super: Property | None
    said: str
    #: Whether the end of the chain is its start, or whether two properties relate the same pair.
    closed: bool = False
    beside: Property | None = None


@dataclass(frozen=True)
class HasKey:
    """Members of a class that agree on properties are the same."""

    of: Expression
    keys: tuple[Property, ...]
    said: str


@dataclass(frozen=True)
class Fact:
    """A triple that an ontology states."""

    triple: tuple[str, str, str]


@dataclass(frozen=True)
class Unread:
    """Axioms in the OWL vocabulary that are not understood, with the reason."""

    said: str
    reason: str


Axiom = SubClassOf | SubPropertyOf | HasKey | Fact | Unread

_VOCABULARY = tuple(f"<{PREFIXES[name]}" for name in ("rdf", "rdfs", "owl"))
#: Classes of the vocabulary whose members are not individuals.
_META = {owl(name) for name in ("Class", "Restriction", "ObjectProperty", "DatatypeProperty", "AnnotationProperty",
                                "OntologyProperty", "Ontology", "NamedIndividual", "Axiom", "Annotation", "DataRange",
                                "AllDisjointClasses", "AllDisjointProperties", "AllDifferent", "DeprecatedClass",
                                "DeprecatedProperty", "NegativePropertyAssertion", "FunctionalProperty",
                                "InverseFunctionalProperty", "SymmetricProperty", "AsymmetricProperty",
                                "TransitiveProperty", "ReflexiveProperty", "IrreflexiveProperty")}  # fmt: skip
_META |= {rdfs("Class"), rdfs("Datatype"), rdf("Property"), rdf("List")}
_ANNOTATIONS = {rdfs(name) for name in ("label", "comment", "seeAlso", "isDefinedBy")}
_ANNOTATIONS |= {owl(name) for name in ("versionInfo", "versionIRI", "priorVersion", "deprecated",
                                        "backwardCompatibleWith", "incompatibleWith")}  # fmt: skip
#: Parts of constructs, which are read with what they are parts of.
_PARTS = {owl(name) for name in ("intersectionOf", "unionOf", "complementOf", "oneOf", "onProperty", "someValuesFrom",
                                 "allValuesFrom", "hasValue", "hasSelf", "minCardinality", "maxCardinality",
                                 "cardinality", "minQualifiedCardinality", "maxQualifiedCardinality",
                                 "qualifiedCardinality", "onClass", "onDataRange", "members", "distinctMembers",
                                 "annotatedSource", "annotatedProperty", "annotatedTarget", "sourceIndividual",
                                 "assertionProperty", "targetIndividual", "targetValue", "onDatatype",
                                 "withRestrictions", "datatypeComplementOf")}  # fmt: skip
_PARTS |= {rdf("first"), rdf("rest")}


def axioms_of(graph: Graph) -> Iterator[Axiom]:
    """Yield the axioms of an ontology, and what of it is not understood."""
    there = {s for s, p, o in graph.triples if p == TYPE and o == owl("Ontology")}
    there |= {o for s, p, o in graph.triples if p == owl("versionIRI") and s in there}
    annotations = _ANNOTATIONS | {s for s, p, o in graph.triples if p == TYPE and o == owl("AnnotationProperty")}
    for s, p, o in graph.triples:
        try:
            if p == TYPE:
                yield from _typed(s, o, graph)
            elif p in _BY_PROPERTY:
                yield from _BY_PROPERTY[p](s, o, graph)
            elif p == owl("imports"):
                if o not in there:
                    yield Unread(f"Import({o})", "imports are not followed: name the imported file beside this one")
            elif p not in annotations and p not in _PARTS:
                known = not p.startswith(_VOCABULARY) or p in (owl("sameAs"), owl("differentFrom"))
                yield Fact((s, p, o)) if known else Unread(f"{s} {p} {o}", "this property of OWL is not understood")
        except Malformed as error:
            yield Unread(f"{s} {p} {o}", str(error))
    for node in dict.fromkeys(s for s, p, _ in graph.triples if p in _PARTS and s.startswith("<")):
        yield from _definition(node, graph)


def _definition(node: str, graph: Graph) -> Iterator[Axiom]:
    """Yield that a class with a name is what its own triples construct, as OWL 1 writes it."""
    try:
        found = None if is_data(node, graph) else construct(node, graph)
    except Malformed as error:
        yield Unread(f"the definition of {node}", str(error))
        return
    if found is not None:
        yield from _equivalent(Named(node), found)


def _equivalent(one: Expression, other: Expression) -> Iterator[Axiom]:
    said = f"EquivalentClasses({one} {other})"
    yield SubClassOf(one, other, said)
    yield SubClassOf(other, one, said)


# -- axioms by their property -----------------------------------------------------------------------------------------


def _sub_class(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    sub, super_ = expression(s, graph), expression(o, graph)
    yield SubClassOf(sub, super_, f"SubClassOf({sub} {super_})")


def _equivalent_class(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    yield from _equivalent(expression(s, graph), expression(o, graph))


def _disjoint_with(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    yield from _disjoint((expression(s, graph), expression(o, graph)))


def _disjoint(classes: tuple[Expression, ...]) -> Iterator[Axiom]:
    said = f"DisjointClasses({' '.join(map(str, classes))})"
    for pair in combinations(classes, 2):
        yield SubClassOf(And(pair), NOTHING, said)


def _disjoint_union(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    parts = tuple(expression(member, graph) for member in graph.members(o))
    yield from _equivalent(expression(s, graph), Or(parts))
    yield from _disjoint(parts)


def _domain(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    of, domain = property_of(s, graph), expression(o, graph)
    yield SubClassOf(Some(of, THING), domain, f"ObjectPropertyDomain({of} {domain})")


def _range(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    of, range_ = property_of(s, graph), expression(o, graph)
    yield SubClassOf(THING, Only(of, range_), f"ObjectPropertyRange({of} {range_})")


def _sub_property(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    sub, super_ = property_of(s, graph), property_of(o, graph)
    yield SubPropertyOf((sub,), super_, f"SubObjectPropertyOf({sub} {super_})")


def _equivalent_property(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    one, other = property_of(s, graph), property_of(o, graph)
    said = f"EquivalentObjectProperties({one} {other})"
    yield SubPropertyOf((one,), other, said)
    yield SubPropertyOf((other,), one, said)


def _inverse_of(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    if s.startswith("_:"):
        return  # a property expression, read where it is used
    one, other = property_of(s, graph), property_of(o, graph)
    said = f"InverseObjectProperties({one} {other})"
    yield SubPropertyOf((one.inverted(),), other, said)
    yield SubPropertyOf((other.inverted(),), one, said)


def _chain(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    chain = tuple(property_of(member, graph) for member in graph.members(o))
    super_ = property_of(s, graph)
    said = f"SubObjectPropertyOf(ObjectPropertyChain({' '.join(map(str, chain))}) {super_})"
    yield SubPropertyOf(chain, super_, said)


def _disjoint_properties(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    one, other = property_of(s, graph), property_of(o, graph)
    yield SubPropertyOf((one,), None, f"DisjointObjectProperties({one} {other})", beside=other)


def _has_key(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    of = expression(s, graph)
    keys = tuple(property_of(member, graph) for member in graph.members(o))
    yield HasKey(of, keys, f"HasKey({of} {' '.join(map(str, keys))})")


_BY_PROPERTY: dict[str, Callable[[str, str, Graph], Iterator[Axiom]]] = {
    rdfs("subClassOf"): _sub_class,
    owl("equivalentClass"): _equivalent_class,
    owl("disjointWith"): _disjoint_with,
    owl("disjointUnionOf"): _disjoint_union,
    rdfs("domain"): _domain,
    rdfs("range"): _range,
    rdfs("subPropertyOf"): _sub_property,
    owl("equivalentProperty"): _equivalent_property,
    owl("inverseOf"): _inverse_of,
    owl("propertyChainAxiom"): _chain,
    owl("propertyDisjointWith"): _disjoint_properties,
    owl("hasKey"): _has_key,
}


# -- axioms by the type of a node -------------------------------------------------------------------------------------


def _typed(s: str, o: str, graph: Graph) -> Iterator[Axiom]:
    if o in _CHARACTERISTICS:
        yield from _CHARACTERISTICS[o](property_of(s, graph))
    elif o == owl("AllDisjointClasses"):
        yield from _disjoint(tuple(expression(member, graph) for member in _members(s, graph)))
    elif o == owl("AllDisjointProperties"):
        for one, other in combinations(_members(s, graph), 2):
            yield from _disjoint_properties(one, other, graph)
    elif o == owl("AllDifferent"):
        for one, other in combinations(_members(s, graph), 2):
            yield Fact((one, owl("differentFrom"), other))
    elif o == owl("NegativePropertyAssertion"):
        yield from _negative(s, graph)
    elif o in _META or is_data(s, graph):
        return
    elif o.startswith("<"):
        yield Fact((s, TYPE, o))
    else:
        of = expression(o, graph)
        yield SubClassOf(OneOf((s,)), of, f"ClassAssertion({of} {s})")


def _members(s: str, graph: Graph) -> list[str]:
    members = graph.value(s, owl("members")) or graph.value(s, owl("distinctMembers"))
    if members is None:
        raise Malformed(f"{s} has no members")
    return graph.members(members)


def _negative(s: str, graph: Graph) -> Iterator[Axiom]:
    source, on = graph.value(s, owl("sourceIndividual")), graph.value(s, owl("assertionProperty"))
    target = graph.value(s, owl("targetIndividual")) or graph.value(s, owl("targetValue"))
    if source is None or on is None or target is None:
        raise Malformed(f"{s} denies nothing")
    of = property_of(on, graph)
    said = f"NegativeObjectPropertyAssertion({of} {source} {target})"
    yield SubClassOf(OneOf((source,)), Not(Some(of, OneOf((target,)))), said)


_CHARACTERISTICS: dict[str, Callable[[Property], Iterator[Axiom]]] = {
    owl("FunctionalProperty"): lambda p: iter(
        [SubClassOf(THING, AtMost(1, p, THING), f"FunctionalObjectProperty({p})")]
    ),
    owl("InverseFunctionalProperty"): lambda p: iter(
        [SubClassOf(THING, AtMost(1, p.inverted(), THING), f"InverseFunctionalObjectProperty({p})")]
    ),
    owl("SymmetricProperty"): lambda p: iter([SubPropertyOf((p.inverted(),), p, f"SymmetricObjectProperty({p})")]),
    owl("TransitiveProperty"): lambda p: iter([SubPropertyOf((p, p), p, f"TransitiveObjectProperty({p})")]),
    owl("AsymmetricProperty"): lambda p: iter(
        [SubPropertyOf((p,), None, f"AsymmetricObjectProperty({p})", beside=p.inverted())]
    ),
    owl("IrreflexiveProperty"): lambda p: iter(
        [SubPropertyOf((p,), None, f"IrreflexiveObjectProperty({p})", closed=True)]
    ),
    owl("ReflexiveProperty"): lambda p: iter([SubClassOf(THING, HasSelf(p), f"ReflexiveObjectProperty({p})")]),
}
