"""What every test may ask for: the real data beside the checkout, and a loud word when it is absent."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Generator

# The processes that tests start keep what they compiled, as a user's do: without it each compiles all of us again, a
# fifth of its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A busy machine must not break a test: what takes long is found by `make bench`. In CI the draws are the same at every
# run, as in Hypothesis' own profile for CI; here and in `make soak` they are new ones.
settings.register_profile("webfountain", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("webfountain")

TRACED = tuple(Path(__file__).parent / room for room in ("core", "frontier", "store"))
"""Tests of the rooms whose coverage has a gate: only they are traced, which doubles what they cost."""
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces, graphs and pages; skips, saying so, where a checkout stands alone."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"NOT RUN: this test needs the real data in {SHARED_DATA}, which is absent")
    return SHARED_DATA


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long forms to `make soak`, and what needs Debian packages to `make test-system`: they name them."""
    named = config.getoption("-m") or ""
    left_out = [mark for mark in ("soak", "system") if mark not in named]
    for item in list(items):
        if any(item.get_closest_marker(mark) for mark in left_out):
            items.remove(item)
            config.hook.pytest_deselected(items=[item])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test of another room, or one that is marked `untraced`, covers nothing and is not slowed down by the tracer."""
    if item.get_closest_marker("untraced") is None and any(item.path.is_relative_to(room) for room in TRACED):
        return (yield)
    here, elsewhere = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        threading.settrace(elsewhere)
        sys.settrace(here)
