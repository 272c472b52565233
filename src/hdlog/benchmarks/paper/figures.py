"""The figures of the paper, to stand beside ours: seconds, GB, and numbers of facts."""

from __future__ import annotations

BENCHMARKS = ("lubm-l+c", "lubm-l", "exp", "yago")
TITLES = {"lubm-l": "LUBM L", "lubm-l+c": "LUBM L+C", "exp": "Exp", "yago": "YAGO"}
METHODS = ("standard", "hd", "combined")
TASKS = ("materialisation", "small deletions", "large deletions", "small additions")
SMALL = 1_000
LARGE = 0.25
"""Of the facts given."""
GIVEN = {"lubm-l": 66_751_196, "lubm-l+c": 66_751_196, "exp": 3_362_280, "yago": 58_276_868}
MATERIALISED = {"lubm-l": 91_128_727, "lubm-l+c": 99_361_809, "exp": 6_440_280, "yago": 59_755_990}
SECONDS = {
    "materialisation": {
        "standard": (29_577.90, 95.73, 7_039.87, 155_022.00),
        "hd": (1_168.83, 740.81, 56.83, 367.59),
        "combined": (554.00, 75.50, 57.01, 366.03),
    },
    "small deletions": {
        "standard": (0.92, 0.03, 37.60, 20.06),
        "hd": (4.00, 3.70, 0.47, 0.18),
        "combined": (1.06, 0.04, 0.45, 0.20),
    },
    "large deletions": {
        "standard": (15_193.70, 27.09, 4_006.44, 126_562.00),
        "hd": (812.32, 558.90, 30.93, 168.34),
        "combined": (195.51, 21.71, 28.62, 159.43),
    },
    "small additions": {
        "standard": (0.97, 0.02, 40.23, 20.42),
        "hd": (1.04, 0.45, 0.57, 0.17),
        "combined": (0.73, 0.06, 0.53, 0.17),
    },
}
MEMORY = {
    "standard": {"lubm-l": (7.2, 5.5), "lubm-l+c": (8.4, 6.3), "exp": (0.6, 0.5), "yago": (5.2, 3.8)},
    "combined": {"lubm-l": (7.2, 5.5), "lubm-l+c": (16.5, 14.6), "exp": (1.2, 1.1), "yago": (9.5, 4.8)},
}
"""Peak and static, after materialisation."""


def seconds(benchmark: str, method: str, task: str) -> float | None:
    row = SECONDS[task].get(method)
    return row[BENCHMARKS.index(benchmark)] if row else None
