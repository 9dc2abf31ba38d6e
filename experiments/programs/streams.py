"""The three programs of appendix B of paper 5."""

P_TRANS = "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z)."
P_SEQ = "e1(x, y) :- edge(x, y). e2(x, y) :- e1(x, y). e3(x, y) :- e2(x, y). e4(x, y) :- e3(x, y)."
WAYS = """
connection(z1, z2) :- nextInWay(x, _, z1), nextInWay(x, _, z2), z1 != z2.
connection(z1, z2) :- nextInWay(x, _, z1), nextInWay(_, x, z2), z1 != z2.
connection(z1, z2) :- nextInWay(_, y, z1), nextInWay(y, _, z2), z1 != z2.
connection(z1, z2) :- nextInWay(_, y, z1), nextInWay(_, y, z2), z1 != z2.
connection(x, z) :- connection(x, y), connection(y, z).
"""
