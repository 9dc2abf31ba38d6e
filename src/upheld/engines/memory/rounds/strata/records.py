"""The records of the kernel that goes from stratum to stratum, and the names of their fields.

strata   a line for each stratum, from `STRATUM_KIND` to `LEFT_AGAIN`
due      a heap of the strata that are due: the lowest is first
links    a line for each table beside the one of `rounds.records`, from `LAST_CHANGE` to `LEVELS`
seeds    the facts that a call begins with, from `SEED_STRATUM` to `SEED_NEXT`
asked    the facts that a small update asks for, from `ASKED_TABLE` to `ASKED_VALUES`
lines    the facts that it changes, from `LINE_TABLE` to `LINE_VALUES`
queues   from `GOING` to `WANTED_CELLS`
log      the numbers of rows before they were changed, from `UNDO_TABLE` to `UNDO_PLAN`
met      for each plan the derivations that it has found, from `IN_DELETION` to `NEXT_MET`
done     the strata that were maintained
state    from `STAGE` to `AT_CHANGED`

Strata, links and met have a line for everything the program has, and they are kept from one update to the next. An
update lists the lines that it writes, so that the next one clears these and looks at no others.
"""

from __future__ import annotations

from upheld.engines.memory.bytecode.records import LENGTH

#: A line of a stratum: what is known of it, where its code is, the derivations that it has, the first of the explicit
#: facts that an update takes from it, and adds to it, whether it is in the heap of due strata, and the changes with
#: which it was last left to the operators, with the number of updates that leave it at once if they have as many.
STRATUM_KIND, STRATUM_CODE, DERIVATIONS, FIRST_MINUS, FIRST_PLUS, IS_DUE, LEFT_WITH, LEFT_AGAIN = range(8)
STRATUM_FIELDS = 8
#: Kinds of strata: not written yet, left to the operators, with explicit facts alone, and with rules.
UNWRITTEN_STRATUM, OTHER_STRATUM, EXPLICIT_STRATUM, RULED_STRATUM = range(4)
#: The code of a stratum: the number of tables that its rules read, and a record for each. The plans that begin with a
#: table are in three parts: from atoms of other strata, from atoms of this one, and from negated atoms. Each part is
#: where the patterns of its atoms are, or `NO_PATTERNS`; a pattern has a list of cells with plans.
READ_TABLE, READ_OTHERS, READ_OWN, READ_NEGATED = range(LENGTH, LENGTH + 4)
READ_FIELDS = 4
#: Instead of a plan: one that has not been written, or that is not simple.
UNWRITTEN_PLAN, OTHER_PLAN = -1, -2

#: Patterns of the rows of a table, each with a number: how many shapes they have, and the shapes. A shape is where the
#: next one is, its number of patterns, the list of columns with constants, the pairs of columns with equal values, and
#: the patterns, each as its constants and its number, in the order of the constants.
SHAPE_NEXT, SHAPE_SIZE, SHAPE_COLUMNS = range(3)
#: Instead of the number of a pattern, for rows of none; and instead of patterns.
NO_NUMBER, NO_PATTERNS = -1, -1

#: A line of a table: the last of its rows that have changed and their number, where the strata are that read it, the
#: stratum that has last noted its record of it and that record, the next table that rows were entered into, and where
#: the strata of its rows are, if there are several.
LAST_CHANGE, CHANGES, READERS, READ_BY, READ_RECORD, NEXT_GROWN_TABLE, LEVELS = range(7)
LINK_FIELDS = 7
#: The readers of a table are patterns with lists of strata; the levels of its rows are patterns with their strata. Rows
#: of no pattern are in the first one. Either may not be written yet.
NO_READERS, NO_LEVELS, FIRST_STRATUM = -1, -1, 1

#: A line of a fact that a call begins with: its stratum, table and row, whether it goes, comes or has changed, and the
#: next one of its stratum.
SEED_STRATUM, SEED_TABLE, SEED_ROW, SEED_KIND, SEED_NEXT = range(5)
SEED_FIELDS = 5
GOES, COMES, HAS_CHANGED = range(3)

#: A line of a fact that a small update asks for: its table, its stratum, 0 if that is found by its row, whether it is
#: to go or to come, its row, and its values. Facts that are ignored, or asked for more than once, get kinds of their
#: own.
ASKED_TABLE, ASKED_STRATUM, ASKED_KIND, ASKED_ROW, ASKED_VALUES = range(5)
IS_IGNORED, IS_REPEATED = range(3, 5)
#: A line of the change that a small update makes: a table, a row, and its values. The lines of its sides follow each
#: other: facts that disappear and appear, explicit facts that do, and facts that are ignored.
LINE_TABLE, LINE_ROW, LINE_VALUES = range(3)

