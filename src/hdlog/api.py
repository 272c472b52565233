"""The Python interface: a reasoner that keeps the materialisation of a program."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, overload

import pyarrow as pa

from hdlog import interrupts
from hdlog.dialects import ENDINGS, Dialect
from hdlog.engines.columnar.budget import Budget, parse_size
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.decode import FactTable
from hdlog.engines.protocol import Engine
from hdlog.errors import UsageError
from hdlog.maintenance.trace import Event, Limits, Trace
from hdlog.program.model import Predicate, Program, Rule
from hdlog.program.renaming import without_names
from hdlog.program.types import attribute_layout
from hdlog.query.answers import Answers
from hdlog.query.explanations import Why
from hdlog.query.queries import FactLike, Modifiers, Prepared, Queries
from hdlog.query.why_not import WhyNot
from hdlog.reading.chunks import Chunk
from hdlog.reading.files import find_splits, read_splits
from hdlog.reading.objects import Collector, FactInput, find_misspelt
from hdlog.reasoning import ByPredicate, Reasoning, Row, Update, check_program, facts_of
from hdlog.report.explain import describe
from hdlog.report.proofs import why_not_text, why_page, why_text
from hdlog.text import parse, read
from hdlog.tuning import Method, Tuning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import TypeVar

    from hdlog.engines.mixed.engine import MixedEngine
    from hdlog.engines.spark.engine import SparkEngine

    Shown = TypeVar("Shown", default=FactTable)
else:
    from typing import TypeVar

    Shown = TypeVar("Shown")

__all__ = ["ByPredicate", "Event", "FactInput", "FactTable", "Maintained", "Reasoner", "Update"]

AnyEngine = Engine[Any, Any, Any]
"""Which engine it is, only whoever made it knows."""
_PATIENCE = 0.05
"""Seconds between looks at whether somebody who waits for another thread has been interrupted."""


class Maintained(Generic[Shown]):
    """A program and facts, materialised, and kept so while facts change: what a `Reasoner` and a store that is open have in common."""

    def __init__(self, reasoning: Reasoning[Any, Any, Any]) -> None:
        self._reasoning = reasoning
        self._lock = RLock()
        self._is_changing = False

    @property
    def program(self) -> Program:
        return self._reasoning.program

    @property
    def events(self) -> Sequence[Event]:
        """The rounds of the last update, also of one that failed or was interrupted."""
        return self._reasoning.trace.events

    def close(self) -> None:
        """Give back threads and memory; on Spark, what was kept there. The session stays."""
        self._reasoning.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Facts.

    def update(self, add: FactInput = (), delete: FactInput = ()) -> Update:
        """Assert and retract facts; what that changed, exactly.

        Adding a fact twice, or one that is derived, asserts it. Deleting takes the assertion back: the fact goes
        unless rules still derive it. Deleting a fact that is not asserted changes nothing. A fact both added and
        deleted is added.

        >>> reasoner = Reasoner("grandparent[?x, ?z] :- parent[?x, ?y], parent[?y, ?z] .")
        >>> change = reasoner.update(add={"parent": [("ann", "bob"), ("bob", "cat")]})
        >>> list(change.added["grandparent"])
        [('ann', 'cat')]
        """
        guard = interrupts.Guard()
        with guard, self._alone():
            come, go = (self._encode(given) for given in (add, delete))
            for warning in find_misspelt(self.program, come):
                warnings.warn(warning.removeprefix("warning: "), stacklevel=2)
            return self._reasoning.update(come, go)

    def _encode(self, given: FactInput) -> dict[Predicate, Any]:
        """Facts in any form, as facts of the engine."""
        engine = self._reasoning.engine
        collector = Collector(self.program, self._read_files)
        own = {}
        if isinstance(given, Mapping):
            own = {name: table for name, table in given.items() if engine.owns(table)}
            given = {name: table for name, table in given.items() if name not in own}
        collector.take(given)
        encoded = engine.encode_chunks(collector.chunks())
        for name, table in own.items():
            predicate = name if isinstance(name, Predicate) else Predicate(name, len(table.columns))
            arranged, types = collector.arrange(predicate, table.columns)
            facts = engine.encode_table(table.select(arranged), types)
            known = encoded.get(predicate)
            encoded[predicate] = facts if known is None else engine.union(known, facts)
        return encoded

    def _read_files(self, paths: Sequence[str | Path], name: str) -> list[Chunk]:
        with interrupts.let_through():
            return list(read_splits(find_splits(paths, name=name), attribute_layout(self.program)))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One change at a time."""
        while not self._lock.acquire(timeout=_PATIENCE):
            interrupts.check()
        try:
            if self._is_changing:
                raise UsageError(
                    "the reasoner is being changed; what listens to an update cannot change it as well"
                )
            self._is_changing = True
            try:
                yield
            finally:
                self._is_changing = False
        finally:
            self._lock.release()

    # Reading.

    def facts(self, name: str | Predicate, arity: int | None = None) -> Shown:
        """All facts of a predicate, asserted and derived: a `FactTable`, or on Spark a DataFrame.

        >>> facts = Reasoner('size["a", 1] . size["b", 2] .').facts("size")
        >>> sorted(facts), len(facts)
        ([('a', 1), ('b', 2)], 2)
        >>> facts.to_polars().shape
        (2, 2)
        """
        with self._lock:
            predicate = name if isinstance(name, Predicate) else self.find(name, arity)
            names = self._reasoning.column_names(predicate)
            shown: Shown = self._reasoning.engine.show(self._reasoning.facts(predicate), names)
            return shown

    def counts(self) -> dict[Predicate, int]:
        """How many facts each predicate has."""
        with self._lock:
            return self._reasoning.counts()

    def __len__(self) -> int:
        return sum(self.counts().values())

    def find(self, name: str, arity: int | None = None) -> Predicate:
        """The predicate with a name; `arity` says which, where there are several."""
        return self._reasoning.find(name, arity)

    def query(
        self,
        query: str,
        *,
        order: Sequence[str] | str = (),
        limit: int | None = None,
        offset: int = 0,
        distinct: bool = True,
        **parameters: Any,
    ) -> Answers:
        """Ask: a rule body, with what is asked for before it. Nothing is kept but the answers.

        `order` has names, a minus before those that fall. Unless it is `distinct`, an answer comes once for each match. Variables that are
        given as `parameters` have their values.

        >>> reasoner = Reasoner("edge[1, 2] . edge[2, 3] . edge[2, 4] .")
        >>> list(reasoner.query("?x, ?z <- edge[?x, ?y], edge[?y, ?z]", order="-?z", limit=5))
        [(1, 4), (1, 3)]
        >>> list(reasoner.query("?y <- edge[?x, ?y], NOT edge[?y, _]", x=2, order="?y"))
        [(3,), (4,)]
        """
        modifiers = Modifiers(order, limit, offset, distinct)
        with self._lock:
            prepared = self._queries.prepare(query, list(parameters), modifiers)
            return prepared.ask(parameters)

    def sparql(self, query: str) -> Answers:
        """Ask in SPARQL 1.1: rows for SELECT, one without names or none for ASK, triples for CONSTRUCT and DESCRIBE.

        >>> reasoner = Reasoner("PREFIX : <http://e/> :knows[:ann, :bob] . :knows[:bob, :cat] .")
        >>> answers = reasoner.sparql("SELECT (COUNT(*) AS ?n) { ?x :knows/:knows ?y }")
        >>> list(answers)
        [(1,)]
        >>> bool(reasoner.sparql("ASK { :ann :knows+ :cat }"))
        True
        """
        with self._lock:
            return self._queries.ask_sparql(query)

    def sql(self, statement: str) -> pa.Table:
        """Ask in SQL, through DuckDB: each predicate is a view, with columns as declared, or c0, c1, ...; IRIs go by their last part too.

        >>> reasoner = Reasoner('@decl age(who: symbol, years: number) . age["ann", 41] . age["bob", 7] .')
        >>> reasoner.sql("select who from age where years > 10").to_pylist()
        [{'who': 'ann'}]
        """
        with self._lock:
            return self._queries.ask_sql(statement)

    def why(self, fact: FactLike, several: int = 1) -> Explanation:
        """How a fact comes about: a smallest derivation from asserted facts, and further ones if there are to be `several`.

        >>> reasoner = Reasoner("path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] .")
        >>> change = reasoner.update(add={"edge": [(1, 2), (2, 3)]})
        >>> print(reasoner.why("path[1, 3]"))
        path[1, 3], by path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] . (<text>:1:32)
        ├─ path[1, 2], by path[?x, ?y] :- edge[?x, ?y] . (<text>:1:1)
        │  └─ edge[1, 2], asserted
        └─ edge[2, 3], asserted
        """
        with self._lock:
            return Explanation(self._queries.why(fact, several))

    def why_not(self, fact: FactLike) -> Failure:
        """What is missing for a fact to hold: for each rule that could derive it, how far its body matches.

        >>> reasoner = Reasoner("path[?x, ?z] :- edge[?x, ?y], edge[?y, ?z] . edge[1, 2] .")
        >>> print(reasoner.why_not(("path", 1, 3)))
        path[1, 3] does not hold
        <BLANKLINE>
        path[?x, ?z] :- edge[?x, ?y], edge[?y, ?z] . (<text>:1:1)
          matches edge[1, ?y] in one way
          fails at edge[?y, ?z]
            tried edge[2, 3]
        """
        with self._lock:
            return Failure(self._queries.why_not(fact))

    def what_if(self, add: FactInput = (), delete: FactInput = ()) -> Update:
        """What an update would change, exactly; nothing is changed.

        >>> reasoner = Reasoner("q[?x] :- p[?x] . p[1] .")
        >>> print(reasoner.what_if(delete=[("p", 1)]), len(reasoner))
        0 facts added, 2 facts removed 2
        """
        guard = interrupts.Guard()
        with guard, self._alone():
            come, go = (self._encode(given) for given in (add, delete))
            return self._reasoning.try_update(come, go)

    def sparql_update(self, update: str) -> Update:
        """SPARQL 1.1 Update: changes what is asserted, all of it or nothing; what that changed, exactly.

        >>> reasoner = Reasoner("PREFIX : <http://e/> :friend[?y, ?x] :- :friend[?x, ?y] .")
        >>> print(reasoner.sparql_update("INSERT DATA { :ann :friend :bob }"))
        2 facts added, 0 facts removed
        >>> print(reasoner.sparql_update("DELETE { ?x :friend ?y } INSERT { ?x :foe ?y } WHERE { ?x :friend ?y }"))
        2 facts added, 2 facts removed
        """
        guard = interrupts.Guard()
        with guard, self._alone():
            return self._queries.update_sparql(update)

    def prepare(
        self,
        query: str,
        *parameters: str,
        order: Sequence[str] | str = (),
        limit: int | None = None,
        offset: int = 0,
        distinct: bool = True,
    ) -> PreparedQuery:
        """A query that is asked many times, with other values for its parameters.

        >>> reasoner = Reasoner("edge[1, 2] . edge[2, 3] .")
        >>> successors = reasoner.prepare("?y <- edge[?x, ?y]", "x")
        >>> list(successors(x=1)), list(successors(x=3))
        ([(2,)], [])
        """
        modifiers = Modifiers(order, limit, offset, distinct)
        with self._lock:
            return PreparedQuery(self._queries.prepare(query, parameters, modifiers), self._lock)

    @cached_property
    def _queries(self) -> Queries[Any, Any, Any]:
        return Queries(self._reasoning)

    def explain(self) -> dict[str, Any]:
        """Components, rules, methods, plans and trees, with what they keep and took, as plain data."""
        with self._lock:
            return describe(self._reasoning.driver)


