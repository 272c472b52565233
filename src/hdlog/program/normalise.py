"""A program into the core language that modules evaluate.

In the core, a body is atoms without `_`, negations of single such atoms, filters and binds; a rule with an
aggregate has nothing else: `a(g.., r) :- AGGREGATE(B.. ON g.. BIND f(v) AS r)`, where B.. is such a body again, and each of its
matches counts once. Everything else gets predicates of its own, whose names begin with `#` and follow from what they stand for, so
that the same part of a program has the same name in the next version of it. Atoms with a variable in place of a predicate become views.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, cast

from hdlog.errors import Problem, ProgramError
from hdlog.program.checks import bound_variables
from hdlog.program.dependencies import DependencyGraph, reader, writer
from hdlog.program.model import (
    GRAPH,
    TRIPLE,
    Aggregate,
    AggregateCall,
    Atom,
    Bind,
    BodyItem,
    Call,
    Filter,
    Negation,
    Predicate,
    Program,
    Rule,
    body_atoms,
    expression_variables,
)
from hdlog.program.terms import RDF_TYPE, Iri, Term, Variable, integer

WILDCARD = "#any"
"""What names of variables begin with that stand for `_`."""
Item = TypeVar("Item", bound=BodyItem)
_S, _P, _O = Variable("s"), Variable("p"), Variable("o")
_TYPE = Iri(RDF_TYPE)


@dataclass(frozen=True)
class Views:
    """Predicates that stand for all others, of the default graph or of named ones."""

    triples: str
    """all triples, for atoms in bodies"""
    types: str
    """all class memberships"""
    derived_triples: str
    """what heads with a variable in place of a predicate derive"""
    derived_types: str
    suffix: str = ""
    """of the names of predicates that they are about"""
    graph: tuple[Variable, ...] = ()
    """the last argument of all of these"""

    def triple(self, name: str, s: Term, p: Term, o: Term) -> Atom:
        return Atom(name, (s, p, o, *self.graph))

    def member(self, name: str, s: Term, o: Term) -> Atom:
        return Atom(name, (s, o, *self.graph))

    def predicate(self, name: str, width: int) -> Predicate:
        return Predicate(name, width + len(self.graph))


IN_DEFAULT_GRAPH = Views("#triples", "#types", "#derived-triples", "#derived-types")
IN_NAMED_GRAPHS = Views(
    "#quads", "#quad-types", "#derived-quads", "#derived-quad-types", GRAPH, (Variable("g"),)
)


def is_auxiliary(name: str) -> bool:
    return name.startswith("#")


def normalise(program: Program, stored: Iterable[Predicate] = ()) -> Program:
    """The core program; `stored` are predicates that facts have, though no rule may name them."""
    normaliser = _Normaliser(program)
    for rule in program.rules:
        if not rule.is_fact:
            normaliser.rule(rule)
    if normaliser.problems:
        raise ProgramError(normaliser.problems)
    rules = normaliser.rules
    known = dict.fromkeys((*program.predicates, *stored))
    rules += dict.fromkeys(triple_rules(rules, [p for p in known if not p.name.startswith(TRIPLE)]))
    return replace(program, rules=tuple(dict.fromkeys(rules)))


def check_core(program: Program) -> list[Problem]:
    """What keeps a program that is right by itself from having a stratified core."""
    normaliser = _Normaliser(program)
    for rule in program.rules:
        if any(isinstance(item, Aggregate | Negation) for item in rule.body):
            normaliser.rule(rule)
    return normaliser.problems


class _Normaliser:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.rules: list[Rule] = []
        self.problems: list[Problem] = []

    def rule(self, rule: Rule) -> None:
        self.current = rule
        heads = tuple(_head(h) for h in rule.heads)
        for body in self.bodies(rule.body, set()):
            self.rules.append(Rule(heads, self.separate_unconnected(heads, body), rule.span, rule.method))

    def separate_unconnected(self, heads: Sequence[Atom], body: Sequence[BodyItem]) -> tuple[BodyItem, ...]:
        """A body without parts that share no variable with its heads or with the rest: an atom says whether they match.

        Matches of such parts would be multiplied with those of the others, only to be told apart nowhere.
        """
        wanted = {v.name for head in heads for v in head.variables()}
        parts = _connected_parts(body)
        if len([names for names, _ in parts if names]) < 2:
            return tuple(body)
        kept: list[BodyItem] = []
        for names, items in parts:
            if not names or names & wanted or not any(isinstance(i, Atom) for i in items):
                kept += items
            else:
                atom = Atom(_name("some", tuple(items)), ())
                self.rules.append(Rule((atom,), tuple(items)))
                kept.append(atom)
        return tuple(kept)

    def bodies(self, items: Sequence[BodyItem], outer: set[str]) -> Iterator[tuple[BodyItem, ...]]:
        """Core bodies that together match what the items match, each match in just one of them."""
        plain = [_name_wildcards(i, n) for n, i in enumerate(items) if isinstance(i, Atom | Filter | Bind)]
        bodies: list[list[BodyItem]] = [list(plain)]
        for item in items:
            if isinstance(item, Aggregate):
                bodies = [
                    [*b, *more] for b in bodies for more in self.aggregate(item, _select_ready(b, outer))
                ]
        for item in items:
            if isinstance(item, Negation):
                bodies = [[*b, self.negation(item, b, outer)] for b in bodies]
        for body in bodies:
            yield tuple(body)

    def negation(self, item: Negation, around: list[BodyItem], outer: set[str]) -> Negation:
        simple = len(item.body) == 1 and isinstance(item.body[0], Atom) and not item.local
        if simple and not any(v.is_wildcard for v in _atom_of(item.body[0]).variables()):
            return Negation((_body_atom(_atom_of(item.body[0])),), (), item.span)
        bound = bound_variables(tuple(around), outer) - {v.name for v in item.local}
        shared = sorted(_free_names(item.body) & bound)
        aux = self.define_auxiliary("not", item.body, shared, around, outer)
        return Negation((aux,), (), item.span)

    def define_auxiliary(
        self,
        kind: str,
        body: Sequence[BodyItem],
        names: list[str],
        around: list[BodyItem],
        outer: set[str],
        extra: Sequence[str] = (),
    ) -> Atom:
        """An atom over `names` and `extra` that holds for the matches of a body."""
        variables = tuple(Variable(n) for n in (*names, *extra))
        if not set(names) <= bound_variables(tuple(body), set()):
            body = [*self.domain(names, around, outer), *body]
        head = Atom(_name(kind, (body, names, extra)), variables)
        for core in self.bodies(body, set()):
            self.rules.append(Rule((head,), self.separate_unconnected([head], core)))
        return head

    def domain(self, names: list[str], around: list[BodyItem], outer: set[str]) -> list[BodyItem]:
        """An atom with the values that the rest of a rule gives to the names, or more values than these.

        Atoms that depend on the rule's own head are left out: the head would depend on itself through a negation or an
        aggregate. Where they alone give a value, there is no such atom.
        """
        finished = [i for i in around if not isinstance(i, Negation) and i not in self._recursive_atoms]
        known = _select_ready(finished, outer)
        missing = set(names) - bound_variables(tuple(known), outer)
        if missing:
            self._complain(missing)
        head = Atom(_name("domain", (known, names)), tuple(map(Variable, names)))
        self.rules.append(Rule((head,), tuple(known)))
        return [head]

    @cached_property
    def _component_of(self) -> Mapping[Predicate, int]:
        return DependencyGraph(self.program).component_of

    @property
    def _recursive_atoms(self) -> list[Atom]:
        """The atoms of the current rule's body, as the core has them, that depend on its heads."""
        heads = {self._component_of[writer(head)] for head in self.current.heads}
        atoms = ((n, i) for n, i in enumerate(self.current.body) if isinstance(i, Atom))
        return [_name_wildcards(atom, n) for n, atom in atoms if self._component_of[reader(atom)] in heads]

    def _complain(self, names: Iterable[str]) -> None:
        """The rule needs a value from the recursion it takes part in."""
        shown = " and ".join(sorted(names))
        self.problems.append(
            Problem(
                "stratification",
                f"a negation or an aggregate of this rule asks for {shown}, which gets its value only from predicates "
                f"that depend on {' and '.join(dict.fromkeys(h.name for h in self.current.heads))} again",
                self.current.span,
                f"add a body atom of another predicate that has all values of {shown}",
            )
        )

    def aggregate(self, item: Aggregate, around: list[BodyItem]) -> Iterator[list[BodyItem]]:
        """The ways an aggregate adds to a body: its value, and 0 for a group without a match."""
        group = [v.name for v in item.group]
        ways: list[list[BodyItem]] = [[]]
        for call in item.calls:
            value = self.define_aggregate(item, call, group, around)
            more: list[list[BodyItem]] = [[value]]
            if item.correlated and call.function in ("count", "sum"):
                has = Atom(_name("group", value), tuple(map(Variable, group)))
                self.rules.append(Rule((has,), (value,)))
                more.append([Negation((has,)), Bind(integer(0), call.result)])
            ways = [[*way, *m] for way in ways for m in more]
        yield from ways

    def define_aggregate(
        self, item: Aggregate, call: AggregateCall, group: list[str], around: list[BodyItem]
    ) -> Atom:
        body = [_name_wildcards(i, n) if isinstance(i, Atom) else i for n, i in enumerate(item.body)]
        argument = call.argument
        if argument is not None and not isinstance(argument, Variable):
            body.append(Bind(argument, Variable("#value")))
            argument = Variable("#value")
        if call.distinct and argument is not None:
            source: tuple[BodyItem, ...] = (
                self.define_auxiliary("values", body, group, around, set(), [argument.name]),
            )
        else:
            source = self.define_matches(item, body, group, around)
        keys = tuple(map(Variable, group))
        inner = replace(call, argument=argument, result=Variable("#result"), distinct=False)
        name = _name("aggregate", (source, keys, inner))
        self.rules.append(Rule((Atom(name, (*keys, inner.result)),), (Aggregate(source, keys, (inner,)),)))
        return Atom(name, (*keys, call.result))

    def define_matches(
        self, item: Aggregate, body: list[BodyItem], group: list[str], around: list[BodyItem]
    ) -> tuple[BodyItem, ...]:
        """A core body with just one match for each match of an aggregate's body."""
        asks_only = item.correlated and not _counts_wildcards(item)
        if asks_only:
            body = [self.ask(i) if isinstance(i, Atom) else i for i in body]
        if not set(group) <= bound_variables(tuple(body), set()):
            body = [*self.domain(group, around, set()), *body]
        several = list(self.bodies(body, set()))
        if len(several) == 1:
            return several[0]
        own = sorted(bound_variables(tuple(body), set(group)) - set(group))
        return (self.define_auxiliary("matches", body, group, around, set(), own),)

    def ask(self, atom: Atom) -> Atom:
        """An atom that holds where another does for some values of its `_`."""
        named = tuple(dict.fromkeys(v for v in atom.variables() if not v.name.startswith(WILDCARD)))
        if len(named) == len(set(atom.variables())):
            return atom
        head = Atom(_name("any", (atom, named)), named)
        self.rules.append(Rule((head,), (atom,)))
        return head


