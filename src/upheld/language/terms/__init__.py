"""RDF terms: their texts, their values, and the operators and functions of SPARQL on them."""
