"""Requests that are refused: foreign pages and names, no token, small roles, paths, sizes, slowness, floods."""

from __future__ import annotations

import asyncio
import contextlib
import io
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.api.crawled import SITES, ServiceClient, crawled_store, served
from webfountain.service import application, messages, server
from webfountain.service.streams import StreamPlaces

if TYPE_CHECKING:
    from pathlib import Path

ONE: Final = "/v1/collections/one"
OPERATE: Final = "operate-token-of-32-characters-xx"
READ: Final = "read-token-of-thirty-characters-x"
BEARER: Final = {"Authorization": f"Bearer {OPERATE}"}
NOW: Final = {"urls": [f"{SITES[0]}/new"]}
Asked = tuple[str, str, dict[str, Any]]
EVIL: Final = "http://evil.example"


def read(path: str = f"{ONE}/status", **headers: str) -> Asked:
    """A request to read; in the names of headers _ stands for -."""
    return "GET", path, {"headers": {name.replace("_", "-"): value for name, value in headers.items()}}


def write(body: Any = NOW, path: str = f"{ONE}/now", *, token: str = OPERATE, **headers: str) -> Asked:
    """A request to write JSON, or bytes as they are."""
    _, _, more = read(**headers)
    given = {"Authorization": f"Bearer {token}"} if token else {}
    kind = {"data": io.BytesIO(body)} if isinstance(body, bytes) else {"json": body}
    return "POST", path, {"headers": {"Content-Type": "application/json", **given, **more["headers"]}, **kind}


def form(path: str) -> Asked:
    """The form of a page, by somebody who may read."""
    return "POST", path, {"headers": {"Authorization": f"Bearer {READ}"}, "data": {"act": "write"}}