def _counts_wildcards(item: Aggregate) -> bool:
    """Whether each value of a `_` is a match of its own, as in Soufflé where the aggregate is of a single atom."""
    atoms = [i for i in item.body if isinstance(i, Atom)]
    names = [v.name for a in atoms for v in a.variables() if not v.is_wildcard]
    return len(atoms) == 1 and len(names) == len(set(names))


def _atom_of(item: BodyItem) -> Atom:
    assert isinstance(item, Atom)
    return item


def _select_ready(body: Sequence[BodyItem], outer: set[str]) -> list[BodyItem]:
    """The items of a body that need nothing from outside it."""
    bound = bound_variables(tuple(body), outer)

    def is_ready(item: BodyItem) -> bool:
        if isinstance(item, Bind):
            return {v.name for v in expression_variables(item.expression)} <= bound
        if isinstance(item, Filter):
            return {v.name for v in expression_variables(item.condition)} <= bound
        return True

    return [i for i in body if is_ready(i)]


def _connected_parts(body: Sequence[BodyItem]) -> list[tuple[set[str], list[BodyItem]]]:
    """The items of a body by what they are connected with through variables, with the names of these."""
    parts: list[tuple[set[str], list[BodyItem]]] = []
    for item in body:
        names, items = _free_names([item]), [item]
        rest = []
        for known, others in parts:
            if known & names:
                names |= known
                items = [*others, *items]
            else:
                rest.append((known, others))
        parts = [*rest, (names, items)]
    return parts


