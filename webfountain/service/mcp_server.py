"""The server for language models: the tools over the Model Context Protocol, by standard input or HTTP.

The server needs the extra `webfountain[mcp]`. Over HTTP, only operators see the tool that operates the crawl.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from webfountain import __version__
from webfountain.service.mcp_tools import NOTICE, CollectionTools
from webfountain.service.roles import Roles
from webfountain.service.settings import address_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webfountain.service.roles import Role
    from webfountain.service.served_store import ServedStore

__all__ = ["PATH", "RoleGate", "http_application", "serve_http", "serve_stdio", "server_of"]

PATH: Final = "/mcp"
_INSTRUCTIONS: Final = (
    "A collection of web pages kept fresh by a crawler. Search it, read pages, and find out what changed and "
    "how fresh it is. " + NOTICE
)


def server_of(store: ServedStore, *, may_operate: bool) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer(
        "webfountain", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    tools = CollectionTools(store)
    for each in (tools.search, tools.read_page, tools.changes_since, tools.freshness, tools.explain):
        server.add_tool(each, structured_output=False)
    if may_operate:
        server.add_tool(tools.fetch_now, structured_output=False)
    return server


async def serve_stdio(store: ServedStore, *, may_operate: bool) -> None:
    """Serve by standard input and output until the input ends."""
    await server_of(store, may_operate=may_operate).run_stdio_async()


async def serve_http(
    store: ServedStore, listen: str, tokens: Mapping[str, Role], hosts: Sequence[str], *, read_only: bool
) -> None:
    """Serve over HTTP until a signal ends the process."""
    address = address_of(listen)
    application = http_application(store, tokens, hosts, is_local=address.is_local, read_only=read_only)
    config = uvicorn.Config(application, host=address.host, port=address.port, log_level="warning", lifespan="on")
    await uvicorn.Server(config).serve()


def http_application(
    store: ServedStore, tokens: Mapping[str, Role], hosts: Sequence[str], *, is_local: bool, read_only: bool
) -> RoleGate:
    """Return the ASGI application, which serves readers and operators. On loopback, a client may read without a
    token."""
    security = TransportSecuritySettings(
        allowed_hosts=[f"{host}{port}" for host in ("127.0.0.1", "localhost", "[::1]", *hosts) for port in ("", ":*")],
        allowed_origins=[],
    )
    servers = {role: server_of(store, may_operate=role == "operate") for role in ("read", "operate")}
    apps = {
        role: server.streamable_http_app(
            streamable_http_path=PATH, json_response=True, stateless_http=True, transport_security=security
        )
        for role, server in servers.items()
    }
    return RoleGate(apps, Roles(tokens, reads_freely=is_local, read_only=read_only))


class RoleGate:
    """ASGI application that looks up the client's role and passes the request to the application for this role."""

    def __init__(self, apps: Mapping[str, Any], roles: Roles) -> None:
        self._apps = apps
        self._roles = roles

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif (role := self._role(dict(scope.get("headers", ())))) is None:
            await _refuse(send)
        else:
            await self._apps[role](scope, receive, send)

    def _role(self, headers: Mapping[bytes, bytes]) -> Role | None:
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if not token:
            return self._roles.role_without_token(is_local=True)
        role = self._roles.role_of_token(token.strip()) if scheme.lower() == "bearer" else None
        return "read" if role is not None and self._roles.read_only else role

    async def _live(self, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        async with contextlib.AsyncExitStack() as stack:
            await receive()
            for app in self._apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def _refuse(send: Callable[[Any], Awaitable[None]]) -> None:
    headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b'Bearer realm="webfountain"')]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"send a token: Authorization: Bearer TOKEN\n"})
