"""The crawl answers /metrics and /healthz itself where it is asked to, also when its loop hangs."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from scrapy.utils.test import get_crawler

from tests.frontier.drive import Drive, collection_of
from webfountain.crawl.builder import FrontierSetup
from webfountain.crawl.metrics_server import MetricsServer
from webfountain.crawl.session import Session
from webfountain.errors import InputError
from webfountain.history.live import STALE_S
from webfountain.history.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import Fetch


def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
    del fetch, at
    return 404, {}, b"", 0.1


@pytest.fixture
def crawl() -> Iterator[tuple[MetricsServer, Session, Drive]]:
    session = Session(get_crawler())
    drive = Drive(collection_of(["http://a.example/"]), answer)
    session.built = FrontierSetup(drive.frontier, drive.collection, drive.clock, None, None, endless=True)
    server = MetricsServer(session, ("127.0.0.1", 0))
    yield server, session, drive
    server.spider_closed()


def get(server: MetricsServer, path: str, host: str = "localhost") -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers={"Host": host})
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_it_is_alive_through_an_idle_hour_and_not_when_the_loop_hangs(
    crawl: tuple[MetricsServer, Session, Drive],
) -> None:
    server, session, drive = crawl
    recorder = Recorder(drive.frontier, drive.metrics, now=drive.clock.now)
    assert get(server, "/healthz")[0] == 200, "it begins"
    drive.run(seconds=3600)
    session.snapshot = recorder.snapshot()  # the loop makes one every two seconds, busy or not
    assert get(server, "/healthz") == (200, '{"alive":true}')
    drive.clock.set(drive.clock.now() + STALE_S)
    assert get(server, "/healthz") == (503, '{"alive":false}')


def test_the_figures_are_those_of_the_crawl(crawl: tuple[MetricsServer, Session, Drive]) -> None:
    server, session, drive = crawl
    drive.run(seconds=60)
    session.snapshot = Recorder(drive.frontier, drive.metrics, now=drive.clock.now).snapshot()
    status, text = get(server, "/metrics")
    assert status == 200
    assert 'webfountain_pages_fetched_total{ant="test",collection="test",outcome="gone"} 1.0' in text
    assert 'webfountain_pages{collection="test",state="gone"} 1.0' in text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9410", "localhost.evil.example"])
def test_a_foreign_name_is_refused(crawl: tuple[MetricsServer, Session, Drive], host: str) -> None:
    assert get(crawl[0], "/metrics", host)[0] == 421


@pytest.mark.parametrize("address", ["0.0.0.0:9410", "example.org:9410", "127.0.0.1:99999", "x"])
def test_other_machines_are_not_answered(address: str) -> None:
    with pytest.raises(InputError, match="WEBFOUNTAIN_METRICS"):
        MetricsServer.from_crawler(get_crawler(settings_dict={"WEBFOUNTAIN_METRICS": address}))
