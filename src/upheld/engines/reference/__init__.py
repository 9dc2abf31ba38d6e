"""The reference engine: the operators of the algebra on plain Python sets, as simple as can be."""
