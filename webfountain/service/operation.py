"""An operation: one row of the table by which the service routes, checks and answers requests.

The functions `read` and `write` run in the thread of the store. The coroutine `handle` runs in the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web

    from webfountain.api.collection import StoredCollection
    from webfountain.service.roles import Role
    from webfountain.service.served_store import ServedStore

__all__ = ["Call", "NoParameters", "Operation"]


class NoParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Type of an empty query or an empty body."""


class Call(NamedTuple):
    """An accepted request: its query and body, and the store that its path names."""

    request: web.Request
    store: ServedStore | None
    query: Any
    body: Any


class Operation(NamedTuple):
    """A row of the table of operations: method, path below the base path, types, and the function that answers."""

    name: str
    method: str
    path: str
    summary: str
    answer: Any
    query: type[msgspec.Struct] = NoParameters
    body: type[msgspec.Struct] | None = None
    role: Role | None = "read"
    """Role that a client needs for the operation, or None if every client may use the operation."""
    read: Callable[[StoredCollection, Any], object] | None = None
    """Function that computes the answer from the open collection and the query."""
    write: Callable[[StoredCollection, Any], object] | None = None
    """Function that computes the answer from the open collection and the body."""
    handle: Callable[[Call], Awaitable[object]] | None = None
    media: str = "application/json"
    tag: str = "collections"