def _free_names(body: Sequence[BodyItem]) -> set[str]:
    """Every name in a body, nested ones too, but for what is local to a nested part."""
    names: set[str] = set()
    for item in body:
        match item:
            case Atom():
                names |= {v.name for v in item.variables()}
            case Filter(condition):
                names |= {v.name for v in expression_variables(condition)}
            case Bind(expression, variable):
                names |= {variable.name, *(v.name for v in expression_variables(expression))}
            case Negation(inner, local):
                names |= _free_names(inner) - {v.name for v in local}
            case Aggregate():
                names |= {v.name for v in item.group} | {c.result.name for c in item.calls}
    return names - {"_"}


def _name(kind: str, content: object) -> str:
    return f"#{kind}-{hashlib.sha256(repr(content).encode()).hexdigest()[:16]}"


def _name_wildcards(item: Item, number: int) -> Item:
    """An atom with a name for each `_`."""
    if not isinstance(item, Atom):
        return item
    terms: list[Term] = [
        Variable(f"{WILDCARD}{number}_{i}") if isinstance(t, Variable) and t.is_wildcard else t
        for i, t in enumerate(item.terms)
    ]
    return cast(Item, _body_atom(replace(item, terms=tuple(terms))))


# Triples.


def views_of(atom: Atom) -> Views:
    return IN_NAMED_GRAPHS if atom.predicate.has_graph else IN_DEFAULT_GRAPH


