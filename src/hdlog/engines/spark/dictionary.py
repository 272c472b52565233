"""Terms and their 64-bit ids: an id follows from its term, so nobody has to ask for it. Texts are in frames, for whoever wants to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.engines.protocol import RunAgain
from hdlog.engines.spark.frames import Frame, Keeper, union
from hdlog.errors import ClashingTerms, SparkFailed, TermTooLarge
from hdlog.program.ntriples import MOST_CHARACTERS, SKOLEM, SkolemPart, is_typed, skolem_parts, term_text
from hdlog.program.terms import Constant
from hdlog.reading import identifiers
from hdlog.reading.identifiers import (
    INTEGER_LIMIT,
    INTEGER_MARK,
    INTEGERS,
    SKOLEMS,
    StoreIds,
    inline_integer,
    integer_text,
    next_id,
    skolem_ids,
    text_ids,
)

_ID_TEXT = "id BIGINT, text STRING"
_TERMS = pa.schema([("id", pa.int64()), ("text", pa.string())])
_SKOLEMS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("args", pa.list_(pa.int64()))])
_TYPED = "startswith(text, '\"') AND NOT endswith(text, '\"')"
_INTEGER_SQL = f"concat('\"', id - {INTEGERS}L, '{INTEGER_MARK}')"
_MARKED = f"startswith(text, '{SKOLEM}')"
_TOKENS = f"if(id >= {SKOLEMS}L, substring(text, {len(SKOLEM) + 1}), concat('t', lower(hex(text))))"
"""What the text of an argument adds to that of a Skolem term."""
_WORTH_CHECKING = 1_000_000
"""Terms among which the chance that two texts share a hash of 62 bits is one in ten million."""


class Dictionary:
    """What is known of terms with a text. A term may be noted several times; what is looked up is there once."""

    def __init__(self, keeper: Keeper, unsent: int) -> None:
        """So many new terms wait in the driver before they become a frame."""
        self._keeper = keeper
        self._most_unsent = unsent
        self._stored: Frame | None = None
        self._parts: list[Frame] = []
        self._fresh: list[Frame] = []
        """terms that came in frames, before and since somebody looked whether two texts share an id"""
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._unsent: dict[int, str] = {}
        self._sent: tuple[int, Frame | None] = (0, None)
        self._skolems: Frame | None = None
        self._stored_skolems: Frame | None = None
        self._new_skolems: list[Frame] = []
        self._pending: list[Frame] = []
        self._unchecked = 0
        """how many of them are fresh"""
        self.before_reading: Callable[[], None] = lambda: None
        """has all terms told that somebody else knows"""
        self.clashes: dict[str, int] = {}
        """texts that have other ids than their hashes, because another text has these"""
        self.typed = False
        """whether a text may be a literal with a datatype or language, equal to others by value"""

    def rest_on(
        self, terms: Frame | None, skolems: Frame | None, clashes: Mapping[str, int], typed: bool
    ) -> None:
        """The terms that a store has."""
        self._stored = terms
        self._skolems = self._stored_skolems = skolems
        self.clashes = dict(clashes)
        self.typed = typed

    # From texts to ids.

    def encode(self, texts: Iterable[str] | pa.Array) -> StoreIds:
        text_list = texts.to_pylist() if isinstance(texts, pa.Array) else list(texts)
        wanted = [text for text in dict.fromkeys(text_list) if text not in self._ids]
        skolems = {text: parts for text in wanted if (parts := skolem_parts(text)) is not None}
        self._learn([text for text in wanted if text not in skolems])
        for text, parts in skolems.items():
            self._ids[text] = self._encode_skolem(text, parts)
        return np.array([self._ids[text] for text in text_list], np.int64)

    def _learn(self, texts: Sequence[str]) -> None:
        numbers = {text: inline_integer(text) for text in texts}
        self._ids |= {text: number for text, number in numbers.items() if number is not None}
        named = [text for text, number in numbers.items() if number is None]
        ids = text_ids(pa.array(named, pa.string()), self.clashes).tolist()
        for text, identifier in zip(named, ids, strict=True):
            while self._texts.get(identifier, text) != text:
                identifier = self.clashes[text] = next_id(identifier)
            self._ids[text] = identifier
            self._texts[identifier] = text
            self._unsent[identifier] = text
            self.typed = self.typed or is_typed(text)

    def _encode_skolem(self, text: str, parts: Sequence[SkolemPart]) -> int:
        made: list[int] = []
        rows: list[tuple[int, str, list[int]]] = []
        for name, argument_parts in parts:
            arguments = [made[a] if isinstance(a, int) else int(self.encode([a])[0]) for a in argument_parts]
            made.append(int(skolem_ids(name, [np.array([a]) for a in arguments], 1)[0]))
            rows.append((made[-1], name, arguments))
        if made[-1] not in self._texts:
            self._texts[made[-1]] = text
            ids, names, lists = zip(*rows, strict=True)
            table = pa.table({"id": ids, "name": names, "args": pa.array(lists, pa.list_(pa.int64()))})
            self._pending.append(self._frame(table, "id BIGINT, name STRING, args ARRAY<BIGINT>"))
        return made[-1]

    def encode_terms(self, terms: Iterable[Constant]) -> StoreIds:
        return self.encode(map(term_text, terms))

    def encode_integers(self, values: NDArray[np.int64]) -> StoreIds:
        if len(values) and (values.min() <= -INTEGER_LIMIT or values.max() >= INTEGER_LIMIT):
            return self.encode(f'"{v}{INTEGER_MARK}' for v in values.tolist())
        return values.astype(np.int64) + np.int64(INTEGERS)

    def id_sql(self, text: str) -> str:
        """The id of a text, as an expression of Spark."""
        hashed = f"xxhash64({text}) & {identifiers.HASHED}L"
        if not self.clashes:
            return f"({hashed})"
        cases = " ".join(f"WHEN {text} = {sql_text(t)} THEN {i}L" for t, i in self.clashes.items())
        return f"(CASE {cases} ELSE {hashed} END)"

    def note(self, terms: Frame) -> None:
        """Remember the texts of a frame, columns `id` and `text`, which is kept; Skolem terms among them have no id yet."""
        skolems = terms.where(f"text IS NOT NULL AND {_MARKED}").distinct("text")
        rest = terms.where(f"text IS NOT NULL AND NOT {_MARKED}").distinct("id", "text")
        kept, figures = self._keeper.keep(
            union([rest, skolems.select("CAST(NULL AS BIGINT) AS id", "text")]),
            {"typed": f"count_if({_TYPED})", "skolems": "count_if(id IS NULL)"},
        )
        if figures["skolems"]:
            self.encode(self._keeper.collect(kept.where("id IS NULL")).column("text").to_pylist())
            kept = kept.where("id IS NOT NULL")
        if figures["rows"] > figures["skolems"]:
            self.add(kept, figures["rows"], figures["typed"] > 0)

    def add(self, terms: Frame, rows: int, typed: bool) -> None:
        """Terms with their ids, kept."""
        self._fresh.append(terms)
        self._unchecked += rows
        self.typed = self.typed or typed
        for parts in (self._parts, self._fresh):
            if len(parts) > 8:
                merged, _ = self._keeper.keep(union(parts).distinct("id", "text"), {})
                parts[:] = [merged]

    def add_table(self, terms: pa.Table) -> None:
        """Terms of the driver: ids and texts."""
        self.add(self._frame(terms, _ID_TEXT), terms.num_rows, self.typed)

    def add_skolem_table(self, skolems: pa.Table) -> None:
        """Skolem terms of the driver: ids, names, and lists of arguments."""
        self._pending.append(self._frame(skolems, "id BIGINT, name STRING, args ARRAY<BIGINT>"))

    def with_ids(self, frame: Frame) -> Frame:
        """A frame of values that workers found, kept, with their ids as `value`; Skolem terms have none by themselves."""
        self.note(frame.select(f"{self.id_sql('text')} AS id", "text"))
        made = frame.select("*", f"coalesce(known, {self.id_sql('text')}) AS value")
        marked = frame.where(_MARKED).distinct("text")
        texts = self._keeper.collect(marked).column("text").to_pylist()
        if not texts:
            return made
        table = pa.table({"text": pa.array(texts, pa.string()), "own": pa.array(self.encode(texts))})
        own = self._frame(table, "text STRING, own BIGINT")
        joined = made.join(own.with_hint("BROADCAST"), ["text"], "left")
        return joined.select(*(n for n in made.names if n != "value"), "coalesce(own, value) AS value")

    # From ids to texts.

    def frame(self) -> Frame | None:
        """All terms that have a text, some of them several times: id and text."""
        parts = [*([self._stored] if self._stored is not None else []), *self._new_parts()]
        return union(parts) if parts else None

    def _new_parts(self) -> list[Frame]:
        self.before_reading()
        if len(self._unsent) > self._most_unsent:
            self.add(self._keeper.keep(self._driver_part(), {})[0], len(self._unsent), self.typed)
            self._unsent = {}
        return [*self._parts, *self._fresh, *([self._driver_part()] if self._unsent else [])]

    def _driver_part(self) -> Frame:
        if self._sent[0] != len(self._unsent) or self._sent[1] is None:
            ids, texts = list(self._unsent), list(self._unsent.values())
            table = pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array(texts, pa.string())})
            self._sent = (len(self._unsent), self._frame(table, _ID_TEXT))
        assert self._sent[1] is not None
        return self._sent[1]

    def _frame(self, table: pa.Table, schema: str) -> Frame:
        return self._keeper.frame(self._keeper.spark.createDataFrame(table, schema=schema), table.num_rows)

    def texts_of(self, ids: Frame) -> Frame:
        """Distinct ids with their texts: columns `id` and `text`."""
        parts = [ids.where("id < 0").select("id", f"{_INTEGER_SQL} AS text")]
        known = self.frame()
        if known is not None:
            found = known.join(ids, ["id"], "left_semi")
            parts.append(found.distinct("id", "text") if self._new_parts() else found)
        self.flush()
        if self._skolems is not None:
            skolems, figures = self._keeper.keep(self._skolems.join(ids, ["id"], "left_semi"), {})
            if figures["rows"]:
                parts.append(self._spell_out(skolems))
        return union(parts)

    def _spell_out(self, skolems: Frame) -> Frame:
        """Skolem terms, id, name and arguments, with their texts."""
        places = Frame(
            f"SELECT id AS skolem, name, posexplode_outer(args) AS (place, id) FROM ({skolems.sql})",
            ("skolem", "name", "place", "id"),
            skolems.uses,
        )
        arguments = places.select("id").where("id IS NOT NULL").distinct("id")
        spelt = places.join(self.texts_of(arguments), ["id"], "left")
        tokens = spelt.select("skolem", "name", "place", f"{_TOKENS} AS token")
        whole = tokens.totals(
            ["skolem", "name"],
            "count(token) AS n",
            "array_sort(collect_list(named_struct('place', place, 'token', token))) AS tokens",
        )
        first = f"concat('{SKOLEM}', n, '-', lower(hex(name)))"
        rest = "filter(transform(tokens, t -> t.token), t -> t IS NOT NULL)"
        texts = whole.select("skolem AS id", f"array_join(concat(array({first}), {rest}), '.') AS text")
        kept, figures = self._keeper.keep(texts, {"longest": "max(length(text))"})
        if figures["longest"] > MOST_CHARACTERS:
            raise TermTooLarge(MOST_CHARACTERS)
        return kept

    def fetch_texts(self, ids: StoreIds) -> tuple[StoreIds, pa.Array]:
        """The texts of terms, which have one each, in any order."""
        table = self._keeper.collect(self.texts_of(self._frame(pa.table({"id": ids}), "id BIGINT")))
        return table["id"].to_numpy(), table["text"].combine_chunks()

    def text(self, identifier: int) -> str:
        return self.texts(np.array([identifier]))[0]

    def texts(self, ids: StoreIds) -> list[str]:
        numbers = ids.tolist()
        unknown = {i for i in numbers if i >= 0 and i not in self._texts}
        if unknown:
            found, texts = self.fetch_texts(np.array(sorted(unknown), np.int64))
            self._texts |= dict(zip(found.tolist(), texts.to_pylist(), strict=True))
        return [integer_text(i) if i < 0 else self._texts[i] for i in numbers]

    def text_array(self, ids: StoreIds) -> pa.Array:
        return pa.array(self.texts(ids), pa.large_string())

    def ids_of_shared(self, known: int) -> StoreIds:
        raise AssertionError("this engine shares no table")

    def translate(self, numbers: NDArray[np.int64], ids: StoreIds) -> StoreIds:
        return np.where(numbers < 0, numbers, ids[np.maximum(numbers, 0)] if len(ids) else 0)

    def double_values(self, ids: StoreIds) -> NDArray[np.float64] | None:
        return None  # they have texts

    def integer_values(self, ids: StoreIds) -> NDArray[np.int64] | None:
        return ids - np.int64(INTEGERS) if (ids < 0).all() else None

    # Skolem terms.

    def note_skolems(self, name: str, made: Frame, identifier: str, arguments: Sequence[str]) -> None:
        """Remember what a column of Skolem terms was made of; `made` is kept."""
        args = f"array({', '.join(arguments)})" if arguments else "CAST(array() AS ARRAY<BIGINT>)"
        self._pending.append(
            made.select(f"{identifier} AS id", f"{sql_text(name)} AS name", f"{args} AS args")
        )

    def add_skolems(self, skolems: Frame) -> None:
        """Skolem terms, kept: id, name, args."""
        self._pending.append(skolems)

    def finish(self) -> None:
        """Before an update, and after it."""
        if self._pending:
            self.flush()

    def roll_back(self) -> None:
        """Forget the Skolem terms that an update made: two of them may have the same id."""
        self._pending = []

    def flush(self) -> None:
        """Skolem terms noted so far into the dictionary, checking that no two share an id."""
        self.before_reading()
        if not self._pending:
            return
        new, _ = self._keeper.keep(union(self._pending).distinct("id", "name", "args"), {})
        parts = [*([self._skolems] if self._skolems is not None else []), new]
        one = union(parts).totals(
            ["id"],
            "first(name) AS name",
            "first(args) AS args",
            "min(struct(name, args)) = max(struct(name, args)) AS one",
        )
        kept, figures = self._keeper.keep(one, {"clashes": "count_if(NOT one)"}, "Skolem terms")
        if figures["clashes"]:
            raise SparkFailed(
                "two Skolem terms have the same hash; give one SKOLEM another name and run again"
            )
        self._skolems, self._pending = kept.select("id", "name", "args"), []
        self._new_skolems.append(new)

    # To a store.

    @property
    def has_new(self) -> bool:
        """Whether there is anything that a store may not have."""
        return bool(self._parts or self._fresh or self._unsent or self._pending or self._new_skolems)

    def find_stored(self, ids: StoreIds) -> pa.Table:
        """Those of some terms that a store has, with their texts."""
        return self._find(self._stored, ids, _TERMS)

    def find_stored_skolems(self, ids: StoreIds) -> pa.Table:
        """Likewise Skolem terms, with names and arguments."""
        return self._find(self._stored_skolems, ids, _SKOLEMS)

    def _find(self, stored: Frame | None, ids: StoreIds, schema: pa.Schema) -> pa.Table:
        if stored is None or not len(ids):
            return schema.empty_table()
        wanted = self._frame(pa.table({"id": pa.array(ids)}), "id BIGINT").with_hint("BROADCAST")
        return (
            self._keeper.collect(stored.join(wanted, ["id"], "left_semi")).select(schema.names).cast(schema)
        )

    def check_if_many(self) -> None:
        """Look for texts that share a hash where there are so many that it is not out of the question."""
        if self._unchecked > _WORTH_CHECKING:
            self.check()

    def check(self) -> None:
        """Find new texts that share a hash with others: they get other ids, and the update is run again with these.

        Those that the driver has encoded are in facts already; whoever gave these has to give them again.
        """
        self._unchecked = 0
        self.before_reading()
        driver = [self._driver_part().select("id", "text", "2 AS age")] if self._unsent else []
        fresh = [f.select("id", "text", "3 AS age") for f in self._fresh]
        if not fresh and not driver:
            return
        ids = union([*fresh, *driver]).distinct("id")
        before = [*([self._stored] if self._stored is not None else []), *self._parts]
        known = [f.join(ids, ["id"], "left_semi").select("id", "text", "1 AS age") for f in before]
        each = union([*fresh, *driver, *known]).totals(["id", "text"], "min(age) AS age")
        # Of several texts the oldest keeps the id.
        listed = each.totals(["id"], "array_sort(collect_list(struct(age, text))) AS texts")
        clashes = self._keeper.collect(listed.where("size(texts) > 1"), "terms with the same hash")
        is_given = False
        for identifier, texts in zip(clashes["id"].to_pylist(), clashes["texts"].to_pylist(), strict=True):
            for entry in texts[1:]:
                self.clashes[entry["text"]] = identifier = next_id(identifier)
                is_given = is_given or entry["age"] < 3
        if is_given:
            raise ClashingTerms
        if clashes.num_rows:
            self._fresh = []
            raise RunAgain
        self._parts += self._fresh
        self._fresh = []

    def new_terms(self) -> Frame | None:
        """The terms that the store has not got yet, each once, if there are any."""
        parts = self._new_parts()
        if not parts:
            return None
        new = union(parts).distinct("id", "text")
        return new if self._stored is None else new.join(self._stored.select("id"), ["id"], "left_anti")

    def new_skolems(self) -> Frame | None:
        """Likewise Skolem terms."""
        self.flush()
        if not self._new_skolems:
            return None
        new, stored = union(self._new_skolems).distinct("id", "name", "args"), self._stored_skolems
        return new if stored is None else new.join(stored.select("id"), ["id"], "left_anti")

    def settle(self, terms: Frame | None, skolems: Frame | None) -> None:
        """The store has all terms now."""
        self._stored = terms
        self._stored_skolems = skolems
        self._skolems = skolems if skolems is not None else self._skolems
        self._parts, self._fresh, self._unsent, self._new_skolems = [], [], {}, []
        self._unchecked = 0


def sql_text(text: str) -> str:
    """A string in SQL, whatever is in it."""
    return f"CAST(unhex('{text.encode().hex()}') AS STRING)"
