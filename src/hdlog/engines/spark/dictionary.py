"""Terms and their 64-bit ids: texts in frames, what the driver has seen of them in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.engines.spark.frames import Frame, Keeper, union
from hdlog.errors import SparkFailed, TermTooLarge
from hdlog.program.ntriples import MOST_CHARACTERS, SKOLEM, SkolemPart, is_typed, skolem_parts, term_text
from hdlog.program.terms import Constant
from hdlog.reading.identifiers import (
    INTEGER_LIMIT,
    INTEGER_MARK,
    INTEGERS,
    SKOLEMS,
    StoreIds,
    inline_integer,
    integer_text,
    skolem_ids,
)

_ID_TEXT = "id BIGINT, text STRING"
_TYPED = "startswith(text, '\"') AND NOT endswith(text, '\"')"
_INTEGER_SQL = f"concat('\"', id - {INTEGERS}L, '{INTEGER_MARK}')"
_MARKED = f"startswith(text, '{SKOLEM}')"
_TOKENS = f"if(id >= {SKOLEMS}L, substring(text, {len(SKOLEM) + 1}), concat('t', lower(hex(text))))"
"""What the text of an argument adds to that of a Skolem term."""


class Dictionary:
    """Integers and Skolem terms need no place in it; all other terms get the next ids."""

    def __init__(self, keeper: Keeper, unsent: int) -> None:
        """So many new terms wait in the driver before they become a frame."""
        self._keeper = keeper
        self._most_unsent = unsent
        self._parts: list[Frame] = []
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._unsent: list[tuple[int, str]] = []
        self._sent: tuple[int, Frame | None] = (0, None)
        self._skolems: Frame | None = None
        self._pending: list[Frame] = []
        self._flushed = False
        self.next = 0
        self.typed = False
        """whether a text may be a literal with a datatype or language, equal to others by value"""

    def __len__(self) -> int:
        return self.next

    def extend(self, texts: Frame, rows: int, typed: bool) -> None:
        """Terms that a store has, with the ids that come next."""
        self._parts.append(texts)
        self.next += rows
        self.typed = self.typed or typed

    # From texts to ids.

    def encode(self, texts: Iterable[str] | pa.Array) -> StoreIds:
        text_list = texts.to_pylist() if isinstance(texts, pa.Array) else list(texts)
        wanted = [text for text in dict.fromkeys(text_list) if text not in self._ids]
        skolems = {text: parts for text in wanted if (parts := skolem_parts(text)) is not None}
        self._learn(text for text in wanted if text not in skolems)
        for text, parts in skolems.items():
            self._ids[text] = self._encode_skolem(text, parts)
        return np.array([self._ids[text] for text in text_list], np.int64)

    def _learn(self, texts: Iterable[str]) -> None:
        unknown = []
        for text in texts:
            number = inline_integer(text)
            if number is None:
                unknown.append(text)
            else:
                self._ids[text] = number
        if unknown and self._parts:
            self._ids |= self._look_up(unknown)
        for text in unknown:
            if text not in self._ids:
                self._ids[text] = self.next
                self._texts[self.next] = text
                self._unsent.append((self.next, text))
                self.next += 1
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

    def intern(self, texts: Frame) -> None:
        """Give ids to the texts of a frame that have none yet."""
        known = self.frame()
        new = texts.select("text").where("text IS NOT NULL").distinct("text")
        if known is not None:
            new = new.join(known.select("text"), ["text"], "left_anti")
        kept, figures = self._keeper.keep(
            new,
            {"typed": f"count_if({_TYPED})", "skolems": f"count_if({_MARKED})"},
        )
        if figures["skolems"]:
            self.encode(self._keeper.collect(kept.where(_MARKED)).column("text").to_pylist())
            kept = kept.where(f"NOT {_MARKED}")
        count = figures["rows"] - figures["skolems"]
        if count:
            numbered = kept.select(f"{self.next - 1}L + row_number() OVER (ORDER BY text) AS id", "text")
            self._add(self._keeper.keep(numbered, {})[0])
            self.next += count
            self.typed = self.typed or figures["typed"] > 0

    def _add(self, part: Frame) -> None:
        self._parts.append(part)
        if len(self._parts) > 8:
            # The first may be a store's, and large.
            merged, _ = self._keeper.keep(union(self._parts[1:]), {})
            self._parts[1:] = [merged]

    def with_ids(self, frame: Frame) -> Frame:
        """A frame of values that workers found, with their ids as `value`; new texts get some."""
        self.intern(frame)
        known = self.frame()
        if known is None:
            return frame.select("*", "known AS value")
        joined = frame.join(known, ["text"], "left")
        return joined.select("*", "coalesce(known, id) AS value")

    # From ids to texts.

    def frame(self) -> Frame | None:
        """All terms that have a text: id and text."""
        if len(self._unsent) > self._most_unsent:
            self._add(self._keeper.keep(self._driver_part(), {})[0])
            self._unsent = []
        parts = [*self._parts, *([self._driver_part()] if self._unsent else [])]
        return union(parts) if parts else None

    def _driver_part(self) -> Frame:
        if self._sent[0] != self.next or self._sent[1] is None:
            ids, texts = zip(*self._unsent, strict=True)
            table = pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array(texts, pa.string())})
            self._sent = (self.next, self._frame(table, _ID_TEXT))
        assert self._sent[1] is not None
        return self._sent[1]

    def _frame(self, table: pa.Table, schema: str) -> Frame:
        return self._keeper.frame(self._keeper.spark.createDataFrame(table, schema=schema), table.num_rows)

    def texts_of(self, ids: Frame) -> Frame:
        """Distinct ids with their texts: columns `id` and `text`."""
        parts = [ids.where("id < 0").select("id", f"{_INTEGER_SQL} AS text")]
        known = self.frame()
        if known is not None:
            parts.append(known.join(ids, ["id"], "left_semi"))
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

    def text(self, identifier: int) -> str:
        return self.texts(np.array([identifier]))[0]

    def texts(self, ids: StoreIds) -> list[str]:
        numbers = ids.tolist()
        unknown = {i for i in numbers if i >= 0 and i not in self._texts}
        if unknown:
            frame = self._frame(pa.table({"id": pa.array(sorted(unknown), pa.int64())}), "id BIGINT")
            table = self._keeper.collect(self.texts_of(frame))
            self._texts |= dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
        return [integer_text(i) if i < 0 else self._texts[i] for i in numbers]

    def text_array(self, ids: StoreIds) -> pa.Array:
        return pa.array(self.texts(ids), pa.large_string())

    def translate(self, numbers: NDArray[np.int64], ids: StoreIds) -> StoreIds:
        return np.where(numbers < 0, numbers, ids[np.maximum(numbers, 0)] if len(ids) else 0)

    def double_values(self, ids: StoreIds) -> NDArray[np.float64] | None:
        return None  # they have texts

    def integer_values(self, ids: StoreIds) -> NDArray[np.int64] | None:
        return ids - np.int64(INTEGERS) if (ids < 0).all() else None

    def _look_up(self, texts: list[str]) -> dict[str, int]:
        known = self.frame()
        assert known is not None, "there are parts"
        wanted = self._frame(pa.table({"text": pa.array(texts, pa.string())}), "text STRING")
        table = self._keeper.collect(known.join(wanted.with_hint("BROADCAST"), ["text"], "left_semi"))
        self._texts |= dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
        return dict(zip(table["text"].to_pylist(), table["id"].to_pylist(), strict=True))

    # Skolem terms.

    def note_skolems(self, name: str, made: Frame, identifier: str, arguments: Sequence[str]) -> None:
        """Remember what a column of Skolem terms was made of; `made` is kept."""
        args = f"array({', '.join(arguments)})" if arguments else "CAST(array() AS ARRAY<BIGINT>)"
        self._pending.append(
            made.select(f"{identifier} AS id", f"{sql_text(name)} AS name", f"{args} AS args")
        )

    def begin(self) -> None:
        """Before an update."""
        self.flush()

    def roll_back(self) -> None:
        """Forget the Skolem terms that an update made: two of them may have the same id."""
        self._pending = []

    def flush(self) -> None:
        """Skolem terms noted so far into the dictionary, checking that no two share an id."""
        if not self._pending:
            return
        parts = [*([self._skolems] if self._skolems is not None else []), *self._pending]
        one = union(parts).totals(
            ["id"],
            "first(name) AS name",
            "first(args) AS args",
            "min(struct(name, args)) = max(struct(name, args)) AS one",
        )
        kept, figures = self._keeper.keep(one, {"clashes": "count_if(NOT one)"})
        if figures["clashes"]:
            raise SparkFailed(
                "two Skolem terms have the same hash; give one SKOLEM another name and run again"
            )
        self._skolems, self._pending, self._flushed = kept.select("id", "name", "args"), [], True

    def add_skolems(self, frame: Frame) -> None:
        """Skolem terms that a store has."""
        self._skolems = frame.select("id", "name", "args")
        self._flushed = False

    def new_skolems(self) -> Frame | None:
        """All Skolem terms, if there are more than a store had."""
        self.flush()
        return self._skolems if self._flushed else None

    def since(self, start: int) -> Frame | None:
        """The terms with ids from `start` on, if there are any."""
        known = self.frame()
        return known.where(f"id >= {start}") if known is not None and self.next > start else None


def sql_text(text: str) -> str:
    """A string in SQL, whatever is in it."""
    return f"CAST(unhex('{text.encode().hex()}') AS STRING)"
