"""The functors of the program."""

import numpy as np

import upheld


@upheld.functor("initial", ["symbol", "symbol"])
def initial(text):
    return text[:1]


@upheld.functor("distance", ["number", "number", "float"], arrays=True)
def distance(x, y):
    return np.hypot(x, y)
