"""Why a fact holds, and why another does not, in the words of the program.

Derivations are found over the core of the program (`query/why.py`); what is shown are its rules as they were written: predicates that only the core has
are left out, and what they stand for takes their place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np

from hdlog.engines.protocol import F, R, T
from hdlog.errors import UsageError
from hdlog.program.functions import NoValue, evaluate, holds
from hdlog.program.model import (
    Aggregate,
    Atom,
    Bind,
    BodyItem,
    Expression,
    Filter,
    Negation,
    Predicate,
    Program,
    Rule,
)
from hdlog.program.normalise import is_auxiliary
from hdlog.program.ntriples import parse_term
from hdlog.program.renaming import substitute
from hdlog.program.terms import Constant, Skolem, Variable
from hdlog.query.algebra import Selection
from hdlog.query.evaluation import Evaluation
from hdlog.query.rule_bodies import translate_body
from hdlog.query.why import Derivation, Fact, Proof, Search
from hdlog.reasoning import Reasoning
from hdlog.text.write import RdfoxWriter

_MATCHES_SHOWN = 3


@dataclass(frozen=True)
class Step:
    """A fact, and how it comes about: number, what it is derived from, by which rule, and what else was looked at."""

    number: int
    fact: str
    kind: str
    """`asserted`, `rule`, or `aggregate`"""
    rule: str = ""
    where: str = ""
    uses: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    """conditions that hold, facts that are not there, and what was aggregated"""

    def as_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "fact": self.fact,
            "kind": self.kind,
            "rule": self.rule,
            "where": self.where,
            "uses": list(self.uses),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Why:
    """A derivation: its steps, the fact itself first. Each was evaluated again before it was told."""

    steps: tuple[Step, ...]
    is_smallest: bool
    """whether no derivation is less deep; otherwise there were too many to look at all of them"""
    others: tuple[Why, ...] = field(default=())
    """further derivations, which end with another step"""

    def as_dict(self) -> dict[str, Any]:
        return {
            "fact": self.steps[0].fact,
            "smallest": self.is_smallest,
            "steps": [step.as_dict() for step in self.steps],
            "others": [other.as_dict() for other in self.others],
        }


class Words:
    """Facts and rules as a user writes them, with the prefixes of the program."""

    def __init__(self, program: Program) -> None:
        self._writer = _Writer(replace(Program(), prefixes=program.prefixes))
        self._by_span = {rule.span: rule for rule in program.rules if rule.span is not None}

    def atom(self, atom: Atom) -> str:
        return self._writer.atom(atom)

    def items(self, items: Sequence[BodyItem]) -> str:
        return self._writer.body(tuple(items))

    def expression(self, expression: Expression) -> str:
        return self._writer.expression(expression)

    def filled(self, item: BodyItem, values: Mapping[str, Constant]) -> str:
        """An item of a body with values for some variables; beside it, where it gives values to them itself."""
        if isinstance(item, Bind):
            result = values.get(item.variable.name, item.variable)
            known = {name: value for name, value in values.items() if name != item.variable.name}
            expression = substitute(Filter(item.expression), known).condition
            return f"{self.expression(result)} = {self.expression(expression)}"
        if _gives_value(item, values):
            shown = ", ".join(f"?{name} = {self.expression(value)}" for name, value in values.items())
            return f"{self.items((item,))} with {shown}"
        return self.items((substitute(item, values),))

    def rule(self, rule: Rule) -> tuple[str, str]:
        """The rule of the program that one of its core comes from, and its place."""
        written = self._by_span.get(rule.span) if rule.span is not None else None
        return self._writer.rule(written or rule), str(rule.span) if rule.span is not None else ""


def _gives_value(item: BodyItem, names: Container[str]) -> bool:
    """Whether one of some variables gets its value in an item."""
    match item:
        case Bind(_, variable):
            return variable.name in names
        case Aggregate(body, group, calls):
            own = [*(v.name for v in group), *(c.result.name for c in calls)]
            return any(n in names for n in own) or any(_gives_value(i, names) for i in body)
        case Negation(body):
            return any(_gives_value(i, names) for i in body)
    return False


class _Writer(RdfoxWriter):
    """What the dialect has no words for is shown all the same."""

    def refuse(self, reason: str) -> str:
        return reason

    def term(self, term: Any) -> str:
        return str(term) if isinstance(term, Skolem) else super().term(term)

    def variable(self, variable: Variable) -> str:
        is_any = variable.is_wildcard or variable.name.startswith("#any")
        return "_" if is_any else f"?{variable.name.removeprefix('#')}"


class Explanations(Generic[R, F, T]):
    def __init__(self, reasoning: Reasoning[R, F, T], evaluation: Evaluation[R, F, T]) -> None:
        self.reasoning, self.evaluation = reasoning, evaluation
        self.engine = reasoning.engine
        self.dictionary = reasoning.engine.dictionary
        self.words = Words(reasoning.program)
        self._terms: dict[int, Constant] = {}

    def why(self, predicate: Predicate, row: Sequence[Constant], several: int = 1) -> Why:
        """The smallest derivation of a fact, and further ones that end with another step."""
        shown = self.words.atom(Atom(predicate.name, tuple(row)))
        if not self.holds(Atom(predicate.name, tuple(row))):
            raise UsageError(f"{shown} does not hold; `why-not` tells what is missing")
        search = Search(self.reasoning, self.evaluation)
        ids = tuple(int(i) for i in self.dictionary.encode_terms(row).tolist())
        proofs = search.prove((predicate, ids), several)
        assert proofs, "what holds has a derivation"
        made = [Why(self._steps(proof), search.is_smallest) for proof in proofs]
        return replace(made[0], others=tuple(made[1:]))

    def holds(self, atom: Atom) -> bool:
        """Whether a fact holds."""
        return self._count_holding(atom.predicate, [atom]) == 1

    # Steps.

    def _steps(self, proof: Proof) -> tuple[Step, ...]:
        every = list(_all_proofs(proof))
        self._learn(every)
        self._check(every)
        order: dict[Fact, Proof] = {}
        waiting = deque([proof])
        while waiting:
            current = waiting.popleft()
            if current.fact not in order:
                order[current.fact] = current
                waiting += self._visible(current)
        numbers = {fact: number for number, fact in enumerate(order, 1)}
        return tuple(self._step(order[fact], number, numbers) for fact, number in numbers.items())

    def _visible(self, proof: Proof) -> list[Proof]:
        """What a step is shown to use: in place of what only the core has, what that is derived from."""
        shown: dict[Fact, Proof] = {}
        waiting = list(proof.children)
        while waiting:
            child = waiting.pop(0)
            if is_auxiliary(child.fact[0].name):
                waiting = [*child.children, *waiting]
            else:
                shown.setdefault(child.fact, child)
        return list(shown.values())

    def _step(self, proof: Proof, number: int, numbers: Mapping[Fact, int]) -> Step:
        fact = self.words.atom(self._atom(proof.fact))
        if proof.derivation is None:
            return Step(number, fact, "asserted")
        uses = tuple(numbers[child.fact] for child in self._visible(proof))
        derivation = self._find_shown(proof)
        rule, where = self.words.rule(derivation.rule)
        return Step(number, fact, "rule", rule, where, uses, tuple(self._notes(proof)))

    def _find_shown(self, proof: Proof) -> Derivation:
        """The rule of the program that derives a fact: below one that only spreads what another has derived."""
        assert proof.derivation is not None
        current = proof
        while current.derivation is not None and current.derivation.rule.span is None:
            below = [c for c in current.children if is_auxiliary(c.fact[0].name) and c.derivation is not None]
            if len(below) != 1:
                break
            current = below[0]
        return current.derivation or proof.derivation

    def _notes(self, proof: Proof) -> Iterable[str]:
        """What a step looked at besides facts, in it and in what only the core has below it."""
        waiting = [proof]
        while waiting:
            current = waiting.pop()
            waiting += [c for c in current.children if is_auxiliary(c.fact[0].name)]
            if current.derivation is None:
                continue
            binding = self._binding(current.derivation)
            for item in current.derivation.rule.body:
                match item:
                    case Filter(condition):
                        yield f"it holds that {self._fill(condition, binding)}"
                    case Bind(expression, variable):
                        yield f"{self.words.expression(binding[variable])} = {self._fill(expression, binding)}"
                    case Negation(body):
                        yield f"there is no {self._absent(body, binding)}"
                    case Aggregate():
                        yield self._aggregated(current.derivation.rule, item, binding)

    def _fill(self, expression: Expression, binding: Mapping[Variable, Constant]) -> str:
        """An expression with the values of its variables."""
        known = {v.name: c for v, c in binding.items()}
        return self.words.expression(substitute(Filter(expression), known).condition)

    def _absent(self, body: Sequence[BodyItem], binding: Mapping[Variable, Constant]) -> str:
        """A negated atom, or what one of the core stands for."""
        known = {v.name: c for v, c in binding.items()}
        (atom,) = body
        assert isinstance(atom, Atom), "the core negates atoms"
        filled = substitute(atom, known)
        if not is_auxiliary(atom.name):
            return self.words.atom(filled)
        for rule in self.reasoning.driver.planning.rules:
            if rule.heads[0].predicate == atom.predicate:
                names = {
                    v.name: t
                    for v, t in zip(rule.heads[0].terms, filled.terms, strict=True)
                    if isinstance(v, Variable)
                }
                return self.words.items([substitute(item, names) for item in rule.body])
        return self.words.atom(filled)

    def _aggregated(self, rule: Rule, item: Aggregate, binding: Mapping[Variable, Constant]) -> str:
        """How many matches were aggregated, and some of them."""
        (call,) = item.calls
        group = tuple(v.name for v in item.group)
        values = {v.name: c for v, c in binding.items() if v.name in group}
        body = [substitute(i, values) for i in item.body]
        names = tuple(dict.fromkeys(v.name for a in body if isinstance(a, Atom) for v in a.variables()))
        matches = self.evaluation.answer(Selection(translate_body(body), names, distinct=True))
        value = binding[rule.heads[0].terms[-1]]  # type: ignore[index]
        atoms = [a for a in body if isinstance(a, Atom)]
        rows = [dict(zip(names, row, strict=True)) for row in list(matches.terms())[:_MATCHES_SHOWN]]
        shown = "; ".join(self.words.items([substitute(a, row) for a in atoms]) for row in rows)  # type: ignore[arg-type]
        more = f" and {len(matches) - _MATCHES_SHOWN:,} more" if len(matches) > _MATCHES_SHOWN else ""
        argument = "" if call.argument is None else f" of ?{getattr(call.argument, 'name', '...')}"
        result = self.words.expression(value)
        return f"{call.function}{argument} over {len(matches):,} matches is {result}: {shown}{more}"

    # Values.

    def _learn(self, proofs: Iterable[Proof]) -> None:
        """Have the terms of all ids of a derivation, each made once."""
        ids: set[int] = set()
        for proof in proofs:
            ids.update(proof.fact[1])
            if proof.derivation is not None:
                ids.update(proof.derivation.values.values())
        wanted = sorted(ids - self._terms.keys())
        kind = self.dictionary.encode([]).dtype
        texts = self.dictionary.texts(np.array(wanted, kind))
        self._terms |= dict(zip(wanted, map(parse_term, texts), strict=True))

    def _atom(self, fact: Fact) -> Atom:
        predicate, row = fact
        return Atom(predicate.name, tuple(self._terms[i] for i in row))

    def _binding(self, derivation: Derivation) -> dict[Variable, Constant]:
        """The values of the variables of a rule, those that it works out among them."""
        binding = {
            Variable(name): self._terms[i]
            for name, i in derivation.values.items()
            if not name.startswith("#constant")
        }
        waiting = [i for i in derivation.rule.body if isinstance(i, Bind) and i.variable not in binding]
        for _ in waiting:
            for item in waiting:
                try:
                    binding.setdefault(item.variable, evaluate(item.expression, binding))
                except (NoValue, KeyError):
                    continue
        return binding

    def _check(self, proofs: Iterable[Proof]) -> None:
        """Evaluate all steps of a derivation again, item by item."""
        there: dict[Predicate, list[Atom]] = {}
        absent: dict[Predicate, list[Atom]] = {}
        for derivation in (p.derivation for p in proofs if p.derivation is not None):
            binding = self._binding(derivation)
            known = {v.name: c for v, c in binding.items()}
            there.setdefault(derivation.fact[0], []).append(self._atom(derivation.fact))
            for item in derivation.rule.body:
                match item:
                    case Atom():
                        there.setdefault(item.predicate, []).append(substitute(item, known))
                    case Negation((Atom() as atom,)):
                        absent.setdefault(atom.predicate, []).append(substitute(atom, known))
                    case Filter(condition):
                        assert holds(condition, binding), f"{derivation} asks for what does not hold"
                    case Bind(expression, variable):
                        assert evaluate(expression, binding) == binding[variable], (
                            f"{derivation} has another value"
                        )
        for predicate, atoms in there.items():
            assert self._count_holding(predicate, atoms) == len(set(atoms)), f"{predicate} lacks a fact"
        for predicate, atoms in absent.items():
            assert not self._count_holding(predicate, atoms), (
                f"{predicate} has a fact that it should not have"
            )

    def _count_holding(self, predicate: Predicate, atoms: Sequence[Atom]) -> int:
        """How many of some facts hold."""
        rows = list(dict.fromkeys(atom.terms for atom in atoms))
        if not predicate.arity:
            return int(self.evaluation.snapshot.has(predicate))
        columns = [self.dictionary.encode_terms(column) for column in zip(*rows, strict=True)]
        names = tuple(Variable(f"a{i}") for i in range(predicate.arity))
        start = self.engine.scan(self.engine.facts_from_columns(columns, len(rows)), names)
        found = self.engine.join(start, self.evaluation.snapshot.version(predicate, {}), names)
        return self.engine.count(self.engine.keep(self.engine.project(found, names)))


def _all_proofs(proof: Proof) -> Iterator[Proof]:
    """All parts of a derivation, each once."""
    waiting, seen = [proof], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting += current.children
