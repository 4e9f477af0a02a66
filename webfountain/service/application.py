"""The web application of the service: it routes, checks and answers requests by the table of operations.

The query and body of a request are converted to the types of the operation. If a field is invalid, the answer names the
field. Answers are JSON with an ETag, compressed if large.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from webfountain.history.exposition import CONTENT_TYPE, Figures, exposition
from webfountain.policy.errors import explain
from webfountain.service.answers import CollectionEntry, CollectionsAnswer, HealthAnswer, ReadyAnswer
from webfountain.service.guards import Guard, add_security_headers, answer_problems
from webfountain.service.messages import fields_of, packed_response, received, store_of
from webfountain.service.openapi import description, reference_page
from webfountain.service.operation import Call, Operation
from webfountain.service.pages.router import PageRouter
from webfountain.service.problems import ProblemError
from webfountain.service.roles import COOKIE, SESSION_S
from webfountain.service.streams import STREAMS, StreamPlaces
from webfountain.service.table import OPERATIONS
from webfountain.service.tail import SharedAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.api.answers import CopyAnswer
    from webfountain.api.collection import StoredCollection
    from webfountain.service.roles import Roles
    from webfountain.service.served_store import ServedStore
    from webfountain.service.settings import ServeSettings

__all__ = ["MAX_BODY", "Service", "figures_of"]

MAX_BODY: Final = 1_000_000
"""Maximum size of a request body, bytes."""
_RECENT_S: Final = 3600.0
"""Maximum age of a reported disk size, in seconds."""


class Service:
    """The service: its stores by name, and the guard that checks each request."""

    def __init__(self, stores: Mapping[str, ServedStore], settings: ServeSettings, roles: Roles) -> None:
        self._stores = stores
        self._roles = roles
        self._base = settings.base_path
        self._guard = Guard(settings, roles)
        self._pages = PageRouter(stores, self._guard, settings.base_path)
        self._places = StreamPlaces()
        self._scrape = SharedAnswer(self._figures, seconds=1.0)
        self._operations = (*OPERATIONS, *self._own_operations())
        found = description(self._operations, base_path=self._base)
        self._description, self._reference = msgspec.json.encode(found), reference_page(found)

    def application(self) -> web.Application:
        """Return the application that a server runs."""
        app = web.Application(middlewares=[answer_problems], client_max_size=MAX_BODY)
        app[STREAMS] = self._places
        app.on_response_prepare.append(add_security_headers)
        for each in self._operations:
            app.router.add_route(each.method, self._base + each.path, self._handler(each))
        app.router.add_get(f"{self._base}/v1/openapi.json", self._describe, allow_head=False)
        app.router.add_get(f"{self._base}/v1/reference", self._refer, allow_head=False)
        app.router.add_get(f"{self._base}/metrics", self._expose, allow_head=False)
        app.router.add_get(f"{self._base}/login", self._login, allow_head=False)
        self._pages.add_to(app)
        return app

    def _own_operations(self) -> tuple[Operation, ...]:
        """Return the operations that concern the whole service, such as the health check."""
        return (
            Operation(
                "collections", "GET", "/v1/collections", "The served collections.", CollectionsAnswer,
                handle=self._collections, tag="service",
            ),
            Operation(
                "health", "GET", "/healthz", "Confirm that the service is alive.", HealthAnswer,
                handle=self._health, role=None, tag="service",
            ),
            Operation(
                "ready", "GET", "/readyz", "Report whether a store can be read.", ReadyAnswer,
                handle=self._ready, role=None, tag="service",
            ),
        )  # fmt: skip

    def _handler(self, each: Operation) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            self._guard.check(request, each.role)
            store = store_of(request, self._stores) if "{collection}" in each.path else None
            query = fields_of(request.query, each.query)
            body = None if each.body is None else await _body(request, each.body)
            answer = await self._answer(each, Call(request, store, query, body))
            if isinstance(answer, web.StreamResponse):
                return answer
            return _attachment(answer) if each.name == "copy" else json_response(request, answer)

        return handle

    @staticmethod
    async def _answer(each: Operation, call: Call) -> Any:
        if each.handle is not None:
            return await each.handle(call)
        assert call.store is not None
        read, write = each.read, each.write
        if read is not None:
            return await call.store.call(lambda collection: read(collection, call.query))
        assert write is not None
        return await call.store.call(lambda collection: write(collection, call.body))

    async def _entries(self) -> list[CollectionEntry]:
        """Return each store, and whether it can be read."""

        async def entry(store: ServedStore) -> CollectionEntry:
            try:
                await store.call(lambda collection: collection.changes_end())
            except Exception:
                return CollectionEntry(store.name, available=False, problem=store.failure or "the store is busy")
            return CollectionEntry(store.name, available=True, problem=None)

        return list(await asyncio.gather(*map(entry, self._stores.values())))

    async def _collections(self, call: Call) -> CollectionsAnswer:
        del call
        return CollectionsAnswer(await self._entries())

    async def _health(self, call: Call) -> HealthAnswer:
        del call
        return HealthAnswer(alive=True)

    async def _ready(self, call: Call) -> object:
        entries = await self._entries()
        ready = any(each.available for each in entries)
        public = [msgspec.structs.replace(each, problem=None if each.available else "away") for each in entries]
        answer = json_response(call.request, ReadyAnswer(ready, public))
        answer.set_status(200 if ready else 503)
        return answer

    async def _describe(self, request: web.Request) -> web.Response:
        self._guard.check(request, "read")
        return web.Response(body=self._description, content_type="application/json")

    async def _refer(self, request: web.Request) -> web.Response:
        self._guard.check(request, "read")
        return web.Response(body=self._reference, content_type="text/html", charset="utf-8")

    async def _expose(self, request: web.Request) -> web.Response:
        """Answer a Prometheus scrape. Requests within one second share one answer."""
        self._guard.check(request, "read")
        body = await self._scrape.get()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _figures(self) -> bytes:
        async def figures(store: ServedStore) -> Figures:
            try:
                return await store.call(lambda collection: figures_of(collection, store.name))
            except Exception:
                return Figures(store.name, available=False, at=0.0)

        found = await asyncio.gather(*map(figures, self._stores.values()))
        return exposition(found, streams=self._places.open)

    async def _login(self, request: web.Request) -> web.Response:
        """Open a session for the login URL that the service printed at its start."""
        self._guard.check(request, None)
        session = self._roles.open_session(request.query.get("code", ""))
        if session is None:
            raise ProblemError(403, "login", "this login address was already used or has expired: restart the service")
        response = web.Response(status=303, headers={"Location": f"{self._base}/"})
        scheme, _ = self._guard.origin(request)
        response.set_cookie(
            COOKIE, session, max_age=SESSION_S, path=f"{self._base}/", httponly=True, samesite="Strict",
            secure=scheme == "https",
        )  # fmt: skip
        return response


def figures_of(collection: StoredCollection, name: str) -> Figures:
    """Return the figures of a collection for a Prometheus scrape. `name` is the Prometheus label of the collection."""
    status = collection.status()
    samples = collection.history(since=status.at - _RECENT_S)
    return Figures(
        name,
        available=True,
        at=status.at,
        live=collection.live(),
        freshness=status.freshness,
        failing=status.failing,
        store_bytes=samples[-1].store_bytes if samples else None,
        repository_bytes=samples[-1].repository_bytes if samples else None,
    )


def json_response(request: web.Request, answer: object) -> web.Response:
    return packed_response(request, msgspec.json.encode(answer, enc_hook=_plain), "application/json", {})


def _attachment(copy: CopyAnswer) -> web.Response:
    """Return a copy as an attachment, because browsers do not show or run attachments."""
    headers = {
        "Content-Disposition": 'attachment; filename="copy"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Webfountain-Status": str(copy.status),
        "X-Webfountain-Fetched": repr(copy.fetched),
    }
    return web.Response(body=copy.body, content_type="application/octet-stream", headers=headers)


async def _body(request: web.Request, kind: type[msgspec.Struct]) -> Any:
    if request.content_type != "application/json":
        raise ProblemError(415, "media-type", "send application/json")
    data = await received(request.read())
    try:
        found = msgspec.json.decode(data)
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise ProblemError(400, "input", f"body: {explain(str(error), found, root=kind)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(400, "input", f"body: {error}") from None


def _plain(value: Any) -> object:
    """Return a numpy number as a Python number."""
    return value.item()
