"""The loopback server speaks HTTP as crawlers expect and tells the truth about what it served."""

from __future__ import annotations

import gzip
import json
import socket
from hashlib import sha1
from http.client import HTTPConnection, HTTPResponse
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from webfountain.errors import WebfountainError
from webfountain.lab.demo.answers import Answer, WebClock
from webfountain.lab.demo.process import DemoServer, Truth, freshness, overlaps
from webfountain.lab.demo.server import LoggedVisit, ServedConnection, Server
from webfountain.lab.demo.web import generated_web

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer(seed=2, sites=2, pages=30, period=0, origin=3) as server:
        yield server


@pytest.fixture
def connection(server: DemoServer) -> Iterator[HTTPConnection]:
    connection = HTTPConnection(urlsplit(server.urls[0]).netloc, timeout=120)
    yield connection
    connection.close()


def get(connection: HTTPConnection, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    return response, response.read()


def raw(server: DemoServer, request: bytes) -> bytes:
    where = urlsplit(server.urls[0])
    with socket.create_connection((where.hostname, where.port), timeout=120) as connected:
        connected.sendall(request)
        return b"".join(iter(lambda: connected.recv(65536), b""))


def test_each_site_has_an_address_of_its_own_on_one_port(server: DemoServer) -> None:
    parts = [urlsplit(url) for url in server.urls]
    assert [part.hostname for part in parts] == ["127.0.1.1", "127.0.1.2"]
    assert parts[0].port == parts[1].port


def test_sites_can_be_distinguished_by_port_on_one_address() -> None:
    with DemoServer(sites=2, pages=10, layout="ports") as server:
        parts = [urlsplit(url) for url in server.urls]
        assert {part.hostname for part in parts} == {"127.0.0.1"}
        assert parts[0].port != parts[1].port


def test_every_page_of_the_truth_is_served_with_its_digest(server: DemoServer) -> None:
    truth = server.truth()
    served: dict[str, str | None] = {}
    for url in truth.pages:
        connection = HTTPConnection(urlsplit(url).netloc, timeout=120)
        served[url] = sha1(get(connection, urlsplit(url).path)[1]).hexdigest()
        connection.close()
    assert served == truth.pages
    assert freshness(truth, served) == 1.0


def test_a_connection_serves_many_requests(server: DemoServer, connection: HTTPConnection) -> None:
    connection.connect()
    kept = connection.sock
    assert [get(connection, path)[0].status for path in ("/", "/nowhere", "/robots.txt")] == [200, 404, 200]
    assert connection.sock is kept


def test_validators_spare_the_body(connection: HTTPConnection) -> None:
    first, body = get(connection, "/")
    etag, date = first.headers["ETag"], first.headers["Last-Modified"]
    for headers in (
        {"If_None_Match": etag},
        {"If_None_Match": f'"x", W/{etag}'},
        {"If_Modified_Since": date},
    ):
        response, empty = get(connection, "/", **headers)
        assert (response.status, empty, response.headers["ETag"]) == (304, b"", etag)
    for headers in (
        {"If_None_Match": '"other"', "If_Modified_Since": date},
        {"If_Modified_Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"If_Modified_Since": "yesterday"},
    ):
        assert get(connection, "/", **headers)[1] == body


def test_head_is_get_without_the_body(server: DemoServer, connection: HTTPConnection) -> None:
    _, body = get(connection, "/")
    response, empty = get(connection, "/", "HEAD")
    assert (response.status, response.headers["Content-Length"], empty) == (200, str(len(body)), b"")
    assert raw(server, b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n").endswith(b"\r\n\r\n")


def test_other_methods_end_the_connection_with_405(server: DemoServer) -> None:
    answer = raw(server, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
    assert answer.startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize("latency", [0.0, 0.01])
def test_pipelined_requests_are_answered_in_turn(latency: float) -> None:
    request = b"GET %b HTTP/1.1\r\nHost: x\r\n%b\r\n"
    with DemoServer(sites=1, pages=5, latency=latency) as server:
        answer = raw(server, request % (b"/robots.txt", b"") + request % (b"/no", b"Connection: close\r\n"))
        log = server.log()
    assert answer.index(b"HTTP/1.1 200 OK") < answer.index(b"HTTP/1.1 404 Not Found")
    assert [visit.path for visit in log] == ["/robots.txt", "/no"]


def test_a_change_of_the_running_second_has_no_date_yet() -> None:
    web = generated_web(1, sites=1, pages=1)
    connection = ServedConnection(Server(web, WebClock(origin=0.0, rate=1.0, started=1000.0), web.bases), 0)
    answer = Answer(200, changed=5.5)
    assert connection._last_modified(answer, 1005.9) == ""
    assert connection._last_modified(answer, 1006.0) == "Thu, 01 Jan 1970 00:16:45 GMT"
    assert connection._last_modified(Answer(404), 1006.0) == ""


def test_endless_heads_and_broken_requests_are_refused(server: DemoServer) -> None:
    for end in (b"", b"\r\n\r\n"):
        assert raw(server, b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000 + end).startswith(b"HTTP/1.1 431 ")
    assert raw(server, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_gzip_is_a_coding_of_the_same_body() -> None:
    with DemoServer(sites=1, pages=5, period=0, gzip=True) as server:
        connection = HTTPConnection(urlsplit(server.urls[0]).netloc, timeout=120)
        coded, body = get(connection, "/", Accept_Encoding="gzip, br")
        plain = get(connection, "/")[1]
        connection.close()
    assert coded.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == plain


def test_a_running_web_changes_under_the_clock() -> None:
    with DemoServer(seed=2, sites=1, pages=40, period=0.05) as server:
        early, late = server.truth(at=server.clock.utc(0.0)), server.truth(at=server.clock.utc(50.0))
    assert 0.2 < freshness(late, early.pages) < 0.7
    assert [early.t, late.t] == pytest.approx([0.0, 50.0], abs=1e-4)


def test_the_log_shows_requests_to_one_site_at_once() -> None:
    with DemoServer(sites=2, pages=10, latency=0.05) as server:
        hosts = [urlsplit(url).netloc for url in (server.urls[0], server.urls[0], server.urls[1])]
        connections = [HTTPConnection(host, timeout=120) for host in hosts]
        for connection in connections:
            connection.request("GET", "/")
        for connection in connections:
            connection.getresponse().read()
            connection.close()
        log = server.log()
    assert [visit.status for visit in log] == [200, 200, 200]
    assert len(overlaps(log)) == 1
    assert sorted(visit.busy for visit in log) == [0, 0, 1]
    assert all(visit.end - visit.start >= 0.049 for visit in log)


def test_visits_one_after_the_other_do_not_overlap() -> None:
    visits = [LoggedVisit("a", "/", 200, start, start + 1.0, 0, 0) for start in (5.0, 0.0, 2.0)]
    touching = LoggedVisit("a", "/", 200, 1.0, 2.0, 0, 0)
    assert overlaps([*visits, touching, visits[0]._replace(site="b")]) == []
    long = LoggedVisit("a", "/long", 200, -1.0, 4.0, 0, 0)
    assert overlaps([*visits, long]) == [(long, visits[1]), (long, visits[2])]


def test_the_log_goes_on_from_where_it_was_read(server: DemoServer, connection: HTTPConnection, tmp_path: Path) -> None:
    seen = len(server.log())
    get(connection, "/missing/7")
    assert [visit.path for visit in server.log(after=seen)] == ["/missing/7"]
    assert server.stats()["served"] == seen + 1


def test_the_log_is_written_to_a_file_too(tmp_path: Path) -> None:
    with DemoServer(sites=1, pages=5, log=tmp_path / "visits.jsonl") as server:
        connection = HTTPConnection(urlsplit(server.urls[0]).netloc, timeout=120)
        get(connection, "/")
        connection.close()
        log = server.log()
    written = [LoggedVisit(**json.loads(line)) for line in (tmp_path / "visits.jsonl").read_text().splitlines()]
    assert written == log


def test_admin_paths_are_nothing_without_the_token(connection: HTTPConnection) -> None:
    assert get(connection, "/_truth")[0].status == 404
    assert get(connection, "/_log?token=guess")[0].status == 404


def test_a_taken_port_is_one_clear_error(server: DemoServer, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WebfountainError, match="ended with status 2 before it was ready"):
        DemoServer(sites=1, pages=5, port=urlsplit(server.urls[0]).port)
    assert "webfountain demo: " in capfd.readouterr().err


def test_the_server_ends_when_its_parent_lets_go() -> None:
    server = DemoServer(sites=1, pages=5)
    assert server._process.stdin is not None
    server._process.stdin.close()
    assert server._process.wait(5) == 0
    server.stop()


def test_freshness_counts_the_pages_of_the_truth_only() -> None:
    truth = Truth(0.0, 0.0, {"a": "1", "b": "2", "c": "3", "d": "4"})
    assert freshness(truth, {"a": "1", "b": "old", "c": None, "x": "9"}) == 0.25
    assert freshness(Truth(0.0, 0.0, {}), {}) == 1.0
