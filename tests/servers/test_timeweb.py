"""The recorded pages as a web: which pages exist when, which pages links reach, and which bytes are served."""

from __future__ import annotations

from hashlib import sha1
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.servers.timeweb import DAY, START, TimeServer, TimeWeb

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.shared
BASES = ("http://127.0.1.1:8080", "http://127.0.1.2:8080")


@pytest.fixture(scope="module")
def archive(shared_data: Path) -> Path:
    return shared_data / "timeweb" / "timeweb.zip"


@pytest.fixture(scope="module")
def web(archive: Path) -> TimeWeb:
    return TimeWeb(archive, BASES)


def test_links_reach_nearly_all_pages_that_exist(web: TimeWeb) -> None:
    existing = sum(web.version(site, path, START)[0] is not None for site in (0, 1) for path in web.versions[site])
    urls = [urlsplit(url) for url, _ in web.truth(START)]
    sites = [BASES.index(f"{url.scheme}://{url.netloc}") for url in urls]
    reached = {(site, web.resolve(site, url.path, START)) for site, url in zip(sites, urls, strict=True)}
    assert existing == 184
    assert len(reached) == 171  # as the data's README counts


def test_paths_are_resolved_as_a_static_server_does(web: TimeWeb) -> None:
    folder = next(p for p in web.versions[1] if p.endswith("/index.html") and p != "/index.html")
    late = START + 700 * DAY
    assert web.resolve(1, folder.removesuffix("index.html"), late) == (200, folder)
    assert web.resolve(1, folder.removesuffix("/index.html"), late) == (
        301,
        folder.removesuffix("index.html"),
    )
    assert web.resolve(0, "/downloads?x=1", late) == (200, "/downloads.html")
    assert web.resolve(0, "/nowhere", late) == (404, "")


def test_a_page_is_as_old_as_its_version(web: TimeWeb) -> None:
    late = START + 400 * DAY
    times, _ = web.versions[0]["/index.html"]
    assert web.respond(0, "/", late).changed == max(time for time in times if time <= late)


def test_bodies_name_this_server_and_no_other(web: TimeWeb) -> None:
    bodies = b"".join(web.body(blobs[-1]) for _, blobs in list(web.versions[0].values())[:20])
    assert b"https://flink.apache.org/" not in bodies
    assert f"{BASES[0]}/".encode() in bodies


def test_the_served_bytes_are_the_truths_while_days_pass(archive: Path) -> None:
    with TimeServer(archive, rate=DAY, origin=START + 30 * DAY) as server:
        host = urlsplit(server.urls[0]).netloc
        connection = HTTPConnection(host, timeout=120)
        connection.request("GET", "/")
        answer = connection.getresponse()
        body, etag = answer.read(), answer.headers["ETag"]
        connection.request("GET", "/", headers={"If-None-Match": etag})
        again = connection.getresponse()
        assert (again.status, again.read()) == (304, b"")
        connection.close()
        visit = server.log()[0]
        truth = server.truth(at=visit.start)
        assert truth.pages[server.urls[0]] == sha1(body).hexdigest()
        assert START + 30 * DAY < truth.t < START + 60 * DAY
        assert len(server.truth(at=server.clock.utc(START + 700 * DAY)).pages) > len(truth.pages)
