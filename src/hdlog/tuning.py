"""How a program is evaluated, beyond what it means: the method, each improvement by name, and the numbers that steer."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Literal, get_args

from hdlog.errors import UsageError, did_you_mean
from hdlog.program.model import EvaluationMethod

Method = Literal["standard", "hd", "combined", "paper"]
"""The methods of a rule, and the system of the paper for all of them."""
METHODS: tuple[Method, ...] = get_args(Method)
assert set(get_args(EvaluationMethod)) < set(METHODS)


@dataclass(frozen=True)
class Numbers:
    """Every number that steers how something is done, and none that says what comes out.

    Chosen by `make bench`, `make bench-trees` and `hdlog bench` on a machine with two cores, unless something else is said. Tests pass
    others, so that tiny tables go every way.
    """

    # Which rules are evaluated over trees (plan/).
    few_rows: float = 200_000.0
    """rows that a join plan may make before looking for something better is worth the time"""
    simple_gain: float = 4.0
    """an acyclic rule is evaluated over a tree only if that looks so many times cheaper"""
    core_share: float = 0.4
    """the share of its facts below which the core of an atom is looked at by itself"""
    sure_core_share: float = 0.05
    """likewise in a recursive rule, whose facts are yet to come: its core must be a small one"""
    wider: int = 1
    """how far above the hypertree width a cheaper decomposition is looked for"""
    kept_row: float = 5.0
    """what keeping a row of a view costs, where making one costs 1; wide rows cost more"""
    once: float = 0.03
    """what the rows count that joins make which start elsewhere than is best, as those of updates do"""
    often: float = 3.0
    """likewise in a recursive rule, where all facts of its component come as such changes"""
    starts: int = 4
    """factors from which a join is tried; four tell enough"""
    met: float = 0.03
    """what looking at one of many candidates of a worst-case optimal step costs, where making a row costs 1"""
    searched: float = 1.0
    """likewise where there are a few here and there"""
    view_budget: int = 12_000
    """sets of variables tried for the bags of a view tree; so many take about a tenth of a second"""
    wide_bag: int = 9
    """variables up to which all subsets are tried for a bag"""
    decomposition_budget: int = 50_000
    """pairs of a cover and a part tried for a decomposition; so many take about a second"""
    most_orders: int = 240
    """orders of items that look alike tried to find that two nodes are the same"""
    drift: float = 4.0
    """a rule is planned again when a predicate has so many times as many facts, or as few"""
    drift_floor: int = 1000
    """and the difference is more than this"""
    patience: float = 4.0
    """a rule may make so many times the rows that were expected of it before another way to evaluate it is looked for"""
    worth_asking: float = 2.0
    """rows that joins make, for each fact of the body, before a tree is looked for: that takes a look at all of these"""
    worth_trying: float = 0.25
    """a tree is tried if it is estimated to cost no more than the joins have made, or than this share of what they are estimated to make"""
    trial: float = 0.5
    """the share of the rows of its joins that a tree may make when it is tried"""
    rows_a_view: float = 400.0
    """rows of joins that a set of variables in the search for a tree is worth: they take some times as long"""
    without_hubs: float = 1.05
    """facts to a value, on average, up to which a column is taken for one without hubs"""

    # How bodies are matched (maintenance/).
    worth_adding: float = 6.0
    """matches to each fact that a rule derives, from which on equal ones are added up on the way to it"""
    many_rows: int = 1000
    """rows from which on another start than the delta is looked for, and equal rows are added up"""
    upheaval: float = 1.0
    """shares of the literals of a node that change, added up, above which all is matched twice (docs/decisions/0008)"""
    much_smaller: int = 3
    """the delta node first reduces the others if it is so many times smaller than the largest, as in the paper"""
    much_changed: int = 8
    """a version is brought into one piece if more than one in so many of its facts has changed in the update"""
    small_view_run: int = 1 << 12
    """rows of a view's run up to which it is merged with the next whatever that has"""

    # The embedded engine (engines/columnar/).
    worth_threads: int = 4_000_000
    """changed facts from which on rules run on several threads (docs/decisions/0002)"""
    worth_halves: int = 100_000
    """rows of a worst-case optimal step from which on both cores work at it"""
    short_list: int = 16
    """candidates of a row by one atom up to which it is not asked whether another has fewer"""
    worth_flags: int = 10_000
    """facts of one column from which on a flag for each term may be faster than looking keys up"""
    worth_tidying: int = 200_000
    """terms and pairs from which on it is looked whether most of them are dead"""
    small_run: int = 1 << 11
    """facts of a table's run up to which it is merged with the next whatever that has"""
    most_runs: int = 10
    """of a table"""
    dense_integers: int = 1000
    """integers from which on they are looked up by place if they lie close together"""
    large_group: int = 1024
    """members of a group from which on a summary of it is kept"""
    most_summaries: int = 10_000
    """of an aggregate"""
    kept_extremes: int = 1024
    """different values in the summary of a least or greatest one"""
    looked_up: int = 30
    """rules that want each another constant of a predicate, from which on those are looked up that a change reaches"""
    many_members: int = 30
    """members of a group, on average, from which on adding them up on arrays is faster than one by one"""

    # The mixed engine (engines/mixed/); chosen by `make bench-spark`.
    near_rows: int = 1_000_000
    """facts of a table up to which it is in the process"""
    near_share: int = 4
    """a table comes back from Spark when it has so many times less"""
    near_result: int = 200_000
    """rows of a result up to which it comes to the process"""

    small_input: int = 48 << 20
    """bytes of files up to which the driver reads them: tasks would take longer to start"""

    # Spark (engines/spark/); chosen by `make bench-spark`.
    broadcast: int = 500_000
    """rows up to which a side of a join is sent to all executors"""
    likely_broadcast: int = 200_000
    """likewise by an estimate; if that was far off, the update is run again with care"""
    hashed: int = 2_000_000
    """rows of a partition up to which a join builds a hash table of the smaller side and does not sort both"""
    partition: int = 2_000_000
    """facts for which there is one partition in shuffles: a task holds as many in a hash table, or sorts them"""
    most_parts: int = 16
    """deltas of rounds that are kept apart"""
    most_spark_runs: int = 5
    """of a table"""
    interpreted: int = 100_000
    """rows that are read up to which compiling a plan takes longer than interpreting it"""
    long_query: int = 16_000
    """characters of a query from which on it is run before it becomes part of a longer one: Spark's time for a plan grows faster than it"""
    unsent_terms: int = 10_000
    """new terms that wait in the driver"""


