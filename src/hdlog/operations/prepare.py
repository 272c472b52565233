"""Everything that a first run would make for this machine, made beforehand: compiled loops and parse tables.

python -m hdlog.operations.prepare
"""

from __future__ import annotations

from hdlog.compiling import compile_known
from hdlog.engines.columnar.kernels import halves, hashing, meeting, merging, searching, sorting
from hdlog.plan import work
from hdlog.reading import hashing as identifying
from hdlog.reading import kernels as reading
from hdlog.text import rdfox, souffle
from hdlog.writing import kernels as writing

MODULES = (halves, hashing, meeting, merging, searching, sorting, work, reading, identifying, writing)
"""that have kernels"""

if __name__ == "__main__":
    for dialect in (rdfox, souffle):
        dialect.grammar()
    print(f"{compile_known()} loops compiled for this machine")
