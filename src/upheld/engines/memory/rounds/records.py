"""The records that the kernels of rounds read and write, and the names of their fields.

tables       a line of numbers for each table, from `ROWS` to `INDEXED`
indexes      a line for each index that plans look into, from `OF_TABLE` to `POOL`
code         plans as `bytecode` writes them
truths       the addresses of truth tables
bench        the working arrays of a kernel: see `Bench` in `bytecode`
queue        pairs of a table and a row: the facts of one round after the other
program      the addresses of tables, indexes, code and truths
state        numbers that are kept from one call to the next, from `BEGIN` to `WANTED`
"""

from __future__ import annotations

import numpy as np

#: A line of a table: addresses, whether its values have 64 bits, how its keys are hashed, sizes, and whether some
#: plan looks into an index of it.
ROWS, WIDE, ARITY, KEYS, FLAGS, SLOTS, SIZE, SHIFT, COUNT, ROOM, RANK, TOTAL, SUPPORT, INDEXED = range(14)
#: How keys are hashed: value by value, as one number of 32 bits, or two of them as one of 64.
BY_VALUE, ONE_NUMBER, TWO_NUMBERS = range(3)

#: A line of an index. `NEXT` is the address of the next rows of chains, or of the entries of blocks. The rows of its
#: table before `KNOWN_ROWS` are in it; a kernel may enter further ones before `ROWS_AT_MOST`, while there are fewer
#: than `KEYS_AT_MOST` distinct keys.
OF_TABLE, BLOCKS, INDEX_SLOTS, INDEX_SIZE, INDEX_SHIFT, NEXT, POOL = range(7)
KNOWN_ROWS, ROWS_AT_MOST, DISTINCT_KEYS, KEYS_AT_MOST = range(7, 11)

#: An entry of an index of blocks: where its block begins in the pool, rows, room, and the hash of its key.
BLOCK_BEGIN, BLOCK_LENGTH, BLOCK_ROOM, BLOCK_HASH = range(4)
BLOCK_FIELDS = 4

#: The records of code, as `bytecode` describes them.
PLAN_RULE, PLAN_TABLE, PLAN_TRUTH, PLAN_RANKED, PLAN_STEPS, PLAN_HEAD = range(6)
PLAN_FIRST, PLAN_VARIABLES, PLAN_ONLY_STEP, PLAN_CHECKS = range(6, 10)
STEP_NEXT, STEP_FILTERS, STEP_TABLE, STEP_INDEX, STEP_TRUTH, STEP_NEGATED, STEP_RANKED, STEP_KNOWN = range(8)
HEAD_TABLE, HEAD_KNOWN = range(2)
FIRST_INDEX, FIRST_VALUES = range(2)
#: Instead of an index: none, and from here downwards the tuple index of a table.
NO_INDEX, TUPLE_INDEX = -1, -2
#: Instead of a register or a column: none, since the value is a constant.
NO_REGISTER = -1
#: Instead of a step: none.
NO_STEP = -1
#: Lists of what is known, and of pairs, begin with their length; the fields of the first entry come behind it.
LENGTH = 1
KNOWN_COLUMN, KNOWN_REGISTER, KNOWN_CONSTANT = range(LENGTH, LENGTH + 3)
LEFT, RIGHT = range(LENGTH, LENGTH + 2)
KNOWN_FIELDS, PAIR_FIELDS = 3, 2

#: The columns of the queue, of the log of derivations, of the ranks and supports that facts had, and of the stack.
QUEUE_TABLE, QUEUE_ROW = range(2)
QUEUE_FIELDS = 2
LOG_TABLE, LOG_ROW, LOG_SUPPORTED = range(3)
OLD_RANK, OLD_SUPPORT = range(2)
AT_STEP, AT_MATCH, LAST_MATCH = range(3)
#: The columns of tasks: a plan, and the part of the queue that it begins with.
TASK_PLAN, TASK_BEGIN, TASK_END = range(3)
#: The bits of the current round, and of the sets that its facts enter.
CURRENT, ENTERED = range(2)

#: The progress of a call: the facts of the current round in the queue, the end of the logs, why it stopped, and for
#: which table or how much room.
BEGIN, END, ROUNDS, LOGGED, PLACED, INSTANCES, TOP, OUTCOME, WANTED = range(9)
#: Why a call stops: nothing is left or it need not go on, it wants more room, the round is too large, rows were entered
#: that indexes do not know yet, a number would not fit, or a derivation is lost that was never counted.
DONE, WANTS_ROOM, TOO_LARGE, GREW, TOO_MANY, UNCOUNTED = range(6)

#: Rows that a round may look at in vain before it is left to be done otherwise.
IN_VAIN = 1 << 16

TABLE_FIELDS, INDEX_FIELDS = INDEXED + 1, KEYS_AT_MOST + 1

#: Where a plan of one step has a value of its head from: the fact it begins with, the one that was matched, or neither.
SOURCE, SOURCE_VALUE = range(2)
FROM_FACT, FROM_MATCH, A_CONSTANT = range(3)

#: A line of an instance: the table of its head, its rule, the highest rank in its body, where the search for its head
#: in the tuple index begins, and the values of its head.
HEAD, RULE, HEIGHT, AT, VALUES = range(5)

#: The place of the instances in a bench.
LINES = 4

#: The bytes of a number of these records.
NUMBER = 8

