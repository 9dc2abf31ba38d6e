"""What the driver sends to tasks with its commands."""

from __future__ import annotations

import pickle

import upheld
from tests.engines.spark.helpers.tasks import Driven
from upheld.engines.spark.tasks.commands import Command
from upheld.engines.spark.tasks.tasks import ThreadTasks


def test_a_source_is_sent_once(monkeypatch):
    """Every rule knows the text it stands in, which is as long as all rules: it must not go with each of them."""
    sent: list[bytes] = []
    send = ThreadTasks.send
    monkeypatch.setattr(ThreadTasks, "send", lambda tasks, command: (sent.append(command), send(tasks, command)))
    mark = "the comment of this program"
    rules = "".join(f"p{i + 1}(x) :- p{i}(x).\n" for i in range(20))
    with upheld.materialise(f"// {mark}\n{rules}", {"p0": [(1,)]}, engine=Driven(2)) as m:
        assert len(m["p20"]) == 1
    commands = [Command(*command) for message in sent for command in pickle.loads(message)]
    assert sum(mark.encode() in pickled for command in commands for _, pickled in command.sent) == 1
    assert len(sent) < len(commands) / 2, "commands go together, until the driver waits for tasks"
