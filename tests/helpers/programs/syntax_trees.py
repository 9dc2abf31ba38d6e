"""Random syntax trees of both dialects: those a parser can return, whether or not they are safe or well typed."""

from __future__ import annotations

from hypothesis import strategies as st

from upheld.language.ast import (
    Aggregate,
    Atom,
    Attribute,
    Branch,
    Call,
    Clause,
    Conjunction,
    Constant,
    Declaration,
    Directive,
    Disjunction,
    Formula,
    FunctorDeclaration,
    Grouping,
    Hint,
    Negation,
    Program,
    Result,
    Subsumption,
    Term,
    Test,
    Truth,
    TypeDeclaration,
    Values,
    Variable,
    Wildcard,
)
from upheld.language.syntax import rdfox, reserved, souffle
from upheld.language.syntax.directives import QUALIFIERS
from upheld.language.syntax.parser import COMPARISONS, TERM
from upheld.language.terms import vocabulary
from upheld.language.terms.functions import FUNCTIONS
from upheld.language.terms.terms import literal
from upheld.language.types.functors import HOLDS
from upheld.language.types.primitive import quoted

#: Few enough leaves to stay below the limit of nesting, many enough to mix every operator with every other.
LEAVES = 12

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


def _tuples(elements: st.SearchStrategy, least: int = 0, most: int = 3) -> st.SearchStrategy:
    return st.lists(elements, min_size=least, max_size=most).map(tuple)


def _formulas(leaves: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(Negation), _tuples(inner, 2).map(Conjunction), _tuples(inner, 2).map(Disjunction)
        ),
        max_leaves=LEAVES,
    )


def _clauses(atoms: st.SearchStrategy[Atom], bodies: st.SearchStrategy[Formula]) -> st.SearchStrategy[Clause]:
    return st.builds(Clause, _tuples(atoms, 1, 2), st.none() | bodies)


# -- .dl --------------------------------------------------------------------------------------------------------------

_TAKEN = reserved.NO_RELATIONS.union(reserved.AGGREGATES, souffle.UNSTABLE, QUALIFIERS, ("_", "as", "nil"))
dl_names = st.from_regex(r"[A-Za-z_?][A-Za-z0-9_?]{0,5}", fullmatch=True).filter(lambda name: name not in _TAKEN)

#: Names of relations and types, some of them qualified by the names of instances of components.
dl_qualified = dl_names | st.lists(dl_names, min_size=2, max_size=3).map(".".join)

dl_constants = st.one_of(
    st.builds(Constant, st.integers(-(2**63), 2**63 - 1), st.just("number")),
    st.builds(Constant, st.integers(0, 2**64 - 1), st.just("unsigned")),
    st.builds(Constant, st.floats(allow_nan=False, allow_infinity=False), st.just("float")),
    st.builds(Constant, texts, st.just("symbol")),
    st.builds(Constant, st.just("nil") | dl_qualified.map("${}".format), st.just("record")),
)
_INFIX = [operator for operator, level in reserved.OPERATORS.items() if level >= TERM]
_FUNCTORS = "cat ord strlen substr to_number to_string min max range".split()

dl_terms: st.SearchStrategy[Term] = st.recursive(
    st.builds(Variable, dl_names) | st.builds(Wildcard) | dl_constants,
    lambda inner: st.one_of(
        st.builds(Call, st.sampled_from(_INFIX), st.tuples(inner, inner)),
        st.builds(Call, st.sampled_from(reserved.PREFIXES), st.tuples(inner)),
        st.builds(Call, st.sampled_from(_FUNCTORS) | dl_names | dl_names.map("@{}".format), _tuples(inner)),
        st.builds(Call, st.just("[]") | dl_qualified.map("${}".format), _tuples(inner, 1)),
    ),
    max_leaves=LEAVES,
)
dl_atoms = st.builds(Atom, dl_qualified, _tuples(dl_terms))


