"""The languages that rules are written in."""

from __future__ import annotations

from typing import Literal

Dialect = Literal["rdfox", "souffle", "owl-rl", "rdfs"]
"""Rules, or an ontology that is translated to rules, of which all or only what RDFS says is taken."""
ENDINGS: dict[str, Dialect] = {".dlog": "rdfox", ".dl": "souffle", ".owl": "owl-rl"}
