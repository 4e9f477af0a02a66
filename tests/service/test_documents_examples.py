"""The examples of docs/service.md run."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.api.crawled import crawled_store, served
from webfountain.config import FountainConfig
from webfountain.crawl.builder import build_own
from webfountain.metrics import Metrics
from webfountain.service.settings import read_settings

if TYPE_CHECKING:
    from tests.api.crawled import ServiceClient

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
ADDRESSES = re.findall(r'curl "?(?:http://127\.0\.0\.1:9411)(/[^"\s]*)"?', TEXT)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return crawled_store(tmp_path_factory.mktemp("examples") / "store")


def run_example(number: int, url: str) -> None:
    code = PYTHON[number].replace("rocksdb://.webfountain", url)
    exec(compile(code, "docs/service.md", "exec"), {})


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_python_example_runs(number: int, url: str, tmp_path: Path) -> None:
    shutil.copytree(url.removeprefix("rocksdb://"), tmp_path / "store")
    run_example(number, f"rocksdb://{tmp_path}/store")


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_python_example_runs_on_a_crawl_that_has_just_begun(number: int, tmp_path: Path) -> None:
    """No page is known yet, so the freshness is None."""
    url, policy = f"rocksdb://{tmp_path}/store", tmp_path / "policy.toml"
    policy.write_text(
        "[collection]\nname = 'test'\nseeds = ['http://a.example/']\n"
        "[politeness]\nuser_agent = 'one/1 (+https://a.example)'\n"
    )
    config = FountainConfig(store=url, repository=str(tmp_path / "copies"))
    build_own(config, str(policy), Metrics()).frontier.close()
    run_example(number, url)


def test_every_address_answers(url: str) -> None:
    async def ask(service: ServiceClient) -> None:
        for address in ADDRESSES:
            async with service.client.get(service.address + address) as response:
                assert response.status == 200, address
                if "sse" not in address:
                    assert await response.read()

    async def run() -> None:
        async with served(url) as service:
            await ask(service)

    assert len(ADDRESSES) >= 11
    asyncio.run(run())


def test_the_configuration_file_is_read(tmp_path: Path) -> None:
    [example] = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    file = tmp_path / "serve.toml"
    file.write_text(example)
    settings = read_settings(str(file)).checked()
    assert [store.name for store in settings.stores] == ["news", "docs"]
    assert settings.tokens == str(tmp_path / "tokens")
