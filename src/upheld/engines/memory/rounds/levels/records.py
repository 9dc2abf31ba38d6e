"""The records that the kernels for rounds of `counting` read and write, and the names of their fields.

plans      tables, indexes, code and begins, as in `rounds.records`, and for each rule where its record is in the code.
           A table line has the old and the new level and the first entry of its rows in place of rank, total and
           support. Behind the tables comes a line for each rule, whose "rows" are the bindings of its variables: so
           the search for instances writes bindings where it writes heads for other kernels.
agenda     entries: listed instances, and doubted facts, in chains by kind and round; the rows of their body atoms;
           chains: for each kind and round one entry, or -1, and numbers of doubted facts; those listed last, to take
           them back; and a hash table of instances, empty between rounds
lists      pairs of a table and a row: facts whose number has changed in a round, facts that change their level such
           that old instances may be lost, and facts that appear
counts     for each table the addresses of its numbers by round and of their count, and the room for them; logs of
           added numbers, of levels there were, and of facts put into L; and how far the logs have come
"""

from __future__ import annotations

from upheld.engines.memory.bytecode.records import RANK, SUPPORT, TOTAL

#: The columns of old and new levels, and of first entries, in the line of a table.
OLD_LEVEL, NEW_LEVEL, FIRST = RANK, TOTAL, SUPPORT

#: The kinds of entries; `chains` also counts doubted facts, and the ones that this round has listed.
LOSS, GAIN, DOUBT, DOUBTED, DOUBTED_NOW = range(5)
#: In place of a kind: the entry is free.
FREE = -1

#: An entry: the next of its chain, its kind and round, the line of its rule or the table of its fact, its place in the
#: hash table or -1, and the bindings of the variables of the rule.
NEXT_ENTRY, KIND, ROUND_OF, OF, PLACE, BINDINGS = range(6)
#: The column of `bodies` that has the row of a doubted fact.
FACT = 0

#: The record of a rule in the code: its atoms, first the positive ones, and its head.
RULE_POSITIVE, RULE_NEGATED, RULE_HEAD, RULE_ATOMS = range(4)
#: The record of an atom: its table, whether it belongs to the stratum, and what is known.
ATOM_TABLE, ATOM_OWN, ATOM_KNOWN = range(3)

#: A line of `counters`.
NUMBERS, NUMBERS_USED, NUMBERS_ROOM = range(3)
#: The logs, and how many lines of each are written.
ADDED_TABLE, ADDED_ROW, ADDED_ROUND, ADDED = range(4)
PLACED_TABLE, PLACED_ROW, PLACED_LEVEL = range(3)
LOGGED_ADDED, LOGGED_PLACED, LOGGED_L = range(3)

#: The bits of the facts at work, and of I, D, A and L.
AT_WORK, IN_I, IN_D, IN_A, IN_L = range(5)
#: The truth tables of the facts there are now, and of those there were.
NOW, BEFORE = range(2)

#: The progress: the round, where in it, the last round that has entries; the first free entry and the number of used
#: ones, how many were listed last; facts in `lists`; rounds and facts for the statistics; why a call stops, and how
#: much room it wants.
ROUND, STAGE, HIGHEST, FREE_FIRST, USED, LISTED, CHANGED_FACTS, LOST_FACTS, GAINED_FACTS = range(9)
METER_ROUNDS, METER_FACTS, OUTCOME, WANTED = range(9, 13)

#: The stages of a round: before it; doubts, losses and gains are to be listed.
BETWEEN, DOUBTS, LOSSES, GAINS = range(4)
