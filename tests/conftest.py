"""What every test may ask for: the real data beside the checkout, and a loud word when it is absent."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces, graphs and pages; skips, saying so, where a checkout stands alone."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"NOT RUN: this test needs the real data in {SHARED_DATA}, which is absent")
    return SHARED_DATA


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long forms to `make soak`, which names them with ``-m soak``."""
    if "soak" in (config.getoption("-m") or ""):
        return
    for item in list(items):
        if item.get_closest_marker("soak"):
            items.remove(item)
            config.hook.pytest_deselected(items=[item])
