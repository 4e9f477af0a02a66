"""Fixtures for servers. Import a fixture into the conftest of another folder to use it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.hostile import HostileServer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["hostile_server"]


@pytest.fixture(scope="session")
def hostile_server() -> Iterator[HostileServer]:
    """Every hostile behaviour, each on an address of its own."""
    with HostileServer() as server:
        yield server
