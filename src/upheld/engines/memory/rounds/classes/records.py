"""The records of the kernels for equality by rewriting, beside the records of all rounds.

plans      tables, indexes and code, where the plans of each table begin, and where those that begin with heads do
classes    equality, columns, several, mentions and reflexive:
             equality    the table of equalities, the column and the code of their property, and their two sides
             columns     for each table and column whether it has constants that may equal others
             several     for each constant whether it represents a non-singleton class
             mentions    for each constant how often explicit facts mention it
             reflexive   for each table and column whether its constants equal themselves by a rule of reflexivity
out        facts that leave the rounds: table, row, and why
"""

from __future__ import annotations

from upheld.engines.memory.bytecode.records import UNCOUNTED, WANTED

#: The fields of `equality`.
EQUALITY_TABLE, PROPERTY, SAME_AS, LEFT_SIDE, RIGHT_SIDE = range(5)

#: The bits of the current round, of facts that are over-deleted, and of facts that are known to hold.
CURRENT, DOUBTED, HOLDING = range(3)

#: The fields of `out`, and why a fact is in it: it holds, or it is the equality of a class of several constants, by a
#: rule or by reflexivity.
OUT_TABLE, OUT_ROW, OUT_KIND = range(3)
HOLDS, BY_RULE, BY_REFLEXIVITY = range(3)

#: The last truth tables, after the ones of places, counted from the end: of facts to be ignored, and of explicit facts.
KNOWN, EXPLICIT = -1, -2

#: Behind the other numbers of a state: where the facts that go without question and the candidates by rules end in the
#: queue at first, and the rows that were looked at for proofs so far.
SURE, BY_RULES, TRIED = range(WANTED + 1, WANTED + 4)
STATE_FIELDS = TRIED + 1

#: Why a call stops, beside the reasons of all rounds: an equality makes two classes one.
JOINS = UNCOUNTED + 1

#: Equalities that a plan is asked for at first, for each constant of a class, and how many times more each time after.
FIRST_INSTANCES, MORE_INSTANCES = 16, 16