REQUESTS: Final[dict[str, tuple[set[int], Asked]]] = {
    # foreign pages
    "foreign origin reads": ({403}, read(Origin=EVIL)),
    "foreign origin writes": ({403}, write(Origin=EVIL)),
    "null origin": ({403}, write(Origin="null")),
    "origin of another port": ({403}, write(Origin="http://127.0.0.1:1")),
    "origin of another scheme": ({403}, read(Origin="file://")),
    "cross-site post without an origin": ({403}, write(Sec_Fetch_Site="cross-site")),
    "same-site post without an origin": ({403}, write(Sec_Fetch_Site="same-site")),
    "a form of another page": ({415}, write(b"urls=x", Content_Type="application/x-www-form-urlencoded")),
    "text/plain, which needs no preflight": (
        {415},
        write(b'{"urls":["http://a.example/"]}', Content_Type="text/plain"),
    ),
    "an event stream for a foreign page": ({403}, read(f"{ONE}/changes?feed=sse", Origin=EVIL)),
    # foreign names
    "rebinding": ({421}, read(Host="evil.example")),
    "rebinding with our port": ({421}, read(Host="evil.example:9411")),
    "a name that ends like ours": ({421}, read(Host="evil-localhost")),
    "a host with a user": ({421}, read(Host="localhost@evil.example")),
    "a host that is none": ({400, 421}, read(Host="[::1")),
    "another address than ours": ({421}, read(Host="10.1.2.3")),
    "a forwarded name that nobody asked for": ({421}, read(Host="evil.example", X_Forwarded_Host="localhost")),
    "health under a foreign name": ({421}, read("/healthz", Host="evil.example")),
    "metrics under a foreign name": ({421}, read("/metrics", Host="evil.example")),
    # roles
    "no token": ({401}, write(token="")),
    "no token to forget": ({401}, write({"site": SITES[0]}, f"{ONE}/forget", token="")),
    "no token to check a policy": ({401}, write({"text": ""}, f"{ONE}/policy/check", token="")),
    "no token to block": ({401}, write({"prefix": SITES[0]}, f"{ONE}/block", token="")),
    "no token to drain": ({401}, write({"ant": "test"}, f"{ONE}/drain", token="")),
    "read role blocks": ({403}, write({"prefix": SITES[0]}, f"{ONE}/block", token=READ)),
    "read role writes": ({403}, write(token=READ)),
    **{
        f"read role sends the form of {page or 'the overview'}": ({403}, form(f"/collections/one{page}"))
        for page in ("", "/policy", "/now", "/site", "/page", "/ants")
    },
    "unknown token": ({401}, read(Authorization="Bearer unknown")),
    "a token that begins like ours": ({401}, read(Authorization=f"Bearer {OPERATE[:-1]}")),
    "a session that is none": ({401, 403}, write(token="", Cookie="webfountain_session=x")),
    "a token in the address": ({400, 401}, write(NOW, f"{ONE}/now?token={OPERATE}", token="")),
    "a login that is none": ({403}, read("/login?code=guess")),
    "a login without a code": ({403}, read("/login")),
    # paths
    "copy of a file": ({400}, read(f"{ONE}/copy?url=file:///etc/passwd")),
    "copy of a path": ({400}, read(f"{ONE}/copy?url=../../../../etc/passwd")),
    "copy that is unknown": ({404}, read(f"{ONE}/copy?url=http://a.example/..%2f..%2fetc/passwd")),
    "a collection that is a path": ({404}, read("/v1/collections/..%2f..%2fetc/status")),
    "a path beside": ({404}, read("/v1/../../etc/passwd")),
    "a method that is none": ({405}, ("DELETE", f"{ONE}/status", {})),
    # inputs
    "an unknown parameter": ({400}, read(f"{ONE}/sites?limits=1")),
    "too many rows": ({400}, read(f"{ONE}/sites?limit=100000")),
    "no rows": ({400}, read(f"{ONE}/sites?limit=0")),
    "a parameter twice": ({400}, read(f"{ONE}/sites?limit=1&limit=2")),
    "a cursor of another log": ({400}, read(f"{ONE}/changes?since=00000000-5")),
    "an unknown key": ({400}, write({**NOW, "at": 1})),
    "no JSON": ({400}, write(b"{")),
    "deep JSON": ({400}, write(b"[" * 100_000)),
    "an oversized body": ({413}, write(b" " * 1_100_000)),
    "a policy file that is too long": ({400}, write({"text": "#" * 200_001}, f"{ONE}/policy/check")),
    "too many URLs": ({400}, write({"urls": ["http://a.example/"] * 10_001})),
    "an address that is too long": ({400, 414}, read(f"{ONE}/page?url={'x' * 9000}")),
    "a header that is too large": ({400, 431}, read(X_Large="x" * 20_000)),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return crawled_store(tmp_path_factory.mktemp("refusals") / "store", seconds=5.0)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.touch(mode=0o600)
    file.write_text(f"operate {OPERATE}\nread {READ}  # for Grafana\n")
    return str(file)


async def status_of(service: ServiceClient, method: str, path: str, more: dict[str, Any]) -> tuple[int, bytes]:
    async with service.client.request(method, service.address + path, allow_redirects=False, **more) as response:
        return response.status, await response.read()


def test_each_is_refused_and_says_no_secret(url: str, tokens: str, caplog: pytest.LogCaptureFixture) -> None:
    assert len(REQUESTS) >= 40

    async def run() -> None:
        async with served(url, tokens=tokens) as service:
            for name, (allowed, (method, path, more)) in REQUESTS.items():
                status, body = await status_of(service, method, path, more)
                assert status in allowed, f"{name}: {status} {body[:200]!r}"
                assert OPERATE.encode() not in body, name
                assert b"Traceback" not in body, name
                assert b"root:" not in body, name
            status, _ = await service.get(f"{ONE}/status", headers={"Host": "localhost:1"})
            assert status == 200, "what is allowed still is"
            status, _ = await service.post(f"{ONE}/forget", {}, headers={"Origin": service.address, **BEARER})
            assert status == 400, "our own page may ask, and is told what is wrong"

    asyncio.run(run())
    assert OPERATE not in caplog.text


def test_nobody_writes_where_the_service_is_read_only(url: str, tokens: str) -> None:
    async def run() -> None:
        async with served(url, tokens=tokens, read_only=True) as service:
            assert "login" not in service.printed[0]
            status, found = await service.post(f"{ONE}/now", NOW, headers=BEARER)
            assert (status, found["kind"]) == (403, "read-only")

    asyncio.run(run())


def test_behind_a_proxy_a_token_is_needed_to_read(url: str, tokens: str) -> None:
    """A proxy asks from loopback for all the world."""

    async def run() -> None:
        async with served(url, tokens=tokens, forwarded=True, hosts=("crawl.example.org",)) as service:
            proxied = {"X-Forwarded-Host": "crawl.example.org", "X-Forwarded-Proto": "https"}
            assert (await service.get(f"{ONE}/status", headers=proxied))[0] == 401
            read = {**proxied, "Authorization": f"Bearer {READ}"}
            assert (await service.get(f"{ONE}/status", headers=read))[0] == 200
            ours = {**read, "Origin": "https://crawl.example.org"}
            assert (await service.get(f"{ONE}/status", headers=ours))[0] == 200
            theirs = {**read, "Origin": "http://crawl.example.org"}
            assert (await service.get(f"{ONE}/status", headers=theirs))[0] == 403

    asyncio.run(run())


def test_the_printed_address_opens_one_session(url: str) -> None:
    async def run() -> None:
        async with served(url) as service:
            async with service.client.get(service.login, allow_redirects=False) as response:
                cookie = response.headers["Set-Cookie"]
                assert "HttpOnly" in cookie
                assert "SameSite=Strict" in cookie
                assert "Path=/" in cookie
            assert (await service.post(f"{ONE}/forget", {}))[0] == 400, "it may operate"
            async with aiohttp.ClientSession() as stranger, stranger.get(service.login) as response:
                assert response.status == 403

    asyncio.run(run())


def test_a_slow_body_is_not_waited_for(url: str, tokens: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "BODY_S", 0.2)

    async def run() -> None:
        async with served(url, tokens=tokens) as service:
            parts = urlsplit(service.address)
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            head = f"POST {ONE}/now HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OPERATE}\r\n"
            writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
            assert b" 408 " in await reader.readline()
            writer.close()

    asyncio.run(run())


def test_headers_that_trickle_are_not_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_S", 0.5)

    async def trickle(writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.05)

    async def run() -> None:
        async with served(url) as service:
            stream = await service.client.get(f"{service.address}{ONE}/changes?feed=sse")
            parts = urlsplit(service.address)
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            trickling = asyncio.create_task(trickle(writer))
            async with asyncio.timeout(120):
                assert await reader.read() == b"", "the connection ends"
            trickling.cancel()
            writer.close()
            assert not stream.content.at_eof(), "an open stream is no slow request"
            stream.close()
            assert (await service.get("/healthz"))[0] == 200

    asyncio.run(run())


def test_a_thousand_streams_are_too_many(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who come first are served; the others are sent away, and the service goes on."""
    monkeypatch.setattr(application, "StreamPlaces", lambda: StreamPlaces(10))

    async def run() -> None:
        async with served(url) as service, contextlib.AsyncExitStack() as stack:
            statuses = []
            for _ in range(30):
                where = f"{service.address}{ONE}/changes?feed=sse"
                statuses.append((await stack.enter_async_context(service.client.get(where))).status)
            assert statuses == [200] * 10 + [503] * 20
            assert (await service.get(f"{ONE}/status"))[0] == 200

    asyncio.run(run())


def test_other_machines_are_served_with_tokens_only(tmp_path: Path) -> None:
    from webfountain import cli

    assert cli.main(["serve", "--store", f"rocksdb://{tmp_path}", "--listen", "0.0.0.0:0"]) == 2


@pytest.mark.parametrize(
    ("text", "mode"), [("operate short", 0o600), ("", 0o600), ("write " + OPERATE, 0o600), (f"read {READ}", 0o644)]
)
def test_a_wrong_token_file_is_refused_without_showing_it(
    tmp_path: Path, text: str, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    from webfountain import cli

    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(mode)
    assert (
        cli.main(["serve", "--store", f"rocksdb://{tmp_path}", "--listen", "127.0.0.1:0", "--tokens", str(file)]) == 2
    )
    said = capsys.readouterr().err
    assert str(file) in said
    assert READ not in said
    assert OPERATE not in said
