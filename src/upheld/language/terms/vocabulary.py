"""The relations of triples, and the namespaces that every program may use without declaring them."""

#: The relations of triples, and of triples in a named graph, whose name comes last.
TRIPLE, QUAD = "triple", "quad"
#: The relation of inconsistencies, whose facts violate a constraint.
VIOLATION = "violation"
COLUMNS = {TRIPLE: ("subject", "predicate", "object"), QUAD: ("subject", "predicate", "object", "graph")}

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": XSD,
}
