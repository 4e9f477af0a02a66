"""The router of pages: it checks the role, processes forms, reads the values in the store's thread, and renders."""

from __future__ import annotations

import asyncio
import contextlib
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec
import xxhash
from aiohttp import web

from webfountain import __version__
from webfountain.errors import InputError
from webfountain.service.messages import fields_of, packed_response, received, store_of
from webfountain.service.pages.overview import summary_of
from webfountain.service.pages.rendering import environment
from webfountain.service.pages.reports import MAX_ROWS, TABLES, ReportQuery, as_csv, report_part
from webfountain.service.pages.views import VIEWS
from webfountain.service.problems import ProblemError, problem_of
from webfountain.service.tail import SharedAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from webfountain.service.guards import Guard
    from webfountain.service.pages.views import View
    from webfountain.service.served_store import ServedStore

__all__ = ["ASSETS", "PAGE_HEADERS", "PageRouter"]

PAGE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",  # with no-referrer, a browser sends forms with `Origin: null`
}
ASSETS: Final = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
SHARED_S: Final = 3.0
"""All users share the values of a page for this number of seconds."""
_MENU: Final = tuple((each.path, each.title, each.name) for each in VIEWS if each.in_menu)


class PageRouter:
    """The web pages of all served stores, below one base path."""

    def __init__(self, stores: Mapping[str, ServedStore], guard: Guard, base: str) -> None:
        self._stores = stores
        self._guard = guard
        self._base = base
        self._shared: dict[tuple[str, str, Any], SharedAnswer[Mapping[str, Any]]] = {}

    def add_to(self, app: web.Application) -> None:
        """Add the routes of the pages to an application."""
        router, base = app.router, self._base
        router.add_get(f"{base}/", self._page(self._home), allow_head=False)
        router.add_get(f"{base}/assets/{{name}}", self._asset, allow_head=False)
        for view in VIEWS:
            path = f"{base}/collections/{{collection}}{view.path}"
            router.add_get(path, self._page(self._view(view)), allow_head=False)
            if view.act is not None:
                router.add_post(path, self._page(self._view(view)))
        table = f"{base}/collections/{{collection}}/tables/{{table}}"
        router.add_get(table, self._page(self._table), allow_head=False)

    def _page(self, answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Any:
        """Return a handler that shows errors as HTML pages."""

        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return await answer(request)
            except Exception as error:
                found = problem_of(error)
            name = request.match_info.get("collection")
            values = {
                "problem": found.problem,
                "title": found.problem.title,
                "collection": name if name in self._stores else None,
            }
            response = self._rendered(request, "problem", values, status=found.problem.status)
            if found.retry_after_s is not None:
                response.headers["Retry-After"] = str(found.retry_after_s)
            return response

        return handle

    async def _home(self, request: web.Request) -> web.StreamResponse:
        """Show the home page, which lists all collections."""
        self._guard.check(request, "read")

        async def summary(store: ServedStore) -> tuple[str, Mapping[str, Any] | None, str | None]:
            try:
                return store.name, await store.call(summary_of), None
            except Exception:
                return store.name, None, store.failure or "the store is busy"

        rows = await asyncio.gather(*map(summary, self._stores.values()))
        return self._rendered(request, "home", {"rows": rows, "title": "Collections", "collection": None})

    def _view(self, view: View) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            self._guard.check(request, "operate" if request.method == "POST" else "read")
            store = store_of(request, self._stores)
            query = fields_of(request.query, view.query)
            form = None
            if request.method == "POST":
                assert view.form is not None
                form = fields_of(await _form(request), view.form)
            if form is None and view.is_shared:
                values = await self._shared_values(store, view, query)
            else:
                values = await store.call(lambda collection: _values(collection, view, query, form))
            more = {"title": view.title, "collection": store.name, "view": view.name, "done": None, "problem": None}
            return self._rendered(request, view.name, more | dict(values))

        return handle

    async def _shared_values(self, store: ServedStore, view: View, query: Any) -> Mapping[str, Any]:
        """Return the values for a view, which are shared by all users for `SHARED_S` seconds."""
        place = (store.name, view.name, query)
        found = self._shared.get(place)
        if found is None:
            read = partial(_values, view=view, query=query, form=None)
            found = self._shared[place] = SharedAnswer(lambda: store.call(read), seconds=SHARED_S)
        return await found.get()

    async def _table(self, request: web.Request) -> web.StreamResponse:
        """Send all rows of a table, in parts."""
        self._guard.check(request, "read")
        store, query = store_of(request, self._stores), fields_of(request.query, ReportQuery)
        table = request.match_info["table"]
        if table not in TABLES:
            raise ProblemError(404, "unknown-table", f"there is no such table (there are: {', '.join(TABLES)})")
        part, place = await store.call(partial(report_part, table=table, query=query, after=""))
        kind = "text/csv" if query.format == "csv" else "application/json"
        name = f'attachment; filename="{store.name}-{table}.{query.format}"'
        response = web.StreamResponse(headers={"Content-Type": f"{kind}; charset=utf-8", "Content-Disposition": name})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            sent = 0
            while True:
                await response.write(_encoded(part, query.format, is_first=sent == 0))
                sent += len(part)
                if place is None or sent >= MAX_ROWS:
                    break
                read = partial(report_part, table=table, query=query, after=place)
                part, place = await store.call(read)
            if query.format == "json":
                await response.write(b"]\n" if sent else b"[]\n")
        return response

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        """Send a static file, such as the style sheet."""
        self._guard.check(request, None)
        name = request.match_info["name"]
        if name not in ASSETS:
            raise ProblemError(404, "http", "there is no such file")
        headers = {"Cache-Control": "public, max-age=31536000, immutable"} if request.query.get("v") else {}
        return packed_response(request, _asset(name), ASSETS[name], headers, charset="utf-8")

    def _rendered(
        self, request: web.Request, name: str, values: Mapping[str, Any], *, status: int = 200
    ) -> web.Response:
        home = self._base + "/"
        here = None if values["collection"] is None else f"{self._base}/collections/{values['collection']}"
        shared = {
            "base": self._base,
            "home": home,
            "here": here,
            "menu": _MENU,
            "view": name,
            "may_operate": self._may_operate(request),
            "asset": lambda file: f"{self._base}/assets/{file}?v={_asset_tag(file)}",
            "version": __version__,
            "path": request.path,
            "several": len(self._stores) > 1,
        }
        text = environment().get_template(f"{name}.html").render(shared | dict(values))
        body = text.encode("utf-8", "replace")
        response = packed_response(request, body, "text/html", PAGE_HEADERS, charset="utf-8")
        if response.status == 200:
            response.set_status(status)
        return response

    def _may_operate(self, request: web.Request) -> bool:
        try:
            self._guard.check(request, "operate")
        except ProblemError:
            return False
        return True


def _values(collection: Any, view: View, query: Any, form: Any) -> Mapping[str, Any]:
    """Return the values for a view's template. If the user sent a form, process the form first."""
    if form is None:
        return view.read(collection, query)
    assert view.act is not None
    try:
        done = view.act(collection, form)
    except InputError as error:
        done = {"problem": str(error)}
    return {**view.read(collection, query), **done}


def _encoded(rows: list[dict[str, Any]], form: str, *, is_first: bool) -> bytes:
    if form == "csv":
        return as_csv(rows, with_head=is_first).encode("utf-8", "replace")
    lines = b",\n".join(map(msgspec.json.encode, rows))
    return (b"[" if is_first and rows else b",\n" if rows else b"") + lines


async def _form(request: web.Request) -> Mapping[str, Any]:
    if request.content_type != "application/x-www-form-urlencoded":
        raise ProblemError(415, "media-type", "send a form")
    return await received(request.post())


@cache
def _asset(name: str) -> bytes:
    return files("webfountain.service.pages").joinpath("assets", name).read_bytes()


@cache
def _asset_tag(name: str) -> str:
    return xxhash.xxh3_64_hexdigest(_asset(name))
