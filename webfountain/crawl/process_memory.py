"""Memory settings of a process that only crawls, so that its memory does not grow over days."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from typing import Final

__all__ = ["tune_memory"]

GC_ALLOCATIONS: Final = 50_000
"""Number of allocations between two runs of Python's cycle collector. With Python's default of 700, the collector took
0.2 ms per page, although the processing of a page leaves no cycles.
"""
ARENAS: Final = 2
"""Number of glibc's heaps. By default, glibc makes up to eight heaps per core, and one heap cannot use the free memory
of another.
"""
MAPPED_BYTES: Final = 384 * 1024
"""Memory blocks above this size, mostly bodies, are mapped, so that they go back to the system when they are freed. By
default, glibc raises this size up to 32 MB, so large bodies leave holes in the heaps. The HTML parser lexbor allocates
two blocks of 324 kB for each page, and these blocks should stay in the heaps.
"""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def tune_memory() -> None:
    """Set Python's cycle collector and glibc's allocator for a long crawl."""
    gc.freeze()  # imported objects never go away, so no full collection visits them again
    gc.enable()  # `webfountain crawl` starts without it
    gc.set_threshold(GC_ALLOCATIONS, *gc.get_threshold()[1:])
    with suppress(OSError, AttributeError):  # another C library does not have these options
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_ARENA_MAX, ARENAS)
        set_option(_M_MMAP_THRESHOLD, MAPPED_BYTES)
        set_option(_M_TRIM_THRESHOLD, 4 * MAPPED_BYTES)
