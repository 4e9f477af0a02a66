"""datasketch's `MinHash`, imported without scipy.integrate.

datasketch imports scipy.integrate for one function, with which `MinHashLSH` chooses its parameters. The import takes
0.3 of datasketch's 0.4 s, and a crawl needs no such choice. So the function is imported when it is called.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datasketch import MinHash

__all__ = ["minhash_class"]

_INTEGRATION: Final = "scipy.integrate"


@cache
def minhash_class() -> type[MinHash]:
    """Return `datasketch.MinHash`. The first call imports datasketch."""
    if "datasketch" not in sys.modules and _INTEGRATION not in sys.modules:
        standing_in = ModuleType(_INTEGRATION)
        vars(standing_in)["quad"] = _quad
        sys.modules[_INTEGRATION] = standing_in
        try:
            importlib.import_module("datasketch")
        finally:
            del sys.modules[_INTEGRATION]
    from datasketch import MinHash  # noqa: PLC0415

    found: type[MinHash] = MinHash
    return found


def _quad(*args: Any, **kwargs: Any) -> Any:
    """Call `scipy.integrate.quad`."""
    from scipy.integrate import quad  # noqa: PLC0415  (0.3 s)

    return quad(*args, **kwargs)