@dataclass(frozen=True)
class Tuning:
    """The method, and each improvement over the paper, which can be switched off.

    >>> Tuning("hd").without("views, sharing").views
    False
    >>> Tuning.paper().sum_product
    False
    >>> Tuning().steered(drift=2.0).numbers.drift
    2.0
    """

    method: Method = "combined"
    views: bool = True
    """covers may be views: a node keeps what it sends to its parent, counted, not its own join"""
    sum_product: bool = True
    """head derivations are counted by messages, without enumerating the join of the nodes"""
    root_per_head: bool = True
    """each head atom has its own root"""
    sharing: bool = True
    """isomorphic nodes keep one table"""
    virtual: bool = True
    """a node that is one atom keeps nothing: it is the predicate's table"""
    worst_case_optimal: bool = True
    """cyclic atoms in a node are joined one variable at a time"""
    counting: bool = True
    """components without recursion are counted exactly, not overdeleted and rederived"""
    revision: bool = True
    """rules change between a join plan and a tree within an update, by what they turn out to cost"""
    reordering: bool = True
    """atoms are joined by estimated fan-out, not in the order of the text"""
    numbers: Numbers = field(default_factory=Numbers)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"there is no method {self.method!r}; there are {', '.join(METHODS)}")
        if self.method == "paper":
            for name in _IMPROVEMENTS:
                object.__setattr__(self, name, False)

    @classmethod
    def paper(cls) -> Tuning:
        """The system of the paper: complex rules over its nodes, in its passes, all others by join plans; no improvement."""
        return cls("paper")

    def without(self, names: str) -> Tuning:
        """Improvements switched off, by their names with commas between."""
        wanted = [n.strip().replace("-", "_") for n in names.split(",") if n.strip()]
        for name in wanted:
            if name not in SWITCHES:
                hint = did_you_mean(name, SWITCHES) or f"there are {', '.join(SWITCHES)}"
                raise UsageError(f"there is no improvement {name} to switch off; {hint}")
        return replace(self, **dict.fromkeys(wanted, False))  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, str | bool]:
        """Method and improvements, as a store keeps them."""
        return {"method": self.method, **{name: getattr(self, name) for name in SWITCHES}}

    def steered(self, **numbers: float) -> Tuning:
        """With other numbers."""
        return replace(self, numbers=replace(self.numbers, **numbers))  # type: ignore[arg-type]


SWITCHES = tuple(f.name for f in fields(Tuning) if f.type == "bool")
_IMPROVEMENTS = tuple(name for name in SWITCHES if name != "reordering")
"""The paper's system has join plans, too."""
