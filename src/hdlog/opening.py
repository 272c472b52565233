"""A store as a Python user has it: open, with the interface of a reasoner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from hdlog import interrupts
from hdlog.api import Maintained, Shown
from hdlog.dialects import Dialect
from hdlog.engines.decode import FactTable
from hdlog.errors import Inexpressible, Source, UsageError
from hdlog.maintenance.trace import Event
from hdlog.operations.stores import (
    Living,
    begin_living,
    build_store,
    open_for_update,
    rule_changes,
    rule_texts_of,
    without_rules,
)
from hdlog.operations.work import Settings, begin_work
from hdlog.places import Place, Remote, place
from hdlog.program.model import Program
from hdlog.reading.objects import FactInput
from hdlog.reasoning import Update
from hdlog.store.store import MANIFEST, open_for_reading
from hdlog.text import RuleText, read_texts, rule_texts
from hdlog.text.write import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OpenStore(Maintained[Shown]):
    """A store that is open. Every change is in it, on disk, when the call returns; or, after any error, no part of it is.

    One process at a time may change a store. Others read it, each the version that it opened.
    """

    def __init__(self, folder: Place, settings: Settings, version: int | None, read_only: bool) -> None:
        self.folder = folder
        self.read_only = read_only
        self._settings = settings
        self._more: dict[str, Any] = {}
        """what the next commit says besides facts"""
        with ExitStack() as opened:
            if read_only:
                living = begin_living(opened.enter_context(open_for_reading(folder, version)), settings)
            else:
                living = opened.enter_context(open_for_update(folder, settings))
            self._living: Living = living
            self._opened = opened.pop_all()
        super().__init__(living.work.reasoner)
        living.work.reasoner.before_commit = self._commit

    def close(self) -> None:
        """Let others change the store, and give back memory."""
        super().close()
        self._opened.close()

    @property
    def version(self) -> int:
        return self._living.work.store.manifest.version

    def at(self, version: int) -> OpenStore[Shown]:
        """An older version that is kept, to be read."""
        return OpenStore(self.folder, self._settings, version, read_only=True)

    def _commit(self, changes: Sequence[Update]) -> None:
        counts = [change.count() for change in changes]
        came, went = (sum(several) for several in zip(*counts, strict=True)) if counts else (0, 0)
        self._living.work.commit(came, went, **self._more)

    def _check_that_it_may_change(self) -> None:
        if self.read_only:
            raise UsageError(f"{self.folder} is open for reading; hdlog.open without read_only changes it")

    # Changing.

    def update(self, add: FactInput = (), delete: FactInput = ()) -> Update:
        """Assert and retract facts; what that changed, exactly, which is on disk then."""
        self._check_that_it_may_change()
        return super().update(add, delete)

    def sparql_update(self, update: str) -> Update:
        """SPARQL 1.1 Update: changes what is asserted; what that changed, exactly, which is on disk then."""
        self._check_that_it_may_change()
        return super().sparql_update(update)

    def add_rules(self, program: Program | str | Path, dialect: Dialect | None = None) -> Update:
        """Add rules, and the facts among them; what that changed."""
        more = _text_of(program, dialect)
        return self._change_rules(lambda texts: [*texts, *(t for t in more if t not in texts)])

    def remove_rules(self, program: Program | str | Path, dialect: Dialect | None = None) -> Update:
        """Remove rules, and the facts among them; all of them must be there, whatever their variables are called."""
        gone = _text_of(program, dialect)
        return self._change_rules(lambda texts: without_rules(texts, gone))

    def _change_rules(self, change: Callable[[list[RuleText]], list[RuleText]]) -> Update:
        self._check_that_it_may_change()
        guard = interrupts.Guard()
        with guard, self._alone():
            before = self._more
            texts = change(self._rule_texts())
            self._more = rule_changes(self._reasoning, texts)
            try:
                update = self._reasoning.change_program(read_texts(texts))
            except BaseException:
                self._more = before
                raise
            if not self._reasoning.is_in_transaction:
                self._more = {}
            return update

    def _rule_texts(self) -> list[RuleText]:
        """Those of the store, or those that the transaction so far has made of them."""
        if "rules" in self._more:
            return [RuleText(Source(name, text), dialect) for name, dialect, text in self._more["rules"]]
        return rule_texts_of(self._living.work.store)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several changes as one: all of them are in the store at the end or, after any error, none.

        >>> with store.transaction():  # doctest: +SKIP
        ...     store.update(add={"edge": [(1, 2)]})
        ...     store.add_rules("path[?x, ?y] :- edge[?x, ?y] .")
        """
        self._check_that_it_may_change()
        with self._lock:
            try:
                with self._reasoning.transaction():
                    yield
            finally:
                self._more = {}

    def __repr__(self) -> str:
        how = ", for reading" if self.read_only else ""
        return f"<store {self.folder}, version {self.version}{how}: {len(self.program.rules):,} rules, {len(self):,} facts>"