class Explanation:
    """How a fact comes about; its text is a tree, or a list of steps where that would be too deep."""

    def __init__(self, why: Why) -> None:
        self.steps = why.steps
        self.is_smallest = why.is_smallest
        self._why = why

    def as_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON."""
        return self._why.as_dict()

    def to_html(self) -> str:
        """A page with a picture."""
        return why_page(self.as_dict())

    def __str__(self) -> str:
        return why_text(self.as_dict())


class Failure:
    """What is missing for a fact to hold."""

    def __init__(self, why_not: WhyNot) -> None:
        self.misses = why_not.misses
        self._why_not = why_not

    def as_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON."""
        return self._why_not.as_dict()

    def __str__(self) -> str:
        return why_not_text(self.as_dict())


class PreparedQuery:
    """A query that is planned once, and asked with values for its parameters, by their names."""

    def __init__(self, prepared: Prepared[Any, Any, Any], lock: RLock) -> None:
        self._prepared = prepared
        self._lock = lock

    def __call__(self, **values: Any) -> Answers:
        with self._lock:
            return self._prepared.ask(values)

    def many(self, rows: Sequence[Mapping[str, Any]]) -> Answers:
        """The answers for several rows of values together."""
        with self._lock:
            return self._prepared.ask_for(rows)