def _body_atom(atom: Atom) -> Atom:
    views = views_of(atom)
    return _view(atom, views.triples, views.types)


def _head(atom: Atom) -> Atom:
    views = views_of(atom)
    return _view(atom, views.derived_triples, views.derived_types)


def _view(atom: Atom, triples: str, types: str) -> Atom:
    if not atom.is_triple:
        return atom
    s, p, o, *graph = atom.terms
    if p == _TYPE:
        return Atom(types, (s, o, *graph), atom.span)
    return Atom(triples, (s, p, o, *graph), atom.span)


def triple_rules(rules: Sequence[Rule], known: Sequence[Predicate]) -> Iterator[Rule]:
    """What fills the views that rules use, and spreads what their heads derive."""
    read = {a.name for r in rules for a, _ in body_atoms(r.body)}
    written = {h.name for r in rules for h in r.heads}
    for views in (IN_DEFAULT_GRAPH, IN_NAMED_GRAPHS):
        yield from _view_rules(views, read, written, known)


def _view_rules(
    views: Views, read: set[str], written: set[str], known: Sequence[Predicate]
) -> Iterator[Rule]:
    triples, types = views.triples in read, views.types in read
    derived_triples, derived_types = views.derived_triples in written, views.derived_types in written
    if not (triples or types or derived_triples or derived_types):
        return
    all_triples, all_members = views.triple(views.triples, _S, _P, _O), views.member(views.types, _S, _O)
    made_triples = views.triple(views.derived_triples, _S, _P, _O)
    made_members = views.member(views.derived_types, _S, _O)
    for predicate in dict.fromkeys((*known, views.predicate(RDF_TYPE + views.suffix, 2))):
        if predicate.has_graph != bool(views.graph):
            continue
        name, width = Iri(predicate.without_graph().name), predicate.without_graph().arity
        if width == 2:
            fact = views.member(predicate.name, _S, _O)
            others = (_NO_CLASS,) if name == _TYPE else ()
            if triples:
                yield Rule((views.triple(views.triples, _S, name, _O),), (fact,))
            if types and name == _TYPE:
                yield Rule((all_members,), (fact,))
            if derived_triples:
                yield Rule((fact,), (views.triple(views.derived_triples, _S, name, _O), *others))
            if derived_types and name == _TYPE:
                yield Rule((fact,), (made_members, *others))
        elif width == 1:
            fact = Atom(predicate.name, (_S, *views.graph))
            if triples:
                yield Rule((views.triple(views.triples, _S, _TYPE, name),), (fact,))
            if types:
                yield Rule((views.member(views.types, _S, name),), (fact,))
            if derived_triples:
                yield Rule((fact,), (views.triple(views.derived_triples, _S, _TYPE, name),))
            if derived_types:
                yield Rule((fact,), (views.member(views.derived_types, _S, name),))
    if derived_triples and triples:
        yield Rule((all_triples,), (made_triples, _A_PROPERTY))
    if derived_triples and types:
        yield Rule((all_members,), (views.triple(views.derived_triples, _S, _TYPE, _O),))
    if derived_types and triples:
        yield Rule((views.triple(views.triples, _S, _TYPE, _O),), (made_members,))
    if derived_types and types:
        yield Rule((all_members,), (made_members,))


_A_PROPERTY = Filter(Call("isiri", (_P,)))
"""Triples whose predicate is something else are none."""
_NO_CLASS = Filter(Call("not", (Call("isiri", (_O,)),)))
"""Members of an IRI are facts of that class."""
