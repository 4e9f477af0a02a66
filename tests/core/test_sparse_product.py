"""Products with sparse matrices equal those with the same dense matrices, and need little of scipy."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from webfountain.core import sparse_product
from webfountain.core.sparse_product import add_product, turned

if TYPE_CHECKING:
    import numpy.typing as npt


@pytest.fixture(params=["private", "public"])
def functions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled functions, then the public classes, as if scipy had no such module."""
    if request.param == "public":
        monkeypatch.setattr(sparse_product, "_compiled", lambda: None)


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("ints", [np.int32, np.int64])
@pytest.mark.parametrize("reals", [np.float32, np.float64])
def test_a_product_is_added_to_the_total(ints: type, reals: type) -> None:
    rng = np.random.default_rng(4)
    dense = rng.integers(0, 2, (7, 5))
    indptr: npt.NDArray[Any] = np.concatenate([[0], np.cumsum(dense.sum(axis=1))]).astype(ints)
    columns: npt.NDArray[Any] = np.nonzero(dense)[1].astype(ints)
    vector: npt.NDArray[Any] = rng.random(5).astype(reals)
    total: npt.NDArray[Any] = np.ones(7, dtype=reals)
    add_product(indptr, columns, np.ones(len(columns), dtype=reals), vector, total)
    np.testing.assert_allclose(total, 1.0 + dense @ vector, rtol=1e-6)


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("ints", [np.int32, np.int64])
def test_a_matrix_is_turned_with_its_rows_in_order(ints: type) -> None:
    dense = np.random.default_rng(5).integers(0, 2, (6, 9))
    indptr: npt.NDArray[Any] = np.concatenate([[0], np.cumsum(dense.sum(axis=1))]).astype(ints)
    starts, rows = turned(indptr, np.nonzero(dense)[1].astype(ints), 9)
    assert starts.dtype == rows.dtype == ints
    assert starts.tolist() == [0, *np.cumsum(dense.sum(axis=0)).tolist()]
    assert rows.tolist() == np.nonzero(dense.T)[1].tolist()


def test_a_ranking_does_not_import_all_of_scipy() -> None:
    code = (
        "import sys; import numpy as np\n"
        "from webfountain.core.link_graph import LinkGraph; from webfountain.core.pagerank import pagerank\n"
        "from webfountain.core.order_replay import replay_losses\n"
        "pagerank(LinkGraph.from_csr(np.array([0, 1, 2]), np.array([1, 0])))\n"
        "replay_losses([[1], [0]], ranks=np.ones(2), backlinks=np.ones(2))\n"
        "sys.exit('scipy.sparse' in sys.modules or 'numpy.ma' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
