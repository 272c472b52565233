"""The few compiled loops of the columnar engine, over sorted arrays of 64-bit keys.

Each releases the GIL, has explicit signatures, so that everything is compiled once and kept on disk (hdlog/compiling.py), and allocates nothing:
functions around them make the arrays that they fill. `tests/unit/test_kernels.py` has a naive twin for each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Ids = NDArray[np.uint32]
Rows = NDArray[np.int64]
Flags = NDArray[np.uint8]
Counts = NDArray[np.int64]