#: The lower half of a number of 64 bits, the lowest of these numbers, and the range of numbers of 32 bits.
LOW_HALF = np.int64(0xFFFFFFFF)
LOWEST = np.iinfo(np.int64).min
NARROWEST, WIDEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max

# -- several strata in one call: see `many_strata` ---------------------------------------------------------------------

#: A line of a stratum: what is known of it, where its code is, the derivations that it has, and the first of the
#: explicit facts that an update takes from it, and adds to it.
STRATUM_KIND, STRATUM_CODE, DERIVATIONS, FIRST_MINUS, FIRST_PLUS = range(5)
STRATUM_FIELDS = 5
#: Kinds of strata: not written yet, left to the operators, with explicit facts alone, and with rules.
UNWRITTEN_STRATUM, OTHER_STRATUM, EXPLICIT_STRATUM, RULED_STRATUM = range(4)
#: The code of a stratum: the number of tables that its rules read, and a record for each. The plans that begin with a
#: table are in three parts: from atoms of other strata, from atoms of this one, and from negated atoms.
READ_TABLE, READ_OTHERS, READ_OWN, READ_NEGATED, READ_END = range(LENGTH, LENGTH + 5)
READ_FIELDS = 5
#: Instead of a plan: one that has not been written, or that does more than follow indexes.
UNWRITTEN_PLAN, OTHER_PLAN = -1, -2

#: A line of a table beside its first one: the last of its rows that have changed and their number, where the strata
#: are that read it, and the record that the stratum at hand has of it.
LAST_CHANGE, CHANGES, READERS, READ_BY, READ_RECORD = range(5)
LINK_FIELDS = 5
#: The readers of a table: their number, and for each a pattern of rows, or `NO_PATTERN` for all of them, and a list of
#: strata. A pattern is two lists of pairs, as a plan has them for its atom.
READER_PATTERN, READER_STRATA = range(LENGTH, LENGTH + 2)
READER_FIELDS = 2
NO_PATTERN, NO_READERS = -1, -1

#: A line of a fact that a call begins with: its stratum, table and row, whether it goes, comes or has changed, and the
#: next one of its stratum. The lines of changed rows: the row, and the one that changed before it in its table.
SEED_STRATUM, SEED_TABLE, SEED_ROW, SEED_KIND, SEED_NEXT = range(5)
SEED_FIELDS = 5
GOES, COMES, HAS_CHANGED = range(3)
CHANGED_ROW, CHANGED_BEFORE = range(2)
NOBODY = -1

#: A line of the log: a row, the numbers that it had, and the derivation that changed them as twice its plan, plus one
#: in insertion, or -1.
UNDO_TABLE, UNDO_ROW, UNDO_RANK, UNDO_TOTAL, UNDO_SUPPORT, UNDO_PLAN = range(6)
UNDO_FIELDS = 6
#: The derivations that a plan has found, by phase.
IN_DELETION, IN_INSERTION = range(2)
#: A line of the strata that are done: the stratum, and the derivations that it had.
DONE_STRATUM, DONE_DERIVATIONS = range(2)

#: The queues of a call: facts that go, facts that come, facts that a step begins with, and changed rows.
GOING, COMING, PICKED, CHANGED = range(4)

#: The steps of a stratum, each with truth tables of its own: derivations lost with facts of other strata, and with its
#: own ones; derivations gained with facts of other strata, and with its own ones.
LOSING, LOSING_OWN, GAINING, GAINING_OWN = range(4)

#: The next task of a call: take the facts it begins with, take the next stratum, go on with adding, or end a stratum.
SEEDING, NEXT_STRATUM, ADDING, ENDING = range(4)

#: The progress of a call over strata. From `AT_GOING` on, a stratum that is taken back has these as it began.
(
    STAGE, CURRENT_STRATUM, STRATA_OUTCOME, STRATA_WANTED, STRATA_ROOM, BIT_ROUND, BIT_D, BIT_A, PLACES, SEEDS, SEEDED,
    STRATA_DONE, LOST, GAINED, OWN_GOING, OWN_COMING, MOST,
    AT_GOING, AT_COMING, AT_LOG, AT_TOP, AT_ROUNDS, AT_LOST_FACTS, AT_NEW_FACTS, AT_CHANGED,
) = range(25)  # fmt: skip
#: As many numbers behind them are what they were when the stratum at hand began.
SAVED = AT_CHANGED + 1 - AT_GOING
STRATA_STATE = AT_CHANGED + 1 + SAVED

#: Why a call over strata stops: nothing is due any more, a stratum is left to the operators, or something is wanted:
#: the code of a stratum, a plan, an index that knows all rows, the readers of a table, room in a table, or in a queue.
(
    ALL_DONE, LEFT_OVER, WANTS_STRATUM, WANTS_PLAN, WANTS_INDEX, WANTS_READERS, WANTS_ROWS, WANTS_QUEUES,
) = range(8)  # fmt: skip

#: Rows that a step begins with at most, and pairs of a row and a plan. `MOST` of the state is how many derivations a
#: call handles in a stratum; one with more than `SMALL_STRATUM` loses no more than one part of `PART_LOST` of them.
MOST_PICKED, MOST_TRIED_PAIRS = 1 << 12, 1 << 16
SMALL_STRATUM, PART_LOST = 1 << 10, 8
