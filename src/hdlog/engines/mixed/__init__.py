"""The mixed engine: the embedded engine for what is small, Spark for what is large, behind the one protocol.

A table lives in the process while it is small and on Spark once it is large, and so do deltas and results. Files of the same name have the
same role as in the two engines that this one is made of: *near* is what is in the process, *far* what is on Spark.
"""

import hdlog.engines.spark  # noqa: F401  (first of all: it says how to get Spark where there is none)
