"""The languages that rules are written in."""

from __future__ import annotations

from typing import Literal

Dialect = Literal["rdfox", "souffle"]
ENDINGS: dict[str, Dialect] = {".dlog": "rdfox", ".dl": "souffle"}
