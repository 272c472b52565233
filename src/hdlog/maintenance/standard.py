"""The standard module: semi-naive evaluation of a rule, n + 1 times, never the same derivation twice.

In a node it may also match everything before and after a change, where that is less work (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hdlog.engines.protocol import Engine, FactSet, Relation, Version
from hdlog.maintenance.module import Changes, is_void
from hdlog.plan.cost import Factor, cost_from
from hdlog.plan.order import next_atom, ready
from hdlog.plan.tuning import Tuning
from hdlog.program.model import Atom, Bind, Call, Filter, Negation, Predicate, Rule, expression_variables
from hdlog.program.terms import Variable

_MANY = 1000
_UPHEAVAL = 1.0
"""Shares of the positive literals that change, added up."""


class StandardModule:
    """Evaluates B0 .. Bi-1 in `first`, Bi in its delta, Bi+1 .. Bn in `second`, for each i."""

    def __init__(
        self, engine: Engine, rule: Rule, tuning: Tuning | None = None, in_node: bool = False
    ) -> None:
        """`in_node`: the body of a node, whose cyclic atoms are joined one variable at a time."""
        self.engine = engine
        self.rule = rule
        self.tuning = tuning or Tuning()
        self.meets = in_node and self.tuning.worst_case_optimal
        self.collapses = in_node and self.tuning.sum_product
        positive = [i for i in rule.body if isinstance(i, Atom)]
        negative = [i.body[0] for i in rule.body if isinstance(i, Negation) and isinstance(i.body[0], Atom)]
        self.literals: tuple[tuple[Atom, bool], ...] = (
            *((a, True) for a in positive),
            *((a, False) for a in negative),
        )
        self.reads = tuple((atom.predicate, positive) for atom, positive in self.literals)
        self.sources = self.reads
        self.builtins = tuple(i for i in rule.body if isinstance(i, Filter | Bind))
        self.last = self._for_heads_only()
        self.early = tuple(i for i in self.builtins if i not in self.last)
        self._asked: dict[tuple[tuple[int, ...], int], list[str]] = {}
        self._head_names = {v.name for head in rule.heads for v in head.variables()}

    def derive(self, changes: Changes) -> Mapping[int, FactSet]:
        if self.meets and self._is_upheaval(changes):
            return self._difference(changes)
        keys = self.reads
        parts: list[Relation] = []
        for i, (atom, positive) in enumerate(self.literals):
            delta = changes[keys[i]].delta
            if self.engine.is_empty(delta):
                continue
            found = Version(self.engine.table(len(atom.terms)), (delta,))
            versions = [
                found if j == i else changes[k].first if j < i else changes[k].second
                for j, k in enumerate(keys)
            ]
            if any(
                is_void(self.engine, versions[j]) for j, (_, p) in enumerate(self.literals) if p and j != i
            ):
                continue
            if self.meets and positive and self.engine.count(delta) > _MANY:
                start = self._best_start(versions, i)
                relation = self._from(start, versions)
            else:
                relation = self._match(self.engine.scan(delta, atom.terms), versions, done=i)
            parts.append(relation)
        return self._concluded(parts)

    def _is_upheaval(self, changes: Changes) -> bool:
        """Whether so much changes that matching everything twice is less work than matching each delta."""
        share = 0.0
        for key in self.reads:
            change = changes[key]
            if key[1] and not self.engine.is_empty(change.delta):
                sides = (self.engine.fan_out(side, ()) for side in (change.first, change.second))
                share += self.engine.count(change.delta) / max(1.0, *sides)
        return share > _UPHEAVAL

    def _difference(self, changes: Changes) -> Mapping[int, FactSet]:
        before = self.derive_all({key: changes[key].first for key in self.reads})
        after = self.derive_all({key: changes[key].second for key in self.reads})
        found = {}
        for n in before.keys() | after.keys():
            parts = [after[n]] if n in after else []
            parts += [self.engine.opposite(before[n])] if n in before else []
            found[n] = self.engine.plus(parts, len(self.rule.heads[n].terms))
        return found

    def derive_all(self, versions: Mapping[tuple[Predicate, bool], Version]) -> Mapping[int, FactSet]:
        found = [versions[key] for key in self.reads]
        if any(is_void(self.engine, v) for v, (_, p) in zip(found, self.literals, strict=True) if p):
            return {}
        if self.meets:
            return self._concluded([self._from(self._best_start(found, 0), found)])
        return self._concluded([self._match(self.engine.unit(), found, done=-1)])

    def _for_heads_only(self) -> tuple[Filter | Bind, ...]:
        """Values that nothing but heads asks for: they are made once, for the matches by whatever delta."""
        used = {v.name for atom, _ in self.literals for v in atom.variables()}
        last: list[Filter | Bind] = []
        for item in reversed(self.builtins):
            if isinstance(item, Bind) and item.variable.name not in used:
                last.insert(0, item)
            else:
                expression = item.condition if isinstance(item, Filter) else item.expression
                used |= {v.name for v in expression_variables(expression)}
        # What a value of the last ones is made of may come later in the body.
        return tuple(i for i in last if isinstance(i, Bind) and i.variable.name not in used)

    def _concluded(self, parts: Sequence[Relation]) -> Mapping[int, FactSet]:
        """The heads of matches found by several deltas."""
        needed = self._needed([], self.last)
        filled = [self.engine.keep_columns(r, needed) for r in parts if not self.engine.is_empty(r)]
        if not filled:
            return {}
        relation = filled[0] if len(filled) == 1 else self.engine.stack(filled)
        bound = {v.name for atom, _ in self.literals for v in atom.variables()}
        bound |= {i.variable.name for i in self.early if isinstance(i, Bind)}
        relation, _ = self._apply_builtins(relation, list(self.last), bound)
        return self._heads(relation)

    def _from(self, start: int, versions: list[Version]) -> Relation:
        atom, positive = self.literals[start]
        if not positive:
            return self._match(self.engine.unit(), versions, done=-1)
        return self._match(
            self.engine.join(self.engine.unit(), versions[start], atom.terms), versions, done=start
        )

    def _best_start(self, versions: list[Version], preferred: int) -> int:
        """The literal to begin with that leads to the least work, by what is known of the versions now."""
        if not self.literals[preferred][1]:
            return preferred
        numbers = [i for i, (_, positive) in enumerate(self.literals) if positive]
        factors = [self._factor(self.literals[i][0], versions[i]) for i in numbers]
        needed = frozenset(self._needed([], self.builtins))
        work = {i: cost_from(n, factors, needed, meets=True) for n, i in enumerate(numbers)}
        best = min(numbers, key=lambda i: work[i])
        return best if work[best] < work[preferred] / 2 else preferred

    def _factor(self, atom: Atom, version: Version) -> Factor:
        columns = {t.name: i for i, t in enumerate(atom.terms) if isinstance(t, Variable)}
        constants = [i for i, t in enumerate(atom.terms) if not isinstance(t, Variable)]
        rows = self.engine.fan_out(version, constants)
        distinct = {
            name: rows / max(self.engine.fan_out(version, sorted([*constants, i])), 1e-9)
            for name, i in columns.items()
        }
        return Factor(rows, {n: max(1.0, min(rows, d)) for n, d in distinct.items()})

    def _match(self, relation: Relation, versions: list[Version], done: int) -> Relation:
        """The matches of the body that extend `relation`, a match of literal number `done`."""
        engine = self.engine
        atoms = [atom for atom, _ in self.literals]
        waiting = [i for i in range(len(atoms)) if i != done]
        builtins = list(self.early)
        bound = {v.name for v in atoms[done].variables()} if done >= 0 else set()
        relation, builtins = self._apply_builtins(relation, builtins, bound)
        while waiting and not engine.is_empty(relation):
            before, width = engine.count(relation), engine.width(relation) - len(bound)
            negated = [i for i in waiting if not self.literals[i][1] and self._is_bound(atoms[i], bound)]
            if negated:
                choice = negated[0]
                relation = engine.antijoin(relation, versions[choice], atoms[choice].terms)
            else:
                positive = [i for i in waiting if self.literals[i][1]]
                if not positive:
                    break
                if self.tuning.reordering:
                    choice = next_atom(
                        atoms, positive, bound, lambda i, columns: engine.fan_out(versions[i], columns)
                    )
                else:
                    choice = next_atom(atoms, positive, bound, lambda i, _: i)
                name, factors = self._meeting(choice, positive, bound)
                if factors:
                    waiting = [i for i in waiting if i not in factors] + [choice]
                    needed = self._needed([i for i in waiting if i != choice], builtins)
                    relation = engine.meet(
                        relation, name, [(versions[i], atoms[i].terms) for i in factors], needed
                    )
                else:
                    relation = engine.join(relation, versions[choice], atoms[choice].terms)
                bound |= {v.name for v in atoms[choice].variables()}
                relation, builtins = self._apply_builtins(relation, builtins, bound)
            waiting.remove(choice)
            relation = engine.keep_columns(relation, self._needed(waiting, builtins))
            grown = engine.count(relation) > max(_MANY, 2 * before)
            # Rows that became many, and then equal for lack of a column, are added up.
            if self.collapses and waiting and grown and engine.width(relation) < width + len(bound):
                relation = engine.collapse(relation)
        # Literals that only a value made by a BIND completes.
        for i in waiting:
            if not engine.is_empty(relation):
                relation = engine.antijoin(relation, versions[i], atoms[i].terms)
        return relation

    def _meeting(self, choice: int, positive: Sequence[int], bound: set[str]) -> tuple[str, list[int]]:
        """The one free variable of an atom, and the atoms with just that variable free."""
        free = [v.name for v in self.literals[choice][0].variables() if v.name not in bound]
        if not self.meets or len(free) != 1:
            return "", []
        factors = [
            i
            for i in positive
            if [v.name for v in self.literals[i][0].variables() if v.name not in bound] == free
        ]
        return free[0], factors

    def _is_bound(self, atom: Atom, bound: set[str]) -> bool:
        return all(v.name in bound for v in atom.variables())

    def _needed(self, waiting: Sequence[int], builtins: Sequence[Filter | Bind]) -> list[str]:
        """What the rest of a match asks for; the same questions come again in every small update."""
        key = (tuple(waiting), len(builtins))
        if key not in self._asked:
            self._asked[key] = self._needed_by(waiting, builtins)
        return self._asked[key]

    def _needed_by(self, waiting: Iterable[int], builtins: Iterable[Filter | Bind]) -> list[str]:
        names = set(self._head_names)
        for i in waiting:
            names |= {v.name for v in self.literals[i][0].variables()}
        for item in (*builtins, *self.last):
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

    def conclude(self, relation: Relation, bound: Iterable[str], heads: Iterable[int]) -> dict[int, FactSet]:
        """Some heads, for matches of all literals."""
        relation, _ = self._apply_builtins(relation, list(self.builtins), set(bound))
        return self._heads(relation, heads)

    def _heads(self, relation: Relation, numbers: Iterable[int] | None = None) -> dict[int, FactSet]:
        if self.engine.is_empty(relation):
            return {}
        chosen = list(range(len(self.rule.heads)) if numbers is None else numbers)
        if len(chosen) > 1:
            relation = self.engine.keep(relation)
        return {n: self.engine.project(relation, self.rule.heads[n].terms) for n in chosen}