#: The queues of a call: facts that go, facts that come, facts that a step begins with, changed rows, and the cells of
#: plans that are wanted. A line of a changed row has besides the table and the row the line of the row that changed
#: before it in its table.
GOING, COMING, PICKED, CHANGED, WANTED_CELLS = range(5)
CHANGED_TABLE, CHANGED_ROW, CHANGED_BEFORE = range(3)
CHANGED_FIELDS = 3
WANTED_CELL = 0

#: A line of the log: a row, the numbers that it had, and the derivation that changed them as twice its plan, plus one
#: in insertion, or -1.
UNDO_TABLE, UNDO_ROW, UNDO_RANK, UNDO_TOTAL, UNDO_SUPPORT, UNDO_PLAN = range(6)
UNDO_FIELDS = 6
#: The derivations that a plan has found, by phase, and the next plan that has found any.
IN_DELETION, IN_INSERTION, NEXT_MET = range(3)
MET_FIELDS = 3
#: A line of the strata that are done: the stratum, and the derivations that it had.
DONE_STRATUM, DONE_DERIVATIONS = range(2)

#: The stages of a call. A small update begins with the facts that it asks for. A stratum goes from `LOSING` to
#: `ENDING`, through four steps with truth tables of their own: derivations lost with facts of other strata, and round
#: by round with its own ones; derivations gained with facts of other strata, and round by round with its own ones.
ASKING, SEEDING, NEXT_STRATUM, LOSING, LOSING_OWN, GAINING, GAINING_OWN, ENDING = range(8)

#: The progress of a call. Only heads of one `PART` are kept, of `PARTS` in all. A small update has `BIT_E` and `BIT_I`,
#: and its lines end at `END_DELETED` to `END_IGNORED`, once E and I know of them. From `AT_GOING` on, a stratum that is
#: taken back has these as it began.
(
    STAGE, CURRENT_STRATUM, STRATA_OUTCOME, STRATA_WANTED, STRATA_ROOM, IS_BEYOND, BIT_ROUND, BIT_D, BIT_A, BIT_E,
    BIT_I, PLACES, ASKED, FOUND, SEEDS, SEEDED, DUE, STRATA_DONE, FIRST_GROWN_TABLE, FIRST_GROWN_INDEX, FIRST_MET, MOST,
    LOST, GAINED, ROUND_BEGIN, PART, PARTS, IS_ENTERED,
    END_DELETED, END_INSERTED, END_RETRACTED, END_ASSERTED, END_IGNORED,
    AT_GOING, AT_COMING, AT_LOG, AT_TOP, AT_ROUNDS, AT_LOST_FACTS, AT_NEW_FACTS, AT_CHANGED,
) = range(41)  # fmt: skip
#: As many numbers behind them are what they were when the stratum at hand began.
SAVED = AT_CHANGED + 1 - AT_GOING
STRATA_STATE = AT_CHANGED + 1 + SAVED

#: Why a call stops: nothing is due any more, a stratum is left to the operators, or something is wanted: the code of a
#: stratum, plans, an index that knows all rows, the readers of a table, the strata of its rows, room in a table or in
#: a queue, a table of wider values, or room for the lines of the change. A stratum is left because it changes too much,
#: or because it `IS_BEYOND` what kernels maintain.
(
    ALL_DONE, LEFT_OVER, WANTS_STRATUM, WANTS_PLANS, WANTS_INDEX, WANTS_READERS, WANTS_LEVELS, WANTS_ROWS, WANTS_QUEUES,
    WANTS_WIDTH, WANTS_LINES,
) = range(11)  # fmt: skip

#: Rows that a step begins with at most, and pairs of a row and a plan. `MOST` of the state is how many derivations a
#: call handles in a stratum; one with more than `SMALL_STRATUM` loses no more than one part of `PART_LOST` of them.
MOST_PICKED, MOST_TRIED_PAIRS = 1 << 12, 1 << 16
#: Plans that a call asks for at once.
MOST_WANTED = 1 << 8
SMALL_STRATUM, PART_LOST = 1 << 10, 8
#: Updates at most that leave a stratum at once after one that was left in vain. An update of one change is tried each
#: time: it is left after little work, and others like it may change less.
MOST_LEFT_AGAIN = 16
