"""Relations that the tasks of an engine write, so that their rows do not go through this process."""

from __future__ import annotations

from upheld.materialisation.lifecycle import Lifecycle


def write_by_tasks(m: Lifecycle, name: str, folder: str) -> list[tuple[str, int]] | None:
    """Have the tasks of an engine write a relation to a folder; return the files with their rows.

    Return None if this process has to write it: it has the facts, or makes them of those that tasks have.
    """
    predicate = m._predicate(name)
    if m._remote is None or not predicate.arity or not m._representation.is_live(name):
        return None
    with m._turns.look():
        assert m._remote is not None, "an engine that has changed its kind"
        return m._remote.write(m._representation.shown(m._state), name, predicate.columns, folder)


def tasks_see(m: Lifecycle, folder: str) -> bool:
    """Return whether all tasks of an engine see a folder of this process."""
    with m._turns.look():
        return m._remote is not None and m._remote.sees(folder)


def texts_in_tasks(m: Lifecycle) -> int:
    """Return how many texts have codes in the tasks of an engine, those in the rules among them."""
    with m._turns.look():
        assert m._remote is not None, "an engine without tasks"
        return m._remote.texts()
