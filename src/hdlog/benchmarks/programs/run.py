"""The corpus: every program at two sizes by every method, in processes of their own, as a table of seconds, memory and ratios."""

from __future__ import annotations

import re

from hdlog.benchmarks.programs.program import Program, Tables
from hdlog.program.model import Program as Rules
from hdlog.text import parse

_ATOM = re.compile(r"([A-Za-z_]\w*)\(([^()]*)\)")


def as_program(program: Program, tables: Tables) -> Rules:
    """The rules with a declaration for each predicate."""
    arities = {name: len(columns) for name, columns in tables.items()}
    for name, terms in _ATOM.findall(program.rules):
        arities.setdefault(name, terms.count(",") + 1)
    declared = [f".decl {n}({', '.join(f'c{i}: number' for i in range(a))})" for n, a in arities.items()]
    return parse("\n".join([*declared, program.rules]), "souffle", program.name)
