"""The standard module: semi-naive evaluation of a rule, n + 1 times, never the same derivation twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hdlog.engines.protocol import Engine, FactSet, Relation, Version
from hdlog.maintenance.module import Changes
from hdlog.plan.order import next_atom, ready
from hdlog.program.model import Atom, Bind, Call, Filter, Negation, Predicate, Rule, expression_variables


class StandardModule:
    """Evaluates B0 .. Bi-1 in `first`, Bi in its delta, Bi+1 .. Bn in `second`, for each i."""

    def __init__(self, engine: Engine, rule: Rule) -> None:
        self.engine = engine
        self.rule = rule
        positive = [i for i in rule.body if isinstance(i, Atom)]
        negative = [i.body[0] for i in rule.body if isinstance(i, Negation) and isinstance(i.body[0], Atom)]
        self.literals: tuple[tuple[Atom, bool], ...] = (
            *((a, True) for a in positive),
            *((a, False) for a in negative),
        )
        self.reads = tuple((atom.predicate, positive) for atom, positive in self.literals)
        self.builtins = tuple(i for i in rule.body if isinstance(i, Filter | Bind))
        self._head_names = {v.name for head in rule.heads for v in head.variables()}

    def derive(self, changes: Changes) -> Mapping[int, FactSet]:
        keys = self.reads
        parts: list[Mapping[int, FactSet]] = []
        for i, (atom, _) in enumerate(self.literals):
            delta = changes[keys[i]].delta
            if self.engine.is_empty(delta):
                continue
            versions = [changes[k].first if j < i else changes[k].second for j, k in enumerate(keys)]
            if any(self._is_void(versions[j]) for j, (_, p) in enumerate(self.literals) if p and j != i):
                continue
            start = self.engine.scan(delta, atom.terms)
            parts.append(self._heads(self._match(start, versions, done=i)))
        return self._sum(parts)

    def derive_all(self, versions: Mapping[tuple[Predicate, bool], Version]) -> Mapping[int, FactSet]:
        found = [versions[key] for key in self.reads]
        return self._heads(self._match(self.engine.unit(), found, done=-1))

    def _is_void(self, version: Version) -> bool:
        """Known to be empty without looking: no facts, or all of them taken away."""
        if version.plus:
            return all(self.engine.is_empty(f) for f in version.plus) and self._is_void(
                Version(version.table, (), version.minus)
            )
        return self.engine.size(version.table) == sum(self.engine.count(f) for f in version.minus)

    def _match(self, relation: Relation, versions: list[Version], done: int) -> Relation:
        """The matches of the body that extend `relation`, a match of literal number `done`."""
        engine = self.engine
        atoms = [atom for atom, _ in self.literals]
        waiting = [i for i in range(len(atoms)) if i != done]
        builtins = list(self.builtins)
        bound = {v.name for v in atoms[done].variables()} if done >= 0 else set()
        relation, builtins = self._apply_builtins(relation, builtins, bound)
        while waiting and not engine.is_empty(relation):
            negated = [i for i in waiting if not self.literals[i][1] and self._is_bound(atoms[i], bound)]
            if negated:
                choice = negated[0]
                relation = engine.antijoin(relation, versions[choice], atoms[choice].terms)
            else:
                positive = [i for i in waiting if self.literals[i][1]]
                if not positive:
                    break
                choice = next_atom(
                    atoms, positive, bound, lambda i, columns: engine.fan_out(versions[i], columns)
                )
                relation = engine.join(relation, versions[choice], atoms[choice].terms)
                bound |= {v.name for v in atoms[choice].variables()}
                relation, builtins = self._apply_builtins(relation, builtins, bound)
            waiting.remove(choice)
            relation = engine.keep_columns(relation, self._needed(waiting, builtins))
        # Literals that only a value made by a BIND completes.
        for i in waiting:
            if not engine.is_empty(relation):
                relation = engine.antijoin(relation, versions[i], atoms[i].terms)
        return relation

    def _is_bound(self, atom: Atom, bound: set[str]) -> bool:
        return all(v.name in bound for v in atom.variables())

    def _needed(self, waiting: Iterable[int], builtins: Iterable[Filter | Bind]) -> list[str]:
        names = set(self._head_names)
        for i in waiting:
            names |= {v.name for v in self.literals[i][0].variables()}
        for item in builtins:
            expression = item.condition if isinstance(item, Filter) else item.expression
            names |= {v.name for v in expression_variables(expression)}
            # The delta of a negated literal may have given the variable of a BIND its value.
            names |= {item.variable.name} if isinstance(item, Bind) else set()
        return sorted(names)

    def _apply_builtins(
        self, relation: Relation, builtins: list[Filter | Bind], bound: set[str]
    ) -> tuple[Relation, list[Filter | Bind]]:
        progress = True
        while progress:
            progress = False
            for item in builtins:
                if ready(item, bound):
                    if isinstance(item, Filter):
                        relation = self.engine.filter(relation, item.condition)
                    elif item.variable.name in bound:
                        relation = self._compare(relation, item)
                    else:
                        relation = self.engine.extend(relation, item.expression, item.variable.name)
                        bound.add(item.variable.name)
                    builtins = [b for b in builtins if b is not item]
                    progress = True
                    break
        return relation, builtins

    def _compare(self, relation: Relation, item: Bind) -> Relation:
        """A value for a variable that a literal has given one already: the same term, or no match."""
        return self.engine.filter(relation, Call("sameterm", (item.variable, item.expression)))

    def _heads(self, relation: Relation) -> dict[int, FactSet]:
        if self.engine.is_empty(relation):
            return {}
        return {n: self.engine.project(relation, head.terms) for n, head in enumerate(self.rule.heads)}

    def _sum(self, parts: list[Mapping[int, FactSet]]) -> Mapping[int, FactSet]:
        if len(parts) == 1:
            return parts[0]
        return {
            n: self.engine.plus((p[n] for p in parts if n in p), len(head.terms))
            for n, head in enumerate(self.rule.heads)
            if any(n in p for p in parts)
        }