@st.composite
def dl_sides(draw: st.DrawFn) -> Term:
    """Return a side of a comparison: a term, an aggregate, or an aggregate in an expression."""
    if draw(st.integers(0, 9)):
        return draw(dl_terms)
    body = draw(st.one_of(dl_atoms, dl_atoms.map(Negation), _tuples(dl_atoms, 2).map(Disjunction)))
    function = draw(st.sampled_from(reserved.AGGREGATES))
    aggregate = Aggregate(function, None if function == "count" else draw(dl_terms), body)
    return Call(draw(st.sampled_from(_INFIX)), (aggregate, draw(dl_terms))) if draw(st.booleans()) else aggregate


dl_formulas = _formulas(
    st.one_of(
        dl_atoms,
        st.builds(Test, st.sampled_from(list(COMPARISONS)), st.tuples(dl_sides(), dl_sides())),
        st.builds(Test, st.sampled_from(reserved.BUILT_IN_TESTS), st.tuples(dl_terms, dl_terms)),
        st.builds(Truth, st.booleans()),
    )
)
dl_clauses = _clauses(dl_atoms, dl_formulas)

_pragmas = _tuples(texts, 1, 2).map(lambda parts: Hint(" ".join((".pragma", *map(quoted, parts)))))
_plans = st.just(Hint(".plan 1:(2,1,3), 2:(1,2,3)"))


@st.composite
def dl_programs(draw: st.DrawFn) -> Program:
    declarations = draw(
        st.lists(
            st.builds(Declaration, dl_qualified, _tuples(st.builds(Attribute, dl_names, dl_qualified)), st.booleans()),
            max_size=3,
            unique_by=lambda declaration: declaration.name,
        )
    )
    qualifiers = [
        Hint(f".decl {declaration.name} {word}")
        for declaration in declarations
        for word in draw(st.lists(st.sampled_from(QUALIFIERS), max_size=2))
    ]
    types = st.builds(TypeDeclaration, dl_names, st.just("subtype"), st.tuples(dl_names)) | st.builds(
        TypeDeclaration, dl_names, st.just("union"), _tuples(dl_names, 1)
    )
    fields = _tuples(st.builds(Attribute, dl_names, dl_qualified))
    branches = st.builds(Branch, dl_names.map("${}".format), fields)
    types |= st.builds(
        TypeDeclaration,
        dl_names,
        st.just("record"),
        st.just(()),
        st.builds(Branch, st.just("[]"), fields).map(lambda b: (b,)),
    )
    types |= st.builds(TypeDeclaration, dl_names, st.just("adt"), st.just(()), _tuples(branches, 1))
    options = _tuples(st.tuples(dl_names, texts))
    directives = st.builds(Directive, st.sampled_from(["input", "output", "printsize"]), dl_qualified, options)
    arguments = _tuples(st.builds(Attribute, dl_names | st.just(""), dl_qualified), 1)
    functors = st.builds(FunctorDeclaration, dl_names, arguments, dl_qualified)
    subsumptions = st.builds(Subsumption, dl_atoms, dl_atoms, dl_formulas)
    return Program(
        "dl",
        draw(_tuples(types)),
        tuple(declarations),
        draw(_tuples(directives)),
        draw(_tuples(dl_clauses)),
        (*qualifiers, *draw(_tuples(_pragmas | _plans))),
        functors=draw(_tuples(functors, most=2)),
        subsumptions=draw(_tuples(subsumptions, most=1)),
    )


# -- .dlog ------------------------------------------------------------------------------------------------------------

_KEYWORDS = rdfox.RESERVED.union(
    FUNCTIONS, rdfox.OF_RDFOX, rdfox.SIDE_EFFECTS, rdfox.SPELLINGS.values(), ("_", vocabulary.TRIPLE)
)
dlog_names = st.from_regex(r"[A-Za-z_é]\w{0,5}", fullmatch=True).filter(lambda name: name not in _KEYWORDS)