class Reasoner(Maintained[Shown]):
    """A program and facts, materialised, and kept so while both change. Facts come out as `Shown`: a `FactTable`, or on Spark a
    DataFrame.

    >>> from hdlog import Reasoner
    >>> with Reasoner("path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] .") as reasoner:
    ...     print(reasoner.update(add={"edge": [(1, 2), (2, 3)]}))
    ...     print(reasoner.update(delete=[("edge", 1, 2)]))
    ...     print(set(reasoner.facts("path")))
    5 facts added, 0 facts removed
    0 facts added, 3 facts removed
    {(2, 3)}

    An update is all or nothing: after an error or an interrupt everything is as it was before. Threads may share a
    reasoner: changes come one after the other, and whoever reads waits for the one that is under way.
    """

    @overload
    def __init__(
        self: Reasoner[FactTable],
        program: Program | str | Path | None = None,
        *,
        dialect: Dialect | None = None,
        memory: int | str | None = None,
        max_rounds: int | None = None,
        max_facts: int | None = None,
        threads: int | None = None,
        progress: Callable[[Event], None] | None = None,
        method: Method = "combined",
        tuning: Tuning | None = None,
        engine: ColumnarEngine | Literal["columnar"] | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: Reasoner[DataFrame],
        program: Program | str | Path | None = None,
        *,
        dialect: Dialect | None = None,
        max_rounds: int | None = None,
        max_facts: int | None = None,
        progress: Callable[[Event], None] | None = None,
        method: Method = "combined",
        tuning: Tuning | None = None,
        engine: MixedEngine | SparkEngine | Literal["spark", "spark-only"],
        spark: SparkSession | None = None,
    ) -> None: ...

    def __init__(
        self,
        program: Program | str | Path | None = None,
        *,
        dialect: Dialect | None = None,
        memory: int | str | None = None,
        max_rounds: int | None = None,
        max_facts: int | None = None,
        threads: int | None = None,
        progress: Callable[[Event], None] | None = None,
        method: Method = "combined",
        tuning: Tuning | None = None,
        engine: AnyEngine | Literal["columnar", "spark", "spark-only"] | None = None,
        spark: Any = None,
    ) -> None:
        """Materialise a program: its text, the `Path` of a file, or a `Program`.

        `engine` is the embedded one unless given; `memory`, in bytes or as in "8GB", and `threads` are for that. "spark" keeps small tables in
        the process and large ones on Spark, "spark-only" all of them, in the session `spark` or in one of their own. `max_rounds` bounds
        the rounds of each recursive component, `max_facts` the facts that one update finds. `progress` is called after each
        round.
        """
        if not isinstance(tuning, Tuning | None):
            raise UsageError(f"tuning is a hdlog.Tuning, not {type(tuning).__name__}")
        if progress is not None and not callable(progress):
            raise UsageError(f"progress is called with each event, so it cannot be {type(progress).__name__}")
        tuning = tuning or Tuning(method)
        limits = Limits(_limit("max_rounds", max_rounds), _limit("max_facts", max_facts))
        trace = Trace(limits, progress)
        super().__init__(Reasoning(_engine(engine, memory, threads, tuning, spark), trace, tuning))
        self.add_rules(Program() if program is None else program, dialect)

    # Rules.

    def add_rules(self, program: Program | str | Path, dialect: Dialect | None = None) -> Update:
        """Add rules, and the facts among them, to the living materialisation.

        >>> reasoner = Reasoner("p[1] . p[2] .")
        >>> print(reasoner.add_rules("q[?x] :- p[?x], FILTER(?x > 1) ."))
        1 fact added, 0 facts removed
        """
        more = _program(program, dialect)
        guard = interrupts.Guard()
        with guard, self._alone():
            present = set(self.program.rules)
            new = tuple(dict.fromkeys(r for r in more.rules if r not in present))
            # A fact that the program has already may have been deleted since.
            return self._change_rules(self.program + _with_rules(more, new), facts_of(more.rules), [])

    def remove_rules(self, program: Program | str | Path, dialect: Dialect | None = None) -> Update:
        """Remove rules, and the facts among them; all of them must be there, whatever their variables are called.

        >>> reasoner = Reasoner("p[1] . q[?x] :- p[?x] .")
        >>> print(reasoner.remove_rules("q[?y] :- p[?y] ."))
        0 facts added, 1 fact removed
        """
        given = {without_names(r): r for r in _program(program, dialect).rules}
        guard = interrupts.Guard()
        with guard, self._alone():
            present = [(without_names(r), r) for r in self.program.rules]
            known = dict(present)
            missing = [r for same, r in given.items() if same not in known]
            if missing:
                names = ", ".join(sorted({h.name for r in missing for h in r.heads}))
                raise UsageError(f"cannot remove rules that are not in the program: {names}")
            kept = tuple(r for same, r in present if same not in given)
            stated = set(facts_of(kept))
            retracted = [fact for fact in facts_of(given.values()) if fact not in stated]
            return self._change_rules(_with_rules(self.program, kept), [], retracted)

    def _change_rules(
        self, program: Program, asserted: list[tuple[Predicate, Row]], retracted: list[tuple[Predicate, Row]]
    ) -> Update:
        check_program(program)
        come, go = (self._encode(facts) for facts in (asserted, retracted))
        return self._reasoning.change_rules(program, come, go)

    def __repr__(self) -> str:
        return f"<Reasoner: {len(self.program.rules):,} rules, {len(self):,} facts>"


