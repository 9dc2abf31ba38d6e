"""Rule instances in all partitions: plans in legs, the exchange of bindings and heads, backward chaining."""
