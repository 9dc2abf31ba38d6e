"""What the driver sends to tasks with its commands."""

from __future__ import annotations

import pickle

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.engines.spark.helpers.threads import ThreadTasks
from upheld.engines.spark.tasks.commands import Command

CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def test_rules_are_sent_once(monkeypatch):
    """Tasks have the rules of the program, and every rule knows the text it stands in, which is as long as all rules.

    Neither goes with a command; the text of a query goes once.
    """
    sent: list[bytes] = []
    send = ThreadTasks.send
    monkeypatch.setattr(ThreadTasks, "send", lambda tasks, command: (sent.append(command), send(tasks, command)))
    mark, later = "the comment of this program", "the comment of a query"
    rules = "".join(f"p{i + 1}(x) :- p{i}(x).\n" for i in range(20))
    with upheld.materialise(f"// {mark}\n{rules}", {"p0": [(1,)]}, engine=Driven(2)) as m:
        assert len(m["p20"]) == 1
        assert len(m.query(f"p1(x), /* {later} */ !p2(x + 1)")) == 1
    commands = [Command(*command) for message in sent for command in pickle.loads(message)]
    sent_objects = [pickled for command in commands for _, pickled in command.sent]
    assert [sum(text.encode() in pickled for pickled in sent_objects) for text in (mark, later)] == [0, 1]
    assert len(sent) < len(commands) / 2, "commands go together, until the driver waits for tasks"


def test_rounds_of_few_facts_are_one_command():
    """Members go through the rounds of a stratum by themselves, with the rounds and facts of one command each."""
    edges = [(i, i + 1) for i in range(20)]
    with upheld.materialise(CLOSURE, {"edge": edges}, engine=Driven(2), algorithm="ranked") as m:
        begun = m._engine.driver._step
        change = m.update(delete={"edge": [(0, 1)]})
        commands = m._engine.driver._step - begun
        rounds = m.statistics.rounds
        assert len(change.deleted["path"]) == 20
        assert rounds > 20 and commands < 100, "more commands than rounds of four commands each would not need"
        assert m.facts() == upheld.materialise(CLOSURE, {"edge": edges[1:]}).facts()
        reference = upheld.materialise(CLOSURE, {"edge": edges}, engine="reference", algorithm="ranked")
        reference.update(delete={"edge": [(0, 1)]})
        assert rounds == reference.statistics.rounds


def test_the_change_of_an_update_is_read_at_once():
    """However many relations change, the driver reads them in one exchange."""
    relations = 12
    rules = "".join(f"p{i + 1}(x) :- p{i}(x).\n" for i in range(relations))
    with upheld.materialise(rules, {"p0": [(1,), (2,)]}, engine=Driven(2), algorithm="ranked") as m:
        wire, read = m._engine.driver._member.wire, []
        exchange = wire.exchange
        wire.exchange = lambda operator, *rest: (read.append(operator), exchange(operator, *rest))[1]
        change = m.update(delete={"p0": [(1,)]})
        assert [len(change.deleted[f"p{i}"]) for i in range(relations + 1)] == [1] * (relations + 1)
    assert sum(operator.startswith("rows") for operator in read) <= 2
