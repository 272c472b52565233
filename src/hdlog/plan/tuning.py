"""How a program is evaluated, beyond what it means: the method, and each improvement by name."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from hdlog.errors import UsageError, did_you_mean
from hdlog.program.model import EvaluationMethod

Method = EvaluationMethod


@dataclass(frozen=True)
class Tuning:
    """Each improvement over the paper can be switched off."""

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
    reordering: bool = True
    """atoms are joined by estimated fan-out, not in the order of the text"""

    def without(self, names: str) -> Tuning:
        """Improvements switched off, by their names with commas between."""
        switches = [f.name for f in fields(self) if f.type == "bool"]
        wanted = [n.strip().replace("-", "_") for n in names.split(",") if n.strip()]
        for name in wanted:
            if name not in switches:
                hint = did_you_mean(name, switches) or f"there are {', '.join(switches)}"
                raise UsageError(f"there is no improvement {name} to switch off; {hint}")
        return replace(self, **dict.fromkeys(wanted, False))  # type: ignore[arg-type]
