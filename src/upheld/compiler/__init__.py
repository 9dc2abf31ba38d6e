"""From the core program to what is evaluated: passes, equality, decompositions, strata and edits."""
