"""Rule instances in all partitions: plans in legs, the exchange of bindings and heads, backward chaining.

plans        the legs of a rule, and where bindings travel between them; the copies that facts have
pipelines    the pipelines of rules and all else that is made once for a rule
reach        the sets that bodies are matched in, and the predicates that rules may derive from these
matching     finds the instances of rules, forwards from changed facts or backwards from heads
run          one run of rules: beginnings, legs, travels, results
results      heads and instances at the end of a body, on their way home
arrivals     heads that have come home
undefined    built-ins without a result
sharing      when and how tasks share a value with many facts
shared_work  the work of a run that is put aside for that
derivation   the set that `derive` returns
search       backward chaining that goes on where it stopped
closed       strata that each task can maintain by itself
replication  which relations each task has whole
"""