def _text_of(program: Program | str | Path, dialect: Dialect | None) -> list[RuleText]:
    """Rules as a store keeps them."""
    if isinstance(program, Path):
        return rule_texts([program], dialect)
    if isinstance(program, Program):
        for word in ("rdfox", "souffle"):
            try:
                return [RuleText(Source("rules", write(program, word)), word)]
            except Inexpressible:
                continue
        raise UsageError("these rules can be written in neither dialect; give their text")
    if not isinstance(program, str):
        raise UsageError(f"a program is a text, a Path or a Program, not {type(program).__name__}")
    return [RuleText(Source("rules", program), dialect or "rdfox")]


@overload
def open_store(
    folder: str | Place,
    *,
    engine: Literal["columnar"] = "columnar",
    version: int | None = None,
    read_only: bool = False,
    create: bool = False,
    memory: float | None = None,
    max_rounds: int | None = None,
    max_facts: int | None = None,
    progress: Callable[[Event], None] | None = None,
) -> OpenStore[FactTable]: ...


@overload
def open_store(
    folder: str | Place,
    *,
    engine: Literal["spark", "spark-only"],
    spark: Any = None,
    version: int | None = None,
    read_only: bool = False,
    create: bool = False,
    memory: float | None = None,
    max_rounds: int | None = None,
    max_facts: int | None = None,
    progress: Callable[[Event], None] | None = None,
) -> OpenStore[DataFrame]: ...


def open_store(
    folder: str | Place,
    *,
    engine: Literal["columnar", "spark", "spark-only"] = "columnar",
    spark: Any = None,
    version: int | None = None,
    read_only: bool = False,
    create: bool = False,
    memory: float | None = None,
    max_rounds: int | None = None,
    max_facts: int | None = None,
    progress: Callable[[Event], None] | None = None,
) -> OpenStore[Any]:
    """Open a store, as `hdlog materialise` makes them, with the interface of a `Reasoner`.

    `create` makes an empty one where there is none. `version` is an older one, which can only be read; `read_only` opens the newest
    beside whoever changes it. `memory` is a budget in GB, `spark` a session to use.
    """
    if engine not in ("columnar", "spark", "spark-only"):
        raise UsageError(f"an engine is 'columnar', 'spark' or 'spark-only', not {engine!r}")
    settings = Settings(engine, memory=memory, max_rounds=max_rounds, max_facts=max_facts, spark=spark)
    if progress is not None:
        settings.tell = progress
    if not isinstance(folder, str | Path | Remote):
        raise UsageError(f"a store is named by its folder, not by {type(folder).__name__}")
    where = place(folder)
    if create and not (where / MANIFEST).exists():
        with build_store(where, overwrite=False) as store:
            begin_work(store, Program(), settings, 0).commit(rules=[], materialised=True)
    return OpenStore(where, settings, version, read_only or version is not None)
