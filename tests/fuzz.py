"""Random programs under random updates, for as long as it is given: `python -m tests.fuzz --minutes 60 --seed 1`.

Small programs of the whole language and their histories are compared with a naive evaluator, facts, supports, node tables and net changes; through stores too.
Programs over tens of thousands of facts are compared with DuckDB. A failure is shrunk and printed by hypothesis, with the seed.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from hdlog.text.write import write
from tests import case_folders
from tests.crashes import memory_folder
from tests.engines import Reasoner
from tests.properties import test_histories as histories
from tests.properties import test_maintenance as maintenance
from tests.properties import test_metamorphic as metamorphic
from tests.properties import test_second_opinion as second_opinion
from tests.properties import test_sparql as sparql
from tests.properties import test_sparql_updates as sparql_updates
from tests.strategies import POSITIVE, Features, facts, programs

KINDS = {
    "positive": POSITIVE,
    "stratified": Features(nested=True),
    "own groups, Skolem terms": Features(correlated=False, skolems=True),
    "decompositions, positive": replace(POSITIVE, cycles=True),
    "decompositions, with negation and built-ins": Features(aggregates=False, cycles=True),
    "triples": Features(triples=True, builtins=False, aggregates=False, negation=False),
    "named graphs": Features(triples=True, graphs=True, builtins=False, aggregates=False, negation=False),
}
_PROGRAMS, _HISTORIES, _STORES = 150, 5, 5
"""Of a kind, before it is the turn of the next."""
_EDGES = 20_000
_QUERIES = 40
_LARGE_UPDATES = 9
"""of each such program"""


def run(kind: str, features: Features, several: int, number: int) -> Counter[str]:
    """Programs, and a few updates of each."""

    def check(data: st.DataObject, counts: Counter[str]) -> None:
        if "decompositions" not in kind:
            counts.update(maintenance.maintain(data, features))
            return
        with maintenance.wide_covers(data):
            counts.update(maintenance.maintain(data, features, tuning=data.draw(maintenance.tunings())))

    return _draw(check, several, number)


def run_histories(several: int, number: int) -> Counter[str]:
    """A hundred changes of facts and rules, one after the other."""

    def check(data: st.DataObject, counts: Counter[str]) -> None:
        features = data.draw(st.sampled_from(histories.KINDS))
        program = data.draw(programs(features).map(maintenance.shown_program))
        pool = data.draw(facts(program, features, 10, 40))
        chance = data.draw(st.randoms(use_true_random=False))
        with maintenance.wide_covers(data):
            tuning = data.draw(maintenance.tunings())
            history = histories.History(program, pool, chance, Reasoner(tuning=tuning))
            for _ in range(histories.STEPS):
                history.change()
                counts["updates"] += 1

    return _draw(check, several, number)


def run_stores(several: int, number: int) -> Counter[str]:
    """A store that is opened for each update."""

    def check(data: st.DataObject, counts: Counter[str]) -> None:
        features = data.draw(st.sampled_from(histories.STORED))
        chance = data.draw(st.randoms(use_true_random=False))
        counts["updates"] += histories.follow_store(data, chance, features, 5)

    return _draw(check, several, number)


def run_large(number: int) -> Counter[str]:
    """Facts by the ten thousand, with hubs and cliques, against DuckDB."""
    method = random.Random(number).choice(["combined", "hd"])
    compared = second_opinion.check(number, method, _EDGES)  # type: ignore[arg-type]
    return Counter({"programs": 1, "updates": _LARGE_UPDATES, "facts compared": compared})


def run_metamorphic(number: int) -> Counter[str]:
    """Programs that say the same in other words."""
    chance = random.Random(number)
    compared = metamorphic.check(number, chance.choice(list(metamorphic.WAYS)), chance.choice([1_500, 6_000]))
    return Counter({"programs": 2, "updates": 2 * _LARGE_UPDATES, "facts compared": compared})


def run_sparql(number: int) -> Counter[str]:
    """Queries and updates in SPARQL."""
    return Counter(
        {
            "queries": sparql.check(number, _QUERIES),
            "updates": sparql_updates.check(number, _QUERIES),
        }
    )


def write_case(name: str, diary: Sequence[Any]) -> None:
    """A failure as a case: its program and updates, with what the oracle says of them."""
    program, *updates = diary
    folder = case_folders.FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.dlog").write_text(write(program, "rdfox"))
    blocks = []
    for add, delete in updates:
        lines = [f"add {case_folders.fact_text(fact)}" for fact in add]
        lines += [f"delete {case_folders.fact_text(fact)}" for fact in delete]
        blocks.append("\n".join(lines))
    (folder / "updates.txt").write_text("\n\n".join(block for block in blocks if block) + "\n")
    case_folders.write_expectations(name)
    print(f"written as a case: {folder}")


def _draw(check: Callable[[st.DataObject, Counter[str]], None], several: int, number: int) -> Counter[str]:
    counts: Counter[str] = Counter()

    @seed(number)
    @settings(max_examples=several, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def drawn(data: st.DataObject) -> None:
        counts["programs"] += 1
        check(data, counts)

    drawn()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tempfile.tempdir = memory_folder()
    started = time.perf_counter()
    totals: dict[str, Counter[str]] = {}
    for number in count(options.seed * 1_000_000):
        rounds: dict[str, Callable[[], Counter[str]]] = {
            kind: (lambda k=kind, f=features, n=number: run(k, f, _PROGRAMS, n))  # type: ignore[misc]
            for kind, features in KINDS.items()
        }
        rounds["histories"] = lambda n=number: run_histories(_HISTORIES, n)  # type: ignore[misc]
        rounds["stores"] = lambda n=number: run_stores(_STORES, n)  # type: ignore[misc]
        rounds["large, against DuckDB"] = lambda n=number: run_large(n)  # type: ignore[misc]
        rounds["in other words"] = lambda n=number: run_metamorphic(n)  # type: ignore[misc]
        rounds["SPARQL, against pyoxigraph"] = lambda n=number: run_sparql(n)  # type: ignore[misc]
        for kind, work in rounds.items():
            maintenance.DIARY.clear()
            try:
                totals[kind] = totals.get(kind, Counter[str]()) + work()
            except BaseException:
                if maintenance.DIARY:
                    write_case(f"fuzz-{options.seed}-{number}", maintenance.DIARY)
                print(
                    f"failed: {kind}, number {number}, seed {options.seed}; before that {_shown(sum(totals.values(), Counter[str]()))}"
                )
                raise
            if time.perf_counter() - started > 60 * options.minutes:
                break
        else:
            continue
        break
    for kind, counts in totals.items():
        print(f"{kind}: {_shown(counts)}")
    total = sum(totals.values(), Counter[str]())
    print(f"seed {options.seed}, {time.perf_counter() - started:.0f} s: all agree, {_shown(total)}")


def _shown(counts: Counter[str]) -> str:
    return ", ".join(f"{n:,} {what}" for what, n in counts.items())


if __name__ == "__main__":
    main()
