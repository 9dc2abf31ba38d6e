"""`upheld.base.dataclass.dataclass` makes the classes that `dataclasses.dataclass` makes."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest

from tests.helpers.cases import ROOT
from upheld.base.dataclass import dataclass

OPTIONS: list[dict[str, bool]] = [
    {},
    {"eq": False},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "eq": False},
    {"frozen": True, "repr": False},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
]


class Plain:
    """Fields without defaults."""

    a: int
    b: str


class Defaults:
    """Fields of every kind, and a name that is none."""

    kinds: ClassVar[int] = 3
    a: int
    b: list[int] = field(default_factory=list)
    c: str = "c"
    d: int | None = field(default=None, compare=False)
    e: int = field(default=5, repr=False)


class Empty:
    """No fields."""


class Checked:
    """Something to do once the fields are there."""

    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError(self.a)


class OwnEquality:
    """An equality, and with it a hash, that the class defines."""

    a: int
    b: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnEquality) and self.a == other.a

    def __hash__(self) -> int:
        return self.a


class OwnEqualityAlone:
    """An equality that the class defines; Python takes its hash away."""

    a: int

    def __eq__(self, other: object) -> bool:
        return True


class OwnMethods:
    """Other methods that the class defines."""

    a: int

    def __init__(self, a: int = 0):
        object.__setattr__(self, "a", a + 1)

    def __repr__(self) -> str:
        return "own"


ARGUMENTS: dict[type, list[tuple[Any, ...]]] = {
    Plain: [(1, "x"), (1, "x"), (2, "x"), (1, "y")],
    Defaults: [(1,), (1, []), (1, [2], "z"), (1, [2], "z", 7), (1, [2], "z", 8, 9), (float("nan"),)],
    Empty: [(), ()],
    Checked: [(1,), (2,)],
    OwnEquality: [(1, 2), (1, 3), (2, 2)],
    OwnEqualityAlone: [(1,), (2,)],
    OwnMethods: [(1,), (1,), ()],
}


def both(shape: type, options: dict[str, bool]) -> list[Any]:
    """Return a class as the library makes it, and as Upheld does."""
    body = {name: value for name, value in vars(shape).items() if name not in ("__dict__", "__weakref__")}
    return [make(**options)(type(shape.__name__, (), body)) for make in (dataclasses.dataclass, dataclass)]


def outcome(action: Callable[[], object]) -> object:
    """Return what an action returns, or the error that it raises."""
    try:
        return action()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", ARGUMENTS, ids=lambda shape: shape.__name__)
def test_objects_behave_as_the_librarys(shape: type, options: dict[str, bool]) -> None:
    """Making, comparing, hashing, writing, changing and copying have one outcome, errors included."""

    def seen(cls: Any) -> object:
        objects = [cls(*arguments) for arguments in ARGUMENTS[shape]]
        changed = [cls(*arguments) for arguments in ARGUMENTS[shape]]
        return (
            [asdict(one) for one in objects],
            [one == other for one in objects for other in [*objects, 1]],
            [outcome(lambda one=one: hash(one) == hash(copy.copy(one))) for one in objects],
            [repr(one) if options.get("repr", True) else "" for one in objects],
            [[outcome(lambda o=o, n=f.name: setattr(o, n, 3)) for f in fields(o)] for o in changed],
            [[outcome(lambda o=o, n=f.name: delattr(o, n)) for f in fields(o)] for o in changed],
            [outcome(lambda one=one: asdict(replace(one, a=4))) for one in objects],
            [asdict(copy.copy(one)) for one in objects],
            [outcome(lambda: cls(*range(9))), outcome(lambda: cls(nothing=1)), outcome(lambda: cls(-1) and None)],
            (
                inspect.signature(cls),
                cls.__match_args__,
                cls.__init__.__qualname__,
                hasattr(cls(*ARGUMENTS[shape][0]), "__dict__"),
            ),
        )

    library, ours = both(shape, options)
    assert repr(seen(ours)) == repr(seen(library))


@dataclass(frozen=True, slots=True)
class Small:
    """A frozen class with slots: pickle must set what nobody may."""

    a: int
    b: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wide:
    """A frozen class that others extend."""

    a: int

    @cached_property
    def twice(self) -> int:
        return 2 * self.a


@dataclass(frozen=True)
class Wider(Wide):
    """A class with the fields of another."""

    b: Wide | None = None


class Noted(Wider):
    """A class that is no dataclass, whose other attributes may change."""

    note = ""


@pytest.mark.parametrize("value", [Small(1, (2,)), Wide(1), Wider(1, Wide(2))], ids=repr)
def test_objects_are_pickled_and_copied(value: object) -> None:
    """Tasks of Spark get what the driver has."""
    assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)
    assert hash(copy.copy(value)) == hash(value)


def test_a_class_extends_another() -> None:
    """The fields of the class above come first; objects of two classes are never equal."""
    assert repr(Wider(1)) == "Wider(a=1, b=None)"
    assert Wide(1) != Wider(1)
    assert Wider(2).twice == 4


def test_other_attributes_of_an_extending_class_may_change() -> None:
    """Frozen are the fields."""
    noted = Noted(1)
    noted.note = "said"
    assert noted.note == "said"
    del noted.note
    assert noted.note == ""
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        noted.a = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'b'"):
        del noted.b


def test_a_class_without_documentation_has_its_name() -> None:
    """The library would work out a signature."""

    @dataclass
    class Bare:
        a: int

    assert Bare.__doc__ == "Bare"


def test_an_object_may_contain_itself() -> None:
    """Its text ends."""

    @dataclass
    class Loop:
        """An object that refers to another."""

        next: Loop | None = None

    loop = Loop()
    loop.next = loop
    assert repr(loop).endswith("Loop(next=...)")


def test_every_dataclass_is_made_by_this_one() -> None:
    """A class that the library makes costs a run three times as much."""
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sorted((ROOT / "src").rglob("*.py"))
        if file.name != "dataclass.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if any(alias.name == "dataclass" for alias in node.names)
    ]
    assert found == []
