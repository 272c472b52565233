"""Where the time of a materialisation goes: seconds inside some functions of the system, what they call included."""

from __future__ import annotations

import argparse
import cProfile
import pstats
from typing import Any

from hdlog.benchmarks.data.loading import load
from hdlog.benchmarks.data.rule_sets import rules
from hdlog.benchmarks.data.scale import DATA, generate
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.reasoning import start_reasoning

WATCHED = {
    ("planner.py", "plan_rule"): "planning and decompositions",
    ("nodes.py", "derive"): "changes of nodes",
    ("nodes.py", "derive_all"): "nodes from scratch",
    ("standard.py", "derive"): "rules and nodes over deltas",
    ("standard.py", "derive_all"): "rules and nodes from scratch",
    ("joins.py", "join"): "joins",
    ("meeting.py", "meet"): "worst-case optimal steps",
    ("relations.py", "extend"): "built-ins and Skolem terms",
    ("relations.py", "project"): "heads: projecting, sorting, adding up",
    ("table.py", "change"): "facts and supports into tables",
    ("table.py", "index"): "indexes",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmark", choices=DATA)
    parser.add_argument("scale", type=float)
    options = parser.parse_args()
    data = generate(DATA[options.benchmark], options.scale, 1, lambda _: None)
    for warm in (True, False):
        engine = ColumnarEngine()
        facts = load(engine, data)
        reasoner = start_reasoning(engine, rules(options.benchmark))
        profile = cProfile.Profile()
        profile.runcall(reasoner.materialise, facts)
        if not warm:
            show(pstats.Stats(profile), len(reasoner))


def show(statistics: Any, facts: int) -> None:
    print(f"{facts:,} facts, {statistics.total_tt:.1f} s")
    for (path, _, name), (_, _, _, seconds, _) in sorted(statistics.stats.items(), key=lambda s: -s[1][3]):
        text = WATCHED.get((path.rsplit("/", 1)[-1], name))
        if text is not None and seconds > 0.02 * statistics.total_tt:
            print(f"  {100 * seconds / statistics.total_tt:3.0f} %  {text} ({name})")


if __name__ == "__main__":
    main()
