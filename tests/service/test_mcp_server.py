"""The official client lists and calls every tool, by standard input and over HTTP, with the roles of the service."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.api.crawled import SITES, crawled_store
from webfountain.frontier.inbox.inboxes import Inbox
from webfountain.frontier.inbox.notes import NowNote
from webfountain.report.store_reading import inbox_folder
from webfountain.service.mcp_tools import NOTICE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
READ = {"search", "read_page", "changes_since", "freshness", "explain"}
CALLS: dict[str, dict[str, Any]] = {
    "search": {"words": "page", "limit": 100},
    "read_page": {"url": f"{SITES[0]}/3"},
    "changes_since": {"hours": 90_000.0},
    "freshness": {},
    "explain": {"url": f"{SITES[0]}/3"},
    "fetch_now": {"urls": [f"{SITES[0]}/new"]},
}
TOKENS = {"read": "r" * 20, "operate": "o" * 20}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp") / "store"
    crawled_store(folder)
    subprocess.run(
        [sys.executable, "-m", "webfountain", "index", "--store", f"rocksdb://{folder}"], cwd=ROOT, check=True
    )
    return folder


async def answers(client: Any) -> dict[str, Any]:
    """What each tool answers."""
    async with client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        found = {}
        for name in names:
            answer = await client.call_tool(name, CALLS[name])
            assert not answer.is_error, answer
            found[name] = json.loads(answer.content[0].text)
        return found


def check(found: dict[str, Any]) -> None:
    assert f"{SITES[0]}/3" in {each["untrusted"]["url"] for each in found["search"]["items"]}
    assert "words of a page" in found["read_page"]["untrusted"]["text"]
    assert found["read_page"]["notice"] == NOTICE
    assert found["changes_since"]["items"]
    assert found["freshness"]["known"] > 0
    assert found["explain"]["known"]


def test_the_official_client_calls_every_tool_by_standard_input(store: Path) -> None:
    line = ["-m", "webfountain", "mcp", "--store", f"rocksdb://{store}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    reader = Client(StdioServerParameters(command=sys.executable, args=line, env=environment))
    found = asyncio.run(answers(reader))
    assert set(found) == READ
    check(found)
    operator = Client(StdioServerParameters(command=sys.executable, args=[*line, "--operate"], env=environment))
    found = asyncio.run(answers(operator))
    assert found["fetch_now"]["accepted"] == [f"{SITES[0]}/new"]
    assert [each.note for each in Inbox(inbox_folder(store)).waiting()][-1] == NowNote((f"{SITES[0]}/new",))


@pytest.fixture
def address(store: Path, tmp_path: Path) -> Iterator[str]:
    """The server over HTTP on a free port."""
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{role} {token}\n" for role, token in TOKENS.items()))
    tokens.chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = ["mcp", "--store", f"rocksdb://{store}", "--listen", f"127.0.0.1:{port}", "--tokens", str(tokens)]
    process = subprocess.Popen([sys.executable, "-m", "webfountain", *line], cwd=ROOT)
    try:
        until = time.monotonic() + 240
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert time.monotonic() < until, "it takes too long"
                assert process.poll() is None
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


async def answers_over_http(address: str, token: str | None) -> dict[str, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with create_mcp_http_client(headers=headers) as http:
        return await answers(Client(streamable_http_client(address, http_client=http)))


def test_over_http_roles_decide_which_tools_there_are(address: str) -> None:
    for token, names in ((None, READ), (TOKENS["read"], READ), (TOKENS["operate"], READ | {"fetch_now"})):
        found = asyncio.run(answers_over_http(address, token))
        assert set(found) == names
        check(found)

    async def refused() -> None:
        async with aiohttp.ClientSession() as session:
            for headers, status in (({"Authorization": "Bearer " + "x" * 20}, 401), ({"Host": "evil.example"}, 421)):
                async with session.post(address, json={}, headers=headers) as response:
                    assert response.status == status

    asyncio.run(refused())
