"""The W3C's suites of RDF files, where they are kept: each test with its kind, its file and what it should give."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

import upheld
from tests.helpers.cases import CASES
from tests.helpers.isomorphism import isomorphic

SUITES = ("n-triples", "turtle")


class Case(NamedTuple):
    """A test of a suite, as its manifest has it. `result` is what the file says, as N-Triples, if that counts."""

    suite: str
    name: str
    kind: str
    file: str
    data: bytes
    result: bytes | None

    @property
    def base(self) -> str | None:
        """The IRI that relative ones of the file are resolved against."""
        return f"https://w3c.github.io/rdf-tests/rdf/rdf11/rdf-turtle/{self.file}" if self.suite == "turtle" else None

    def check(self) -> None:
        """Read the file in the current folder: the right triples if it is right, and an error if it is not."""
        path = Path(Path(self.file).name)
        path.write_bytes(self.data)
        if "Negative" in self.kind:
            with pytest.raises(upheld.UpheldError) as caught:
                upheld.rdf.read(path, base=self.base)
            assert caught.value.slugs == ("bad-rdf",), f"{self.name}: {caught.value}"
            return
        found = set(upheld.rdf.read(path, base=self.base)["triple"])
        if self.result is not None:
            Path("expected.nt").write_bytes(self.result)
            expected = set(upheld.rdf.read("expected.nt")["triple"])
            assert isomorphic(found, expected), f"{self.name} says something else"


def cases(suite: str) -> list[Case]:
    """Return the tests of a suite; none where the suites are not kept."""
    if CASES is None:
        return []
    with tarfile.open(CASES / "rdf-tests" / f"{suite}.tar.gz") as archive:
        files = {m.name.removeprefix("./"): archive.extractfile(m).read() for m in archive if m.isfile()}  # type: ignore[union-attr]
    rows = [line.split("\t") for line in files[f"{suite}/INDEX.tsv"].decode().splitlines()[1:]]
    return [
        Case(
            suite,
            name,
            kind,
            action,
            files[f"{suite}/{action}"],
            files[f"{suite}/{result}"] if "Eval" in kind else None,
        )
        for name, kind, action, result, *_ in rows
    ]