#: Absolute, as programs have them, with some of the signs that IRIs may have.
_iris = st.from_regex(r"<[a-z][a-z0-9+.-]{0,2}:(//[a-zé0-9]{1,3}/)?[A-Za-z0-9é._~!$&'()*+,;=:@-]{0,8}>", fullmatch=True)
_literals = texts.map(literal)
dlog_constants = st.builds(
    Constant,
    st.one_of(
        _iris,
        _literals,
        st.builds("{}@{}".format, _literals, st.sampled_from(["en", "de-at"])),
        st.builds("{}^^{}".format, _literals, _iris),
        st.integers(0).map(lambda n: f'"{n}"^^<{vocabulary.XSD}integer>'),
        st.from_regex(r"_:[A-Za-z0-9]{1,4}", fullmatch=True),
    ),
    st.just("term"),
)
dlog_terms: st.SearchStrategy[Term] = st.recursive(
    st.builds(Variable, st.from_regex(r"\w{1,4}", fullmatch=True)) | st.builds(Wildcard) | dlog_constants,
    lambda inner: st.one_of(
        st.builds(Call, st.sampled_from("+-*/"), st.tuples(inner, inner)),
        st.builds(Call, st.sampled_from("-!"), st.tuples(inner)),
        st.builds(Call, st.sampled_from(["STRLEN", "ISIRI", f"<{vocabulary.XSD}integer>"]), st.tuples(inner)),
        st.builds(Call, st.sampled_from(["CONCAT", "COALESCE", "IN", "&&", "||"]), _tuples(inner, 2)),
        st.builds(Call, st.sampled_from([*COMPARISONS, "REGEX"]), st.tuples(inner, inner)),
        st.builds(Call, st.just("IF"), st.tuples(inner, inner, inner)),
    ),
    max_leaves=LEAVES,
)
dlog_atoms = st.builds(Atom, st.just(vocabulary.TRIPLE), st.tuples(dlog_terms, dlog_terms, dlog_terms)) | st.builds(
    Atom, dlog_names | _iris, _tuples(dlog_terms)
)
_dlog_variables = st.builds(Variable, st.from_regex(r"\w{1,4}", fullmatch=True))
_results = st.builds(
    lambda function, terms, distinct, variable: Result(
        function, terms[: rdfox.ARGUMENTS[function]], distinct, variable
    ),
    st.sampled_from(list(rdfox.ARGUMENTS)),
    st.tuples(dlog_terms, dlog_terms),
    st.booleans(),
    _dlog_variables,
) | st.builds(Result, st.just("COUNT"), st.just(()), st.booleans(), _dlog_variables)
_groupings = st.builds(
    Grouping,
    dlog_atoms | st.builds(Conjunction, st.tuples(dlog_atoms, dlog_atoms)),
    st.lists(_dlog_variables, max_size=2, unique=True).map(tuple),
    _tuples(_results, 1),
)


_tables = st.integers(1, 2).flatmap(
    lambda width: st.builds(
        Values,
        st.lists(_dlog_variables, min_size=width, max_size=width).map(tuple),
        _tuples(st.tuples(*[dlog_constants] * width)),
    )
)


def _is_condition(term: Term) -> bool:
    """Return whether a term as a condition is not written as a formula of another kind."""
    return not isinstance(term, Wildcard) and not (
        isinstance(term, Call) and term.functor in ("&&", "||", "!", *COMPARISONS)
    )


dlog_formulas = _formulas(
    st.one_of(
        dlog_atoms,
        _groupings,
        _tables,
        st.builds(Test, st.sampled_from(list(COMPARISONS)), st.tuples(dlog_terms, dlog_terms)),
        st.builds(Test, st.just(HOLDS), st.tuples(dlog_terms.filter(_is_condition))),
        st.builds(Truth, st.booleans()),
    )
)
dlog_clauses = _clauses(dlog_atoms, dlog_formulas)
dlog_programs = st.builds(lambda clauses: Program("dlog", clauses=clauses), _tuples(dlog_clauses))
