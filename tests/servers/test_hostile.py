"""The hostile servers behave as described, at ``/bad`` (or robots.txt, sitemaps) and nowhere else."""

from __future__ import annotations

import asyncio
import gzip
import json
from urllib.parse import urlsplit

import pytest

from tests.servers.behaviours import LIMIT_SECONDS
from tests.servers.hostile import BEHAVIOURS, HostileServer
from webfountain.errors import WebfountainError

PEEK = 200_000


async def peek(url: str, path: str, *, seconds: float = 5.0) -> bytes:
    """Return the first bytes of an answer: at most PEEK bytes, as received within `seconds`."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
    got = b""
    try:
        async with asyncio.timeout(seconds):
            while len(got) < PEEK and (data := await reader.read(65_536)):
                got += data
    except (TimeoutError, ConnectionError):
        pass
    writer.transport.abort()
    return got


async def peek_all(server: HostileServer, paths: dict[str, str], *, seconds: float) -> dict[str, bytes]:
    """Return the first bytes by behaviour, from all sites at once."""
    answers = await asyncio.gather(*(peek(server.sites[n], p, seconds=seconds) for n, p in paths.items()))
    return dict(zip(paths, answers, strict=True))


def test_there_are_enough_behaviours_and_each_says_what_it_does() -> None:
    assert len(BEHAVIOURS) >= 80
    assert all(behaviour.says.endswith(".") for behaviour in BEHAVIOURS.values())


def test_every_site_has_good_pages_beside_the_bad_place(hostile_server: HostileServer) -> None:
    for path, words in (("/", b'href="/bad"'), ("/good", b"A good page.")):
        answers = asyncio.run(peek_all(hostile_server, dict.fromkeys(hostile_server.sites, path), seconds=20))
        assert all(words in answer for answer in answers.values())


def test_every_behaviour_acts_at_its_place_until_the_client_has_enough(hostile_server: HostileServer) -> None:
    places = {name: behaviour.place for name, behaviour in BEHAVIOURS.items()}
    mute = {"silence", "closed-before-the-answer", "reset-before-the-answer", "robots-silent", "robots-reset"}
    slow = {"trickled-headers", "trickled-body", "stalled-body"}
    rest = {name: place for name, place in places.items() if name not in mute | slow}
    answers = asyncio.run(peek_all(hostile_server, rest, seconds=20))
    assert [name for name, answer in answers.items() if not answer] == []
    endless = [name for name, answer in answers.items() if len(answer) >= PEEK]
    assert {"endless-headers", "endless-header-line", "robots-endless", "sitemap-endless"} <= set(endless)
    held = asyncio.run(peek_all(hostile_server, {name: places[name] for name in mute | slow}, seconds=0.2))
    assert {name for name, answer in held.items() if not answer} == mute


def test_bombs_are_small_until_unpacked(hostile_server: HostileServer) -> None:
    answer = asyncio.run(peek(hostile_server.sites["gzip-bomb"], "/bad", seconds=20))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head
    assert len(body) < 200_000
    assert len(gzip.decompress(body)) == 100_000_000


@pytest.mark.parametrize(
    ("name", "path", "words"),
    [
        ("redirect-to-file", "/bad", b"Location: file:///etc/passwd\r\n"),
        ("redirect-loop", "/bad2", b"Location: /bad\r\n"),
        ("redirect-without-end", "/bad/7", b"Location: /bad/8\r\n"),
        ("robots-503", "/robots.txt", b"HTTP/1.1 503 Service Unavailable\r\n"),
        ("robots-503", "/bad", b"A good page."),
        ("sitemap-bomb", "/robots.txt", b"/sitemap.xml\n"),
        ("silence", "/robots.txt", b"HTTP/1.1 404 Not Found\r\n"),
        ("calendar", "/bad?month=8", b'href="/bad?month=9"'),
        ("dated-folders", "/bad/5/11/30", b'href="/bad/6/0/0"'),
        ("repeating-path", "/bad/a/b/", b'href="/bad/a/b/a/b/"'),
        ("plain", "/back?to=http://x/", b"Location: http://x/\r\n"),
    ],
)
def test_answers_lead_where_they_say(hostile_server: HostileServer, name: str, path: str, words: bytes) -> None:
    assert words in asyncio.run(peek(hostile_server.sites[name], path))


def test_a_refusal_with_a_date_ends_and_the_log_counts_the_requests() -> None:
    with HostileServer("retry-after-seconds") as server:
        url = server.sites["retry-after-seconds"]
        first, second = (asyncio.run(peek(url, "/bad")) for _ in range(2))
        visits = server.visits("retry-after-seconds")
    assert b"429 Too Many Requests" in first
    assert b"Retry-After: 2\r\n" in first
    assert b"<p>now</p>" in second
    assert [(visit.path, visit.busy) for visit in visits] == [("/bad", 0), ("/bad", 0)]


def test_a_visit_ends_when_the_client_hangs_up() -> None:
    with HostileServer("silence") as server:
        assert asyncio.run(peek(server.sites["silence"], "/bad", seconds=0.1)) == b""
        asked = (server.visits("silence") for _ in range(1000))  # the server may read our question first
        (visit,) = next(visits for visits in asked if visits)
    assert 0.0 <= visit.end - visit.start < LIMIT_SECONDS


def test_the_ready_line_names_the_sites(hostile_server: HostileServer) -> None:
    assert set(hostile_server.sites) == {"plain", *BEHAVIOURS}
    assert len({urlsplit(url).hostname for url in hostile_server.urls}) == len(hostile_server.urls)
    assert json.loads(json.dumps(hostile_server.ready)) == hostile_server.ready


def test_an_unknown_name_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WebfountainError, match="status 2"):
        HostileServer("kindness")
    assert "no behaviour is called kindness" in capfd.readouterr().err
