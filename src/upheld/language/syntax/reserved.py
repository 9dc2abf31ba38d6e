"""The operators and reserved words of the `.dl` dialect."""

from upheld.language.syntax.parser import AND, COMPARISONS, OR, POWER, TERM

#: Infix operators by level, as in Soufflé's grammar.
OPERATORS = {
    ";": OR,
    ",": AND,
    **COMPARISONS,
    "lor": TERM,
    "lxor": TERM + 1,
    "land": TERM + 2,
    "bor": TERM + 3,
    "bxor": TERM + 4,
    "band": TERM + 5,
    **dict.fromkeys(("bshl", "bshr", "bshru"), TERM + 6),
    **dict.fromkeys(("+", "-"), TERM + 7),
    **dict.fromkeys(("*", "/", "%"), TERM + 8),
    "^": POWER,
}
PREFIXES = ("-", "bnot", "lnot")
BUILT_IN_TESTS = ("match", "contains", "is_null")
AGGREGATES = ("count", "sum", "min", "max", "mean")
#: Operators that look like names.
RESERVED = frozenset(word for word in (*OPERATORS, *PREFIXES) if word.isalpha())
CONSTANT_WORDS = ("true", "false", "nil")
#: Constants that say where they stand.
FILE, LINE = "__FILE__", "__LINE__"
NO_RELATIONS = RESERVED.union(BUILT_IN_TESTS, CONSTANT_WORDS, ("_", FILE, LINE))
