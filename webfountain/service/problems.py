"""Problems: errors in the form of RFC 9457, ``application/problem+json``.

A problem describes what is wrong with the request or the store. A problem never contains a traceback or a password.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from aiohttp import web

from webfountain.errors import CursorLost, InputError, RepositoryError, StoreError, StoreVersion, WebfountainError

__all__ = ["CONTENT_TYPE", "Problem", "ProblemError", "problem_of", "problem_response"]

logger = logging.getLogger(__name__)

CONTENT_TYPE: Final = "application/problem+json"
_STATUS_TITLES: Final = {
    400: "Bad request",
    401: "A token is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    408: "Too slow",
    409: "Conflict",
    410: "The change log does not reach back that far",
    413: "Too large",
    414: "The address is too long",
    415: "The body is not JSON",
    421: "Unknown host name",
    429: "Too many requests",
    431: "The headers are too large",
    500: "Internal error",
    503: "Unavailable",
}

_KINDS: Final[tuple[tuple[type[Exception], int, str, int | None], ...]] = (
    (CursorLost, 410, "cursor-lost", None),
    (InputError, 400, "input", None),
    (msgspec.ValidationError, 400, "input", None),
    (StoreVersion, 503, "store-format", 60),
    (StoreError, 503, "store-away", 5),
    (RepositoryError, 503, "copy-unreadable", 60),
    (WebfountainError, 503, "failed", None),
)
"""Rows of (error class, HTTP status, kind, value of Retry-After in seconds). The first row whose class matches an error
describes the error."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Description of an error: `title` and `detail` are for people, `kind` is for programs."""

    status: int
    title: str
    kind: str
    detail: str = ""
    type: str = "about:blank"


class ProblemError(Exception):
    """Error that becomes the answer to a request, as a problem document."""

    def __init__(self, status: int, kind: str, detail: str = "", *, retry_after_s: int | None = None) -> None:
        super().__init__(detail)
        self.problem = Problem(status, _STATUS_TITLES.get(status, "Error"), kind, detail)
        self.retry_after_s = retry_after_s


def problem_of(error: Exception) -> ProblemError:
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, web.HTTPException):
        return ProblemError(error.status, "http", error.reason)
    for kind, status, name, retry_after_s in _KINDS:
        if isinstance(error, kind):
            return ProblemError(status, name, str(error), retry_after_s=retry_after_s)
    logger.error("A request failed with an unexpected error", exc_info=error)
    return ProblemError(500, "internal", "see the log of the service")


def problem_response(error: ProblemError) -> web.Response:
    response = web.Response(
        status=error.problem.status, body=msgspec.json.encode(error.problem), content_type=CONTENT_TYPE
    )
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s)
    if error.problem.status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="webfountain"'
    return response
