"""The facts of a program in partitions: a memory engine in each of several tasks, which run one algorithm in step.

Every task runs the code in `maintain/`, unchanged, on an engine of its own. The tasks meet in one primitive,
`Wire.exchange`: parcels for each task, and a note that all of them read. Whatever steers an algorithm (truth and counts
of sets, instances considered, rounds, failures) is made of notes, so all tasks take the same branch. Every exchange has
the name of its operator; tasks that are at different operators stop with the error `out-of-step`.

    wire        exchanges, failures that all tasks share, and tasks that are threads of one process
    sockets     a wire between processes, authenticated with a key
    tasks       processes that serve the calls of a driver; barrier_job, those of one job of Spark
    owners      which task owns a value, and so where a fact is at home
    codec       a dictionary of texts that is the same in all tasks
    plans       bodies in legs, between which bindings travel; the columns that facts have copies for
    context     the state that the parts of a task's engine share
    sets        sets of facts: rows at home, and copies
    matching    the instances of rules, in all partitions together
    bags, numbers, trace, search, classes, equivalences, engine    as in the memory engine

Of the memory engine a task uses, on the facts that it has:

    tables, named and settled sets, expressions of them, truth tables      `Named`, `Settled`, `Where`
    entering facts by their codes into a table and a set                   `Collected.enter`, `Collected.take`
    plans of a leg from bindings of some variables, and joins by them      `Planner.plan`, `Join`
    which rules concern some rows                                          `Matcher.delta_index`
    numbers of facts in columns, with the journal that undoes changes      `Counting`, `MemoryRanks`, `MemoryTrace`
    transactions and attempts                                              `MemoryEngine.transaction`, `.attempt`

Facts come in as arrays of codes by predicate, and set changes as sets; bindings and heads go out as arrays of codes.

State: a materialisation whose engine is such a task works in all tasks in step, with every algorithm: updates, queries,
proofs, equality by rewriting, equivalences by classes, and states that are saved by any number of tasks and opened by
any other, or in memory. `rows` and saved states come to every task in full, so a driver has to ask for the facts at
home instead. There are transports between threads, processes, and the tasks of a barrier job of Spark. Users cannot
choose this engine yet. It keeps the rows of facts that have gone, and has no aggregates.
"""
