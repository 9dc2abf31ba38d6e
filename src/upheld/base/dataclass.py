"""`dataclass` as the standard library has it, at a third of the cost.

A short run loads two hundred dataclasses. The library compiles six functions for each that is frozen, which took a
seventh of such a run. Here `__init__`, `__eq__` and `__hash__` are compiled together, which Python does from 3.13 on;
methods that are seldom called are functions that all classes share. Fields, `replace` and `asdict` are the library's.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, slots=False):
        """Make a dataclass of a class, with the options of `dataclasses.dataclass` that Upheld uses."""

        def make(cls):
            # The library documents a class that is not by its signature, which would take as long as all the rest.
            cls.__doc__ = cls.__doc__ or cls.__name__
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            methods = _compiled(cls, frozen, eq)
            if repr:
                methods["__repr__"] = _repr(cls)
            if frozen:
                methods |= _refusals(cls)
            if frozen and slots:
                methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
            # Python itself gives a class that defines `__eq__` a hash of None: that is not a choice of the class.
            chosen = {name for name, value in vars(cls).items() if (name, value) != ("__hash__", None)}
            for name in methods.keys() - chosen:
                setattr(cls, name, methods[name])
            return cls

        return make if cls is None else make(cls)


class _Factory:
    """The default of a parameter whose value a function makes."""

    def __repr__(self) -> str:
        return "<factory>"


def _compiled(cls: type, frozen: bool, eq: bool) -> dict[str, Any]:
    """Return the methods that are called often: `__init__`, `__eq__` and `__hash__`."""
    fields = dataclasses.fields(cls)
    assert all(field.init and not field.kw_only for field in fields), "a kind of field that no class has had so far"
    names = ["__init__"]
    known: dict[str, object] = {"_set": object.__setattr__, "_factory": _Factory()}
    text = _init(fields, frozen, hasattr(cls, "__post_init__"), known)
    if eq:
        compared = [field.name for field in fields if field.compare]
        mine, others = (f"({''.join(f'{of}.{name},' for name in compared)})" for of in ("self", "other"))
        names.append("__eq__")
        text += ["def __eq__(self, other):", " if other.__class__ is self.__class__:", f"  return {mine} == {others}"]
        text.append(" return NotImplemented")
        if frozen:
            names.append("__hash__")
            text += ["def __hash__(self):", f" return hash({mine})"]
    lines = [f"def make({', '.join(known)}):", *(f" {line}" for line in text), f" return {', '.join(names)},"]
    scope: dict[str, Any] = {}
    exec("\n".join(lines), vars(sys.modules[cls.__module__]), scope)
    methods: dict[str, Any] = dict(zip(names, scope["make"](**known), strict=True))
    for name, method in methods.items():
        method.__qualname__ = f"{cls.__qualname__}.{name}"
    methods["__init__"].__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return methods if frozen or not eq else {**methods, "__hash__": None}


def _init(fields: Sequence[Field[Any]], frozen: bool, has_more: bool, known: dict[str, object]) -> list[str]:
    """Return the lines of `__init__`, and add the values that it needs to those that are known."""
    parameters, lines = ["self"], []
    for field in fields:
        name, value = field.name, field.name
        if field.default is not MISSING:
            known[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        elif field.default_factory is not MISSING:
            known[f"_factory_{name}"] = field.default_factory
            parameters.append(f"{name}=_factory")
            value = f"_factory_{name}() if {name} is _factory else {name}"
        else:
            parameters.append(name)
        lines.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if has_more:
        lines.append(" self.__post_init__()")
    return [f"def __init__({', '.join(parameters)}):", *(lines or [" pass"])]


def _repr(cls: type) -> Callable[[Any], str]:
    """Return the method that writes an object as the call that makes it."""
    shown = [field.name for field in dataclasses.fields(cls) if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    return __repr__


def _refusals(cls: Any) -> dict[str, Callable[..., None]]:
    """Return the methods by which a frozen object refuses to change."""
    names = {field.name for field in dataclasses.fields(cls)}

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
