"""Types of numpy arrays, for annotations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Flags", "Ints"]

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
