"""A first materialisation, update, query and explanation of a small program, in a process of its own."""

from __future__ import annotations

import upheld

PROGRAM = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def main() -> None:
    m = upheld.materialise(PROGRAM, {"edge": [(i, i + 1) for i in range(10)]})
    change = m.update(insert={"edge": [(10, 11)]}, delete={"edge": [(3, 4)]})
    found = m.query("path(4, x)")
    print(len(change.inserted["path"]), len(found), m.explain("path(0, 3)"))


if __name__ == "__main__":
    main()
