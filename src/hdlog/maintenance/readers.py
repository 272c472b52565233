"""Which rules a round reaches: those that read what has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from hdlog.engines.protocol import Engine, F, R, T
from hdlog.maintenance.changes import Module
from hdlog.program.model import Atom, Predicate
from hdlog.program.ntriples import term_text
from hdlog.program.terms import Term, Variable

Reader = TypeVar("Reader", bound=Module[Any, Any])
Place = tuple[Predicate, int]
"""An argument of a predicate."""


class Readers(Generic[R, F, T, Reader]):
    """By predicate the modules whose rules read it, once each.

    Where rules have variables in place of predicates there is a rule for every class and every property that wants its own name of what
    they derive. Of such rules only those are reached whose constant is among the changes.
    """

    def __init__(self, engine: Engine[R, F, T], modules: Iterable[Reader], looked_up: int) -> None:
        """`looked_up`: as many rules that differ in a constant are looked up by it."""
        self._engine = engine
        self._by_predicate: dict[Predicate, list[Reader]] = {}
        self._by_constant: dict[Place, dict[str, list[Reader]]] = {}
        for module in modules:
            wish = _find_wish(module)
            if wish is None:
                for predicate in dict.fromkeys(p for p, _ in module.sources):
                    self._by_predicate.setdefault(predicate, []).append(module)
            else:
                place, text = wish
                self._by_constant.setdefault(place, {}).setdefault(text, []).append(module)
        for place in [p for p, wanted in self._by_constant.items() if len(wanted) < looked_up]:
            few = [m for several in self._by_constant.pop(place).values() for m in several]
            self._by_predicate.setdefault(place[0], []).extend(few)

    def reached_by(self, delta: Mapping[Predicate, F]) -> list[Reader]:
        found = dict.fromkeys(m for p in delta for m in self._by_predicate.get(p, ()))
        for (predicate, place), wanted in self._by_constant.items():
            if predicate in delta:
                for text in self._find_values(delta[predicate], predicate, place):
                    found |= dict.fromkeys(wanted.get(text, ()))
        return list(found)

    def _find_values(self, facts: F, predicate: Predicate, place: int) -> list[str]:
        """The different terms that facts have in a place."""
        terms = tuple(Variable(f"a{i}") for i in range(predicate.arity))
        return find_texts(self._engine, facts, terms, terms[place])


def find_texts(engine: Engine[R, F, T], facts: F, terms: tuple[Term, ...], wanted: Variable) -> list[str]:
    """The texts of the different terms that a variable stands for in facts that match some terms."""
    values = engine.keep(engine.distinct(engine.project(engine.scan(facts, terms), (wanted,))))
    (texts,) = engine.decode(values).texts()
    return texts


def _find_wish(module: Module[Any, Any]) -> tuple[Place, str] | None:
    """The constant that a rule of one atom wants, and where."""
    if len(module.rule.body) != 1 or not isinstance(module.rule.body[0], Atom):
        return None
    atom = module.rule.body[0]
    for place, term in reversed(list(enumerate(atom.terms))):
        if not isinstance(term, Variable):
            return (atom.predicate, place), term_text(term)
    return None
