"""The facts of a program in partitions: a memory engine in each of several tasks, which carry out operators in step.

A driver sends commands to all tasks: an operator, or a whole procedure of `maintain/`, such as an update by an
algorithm. It carries out operators as well, as a member that owns no facts. Procedures are carried out by tasks alone,
while it waits; at the end it takes over what all of them agree on. The members meet in one primitive, `Wire.exchange`:
parcels for each member, and a note that all of them read. Whatever steers an algorithm (truth and counts of sets,
instances considered, rounds, failures) is made of notes, so that all members take the same branch. Every exchange has
the name of its operator and the number of its command; members that are at different ones stop with the error
`out-of-step`.

    sparkengine  `SparkEngine`, by which callers choose the engine: session, partitions, folder for checkpoints
    engine       the operators in one task
    context      the state that the parts of a task's engine share
    owners       which task owns a value, and so where a fact is at home
    loading      facts in files, which tasks read
    writing      facts in Parquet files, which tasks write
    codec        a dictionary of texts that is the same in all tasks
    tasks/       the driver's engine, the commands it sends, the procedures that tasks carry out by themselves, and the
                 wire between members: processes, or the tasks of one job of Spark
    sets/        sets of facts: rows at home, and copies
    joins/       bodies in legs, between which bindings travel; the instances of rules, in all partitions together;
                 which strata each task can maintain by itself
    counters/    bags, numbers, traces and aggregates, as in the memory engine
    equality/    classes and equivalences, as in the memory engine

Of the memory engine a task uses, on the facts that it has:

    tables, named and settled sets, expressions of them, truth tables      `Named`, `Settled`, `Where`
    entering facts by their codes into a table and a set                   `Collected.enter`, `Collected.take`
    plans of a leg from bindings of some variables, and joins by them      `Planner.plan`, `Join`
    which rules concern some rows                                          `Matcher.delta_index`
    numbers of facts in columns, with the journal that undoes changes      `Counting`, `MemoryRanks`, `MemoryTrace`
    all rounds of small strata whose derivations are at home               `MemoryRanks.through`, `.lose_from`
    transactions and attempts                                              `MemoryEngine.transaction`, `.attempt`

Facts come in as arrays of codes by predicate, and set changes as sets; bindings and heads go out as arrays of codes.

Explicit facts come from the driver, or from files that tasks read, and relations that are read go to the driver, unless
tasks write them to files. The rows of facts that have gone are kept,
and serve facts that come back.
"""
