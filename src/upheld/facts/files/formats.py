"""The options of `.input`, `.output` and `.printsize` for a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from upheld.base.errors import Problem, ProgramError, nearest, quote
from upheld.base.source import Span

#: Options by medium.
_LINES = ("delimiter", "headers", "rfc4180")
_OPTIONS = {
    "file": ("IO", "filename", *_LINES, "compress"),
    "stdin": ("IO", *_LINES),
    "stdout": ("IO", *_LINES, "filename", "compress"),
    "jsonfile": ("IO", "filename", "format"),
    "sqlite": ("IO", "filename", "dbname"),
}
_MEDIA = {
    "input": ("file", "stdin", "jsonfile", "sqlite"),
    "output": ("file", "stdout", "jsonfile", "sqlite"),
    "printsize": ("stdout",),
}
_EXTENSIONS = {"jsonfile": ".json", "sqlite": ".sqlite"}

#: Options that Soufflé has and Upheld does not.
_FOREIGN = ("columns", "fact-dir", "name", "output-dir", "params", "types")


@dataclass(frozen=True)
class Format:
    """How the rows of a relation stand in its file, or in another medium.

    `io` is `file`, `stdin`, `stdout`, `jsonfile` or `sqlite`. The delimiter is not empty and holds no line break, nor a
    quote if the fields follow RFC 4180.
    """

    relation: str
    columns: tuple[str, ...]
    filename: str = ""
    io: str = "file"
    delimiter: str = "\t"
    headers: bool = False
    rfc4180: bool = False
    compress: bool = False
    #: A row of a JSON file: `list` or `object`.
    layout: str = "list"

    @property
    def has_file(self) -> bool:
        """Whether the rows are in a file of the program's folders."""
        return self.io not in ("stdin", "stdout")

    @classmethod
    def from_options(
        cls,
        options: Sequence[tuple[str, str]],
        kind: str,
        relation: str,
        columns: Sequence[str],
        span: Span | None = None,
    ) -> Format:
        """Return the format that the options of a directive ask for; `span` is where it stands in its program.

        >>> Format.from_options([("delimiter", ",")], "input", "edge", ["x", "y"]).filename
        'edge.facts'
        """
        problems: list[Problem] = []

        def refuse(slug: str, message: str, note: str | None = None, hint: str | None = None) -> None:
            where = None if span else f".{kind} {relation}"
            problems.append(Problem(slug, message, span=span, place=where, note=note, hint=hint))

        given = _checked(options, kind, refuse)
        flag = {name: given.get(name) == "true" for name in ("headers", "rfc4180", "compress")}
        # Whether the string was unescaped or not, this means a tab; no file is delimited by a backslash and a t.
        delimiter = given.get("delimiter", "," if flag["rfc4180"] else "\t").replace("\\t", "\t")
        if not delimiter or "\n" in delimiter or "\r" in delimiter:
            refuse("bad-option", "the delimiter is empty or holds a line break", hint='use for example `delimiter=","`')
        if flag["rfc4180"] and '"' in delimiter:
            refuse(
                "bad-option", f"the delimiter {quote(delimiter)} holds a quote", "with `rfc4180` quotes enclose fields"
            )
        if problems:
            raise ProgramError(problems)
        io = given.get("IO", _MEDIA[kind][0])
        extension = _EXTENSIONS.get(io, ".facts" if kind == "input" else ".csv") + (".gz" if flag["compress"] else "")
        filename = given.get("filename", given.get("dbname", relation + extension))
        return cls(relation, tuple(columns), filename, io, delimiter, **flag, layout=given.get("format", "list"))


def _checked(options: Sequence[tuple[str, str]], kind: str, refuse: Callable[..., None]) -> dict[str, str]:
    """Return the options as a dictionary, after refusing those that are unknown, repeated or have no such value."""
    result: dict[str, str] = {}
    medium = next((value for name, value in options if name == "IO" and value in _MEDIA[kind]), _MEDIA[kind][0])
    allowed = ("IO",) if kind == "printsize" else _OPTIONS[medium]
    of = f"`.{kind}`" if medium == _MEDIA[kind][0] else f"`IO={medium}`"
    for name, value in options:
        if name not in allowed:
            known = f"{of} takes " + ", ".join(map(quote, allowed))
            if name in _FOREIGN:
                refuse("unsupported-option", f"the option {quote(name)} is not supported", known, "leave it out")
            else:
                hint = nearest(name, allowed) or "leave it out"
                refuse("unknown-option", f"{of} has no option {quote(name)}", known, hint)
        elif name in result:
            refuse("bad-option", f"the option {quote(name)} is repeated", hint="leave one of them out")
        elif name == "IO" and value not in _MEDIA[kind]:
            known = f"`.{kind}` takes " + " or ".join(f"`IO={medium}`" for medium in _MEDIA[kind])
            way_out = f"use `IO={_MEDIA[kind][0]}`"
            refuse("unsupported-io", f"{quote('IO=' + value)} is not supported for `.{kind}`", known, way_out)
        elif name in ("headers", "rfc4180", "compress") and value not in ("true", "false"):
            refuse("bad-option", f"the option `{name}` is {quote(value)}", "it is `true` or `false`")
        elif name == "format" and value not in ("list", "object"):
            refuse("bad-option", f"the option `format` is {quote(value)}", "it is `list` or `object`")
        elif name in ("filename", "dbname") and (not value or "\0" in value):
            refuse("bad-option", f"the file name {quote(value)} is not the name of a file")
        result[name] = value
    return result
