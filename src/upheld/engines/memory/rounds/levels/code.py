"""The recursive rules of a stratum as plans in numbers, and all its rules as lists of atoms."""

from __future__ import annotations

import numpy as np

from upheld.compiler.strata import Stratum
from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.encoder import Numbers, RoundCode, Start, shift_of
from upheld.engines.memory.plans.plan import Places, Plan, Planner
from upheld.engines.memory.rounds.levels import records as lr
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Atom, Rule


class LevelCode(RoundCode):
    """Plans whose instances are bindings of all variables: behind the lines of tables is one for each rule."""

    def __init__(self, s: Stratum, starts: list[Start], tables: dict[str, Table], planner: Planner):
        atoms = [atom for rule in s.rules for atom in (rule.head, *rule.positive, *rule.negative)]
        known = list(dict.fromkeys(tables[atom.predicate] for atom in atoms))
        self.rule_lines = {rule: len(known) + i for i, rule in enumerate(s.rules)}
        super().__init__(starts, known, tables, planner.codec)
        assert len(self.tables) == len(known), "a plan that looks into tables of no atom"
        self.heads = list(dict.fromkeys(tables[rule.head.predicate] for rule in s.rules))
        self.most_atoms = 1
        #: For each line the place of the record of its rule in the code, 0 for tables.
        self.records: Numbers = np.zeros(len(known) + len(s.rules), np.int64)
        for rule, line in self.rule_lines.items():
            self.records[line] = self._add_rule(rule, s, planner)
        self.code = np.array(self._code, np.int64)
        self.table_lines = np.zeros((len(self.records), r.TABLE_FIELDS), np.int64)

    def _head(self, plan: Plan, held: tuple[str, ...]) -> tuple[int, Places, Codes]:
        terms = np.array([held.index(v) for v in plan.rule.variables()], np.int64)
        return self.rule_lines[plan.rule], terms, np.empty(0, np.int64)

    def _add_rule(self, rule: Rule, s: Stratum, planner: Planner) -> int:
        """Write the atoms of a rule, and return where its record is."""
        own = s.own(rule)
        body = [self._add_terms(rule, atom, k in own, planner) for k, atom in enumerate(rule.positive)]
        body += [self._add_terms(rule, atom, False, planner) for atom in rule.negative]
        head = self._add_terms(rule, rule.head, True, planner)
        at = len(self._code)
        self._code += (len(rule.positive), len(rule.negative), head, *body)
        assert at + lr.RULE_ATOMS + len(body) == len(self._code), "a record of a rule"
        self.most_atoms = max(self.most_atoms, len(body))
        self.registers = max(self.registers, 1 + len(rule.variables()))
        self.arity = max(self.arity, len(rule.variables()))
        return at

    def _add_terms(self, rule: Rule, atom: Atom, is_own: bool, planner: Planner) -> int:
        at, variables = len(self._code), rule.variables()
        self._code += [0] * lr.ATOM_KNOWN
        self._code[at + lr.ATOM_TABLE] = self.numbers[planner.tables[atom.predicate]]
        self._code[at + lr.ATOM_OWN] = is_own
        terms, constants = planner.kept_terms(atom, variables)
        self._add_known(range(len(atom.terms)), terms, constants, variables, {v: i for i, v in enumerate(variables)})
        return at

    def hash_into(self, size: int) -> None:
        """Write the lines of rules, for a hash table of bindings with `size` slots."""
        for rule, line in self.rule_lines.items():
            fields = self.table_lines[line]
            fields[r.WIDE], fields[r.ARITY], fields[r.KEYS] = True, len(rule.variables()), r.BY_VALUE
            fields[r.SIZE], fields[r.SHIFT] = size, shift_of(size)
