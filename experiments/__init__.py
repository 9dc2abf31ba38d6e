"""The experiments of the five papers: one command a table, our numbers beside the printed ones.

`registry` lists the experiments; `paper1` to `paper5` say what each one measures. `measure` runs them, `tables` and
`plots` show them, `claims` compares what the papers found with what was measured.
"""
