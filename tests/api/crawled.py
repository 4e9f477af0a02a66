"""A crawled collection on the disk, and the service in front of it, for the tests of API and service."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp

from tests.frontier.drive import Drive, collection_of
from webfountain.clock import ManualClock
from webfountain.history.publishing import FilePlace
from webfountain.history.recorder import Recorder
from webfountain.repository.repository import Repository
from webfountain.service.server import serving
from webfountain.service.settings import ServeSettings, StoreEntry
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from webfountain.records import Fetch

SITES = ("http://a.example", "http://b.example")
BEGIN = 1_760_000_000.0
PAGES = 30


def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
    """Two sites of thirty pages; /7 is gone, and the home pages change with each visit."""
    path = "/" + fetch.url.split("/", 3)[3]
    if fetch.kind == "robots":
        return 404, {}, b"", 0.01
    if path == "/7":
        return 404, {"content-type": "text/html"}, b"gone", 0.01
    links = "".join(f"<a href='/{number}'>{number}</a>" for number in range(PAGES))
    changing = f"<p>{int(at) if path == '/' else path} words of a page</p>"
    return 200, {"content-type": "text/html"}, f"<title>Page {path}</title>{changing}{links}".encode(), 0.01


def crawled_store(folder: Path, *, seconds: float = 600.0, rest: str = "") -> str:
    """Crawl the two sites into a store of the folder; its URL. The live snapshot is left there, as of a dead crawl."""
    url = f"rocksdb://{folder}"
    rules = collection_of([f"{site}/" for site in SITES], min_delay="10ms", delay_factor=0, period="5m", rest=rest)
    store = open_store(url, collection="test", period_s=rules.cycle.period_s, fastest_s=rules.cycle.fastest_s)
    clock = ManualClock(BEGIN)
    drive = Drive(
        rules, answer, store=store, repository=Repository(folder / "repository", rules=rules.repository), clock=clock
    )
    recorder = Recorder(drive.frontier, drive.metrics, now=clock.now)
    drive.run(seconds=seconds)
    FilePlace(folder).put(recorder.snapshot())
    recorder.record(store)
    drive.frontier.close()
    return url


@dataclass
class ServiceClient:
    """The service at an address, with a client."""

    address: str
    client: aiohttp.ClientSession
    login: str = ""
    printed: list[str] = field(default_factory=list)

    async def get(self, path: str, *, headers: Mapping[str, str] | None = None, **query: Any) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        params = {name: str(value) for name, value in query.items()}
        async with self.client.get(self.address + path, params=params, headers=headers) as response:
            return response.status, _json(await response.read())

    async def post(self, path: str, body: Any, *, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """The same of a body as JSON."""
        async with self.client.post(self.address + path, json=body, headers=headers) as response:
            return response.status, _json(await response.read())

    async def log_in(self) -> None:
        """Use the address that was printed at the start."""
        async with self.client.get(self.login, allow_redirects=False) as response:
            assert response.status == 303


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data


@contextlib.asynccontextmanager
async def served(*urls: str, **settings: Any) -> AsyncIterator[ServiceClient]:
    """Serve stores on a free port; the first is called `one`."""
    names = ("one", "two", "three")
    entries = tuple(StoreEntry(name, url) for name, url in zip(names, urls, strict=False))
    settings.setdefault("listen", ("127.0.0.1:0",))
    async with serving(ServeSettings(stores=entries, **settings)) as printed:
        login = printed[0]
        address = login.split("/login")[0].rstrip("/")
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            yield ServiceClient(address, client, login, list(printed))
