"""Checks of each request before its operation runs.

The check of the Origin header stops web pages of other sites, which could otherwise use the session of a visitor. The
check of the Host header prevents DNS rebinding. A client may only do what its role allows. The headers of each answer
forbid the browser to run scripts.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from aiohttp import web

from webfountain.service.problems import ProblemError, problem_of, problem_response
from webfountain.service.roles import COOKIE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webfountain.service.roles import Role, Roles
    from webfountain.service.settings import ServeSettings

__all__ = ["SECURITY_HEADERS", "Guard", "add_security_headers", "answer_problems"]

_SAFE: Final = frozenset({"GET", "HEAD"})
_RANK: Final = {None: 0, "read": 1, "operate": 2}
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Checks the host name, the origin and the role of each request."""

    def __init__(self, settings: ServeSettings, roles: Roles) -> None:
        self._hosts = {host.lower() for host in settings.hosts}
        self._forwarded = settings.forwarded
        self._roles = roles

    def check(self, request: web.Request, role: Role | None) -> None:
        """Accept a request if its client has at least the role `role`, or if `role` is None.

        Raises
        ------
        ProblemError
            with status 421 for a foreign host name, 403 for a foreign page or an insufficient role, 401 for a missing
            token.
        """
        self._check_host(request)
        self._check_origin(request)
        if role == "operate" and self._roles.read_only:
            raise ProblemError(403, "read-only", "the service was started with --read-only")
        has = self._role(request)
        if _RANK[has] >= _RANK[role]:
            return
        if has is None or not self._has_proof(request):
            raise ProblemError(401, "token-needed", "send a token: Authorization: Bearer TOKEN")
        raise ProblemError(403, "role", f"the token has the role {has}, this request needs the role {role}")

    def origin(self, request: web.Request) -> tuple[str, str]:
        """Return scheme and host of the request, from the proxy's headers if a proxy is configured."""
        scheme, host = request.scheme, request.headers.get("Host", "")
        if self._forwarded:
            scheme = request.headers.get("X-Forwarded-Proto", scheme).split(",")[0].strip()
            host = request.headers.get("X-Forwarded-Host", host).split(",")[0].strip()
        return scheme.lower(), host.lower()

    def _check_host(self, request: web.Request) -> None:
        if _is_unix(request):
            return  # browsers cannot use a Unix socket
        _, host = self.origin(request)
        name = _host_name(host)
        if name is None or not (name in self._hosts or name == "localhost" or self._is_own_address(request, name)):
            raise ProblemError(
                421, "host", "this service does not accept this host name (add it to `hosts` in the configuration file)"
            )

    @staticmethod
    def _is_own_address(request: web.Request, name: str) -> bool:
        """Return whether a host is a loopback address or equals the IP address that received the request."""
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        socket = None if request.transport is None else request.transport.get_extra_info("sockname")
        return address.is_loopback or (isinstance(socket, tuple) and str(address) == socket[0])

    def _check_origin(self, request: web.Request) -> None:
        given = request.headers.get("Origin")
        if given is not None:
            parts, (scheme, host) = _split(given), self.origin(request)
            if parts != (scheme, host):
                raise ProblemError(403, "origin", "pages of other sites may not send requests here")
        elif request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and request.method not in _SAFE:
            raise ProblemError(403, "origin", "pages of other sites may not send requests here")

    def _role(self, request: web.Request) -> Role | None:
        roles = self._roles
        found = [roles.role_without_token(is_local=_is_unix(request) or _is_loopback(request))]
        if (token := _bearer(request)) is not None:
            given = roles.role_of_token(token)
            if given is None:
                raise ProblemError(401, "token-unknown", "the token is unknown")
            found.append(given)
        if (session := request.cookies.get(COOKIE)) is not None:
            found.append(roles.role_of_session(session))
        return max(found, key=lambda role: _RANK[role])

    @staticmethod
    def _has_proof(request: web.Request) -> bool:
        return _bearer(request) is not None or COOKIE in request.cookies


@web.middleware
async def answer_problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """If the handler raises an error, answer with a problem document."""
    try:
        return await handler(request)
    except web.HTTPMethodNotAllowed as error:
        response = problem_response(problem_of(error))
        response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
        return response
    except Exception as error:
        return problem_response(problem_of(error))


async def add_security_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Forbid the browser to run scripts, and hide the name of the server's software."""
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = "webfountain"
    response.headers.setdefault("Cache-Control", "no-cache")


def _bearer(request: web.Request) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _is_unix(request: web.Request) -> bool:
    socket = None if request.transport is None else request.transport.get_extra_info("sockname")
    return isinstance(socket, str | bytes)


def _is_loopback(request: web.Request) -> bool:
    """Return whether the request arrived at a loopback address.

    Requests through a proxy on this machine arrive at a loopback address too, so a service behind a proxy needs tokens.
    """
    socket = None if request.transport is None else request.transport.get_extra_info("sockname")
    return isinstance(socket, tuple) and ipaddress.ip_address(socket[0]).is_loopback


def _host_name(host: str) -> str | None:
    """Return the name in a Host header without its port, or None if the header is invalid."""
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018  (reading the port checks it)
    except ValueError:
        return None
    return None if not host or parts.path or parts.username is not None else parts.hostname


def _split(origin: str) -> tuple[str, str]:
    scheme, _, host = origin.lower().partition("://")
    return scheme, host
