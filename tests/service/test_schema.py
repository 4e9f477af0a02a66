"""Whatever is asked: no error of the service, and no answer outside its description (schemathesis, short form)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
import schemathesis.specs.openapi.checks  # registers those of OpenAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import checks

from tests.api.crawled import crawled_store, served

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = 5
"""Requests of each operation; `make soak` asks for 300."""
CHECKED = checks.CHECKS.get_by_names(["not_a_server_error", "response_schema_conformance", "content_type_conformance"])
TOKEN = "operate-token-of-32-characters-xx"


@contextlib.contextmanager
def in_thread(url: str, tokens: str) -> Iterator[str]:
    """Serve in a thread; the address."""
    ready, ended = threading.Event(), asyncio.Event()
    place: dict[str, Any] = {}

    async def run() -> None:
        async with served(url, tokens=tokens) as service:
            place.update(address=service.address, loop=asyncio.get_running_loop())
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert ready.wait(30)
        yield place["address"]
    finally:
        place["loop"].call_soon_threadsafe(ended.set)
        thread.join(30)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("schema")
    (folder / "tokens").touch(mode=0o600)
    (folder / "tokens").write_text(f"operate {TOKEN}\n")
    with in_thread(crawled_store(folder / "store", seconds=5.0), str(folder / "tokens")) as found:
        yield found


def check_all(address: str, *, examples: int) -> None:
    schema = schemathesis.openapi.from_url(f"{address}/v1/openapi.json")
    found: Any  # a result, whose errors are none of a generated description
    for found in schema.get_all_operations():
        check(found.ok(), address, examples)


def check(operation: Any, address: str, examples: int) -> None:
    """Ask one operation so many times, whatever its types allow."""

    @settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(st.data())
    def ask(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy())
        if "collection" in (case.path_parameters or {}):
            case.path_parameters["collection"] = "one"
        if case.query:
            case.query.pop("feed", None)  # neither does a stream end, nor is a long poll waited for
        response = case.call(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=120)
        case.validate_response(response, checks=CHECKED)

    ask()


def test_no_answer_is_outside_the_description(address: str) -> None:
    check_all(address, examples=EXAMPLES)


@pytest.mark.soak
def test_no_answer_is_outside_the_description_however_many_are_asked(address: str) -> None:
    check_all(address, examples=300)
