"""Entities of XML, before a parser replaces them: a few lines may stand for more text than there is memory for."""

from __future__ import annotations

import re

_DECLARED = re.compile(rb"""<!ENTITY\s+([^\s%"'<>]+)\s+(?:"([^"]*)"|'([^']*)')""")
_USED = re.compile(rb"&([^\s#;&]+);")
_TIMES, _AT_LEAST = 10, 16 << 20
"""What entities may add to a document: so many times its length, or so many bytes."""


def find_growth(document: bytes) -> str:
    """What is wrong with the entities that a document declares, if anything is."""
    if b"<!ENTITY" not in document:
        return ""
    values = {name: a or b for name, a, b in _DECLARED.findall(document)}
    lengths: dict[bytes, int] = {}
    for name in values:
        if not _measure(name, values, lengths):
            return f"the entity {name.decode(errors='replace')} is made of itself"
    most = max(_AT_LEAST, _TIMES * len(document))
    total = 0
    for name in _USED.findall(document):
        total += lengths.get(name, 0)
        if total > most:
            return (
                f"its entities stand for more than {most:,} bytes, with {len(document):,} in the document; "
                "replace them before it is read"
            )
    return ""


def _measure(name: bytes, values: dict[bytes, bytes], lengths: dict[bytes, int]) -> bool:
    """Note how long what an entity stands for is, and those it is made of; whether that has an end."""
    waiting, within = [name], set[bytes]()
    while waiting:
        current = waiting[-1]
        if current in lengths:
            waiting.pop()
            continue
        used = [n for n in _USED.findall(values[current]) if n in values]
        missing = [n for n in used if n not in lengths]
        if missing:
            within.add(current)
            if any(n in within for n in missing):
                return False
            waiting += missing
            continue
        lengths[current] = len(values[current]) + sum(lengths[n] for n in used)
        within.discard(current)
        waiting.pop()
    return True
