"""Other engines in the same run: `python -m hdlog.benchmarks.peers.run '{...}'` prints a JSON object, as a cell does."""

from __future__ import annotations

import json
import resource
import shutil
import sys
from importlib.util import find_spec
from typing import Any

from hdlog.benchmarks.data.rule_sets import rules
from hdlog.benchmarks.data.scale import DATA, generate
from hdlog.benchmarks.paper.cell import OUT_OF_MEMORY, memory
from hdlog.benchmarks.peers.numbers import Numbers

PEERS = ("duckdb", "clingo", "souffle", "souffle-compiled")


def explain_absence(name: str) -> str:
    """Why a peer cannot run here; empty if it can."""
    if name in ("duckdb", "clingo"):
        return "" if find_spec(name) is not None else f"no Python package {name}"
    if shutil.which("souffle") is None:
        return "no souffle on PATH"
    if name == "souffle-compiled" and shutil.which("c++") is None:
        return "souffle is on PATH, but no c++ to compile with"
    return ""


def run(asked: dict[str, Any]) -> dict[str, Any]:
    """The same facts, made once more: as numbers, which is all that these engines have in common."""
    data = generate(DATA[asked["benchmark"]], asked["scale"], asked["seed"], lambda _: None)
    tables, program = data.tables, rules(asked["benchmark"])
    result: dict[str, Any] = {"status": "ok", "given": data.facts}
    match asked["method"]:
        case "duckdb":
            from hdlog.benchmarks.peers import duck

            seconds, facts = duck.run(asked["benchmark"], program, tables)
        case "clingo":
            from hdlog.benchmarks.peers import answer_sets

            seconds, facts = answer_sets.run(Numbers(program, tables))
        case _:
            from hdlog.benchmarks.peers import souffle as souffle_peer

            compiled = asked["method"] == "souffle-compiled"
            return result | souffle_peer.run(Numbers(program, tables), compiled)
    return result | {"seconds": seconds, "facts": facts, "peak": memory("VmHWM"), "static": memory("VmRSS")}


def main() -> None:
    asked = json.loads(sys.argv[1])
    room = int((asked["memory"] + 2) * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (room, room))
    try:
        result = run(asked)
    except Exception as error:
        # Each engine has an exception of its own for this.
        words = ("alloc", "out of memory")
        if not isinstance(error, MemoryError) and not any(w in str(error).lower() for w in words):
            raise
        result = {"status": OUT_OF_MEMORY, "why": str(error)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
