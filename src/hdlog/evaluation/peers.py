"""Other engines in the same run: `python -m hdlog.evaluation.peers '{...}'` prints a JSON object, as a cell does."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hdlog.evaluation.cell import columns, memory
from hdlog.evaluation.rule_sets import rules
from hdlog.pipeline.store import open_store

PEERS = ("duckdb",)


def peer_is_there(name: str) -> bool:
    return find_spec(name) is not None


def main() -> None:
    asked = json.loads(sys.argv[1])
    store = open_store(Path(asked["store"]))
    from hdlog.evaluation.duck import run

    tables = {f.predicate: columns(store, f.predicate) for f in store.manifest.facts}
    seconds, facts = run(asked["benchmark"], rules(asked["benchmark"]), tables)
    found: dict[str, Any] = {"status": "ok", "seconds": seconds, "facts": facts, "peak": memory("VmHWM")}
    found |= {"static": memory("VmRSS"), "given": sum(f.rows for f in store.manifest.facts)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
