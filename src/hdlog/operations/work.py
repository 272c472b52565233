"""A store at work: how a command is to run, on which engine, and the reasoner over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, cast

from hdlog import interrupts
from hdlog.engines.columnar.budget import Budget, parse_size
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.protocol import Engine, F, R, T
from hdlog.ingest.intake import Intake, encode_table
from hdlog.maintenance.trace import Event, Limits, Trace
from hdlog.plan.written import WrittenPlans
from hdlog.program.model import Predicate, Program
from hdlog.program.types import attribute_layout
from hdlog.reading.files import read_splits
from hdlog.reading.splits import Split, size_of
from hdlog.reasoning import Reasoning
from hdlog.store.columnar import EmbeddedGate
from hdlog.store.gate import Gate
from hdlog.store.manifest import RuleFile
from hdlog.store.store import Store
from hdlog.tuning import Tuning

EngineName = Literal["auto", "columnar", "spark", "spark-only"]
"""`spark` keeps what is small in the process, `spark-only` does not."""
_BYTES_A_FACT = 120
"""Of the embedded engine, with what is derived, terms and indexes."""
_HEAP = 0.5
"""The share of the memory for Java's heap: as much again is for its own needs, for Python's workers, and for what is near."""
_NEAR = 0.25
"""The share of the memory that the mixed engine may use in the process."""


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
    note_every: float = 60.0
    """seconds after which a materialisation on Spark writes what is finished"""
    spark_settings: dict[str, str] = field(default_factory=dict)
    """of a session that is to be started"""

    @property
    def budget(self) -> Budget:
        return Budget() if self.memory is None else Budget(parse_size(int(self.memory * 1e9)))

    @property
    def near_budget(self) -> Budget:
        """What the process may use where Spark has the rest."""
        return Budget(int(_NEAR * self.budget.memory))

    def session(self) -> Any:
        """Spark, started when first asked for."""
        if self.spark is None:
            self.say("starting Spark")
            from hdlog.engines.spark.session import page_of, start_session

            memory = f"{max(1, int(self.memory * _HEAP))}g" if self.memory else None
            self.spark = start_session(self.master, memory, self.spark_settings)
            page = page_of(self.spark)
            if page is not None:
                self.say(f"Spark shows its jobs at {page}")
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
        self.store, self.settings = store, settings
        self.engine, self.gate = engine, gate
        self.engine_name, self.why = chosen
        trace = Trace(Limits(settings.max_rounds, settings.max_facts), settings.tell)
        self.reasoner = Reasoning(engine, trace, settings.tuning)
        self._planning = self.reasoner.driver.planning
        self._plans: WrittenPlans | None = None
        """those that the store has"""
        if store.is_new:
            self.reasoner.add_program(program)
        else:
            store.check_files()
            known = gate.plans()
            self.reasoner.restore(program, gate, known)
            self._plans = None if known is None else self._planning.list_plans()

    def read(
        self, splits: Sequence[Split], program: Program, frames: Sequence[tuple[str, Any]]
    ) -> tuple[dict[Predicate, F], Intake]:
        """The facts of files and of DataFrames, for the engine, and what is told of them."""
        self.settings.say("reading facts")
        intake, layout, lenient = Intake(program), attribute_layout(program), self.settings.lenient
        if self.engine_name != "columnar" and size_of(splits) > self.settings.tuning.numbers.small_input:
            from hdlog.ingest.pipeline import OnSpark, ingest

            facts = ingest(cast(OnSpark[F], self.engine), splits, intake, layout, lenient)
        else:
            chunks = read_splits(splits, layout, lenient, self.engine.share_terms())
            facts = self.engine.encode_chunks(intake.watch(chunks))
        for name, frame in frames:
            for predicate, more in encode_table(self.engine, program, name, frame).items():
                facts[predicate] = self.engine.union(facts[predicate], more) if predicate in facts else more
                intake.add(predicate, self.engine.count(more))
        return facts, intake

    def load(self, splits: Sequence[Split], frames: Sequence[tuple[str, Any]]) -> Intake:
        """Facts of files and DataFrames into a new store, without reasoning."""
        if (
            self.engine_name != "columnar"
            and not frames
            and size_of(splits) > self.settings.tuning.numbers.small_input
        ):
            from hdlog.ingest.pipeline import OnSpark, Parsed

            intake = Intake(Program())
            far, gate = cast(OnSpark[F], self.engine).far, cast(Any, self.gate)
            parsed = Parsed(far, splits, intake, {}, self.settings.lenient)
            parsed.note_terms()
            changes = gate.load(parsed)
            self.store.commit(changes["counts"]["facts"], **changes)
            parsed.release()
            return intake
        facts, intake = self.read(splits, Program(), frames)
        self.reasoner.before_commit = lambda _: self.commit(added=len(self.reasoner))
        self.reasoner.materialise(facts)
        return intake

    def commit(self, added: int = 0, removed: int = 0, **more: Any) -> None:
        """Write what has changed, as the next version of the store; `rules` are names, dialects and texts."""
        self.settings.say("writing")
        plans = self._planning.list_plans() if self._planning.have_changed_since(self._plans) else None
        changes = self.gate.save(self.reasoner.stored_tables(), self.reasoner.stored_views(), plans)
        if "rules" in more:
            more["rules"] = self._write_rules(more["rules"])
        with interrupts.Guard():
            self.store.commit(added, removed, **{**changes, **more})
            self.gate.settle()
            self._plans = plans or self._plans

    def _write_rules(self, rules: Sequence[tuple[str, str, str]]) -> tuple[RuleFile, ...]:
        return tuple(
            RuleFile(name, dialect, self.store.write_bytes("rules", "txt", text.encode()))
            for name, dialect, text in rules
        )


AnyWork = Work[Any, Any, Any]
"""On the engine that was chosen."""


def begin_work(
    store: Store, program: Program, settings: Settings, facts: int, on_spark: bool = False
) -> AnyWork:
    """On the engine that is asked for, or suits so many facts and where they are."""
    chosen = choose_engine(settings, facts, on_spark)
    if chosen[0] == "spark-only":
        from hdlog.engines.spark.engine import SparkEngine
        from hdlog.store.spark import SparkGate

        far = SparkEngine(settings.session(), numbers=settings.tuning.numbers)
        far.say = settings.say
        return Work(store, program, settings, far, SparkGate(store, far), chosen)
    if chosen[0] == "spark":
        from hdlog.engines.mixed.engine import MixedEngine
        from hdlog.store.mixed import MixedGate

        mixed = MixedEngine(settings.session(), numbers=settings.tuning.numbers, budget=settings.near_budget)
        mixed.far.say = settings.say
        return Work(store, program, settings, mixed, MixedGate(store, mixed), chosen)
    embedded = ColumnarEngine(settings.budget, numbers=settings.tuning.numbers)
    return Work(store, program, settings, embedded, EmbeddedGate(store, embedded), chosen)


def choose_engine(settings: Settings, facts: int, on_spark: bool = False) -> tuple[str, str]:
    """Which engine, and why."""
    if settings.engine != "auto":
        return settings.engine, "as asked for"
    if on_spark:
        return "spark", "there are tables of Spark among the data"
    need, room = facts * _BYTES_A_FACT, settings.budget.memory
    if need < room:
        return "columnar", f"{facts:,} facts need about {need / 1e9:.1f} of {room / 1e9:.1f} GB"
    return (
        "spark",
        f"{facts:,} facts would need about {need / 1e9:.1f} GB in process, and {room / 1e9:.1f} are allowed",
    )
