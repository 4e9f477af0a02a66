"""Products of sparse matrices with vectors, computed by the compiled functions of scipy alone.

An import of `scipy.sparse` takes .13 s of CPU time, as long as a ranking of a few thousand pages. Only the private
extension module of scipy is loaded; if a release lacks it, the public classes do the same work. The matrices are in
compressed form: row k has the columns ``columns[indptr[k]:indptr[k + 1]]``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[Any]

__all__ = ["Ints", "add_product", "turned"]

_Real = TypeVar("_Real", np.float32, np.float64)


def add_product(
    indptr: Ints, columns: Ints, values: npt.NDArray[_Real], vector: npt.NDArray[_Real], total: npt.NDArray[_Real]
) -> None:
    """Add the product of a matrix and a vector to `total`.

    Parameters
    ----------
    indptr : (r + 1,) ints of the same type as `columns`, (m,)
    values : (m,) or longer
    vector : (c,) all columns are below c; this is not checked
    total : (r,)
    """
    compiled, rows, width = _compiled(), len(indptr) - 1, len(vector)
    if compiled is None:
        total += _public(indptr, columns, values[: len(columns)], width) @ vector
    else:
        compiled.csr_matvec(rows, width, indptr, columns, values, vector, total)


def turned(indptr: Ints, columns: Ints, width: int) -> tuple[Ints, Ints]:
    """Return (indptr, rows) of the transposed matrix: for each of the `width` columns, its rows, ascending.

    The result has the type of `columns`. Apart from the arguments and the result, the call needs two bytes per entry.
    """
    indptr, compiled = np.asarray(indptr, columns.dtype), _compiled()
    marks = np.ones((2, len(columns)), dtype=np.int8)
    if compiled is None:
        matrix = _public(indptr, columns, marks[0], width).tocsc()
        return matrix.indptr.astype(columns.dtype), matrix.indices.astype(columns.dtype)
    starts, rows = np.empty(width + 1, dtype=columns.dtype), np.empty_like(columns)
    compiled.csr_tocsc(len(indptr) - 1, width, indptr, columns, marks[0], starts, rows, marks[1])
    return starts, rows


@cache
def _compiled() -> Any:
    """Return the extension module, or None if this release of scipy does not have it."""
    package = find_spec("scipy")
    folders = [f"{each}/sparse" for each in (package and package.submodule_search_locations) or ()]
    spec = PathFinder.find_spec("scipy.sparse._sparsetools", folders)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module if hasattr(module, "csr_matvec") and hasattr(module, "csr_tocsc") else None


def _public(indptr: Ints, columns: Ints, values: npt.NDArray[Any], width: int) -> Any:
    return import_module("scipy.sparse").csr_array((values, columns, indptr), shape=(len(indptr) - 1, width))
