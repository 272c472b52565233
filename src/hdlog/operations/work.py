"""A store at work: how a command is to run, on which engine, and the reasoner over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal

from hdlog import interrupts
from hdlog.engines.columnar.budget import Budget, parse_size
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.protocol import Engine, F, R, T
from hdlog.maintenance.trace import Event, Limits, Trace
from hdlog.program.model import Program
from hdlog.reasoning import Reasoning
from hdlog.store.columnar import EmbeddedGate
from hdlog.store.gate import Gate
from hdlog.store.store import Store
from hdlog.tuning import Tuning

EngineName = Literal["auto", "columnar", "spark"]
_BYTES_A_FACT = 120
"""Of the embedded engine, with what is derived, terms and indexes."""


@dataclass
class Settings:
    """How a command is to run."""

    engine: EngineName = "auto"
    master: str = "local[*]"
    memory: float | None = None
    """GB"""
    lenient: bool = False
    tuning: Tuning = field(default_factory=Tuning)
    max_rounds: int | None = None
    max_facts: int | None = None
    say: Callable[[str], None] = lambda _: None
    tell: Callable[[Event], None] = lambda _: None
    spark: Any = None
    """a session to use"""

    @property
    def budget(self) -> Budget:
        return Budget() if self.memory is None else Budget(parse_size(int(self.memory * 1e9)))

    def session(self) -> Any:
        """Spark, started when first asked for."""
        if self.spark is None:
            self.say("starting Spark")
            from hdlog.engines.spark.session import start_session

            memory = f"{max(1, int(self.memory * 0.75))}g" if self.memory else None
            self.spark = start_session(self.master, memory)
        return self.spark


class Work(Generic[R, F, T]):
    """A store with a living reasoner over it."""

    def __init__(
        self,
        store: Store,
        program: Program,
        settings: Settings,
        engine: Engine[R, F, T],
        gate: Gate[F, T],
        chosen: tuple[str, str],
    ) -> None:
        self.store, self.program, self.settings = store, program, settings
        self.engine, self.gate = engine, gate
        self.engine_name, self.why = chosen
        self.settings.say("reading terms")
        self.gate.read_terms(store.manifest.term_files, store.manifest.skolem_files)

    def start(self, restore: bool) -> Reasoning[R, F, T]:
        """Reasoning with nothing but the program's own facts, or with the store's snapshot."""
        settings = self.settings
        trace = Trace(Limits(settings.max_rounds, settings.max_facts), settings.tell)
        self.reasoner = Reasoning(self.engine, trace, settings.tuning)
        if not restore:
            self.reasoner.add_program(self.program)
            return self.reasoner
        settings.say("reading facts")
        tables = self.reasoner.restore(self.program, [f.predicate for f in self.store.manifest.facts])
        self.gate.fill(tables)
        return self.reasoner

    def commit(self, **more: Any) -> None:
        self.settings.say("writing the snapshot")
        changes = self.gate.save(self.reasoner.stored_tables())
        with interrupts.Guard():
            self.store.commit(**{**changes, **more})


AnyWork = Work[Any, Any, Any]
"""On the engine that was chosen."""


def begin_work(store: Store, program: Program, settings: Settings, facts: int) -> AnyWork:
    """On the engine that is asked for, or suits so many facts."""
    chosen = choose_engine(settings, facts)
    if chosen[0] == "spark":
        from hdlog.engines.spark.engine import SparkEngine
        from hdlog.store.spark import SparkGate

        engine = SparkEngine(settings.session(), numbers=settings.tuning.numbers)
        engine.say = settings.say
        return Work(store, program, settings, engine, SparkGate(store, engine), chosen)
    embedded = ColumnarEngine(settings.budget, numbers=settings.tuning.numbers)
    return Work(store, program, settings, embedded, EmbeddedGate(store, embedded), chosen)


def choose_engine(settings: Settings, facts: int) -> tuple[str, str]:
    """Which engine, and why."""
    if settings.engine != "auto":
        return settings.engine, "as asked for"
    need, room = facts * _BYTES_A_FACT, settings.budget.memory
    if need < room:
        return "columnar", f"{facts:,} facts need about {need / 1e9:.1f} of {room / 1e9:.1f} GB"
    return (
        "spark",
        f"{facts:,} facts would need about {need / 1e9:.1f} GB in process, and {room / 1e9:.1f} are allowed",
    )
