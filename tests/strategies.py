"""Random programs and facts. Every property test of the project draws from here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from hdlog.program.model import (
    GRAPH,
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Atom,
    Attribute,
    Bind,
    BodyItem,
    Call,
    Declaration,
    Directive,
    Expression,
    Filter,
    Negation,
    Predicate,
    Program,
    Rule,
    TypeDeclaration,
    in_graph,
    negate,
    triple_atom,
)
from hdlog.program.terms import (
    RDF_TYPE,
    XSD_DECIMAL,
    XSD_DOUBLE,
    BlankNode,
    Constant,
    Iri,
    Literal,
    Term,
    Variable,
    boolean,
    double,
    integer,
    string,
)
from hdlog.text.write import RDFOX_WORDS, SOUFFLE_WORDS

Fact = tuple[Predicate, tuple[Constant, ...]]
WILDCARD = Variable("_")
NAMES = "xyzuvw"


@dataclass(frozen=True)
class Features:
    """What random programs may contain."""

    negation: bool = True
    aggregates: bool = True
    correlated: bool = True
    """aggregates in Soufflé's way; otherwise in RDFox's"""
    builtins: bool = True
    skolems: bool = False
    triples: bool = False
    graphs: bool = False
    """and some of them in named graphs"""
    several_heads: bool = True
    wildcards: bool = True
    nested: bool = False
    """negations of several atoms, with local variables"""
    recursion: bool = True
    cycles: bool = False
    """many bodies are cycles of binary atoms, with some more atoms across"""
    max_rules: int = 7
    max_body: int = 4
    max_arity: int = 3


POSITIVE = Features(negation=False, aggregates=False, builtins=False)


@dataclass(frozen=True)
class Level:
    """Predicates of one stratum; rules with these heads may negate what is in lower ones."""

    here: tuple[Predicate, ...]
    below: tuple[Predicate, ...]


@st.composite
def programs(draw: DrawFn, features: Features = Features()) -> Program:
    """Safe, stratified programs over predicates p0, p1, ... whose materialisation is finite."""
    widths = [w for w in (1, 2, 2, 1, 2, 3, 0) if w <= features.max_arity]
    if features.triples:
        # Where rules name no class, facts may still bring some.
        arities = draw(
            st.lists(st.sampled_from(draw(st.sampled_from([[1, 2], [2]]))), min_size=2, max_size=6)
        )
        predicates = [Predicate(f"http://e/p{i}", arity) for i, arity in enumerate(arities)]
        if features.graphs:
            predicates = [_some_in_graphs(p, draw(st.booleans())) for p in predicates]
    else:
        arities = draw(st.lists(st.sampled_from(widths), min_size=2, max_size=6))
        predicates = [Predicate(f"p{i}", arity) for i, arity in enumerate(arities)]
    cuts = sorted(draw(st.lists(st.integers(1, len(predicates)), min_size=2, max_size=2)))
    levels = [predicates[: cuts[0]], predicates[cuts[0] : cuts[1]], predicates[cuts[1] :]]
    rules: list[Rule] = []
    below: tuple[Predicate, ...] = ()
    for members in levels:
        level = Level(tuple(members), below)
        if members and (below or features.recursion):
            least = 1 if level.below else 0
            rules += draw(
                st.lists(_rule(level, features), min_size=least, max_size=max(1, features.max_rules // 2))
            )
        below += tuple(members)
    return Program(tuple(rules[: features.max_rules]))


def _some_in_graphs(predicate: Predicate, named: bool) -> Predicate:
    return Predicate(predicate.name + GRAPH, predicate.arity + 1) if named else predicate


def constants(features: Features = Features()) -> SearchStrategy[Constant]:
    if features.triples:
        return st.sampled_from([*(Iri(f"http://e/{c}") for c in "abc"), string("n")])
    return st.sampled_from([integer(i) for i in (1, 0, 2, 3)])


@st.composite
def _rule(draw: DrawFn, level: Level, features: Features) -> Rule:
    if (features.builtins or (features.negation and level.below)) and draw(st.integers(0, 11)) == 11:
        return draw(_rule_over_nothing(level, features))
    usable = level.here + level.below if features.recursion else level.below
    binary = tuple(p for p in usable if p.arity == 2)
    if features.cycles and binary and draw(st.integers(0, 3)):
        atoms = draw(_cycle(binary))
        atoms += draw(st.lists(_atom(usable, features), max_size=1))
    else:
        atoms = draw(st.lists(_atom(usable, features), min_size=1, max_size=features.max_body))
    bound = sorted({v.name for a in atoms for v in a.variables() if not v.is_wildcard})
    body: list[BodyItem] = list(atoms)
    recursive = any(a.predicate in level.here or a.is_triple for a in atoms)
    if features.builtins and bound:
        body += draw(st.lists(_filter(bound), max_size=3))
        if draw(st.booleans()):
            bind = draw(_bind(bound, features, recursive))
            if draw(st.integers(0, 3)) == 0:
                # A value of a value, and a filter before either.
                bind = [
                    Filter(Call("ge", (Variable("m"), integer(-2)))),
                    *bind,
                    Bind(Call("sub", (Variable("n"), integer(1))), Variable("m")),
                ]
                bound = [*bound, "m"]
            body += bind
            bound = [*bound, "n"] if bind else bound
    if features.negation and level.below:
        body += draw(st.lists(_negation(level.below, bound, features), max_size=1))
    if features.aggregates and level.below and draw(st.booleans()):
        body += draw(_aggregate(level.below, bound, features))
        bound = sorted({*bound, *(c.result.name for i in body if isinstance(i, Aggregate) for c in i.calls)})
        # Counts and sums are new numbers: without a bound they could feed on themselves.
        for item in list(body):
            if isinstance(item, Aggregate):
                body += [Filter(Call("lt", (c.result, integer(5)))) for c in item.calls]
                body += [Filter(Call("gt", (c.result, integer(-3)))) for c in item.calls]
    count = draw(st.integers(1, 2)) if features.several_heads else 1
    heads = tuple(draw(_head(level.here, bound, features)) for _ in range(count))
    return Rule(heads, tuple(body))


@st.composite
def _rule_over_nothing(draw: DrawFn, level: Level, features: Features) -> Rule:
    """A rule without positive atoms: it holds over empty tables."""
    predicate = draw(st.sampled_from(level.here))
    body: list[BodyItem] = []
    names: list[str] = []
    if level.below and features.negation:
        negated = draw(st.sampled_from(level.below))
        terms = tuple(draw(constants(features)) for _ in range(negated.arity))
        body.append(Negation((Atom(negated.name, terms),)))
    if features.builtins and (not body or draw(st.booleans())):
        left, right = (draw(st.integers(0, 2).map(integer)) for _ in range(2))
        body.append(Bind(Call("add", (left, right)), Variable("n")))
        names = ["n"]
    return Rule((draw(_head((predicate,), names, features)),), tuple(body))


@st.composite
def _cycle(draw: DrawFn, predicates: tuple[Predicate, ...]) -> list[Atom]:
    names = "xyzuv"[: draw(st.integers(3, 5))]
    pairs = [(a, b) for a, b in zip(names, names[1:] + names[0], strict=True)]
    pairs += draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=2))
    atoms = []
    for pair in pairs:
        a, b = (Variable(n) for n in draw(st.permutations(pair)))
        atoms.append(Atom(draw(st.sampled_from(predicates)).name, (a, b)))
    return atoms


@st.composite
def _atom(draw: DrawFn, predicates: tuple[Predicate, ...], features: Features) -> Atom:
    variables = [Variable(n) for n in "xyxyz"]
    rare: list[SearchStrategy[Term]] = [constants(features)]
    rare += [st.just(WILDCARD)] if features.wildcards else []
    term = st.integers(0, 7).flatmap(lambda n: st.one_of(rare) if n == 7 else st.sampled_from(variables))
    if features.triples and draw(st.integers(0, 4)) == 0:
        predicate = draw(st.one_of(term, st.just(Iri(RDF_TYPE))))
        if not isinstance(predicate, Variable):
            predicate = Iri(RDF_TYPE)
        atom = triple_atom(draw(term), predicate, draw(term))
        return _in_named(in_graph(atom, draw(term))) if features.graphs and draw(st.booleans()) else atom
    chosen = draw(st.sampled_from(predicates))
    return _in_named(Atom(chosen.name, tuple(draw(term) for _ in range(chosen.arity))))


@st.composite
def _head(draw: DrawFn, predicates: tuple[Predicate, ...], bound: list[str], features: Features) -> Atom:
    predicate = draw(st.sampled_from(predicates))
    variables = [st.sampled_from([Variable(n) for n in bound])] * 3 if bound else []
    term: SearchStrategy[Term] = st.one_of(*variables, constants(features))
    if features.triples and bound and draw(st.integers(0, 5)) == 0:
        middle = draw(st.one_of(variables[0], st.just(Iri(RDF_TYPE))))
        atom = triple_atom(draw(term), middle, draw(term))
        return _in_named(in_graph(atom, draw(term))) if features.graphs and draw(st.booleans()) else atom
    return _in_named(Atom(predicate.name, tuple(draw(term) for _ in range(predicate.arity))))


def _in_named(atom: Atom) -> Atom:
    """The language has no literals for names of graphs."""
    if not atom.predicate.has_graph or not isinstance(atom.terms[-1], Literal):
        return atom
    return Atom(atom.name, (*atom.terms[:-1], Iri("http://e/a")))


@st.composite
def _filter(draw: DrawFn, bound: list[str]) -> Filter:
    function = draw(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))
    left = Variable(draw(st.sampled_from(bound)))
    right = draw(st.one_of(st.sampled_from(bound).map(Variable), st.integers(0, 4).map(integer)))
    return Filter(Call(function, (left, right)))


@st.composite
def _bind(draw: DrawFn, bound: list[str], features: Features, recursive: bool) -> list[BodyItem]:
    """n := a small number made from bound ones, kept small so that recursion ends; or a Skolem term."""
    left = Variable(draw(st.sampled_from(bound)))
    right = draw(st.one_of(st.sampled_from(bound).map(Variable), st.integers(0, 2).map(integer)))
    result = Variable("n")
    if features.skolems and not recursive and draw(st.booleans()):
        return [Bind(Call("skolem", (string("s"), left, right)), result)]
    function = draw(st.sampled_from(["add", "sub", "mul"]))
    return [
        Bind(Call(function, (left, right)), result),
        Filter(Call("le", (result, integer(4)))),
        Filter(Call("ge", (result, integer(-2)))),
    ]


@st.composite
def _negation(draw: DrawFn, below: tuple[Predicate, ...], bound: list[str], features: Features) -> Negation:
    known: list[SearchStrategy[Term]] = [st.sampled_from([Variable(n) for n in bound])] * 2 if bound else []
    anything: list[SearchStrategy[Term]] = [st.just(WILDCARD)] if features.wildcards else []
    local = Variable("l")
    nested = features.nested and draw(st.booleans())
    term = st.one_of(*known, constants(features), *anything, *([st.just(local)] if nested else []))
    atoms = []
    for _ in range(draw(st.integers(1, 2)) if nested else 1):
        predicate = draw(st.sampled_from(below))
        atoms.append(Atom(predicate.name, tuple(draw(term) for _ in range(predicate.arity))))
    used = any(local in a.terms for a in atoms)
    return Negation(tuple(atoms), (local,) if used else ())


@st.composite
def _aggregate(
    draw: DrawFn, below: tuple[Predicate, ...], bound: list[str], features: Features
) -> list[BodyItem]:
    """An aggregate over one or two atoms of lower strata; its own variables are i and j."""
    own = [Variable("i"), Variable("j")]
    group = [Variable(n) for n in bound if n in NAMES[:2]]
    atoms = []
    for _ in range(draw(st.integers(1, 2))):
        predicate = draw(st.sampled_from(below))
        term: SearchStrategy[Term] = st.one_of(
            st.sampled_from(own), st.sampled_from(own + group), constants(features)
        )
        atoms.append(Atom(predicate.name, tuple(draw(term) for _ in range(predicate.arity))))
    used = {t for a in atoms for t in a.variables()}
    functions: list[AggregateFunction] = ["count", "sum", "min", "max"]
    function = draw(st.sampled_from(functions)) if used & set(own) and not features.triples else "count"
    argument = None if function == "count" else draw(st.sampled_from(sorted(used & set(own), key=str)))
    call = AggregateCall(function, argument, Variable("c"))
    keys = tuple(v for v in group if v in used)
    return [Aggregate(tuple(atoms), keys, (call,), features.correlated)]


def _as_member(predicate: Predicate, row: tuple[Constant, ...]) -> Fact:
    """A fact of rdf:type as one of its class, if that is an IRI."""
    atom = triple_atom(row[0], Iri(RDF_TYPE), row[1])
    atom = in_graph(atom, row[2]) if predicate.has_graph else atom
    return atom.predicate, atom.terms  # type: ignore[return-value]


def facts(
    program: Program, features: Features = Features(), min_size: int = 6, max_size: int = 20
) -> SearchStrategy[list[Fact]]:
    """Facts over the predicates of a program."""

    @st.composite
    def one(draw: DrawFn) -> Fact:
        predicate = draw(st.sampled_from(stored + others))
        row = tuple(draw(constants(features)) for _ in range(predicate.arity))
        return _as_member(predicate, row) if predicate.without_graph() == (RDF_TYPE, 2) else (predicate, row)

    stored = [p for p in program.predicates if not p.name.startswith("[")]
    others = [Predicate("http://e/C", 1), Predicate("http://e/a", 2)] if features.triples else []
    others += (
        [Predicate("http://e/C" + GRAPH, 2), Predicate("http://e/a" + GRAPH, 3)] if features.graphs else []
    )
    return st.lists(one(), min_size=min_size, max_size=max_size) if stored else st.just([])


def with_facts(program: Program, given: list[Fact]) -> Program:
    """The program with the facts as rules without body."""
    return replace(program, rules=program.rules + tuple(Rule((Atom(p.name, row),)) for p, row in given))


def declared(program: Program) -> Program:
    """The program with a declaration for each predicate, all attributes numbers."""
    declarations = tuple(
        Declaration(p.name, tuple(Attribute(f"a{i}", "number") for i in range(p.arity)))
        for p in program.predicates
    )
    return replace(program, declarations=declarations)


# Text: programs that need not mean anything, to be written and read back.

_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
_WORDS = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,5}", fullmatch=True).filter(
    lambda word: word.lower() not in RDFOX_WORDS | SOUFFLE_WORDS
)
_IRIS = st.one_of(_WORDS, _WORDS.map("http://example.org/{}".format), _WORDS.map("urn:x#{}".format))


def literals() -> SearchStrategy[Literal]:
    return st.one_of(
        st.integers(-(2**63), 2**63 - 1).map(integer),
        st.floats(allow_nan=False).map(double),
        st.booleans().map(boolean),
        _TEXT.map(string),
        st.builds(Literal, _TEXT, _IRIS),
        st.decimals(allow_nan=False, allow_infinity=False, places=2).map(
            lambda d: Literal(str(d), XSD_DECIMAL)
        ),
        st.sampled_from(["1e5", "-2.5E-3", ".5e1", "7"]).map(lambda t: Literal(t, XSD_DOUBLE)),
        _TEXT.map(lambda t: Literal(t, "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "en-gb")),
    )


def _variables() -> SearchStrategy[Variable]:
    return _WORDS.map(Variable)


def _any_term() -> SearchStrategy[Term]:
    return st.one_of(_variables(), st.just(WILDCARD), _IRIS.map(Iri), _WORDS.map(BlankNode), literals())


_UNARY = ["neg", "not", "strlen", "str", "abs", "isiri", "lcase"]
_BINARY = ["add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "concat", "contains"]


def expressions() -> SearchStrategy[Expression]:
    leaves: SearchStrategy[Expression] = st.one_of(_variables(), _IRIS.map(Iri), literals())

    def extend(inner: SearchStrategy[Expression]) -> SearchStrategy[Expression]:
        unary = st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(_UNARY[1:]), inner)
        return st.one_of(
            unary,
            inner.map(negate),
            st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(_BINARY), inner, inner),
            st.builds(lambda a, b: Call("in", (a, *b)), inner, st.lists(inner, max_size=3)),
            st.builds(lambda n, a: Call("skolem", (string(n), *a)), _WORDS, st.lists(inner, max_size=2)),
            inner.map(lambda a: Call("http://www.w3.org/2001/XMLSchema#integer", (a,))),
        )

    return st.recursive(leaves, extend, max_leaves=6)


def any_atoms() -> SearchStrategy[Atom]:
    plain = st.builds(lambda name, terms: Atom(name, tuple(terms)), _IRIS, st.lists(_any_term(), max_size=4))
    triple = st.builds(
        triple_atom, _any_term(), st.one_of(_variables(), _IRIS.map(Iri), st.just(Iri(RDF_TYPE))), _any_term()
    )
    return st.one_of(plain, triple)


def _any_items() -> SearchStrategy[BodyItem]:
    simple: SearchStrategy[BodyItem] = st.one_of(
        any_atoms(),
        any_atoms().map(lambda a: Negation((a,))),
        expressions().map(Filter),
        st.builds(Bind, expressions(), _variables()),
    )
    bodies = st.lists(simple, min_size=1, max_size=3).map(tuple)
    names = st.lists(_variables(), max_size=2, unique=True).map(tuple)
    functions: list[AggregateFunction] = ["count", "sum", "min", "max", "avg", "mean"]
    calls = st.builds(AggregateCall, st.sampled_from(functions), expressions(), _variables(), st.booleans())
    stars = _variables().map(lambda v: AggregateCall("count", None, v))
    return st.one_of(
        simple,
        st.builds(Negation, bodies, names),
        st.builds(
            Aggregate, bodies, names, st.lists(st.one_of(calls, stars), min_size=1, max_size=2).map(tuple)
        ),
    )


def any_rdfox_program() -> SearchStrategy[Program]:
    rules = st.builds(
        lambda heads, body: Rule(tuple(heads), tuple(body)),
        st.lists(any_atoms(), min_size=1, max_size=3),
        st.lists(_any_items(), max_size=4),
    )
    attributes = st.lists(st.builds(Attribute, _WORDS, _WORDS), max_size=3).map(tuple)
    directives = st.builds(
        Directive,
        st.sampled_from(["input", "output", "printsize"]),
        _IRIS,
        st.lists(st.tuples(_WORDS, _TEXT), max_size=2).map(tuple),
    )
    return st.builds(
        lambda r, d, io: Program(tuple(r), tuple(d), (), tuple(io), (("ex", "http://example.org/"),)),
        st.lists(rules, max_size=4),
        st.lists(st.builds(Declaration, _IRIS, attributes), max_size=2),
        st.lists(directives, max_size=2),
    )


def type_declarations() -> SearchStrategy[list[TypeDeclaration]]:
    members = st.sampled_from(["number", "symbol", "float", "unsigned"])
    subtype = st.builds(lambda n, m: TypeDeclaration(n, (m,), True), _WORDS, members)
    union = st.builds(
        lambda n, m: TypeDeclaration(n, tuple(m), False), _WORDS, st.lists(members, min_size=1, max_size=3)
    )
    return st.lists(st.one_of(subtype, union), max_size=3)
