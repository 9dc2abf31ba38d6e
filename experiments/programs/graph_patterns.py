"""Cycles, cliques, petals (ways between two things) and flowers (petals around one), the last four of them recursive.

Paper 4 writes 23 rules of these shapes over YAGO; their text is not published.
"""

RULES = """
c4a(x, y) :- knows(x, a), likes(a, y), cites(x, b), trusts(b, y).
c4b(x, y) :- knows(x, a), cites(a, y), likes(y, b), trusts(b, x).
c4c(x, y) :- lives(x, p), lives(y, p), works(x, o), works(y, o).
c5a(x, y) :- knows(x, a), likes(a, b), cites(b, y), trusts(x, c), knows(c, y).
c5b(x, y) :- cites(x, a), trusts(a, b), knows(b, y), likes(y, c), cites(c, x).
c6a(x, y) :- knows(x, a), likes(a, b), cites(b, y), trusts(x, c), knows(c, d), likes(d, y).
c6b(x) :- knows(x, a), likes(a, b), cites(b, y), trusts(y, c), knows(c, d), likes(d, x).
k3a(x, y, z) :- knows(x, y), likes(y, z), cites(z, x).
k3b(x, y, z) :- trusts(x, y), knows(y, z), likes(x, z).
k4a(x, y, z, w) :- knows(x, y), knows(y, z), knows(z, w), likes(x, z), likes(y, w), cites(w, x).
k4b(x, y) :- knows(x, y), likes(y, z), cites(z, w), trusts(w, x), knows(x, z), likes(y, w).
p2a(x, y) :- likes(x, a), likes(a, y), cites(x, b), cites(b, y).
p3a(x, y) :- knows(x, a), knows(a, y), likes(x, b), likes(b, y), cites(x, c), cites(c, y).
p3b(x, y) :- knows(x, a), likes(a, y), cites(x, b), trusts(b, y), likes(x, c), knows(c, y).
p4a(x, y) :- knows(x, a), knows(a, y), likes(x, b), likes(b, y), cites(x, c), cites(c, y), trusts(x, d), trusts(d, y).
f2a(x) :- knows(x, a), likes(a, b), cites(b, x), trusts(x, c), knows(c, d), likes(d, x).
f2b(x) :- knows(x, a), likes(a, b), cites(b, x), trusts(x, c), knows(c, d), likes(d, e), cites(e, x).
f3a(x) :- knows(x, a), likes(a, b), cites(b, x), trusts(x, c), knows(c, d), likes(d, x), cites(x, e), trusts(e, x).
f2c(x, o) :- works(x, o), knows(x, a), likes(a, b), cites(b, x), trusts(x, c), knows(c, d), likes(d, x).
near(x, y) :- knows(x, a), likes(x, b), near(a, y), near(b, y).
near(x, y) :- cites(x, a), trusts(x, b), near(a, y), near(b, y).
akin(x, y) :- likes(x, a), trusts(x, b), akin(a, y), akin(b, y).
akin(x, y) :- knows(x, a), cites(x, b), likes(x, c), akin(a, y), akin(b, y), akin(c, y).
"""
