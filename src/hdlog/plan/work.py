"""What joins cost, worked out thousands of times in the search for a tree: the loop of `estimates.greedy_order`, compiled.

Factors are numbered as they come, and what is known of them stands in arrays. `tests/unit/test_work.py` compares every figure with those of
`estimates.greedy_order`, which join plans are made by.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.compiling import inner, kernel

Figures = NDArray[np.float64]
Numbers = NDArray[np.int64]
_ARRAYS = "f8[::1], i8[::1], i8[::1], f8[:, ::1], f8[:, ::1], f8[:, :, ::1]"
"""Of all factors: rows, variables as bits, those of them that occur more than once, distinct values and skew by variable; of pairs of
atoms, which have the first numbers, their skew by variable."""


@inner("i8(i8)")
def _place(bit: int) -> int:
    """The number of the one bit that is set."""
    place = 0
    while bit > 1:
        bit >>= 1
        place += 1
    return place


@inner("f8(i8, i8, i8, f8[:, ::1], f8[:, :, ::1])")
def _skew(a: int, b: int, place: int, skews: Figures, pairs: Figures) -> float:
    """By how much a join of two factors in a variable is larger than the estimate."""
    if a < pairs.shape[0] and b < pairs.shape[0]:
        return float(pairs[a, b, place])
    return sqrt(skews[a, place] * skews[b, place])


_SCRATCH = "i8[:, ::1], f8[:, ::1], f8[::1]"
"""Of each member whether it waits and whether it is joined next; the length of its lists, now and sorted; the least values by variable."""


@inner(f"Tuple((f8, f8))(i8[::1], i8, i8, b1, f8, b1, {_ARRAYS}, {_SCRATCH})")
def _work_from(
    members: Numbers, start: int, wanted: int, meets: bool, most: float, dense: bool,
    rows_of: Figures, masks: Numbers, repeated: Numbers, values: Figures, skews: Figures, pairs: Figures,
    flags: Numbers, lengths: Figures, least: Figures,
) -> Any:  # fmt: skip
    """Rows made in joining factors from one of them on, and candidates looked at in worst-case optimal steps."""
    count = members.shape[0]
    waits, together, fans, lists = flags[0], flags[1], lengths[0], lengths[1]
    waits[:] = 1
    waits[start] = 0
    bound = masks[members[start]]
    rows = total = rows_of[members[start]]
    candidates = 0.0
    for k in range(count):
        fans[k] = rows_of[members[k]]
        _narrow(fans, k, masks[members[k]] & bound, values[members[k]])
    least[:] = inf
    _note_values(least, members[start], masks, values)
    for _ in range(count - 1):
        best = -1
        best_apart = True
        for k in range(count):
            if waits[k]:
                apart = (masks[members[k]] & bound) == 0
                if best < 0 or (not apart and best_apart) or (apart == best_apart and fans[k] < fans[best]):
                    best, best_apart = k, apart
        if best < 0:
            break
        free = masks[members[best]] & ~bound
        meeting = meets and free != 0 and (free & (free - 1)) == 0 and (repeated[members[best]] & free) == 0
        taken = 0
        for k in range(count):
            m = members[k]
            joined = meeting and waits[k] and masks[m] & ~bound == free and (repeated[m] & free) == 0
            together[k] = 1 if k == best or joined else 0
            if together[k]:
                length = fans[k] * _correction(members, waits, m, masks[m] & bound, masks, skews, pairs)
                if dense and free == 0 and length < 1.0:
                    length = sqrt(length)
                lists[taken] = length
                taken += 1
        _sort_first(lists, taken)
        made = rows * lists[0]
        looked_at = made
        if taken > 1:
            place = _place(free)
            many = 0.0
            for k in range(count):
                if together[k]:
                    many = max(many, values[members[k], place])
            for n in range(1, taken):
                chance = min(1.0, lists[n] / many)
                made *= sqrt(chance) if dense else chance
        needed = wanted
        bound |= free
        for k in range(count):
            if together[k]:
                waits[k] = 0
                _note_values(least, members[k], masks, values)
            elif waits[k]:
                needed |= masks[members[k]]
                _narrow(fans, k, masks[members[k]] & free, values[members[k]])
        counted = taken > 1 and (free & needed) == 0
        if taken > 1:
            candidates += looked_at
        if not counted:
            total += made
            rows = made
            if meets and (bound & ~needed) != 0:
                limit = 1.0
                for place in range(least.shape[0]):
                    if (needed >> place) & 1 and least[place] < inf:
                        limit *= least[place]
                rows = min(made, limit)
        if total > most:
            break
    return total, candidates


@inner("void(f8[::1], i8)")
def _sort_first(numbers: Figures, count: int) -> None:
    """The first numbers in order; there are few."""
    for i in range(1, count):
        number = numbers[i]
        j = i
        while j > 0 and numbers[j - 1] > number:
            numbers[j] = numbers[j - 1]
            j -= 1
        numbers[j] = number


@inner("void(f8[::1], i8, i8, f8[::1])")
def _narrow(fans: Figures, k: int, more: int, values: Figures) -> None:
    place = 0
    while more:
        if more & 1:
            fans[k] /= values[place]
        more >>= 1
        place += 1


@inner("void(f8[::1], i8, i8[::1], f8[:, ::1])")
def _note_values(least: Figures, member: int, masks: Numbers, values: Figures) -> None:
    for place in range(least.shape[0]):
        if (masks[member] >> place) & 1:
            least[place] = min(least[place], values[member, place])


@inner("f8(i8[::1], i8[::1], i8, i8, i8[::1], f8[:, ::1], f8[:, :, ::1])")
def _correction(
    members: Numbers, waits: Any, member: int, shared: int, masks: Numbers, skews: Figures, pairs: Figures
) -> float:
    """The skew of a join on a single variable with what is joined already."""
    if shared == 0 or shared & (shared - 1):
        return 1.0
    place = _place(shared)
    correction = 0.0
    for k in range(members.shape[0]):
        if not waits[k] and masks[members[k]] & shared:
            correction = max(correction, _skew(members[k], member, place, skews, pairs))
    return correction


@kernel(f"Tuple((f8, f8))(i8[::1], i8[::1], i8, b1, f8, b1, f8, f8, {_ARRAYS}, {_SCRATCH})", work=0)
def evaluate(
    members: Numbers, starts: Numbers, wanted: int, meets: bool, most: float, dense: bool, met: float, searched: float,
    rows_of: Figures, masks: Numbers, repeated: Numbers, values: Figures, skews: Figures, pairs: Figures,
    flags: Numbers, lengths: Figures, least: Figures,
) -> Any:  # fmt: skip
    """What joining factors costs from the best of some starts, and from each on average; both infinite if that is above `most`."""
    best = inf
    pieces = once = 0.0
    for start in starts:
        rows, candidates = _work_from(
            members, start, wanted, meets, most * starts.shape[0] - pieces, dense,
            rows_of, masks, repeated, values, skews, pairs, flags, lengths, least,
        )  # fmt: skip
        best = min(best, rows + met * candidates)
        once += rows + met * candidates
        pieces += rows + searched * candidates
        if pieces > most * starts.shape[0]:
            return inf, inf
    # Where to start is decided later, by averages, and these do not see the core.
    return (once / starts.shape[0] if dense else best), pieces / starts.shape[0]


class Book:
    """Factors by number, as the loop wants them."""

    def __init__(self, atoms: int, variables: int) -> None:
        self.size = 0
        self._rows = np.zeros(64)
        self._masks, self._repeated = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self._values, self._skews = np.ones((64, variables)), np.ones((64, variables))
        self.pairs = np.ones((atoms, atoms, variables))
        """the skew of two atoms in a variable; these have the first numbers"""

    def add(self, rows: float, values: dict[int, float], repeated: int, skews: dict[int, float]) -> int:
        """The number of a factor; values and skews by the number of a variable."""
        if self.size == len(self._rows):
            self._rows, self._masks, self._repeated, self._values, self._skews = (
                np.concatenate([a, np.ones_like(a)])
                for a in (self._rows, self._masks, self._repeated, self._values, self._skews)
            )
        n = self.size
        self._rows[n], self._masks[n], self._repeated[n] = rows, sum(1 << v for v in values), repeated
        self._values[n, :], self._skews[n, :] = 1.0, 1.0
        for variable, number in values.items():
            self._values[n, variable] = number
        for variable, skew in skews.items():
            self._skews[n, variable] = skew
        self.size = n + 1
        return n

    def evaluate(
        self,
        members: list[int],
        starts: list[int],
        wanted: int,
        meets: bool,
        most: float,
        dense: bool,
        met: float,
        searched: float,
    ) -> tuple[float, float]:
        count = len(members)
        shortest, average = evaluate(
            np.array(members), np.array(starts), wanted, meets, most, dense, met, searched,
            self._rows, self._masks, self._repeated, self._values, self._skews, self.pairs,
            np.empty((2, count), np.int64), np.empty((2, count)), np.empty(self._values.shape[1]),
        )  # fmt: skip
        return shortest, average
