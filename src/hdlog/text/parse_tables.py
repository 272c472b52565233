"""The parse tables of a grammar, kept on disk: making them takes longer than most programs take to read.

They are written beside the grammar, where Python keeps its compiled modules, under the name of what they were made from. Where nothing can
be written they are made each time.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

Tables = tuple[dict[str, Any], dict[int, Any]]


def load_tables(grammar: Path) -> Tables:
    """What `Lark._load_from_dict` makes a lexer and parsers of."""
    text = grammar.read_text(encoding="utf-8")
    made_from = f"{lark.__version__}-{sys.version_info}-{text}"
    digest = hashlib.sha256(made_from.encode()).hexdigest()[:16]
    kept = grammar.parent / "__pycache__" / f"{grammar.stem}-{digest}.tables"
    with suppress(OSError, ValueError, EOFError, TypeError):
        data, memo = marshal.loads(kept.read_bytes())
        return data, memo
    tables = _make_tables(text)
    with suppress(OSError):
        _write(kept, marshal.dumps(tables))
    return tables


def _make_tables(text: str) -> Tables:
    made = Lark(text, parser="lalr", lexer="basic", start="chunk", maybe_placeholders=True)
    data, memo = made.memo_serialize([TerminalDef, Rule])
    return data, memo


def _write(path: Path, content: bytes) -> None:
    """In one step: another process may be reading."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)
