"""All programs of the corpus."""

from __future__ import annotations

from hdlog.benchmarks.programs import closures, further, ontologies, patterns, points_to

PROGRAMS = {
    p.name: p for module in (points_to, closures, ontologies, patterns, further) for p in module.PROGRAMS
}
