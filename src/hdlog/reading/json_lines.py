"""JSON lines into facts: an object a line, which names its predicate or is a row of the file's."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import numpy as np

from hdlog.errors import InputError
from hdlog.program.model import Predicate
from hdlog.reading.chunks import Reading, gather
from hdlog.reading.kernels import Places
from hdlog.reading.splits import Split, blocks, open_split
from hdlog.reading.values import BAD, object_ids

_decoder: Any = json.JSONDecoder()
_VALUES = {str, int, float, bool}
Facts = tuple[Sequence[str], Sequence[Sequence[Any]]]
"""Names of predicates, and arguments."""


def read_json(reading: Reading) -> None:
    """Read a split of objects: {"predicate": name, "args": [value, ...]}, or values by key.

    Values by key come in the order in which the program declares the keys, or else in that of the file's first object.
    """
    keys = _first_keys(reading.split)
    if keys:
        keys = tuple(keys[i] for i in reading.order(reading.split.table, keys, f"{reading.split.path}: "))
    for start, block in blocks(reading.split):
        lines = block.removesuffix(b"\n").split(b"\n")
        lengths = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
        places = start + np.cumsum(lengths) - lengths
        with _pause_collection():
            try:
                facts = _read_regular(block, keys, reading.split.table)
            except (ValueError, LookupError, TypeError, RecursionError):
                facts, places = _read_one_by_one(lines, places, keys, reading)
            _add(facts, places, reading)


@contextmanager
def _pause_collection() -> Iterator[None]:
    """Have Python's garbage collector wait: it takes four times as long as the parser, and finds nothing in JSON."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _first_keys(split: Split) -> tuple[str, ...]:
    """The keys of the first object of a file, unless it names its predicate."""
    with open_split(split) as stream:
        for line in iter(stream.readline, b""):
            try:
                first = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(first, dict):
                return () if _names_its_predicate(first) else tuple(first)
    return ()


def _names_its_predicate(entry: dict[str, Any]) -> bool:
    return "predicate" in entry and "args" in entry


def _read_regular(block: bytes, keys: Sequence[str], name: str) -> Facts:
    """The facts of lines that are all well-formed and of one kind; any other line raises some exception."""
    lines = block.decode().removesuffix("\n").split("\n")
    scanned = list(map(_decoder.scan_once, lines, repeat(0)))
    _require(list(map(itemgetter(1), scanned)) == list(map(len, lines)))
    objects = list(map(itemgetter(0), scanned))
    if keys:
        _require(set(map(len, objects)) == {len(keys)})
        names: Sequence[str] = [name] * len(objects)
        arguments: Sequence[Sequence[Any]] = list(
            zip(*(map(itemgetter(k), objects) for k in keys), strict=True)
        )
    else:
        names, arguments = zip(*map(itemgetter("predicate", "args"), objects), strict=True)
        _require(set(map(type, names)) == {str} and set(map(type, arguments)) == {list})
    _require(set(map(type, objects)) == {dict})
    _require(set(map(type, chain.from_iterable(arguments))) <= _VALUES)
    return names, arguments


def _require(claim: bool) -> None:
    if not claim:
        raise ValueError


def _read_one_by_one(
    lines: Sequence[bytes], places: Places, keys: Sequence[str], reading: Reading
) -> tuple[Facts, Places]:
    names, arguments, kept = [], [], []
    for line, place in zip(lines, places.tolist(), strict=True):
        if line.strip():
            try:
                name, values = _fact(line, keys, reading.split.table)
            except ValueError as error:
                reading.refuse(_line(reading, place), str(error))
                continue
            names.append(name)
            arguments.append(values)
            kept.append(place)
    return (names, arguments), np.array(kept, np.int64)


def _fact(line: bytes, keys: Sequence[str], name: str) -> tuple[str, Sequence[Any]]:
    """The fact of a line, or a ValueError that says what is wrong with it."""
    try:
        entry = json.loads(line)
    except RecursionError:
        raise ValueError("values within values cannot be part of a fact") from None
    if not isinstance(entry, dict):
        raise ValueError(f"an object is expected, not {_spell(entry)}")
    if _names_its_predicate(entry):
        name, values = entry["predicate"], entry["args"]
        if not isinstance(name, str) or not isinstance(values, list):
            raise ValueError('"predicate" is a string and "args" a list')
    elif entry.keys() == set(keys):
        values = [entry[key] for key in keys]
    else:
        expected = f"{', '.join(keys)}, as in the first object" if keys else "predicate, args"
        raise ValueError(f"the keys are {', '.join(entry)}, not {expected}")
    for value in values:
        if type(value) not in _VALUES:
            raise ValueError(f"{_spell(value)} is not a value a fact can have")
    return name, values


def _spell(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 40 else f"{text[:40]}..."


def _line(reading: Reading, place: int) -> Callable[[], int]:
    return lambda: reading.lines.of(place)


def _add(facts: Facts, places: Places, reading: Reading) -> None:
    names, arguments = facts
    kinds = list(zip(names, map(len, arguments), strict=True))
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    rows = np.fromiter(arguments, np.dtype(object), len(kinds))
    keys = np.fromiter(map(numbers.__getitem__, kinds), np.int64, len(kinds))
    predicates = [Predicate(*kind) for kind in numbers]
    for number, (chosen,) in gather(keys, np.arange(len(keys))):
        _add_rows(predicates[number], rows[chosen].tolist(), places[chosen], reading)


def _add_rows(predicate: Predicate, rows: Sequence[Sequence[Any]], places: Places, reading: Reading) -> None:
    try:
        types = reading.types(predicate, "")
    except InputError as error:
        for place in places.tolist():
            reading.refuse(_line(reading, place), str(error))
        return
    columns = [object_ids(reading.terms, c, t) for c, t in zip(zip(*rows, strict=True), types, strict=True)]
    bad = np.logical_or.reduce([c == BAD for c in columns], initial=False) | np.zeros(len(rows), np.bool_)
    why = f"a value is not of its type; those of {predicate.name} are {', '.join(types)}"
    for place in places[bad].tolist():
        reading.refuse(_line(reading, place), why)
    reading.add(predicate, [c[~bad] for c in columns], int(np.count_nonzero(~bad)))