def _engine(
    given: AnyEngine | str | None, memory: int | str | None, threads: int | None, tuning: Tuning, spark: Any
) -> AnyEngine:
    on_spark = given in ("spark", "spark-only")
    if spark is not None and not on_spark:
        raise UsageError("a session of Spark is for engine='spark' or 'spark-only'")
    if given is None or given == "columnar":
        budget = Budget() if memory is None else Budget(parse_size(memory))
        return ColumnarEngine(budget, _limit("threads", threads), tuning.numbers)
    if memory is not None or threads is not None:
        raise UsageError("memory and threads are settings of the embedded engine; give the engine its own")
    if given == "spark":
        from hdlog.engines.mixed.engine import MixedEngine

        return MixedEngine(spark, numbers=tuning.numbers)
    if given == "spark-only":
        from hdlog.engines.spark.engine import SparkEngine

        return SparkEngine(spark, numbers=tuning.numbers)
    if isinstance(given, str) or not hasattr(given, "begin"):
        raise UsageError(
            f"an engine is 'columnar', 'spark', 'spark-only' or an engine of hdlog, not {given!r}"
        )
    return given


def _limit(name: str, value: int | None) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise UsageError(f"{name} is a number from 1 on, not {value!r}")
    return value


def _program(program: Program | str | Path, dialect: Dialect | None) -> Program:
    if isinstance(program, Program):
        return program
    if isinstance(program, Path):
        return read(program, dialect)
    if not isinstance(program, str):
        raise UsageError(f"a program is a text, a Path or a Program, not {type(program).__name__}")
    if "\n" not in program and (program.strip().endswith(tuple(ENDINGS)) or _is_file(program)):
        raise UsageError(f"{program!r} looks like the name of a file; a file is given as Path({program!r})")
    return parse(program, dialect or "rdfox")


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _with_rules(program: Program, rules: tuple[Rule, ...]) -> Program:
    return Program(rules, program.declarations, program.types, program.directives, program.prefixes)
