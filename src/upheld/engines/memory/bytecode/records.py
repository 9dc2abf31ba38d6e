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
#: than `KEYS_AT_MOST` distinct keys, and then lists the index, by `NEXT_GROWN_INDEX`.
OF_TABLE, BLOCKS, INDEX_SLOTS, INDEX_SIZE, INDEX_SHIFT, NEXT, POOL = range(7)
KNOWN_ROWS, ROWS_AT_MOST, DISTINCT_KEYS, KEYS_AT_MOST, NEXT_GROWN_INDEX = range(7, 12)

#: An entry of an index of blocks: where its block begins in the pool, rows, room, and the hash of its key.
BLOCK_BEGIN, BLOCK_LENGTH, BLOCK_ROOM, BLOCK_HASH = range(4)
BLOCK_FIELDS = 4

#: The records of code, as `bytecode` describes them.
PLAN_RULE, PLAN_TABLE, PLAN_TRUTH, PLAN_RANKED, PLAN_STEPS, PLAN_HEAD = range(6)
PLAN_FIRST, PLAN_VARIABLES, PLAN_ONLY_STEP, PLAN_CHECKS = range(6, 10)
STEP_NEXT, STEP_KIND, STEP_TABLE, STEP_INDEX, STEP_TRUTH, STEP_NEGATED, STEP_RANKED, STEP_KNOWN = range(8)
#: Kinds of steps: to follow an index, to look a fact up, and operations, whose operands are written as known values.
#: The first four of these compare and have no result.
FOLLOWS, LOOKS_UP, EQUAL, UNEQUAL, LESS, AT_MOST, COPY, PLUS, MINUS, TIMES = range(10)
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

TABLE_FIELDS, INDEX_FIELDS = INDEXED + 1, NEXT_GROWN_INDEX + 1

#: Where a plan of one step has a value of its head from: the fact it begins with, the one that was matched, or neither.
SOURCE, SOURCE_VALUE = range(2)
FROM_FACT, FROM_MATCH, A_CONSTANT = range(3)

#: A line of an instance: the table of its head, its rule, the highest rank in its body, where the search for its head
#: in the tuple index begins, and the values of its head.
HEAD, RULE, HEIGHT, AT, VALUES = range(5)

#: The places of the values of a fact and of the instances in a bench.
FACT_VALUES, LINES = 3, 4

#: The bytes of a number of these records.
NUMBER = 8

#: The lower half of a number of 64 bits, the lowest of these numbers, and the range of numbers of 32 bits.
LOW_HALF = np.int64(0xFFFFFFFF)
LOWEST = np.iinfo(np.int64).min
NARROWEST, WIDEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max

#: Lists within lines: each line has the number of the next one, `NOBODY` at the end, or `UNLISTED`. So what is listed
#: can be found, and taken off the list, without a look at any other line.
NOBODY, UNLISTED = -1, -2
