"""A long run of random programs and updates: `python -m tests.fuzz --programs 50000 --seed 1`."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.properties import test_maintenance as maintenance
from tests.strategies import POSITIVE, Features

KINDS = {
    "positive": POSITIVE,
    "stratified": Features(nested=True),
    "own groups, Skolem terms": Features(correlated=False, skolems=True),
    "decompositions, positive": replace(POSITIVE, cycles=True),
    "decompositions, with negation and built-ins": Features(aggregates=False, cycles=True),
    "triples": Features(triples=True, builtins=False, aggregates=False, negation=False),
}


def run(kind: str, features: Features, programs: int, number: int) -> Counter[str]:
    counts: Counter[str] = Counter()

    @seed(number)
    @settings(max_examples=programs, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        counts["programs"] += 1
        if "decompositions" not in kind:
            counts.update(maintenance.maintain(data, features))
            return
        with maintenance.wide_covers(data):
            counts.update(maintenance.maintain(data, features, tuning=data.draw(maintenance.tunings())))

    check()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    started = time.perf_counter()
    print(f"seed {options.seed}, {options.programs:,} programs", flush=True)
    for kind, features in KINDS.items():
        counts = run(kind, features, options.programs // len(KINDS), options.seed)
        total += counts
        shown = ", ".join(f"{n:,} {what}" for what, n in counts.items())
        print(f"{kind}: {shown}; {time.perf_counter() - started:.0f} s so far", flush=True)
    print("all agree: " + ", ".join(f"{n:,} {what}" for what, n in total.items()))


if __name__ == "__main__":
    main()
