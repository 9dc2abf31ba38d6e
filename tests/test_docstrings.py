"""Docstrings of the public API: each parameter is described in a section `Args:`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import upheld
import upheld.rdf

#: Made by Upheld and not by its users, who get them from functions.
NOT_CONSTRUCTED = {upheld.Materialisation, upheld.Snapshot, upheld.UpheldError, upheld.UpheldWarning}


def public() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Yield the name of each public function, the function, and the docstring that describes its parameters."""
    for module in (upheld, upheld.rdf):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield name, value, inspect.getdoc(value) or ""
            elif inspect.isclass(value):
                if not dataclasses.is_dataclass(value) and value not in NOT_CONSTRUCTED:
                    yield name, value.__init__, inspect.getdoc(value) or ""
                members = {
                    m: f for base in reversed(value.__mro__) if base is not object for m, f in vars(base).items()
                }
                for member, method in members.items():
                    method = getattr(method, "__func__", method)
                    if inspect.isfunction(method) and (not member.startswith("_") or member == "__getitem__"):
                        yield f"{name}.{member}", method, inspect.getdoc(method) or ""


@pytest.mark.parametrize("function, docstring", [pytest.param(f, d, id=name) for name, f, d in public()])
def test_parameters_are_described(function: Callable[..., Any], docstring: str) -> None:
    """`Args:` has an entry for each parameter and no others, in their order."""
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    section = re.search(r"^Args:\n((?:    .*\n?)+)", docstring, re.MULTILINE)
    described = re.findall(r"^    (\w+): \S", section[1], re.MULTILINE) if section else []
    assert described == parameters
