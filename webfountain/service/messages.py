"""Functions for requests and responses of the REST API and the web pages: typed fields, time limits, compression,
ETags.
"""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import xxhash
from aiohttp import web

from webfountain.policy.errors import explain
from webfountain.service.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from webfountain.service.served_store import ServedStore

__all__ = ["BODY_S", "fields_of", "packed_response", "received", "store_of"]

BODY_S: Final = 10.0
"""Maximum time to receive a body, in seconds."""
_WORTH_COMPRESSING: Final = 1400
_T = TypeVar("_T")


def store_of(request: web.Request, stores: Mapping[str, ServedStore]) -> ServedStore:
    """Return the store that the path of a request names. Raise ProblemError if the service has no such store."""
    found = stores.get(request.match_info["collection"])
    if found is None:
        raise ProblemError(404, "unknown-collection", "no served collection has this name (see /v1/collections)")
    return found


def fields_of(given: Mapping[str, Any], kind: type[msgspec.Struct]) -> Any:
    """Return the fields of a query or form as an object of type `kind`. Raise ProblemError for a wrong or repeated
    field."""
    if len(given) != len(set(given)):
        raise ProblemError(400, "input", "a parameter is given twice")
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as error:
        raise ProblemError(400, "input", explain(str(error), dict(given), root=kind)) from None


async def received(body: Awaitable[_T]) -> _T:
    """Wait for the body of a request and return it. Raise ProblemError if the body takes longer than `BODY_S`."""
    try:
        async with asyncio.timeout(BODY_S):
            return await body
    except TimeoutError:
        raise ProblemError(408, "too-slow", f"the body took longer than {BODY_S:.0f} s") from None


def packed_response(
    request: web.Request, body: bytes, kind: str, headers: Mapping[str, str], *, charset: str | None = None
) -> web.Response:
    """Return a response with a body. A large body is compressed. The response has status 304 if the client already has
    the body."""
    tag = f'W/"{xxhash.xxh3_64_hexdigest(body)}"'
    more = {**headers, "ETag": tag, "Vary": "Accept-Encoding, Authorization, Cookie"}
    if request.method == "GET" and tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=more)
    if len(body) >= _WORTH_COMPRESSING and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = gzip.compress(body, 3)
        more["Content-Encoding"] = "gzip"
    return web.Response(body=body, content_type=kind, charset=charset, headers=more)
