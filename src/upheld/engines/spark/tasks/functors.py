"""User-defined functors on their way to tasks: rules name them, and a task has no Python function under that name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from upheld.base.errors import Problem, ProgramError, quote
from upheld.language.core import Rule, rule_functors
from upheld.language.types.functors import Definition, definition, enter_definition, is_user_defined


class Taught:
    """Definitions of functors. Whoever unpickles them can unpickle rules with these functors from then on."""

    def __init__(self, names: Iterable[str]):
        self._pickled = [_pickled(name) for name in sorted(names)]

    def __reduce__(self) -> tuple[Callable[[list[bytes]], None], tuple[list[bytes]]]:
        return _learn, (self._pickled,)


def functors_of(rules: Iterable[Rule]) -> set[str]:
    """Return the names of the user-defined functors in rules."""
    return {name for rule in rules if rule.builtins for name in rule_functors(rule) if is_user_defined(name)}


def _pickled(name: str) -> bytes:
    """Return a definition as bytes: functions of importable modules by name, others with their code."""
    from pyspark import cloudpickle

    try:
        pickled: bytes = cloudpickle.dumps(definition(name))
    except Exception as error:  # whatever the values that a function refers to raise
        raise ProgramError(
            Problem(
                "unsupported-functor",
                f"the Python function of {quote(name)} cannot be sent to the tasks of Spark",
                note=f"it could not be pickled: {type(error).__name__}: {error}",
                hint="let the function refer only to values that can be pickled, or use the memory engine",
            )
        ) from error
    return pickled


def _learn(pickled: Iterable[bytes]) -> None:
    """Enter definitions into this process."""
    from pyspark import cloudpickle

    for one in pickled:
        learned: Definition = cloudpickle.loads(one)
        enter_definition(learned)
