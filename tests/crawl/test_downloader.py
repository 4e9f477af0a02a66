"""Requests that wait in a downloader slot end with the downloads that are under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy import Request
from scrapy.core.downloader import Slot
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from webfountain.crawl.download_handler import ABORT
from webfountain.crawl.downloader import FountainDownloader
from webfountain.crawl.flight import Flight, Landings, depart
from webfountain.download.fetcher import terms_of
from webfountain.policy.tables import NetworkTable, PolitenessTable
from webfountain.records import Fetch

if TYPE_CHECKING:
    from twisted.python.failure import Failure

TERMS = terms_of(PolitenessTable(), NetworkTable(), lambda fetch, url: 0.0)


def waiting(downloader: FountainDownloader, host: str) -> list[str]:
    """Put a request into the queue of its host's slot. Its error is added to the list."""
    request, errors, deferred = Request(f"http://{host}/"), list[str](), Deferred[Any]()
    fetch = Fetch(0, "page", request.url, f"http://{host}", None)
    depart(request, Flight(fetch, TERMS, cast("Landings", None), own=False))
    downloader.slots[host] = Slot(concurrency=1, delay=60.0)
    downloader.slots[host].queue.append((request, deferred))

    def failed(failure: Failure) -> None:
        errors.append(cast("Any", failure.value).word)

    deferred.addErrback(failed)
    return errors


def test_requests_that_wait_for_sites_of_another_ant_end_and_the_others_stay() -> None:
    crawler = get_crawler()
    downloader = FountainDownloader(crawler)
    lost, kept = waiting(downloader, "lost.test"), waiting(downloader, "kept.test")
    crawler.signals.send_catch_log(ABORT, word="lapsed", sites={"http://lost.test"})
    assert (lost, kept) == (["lapsed"], [])
    crawler.signals.send_catch_log(ABORT, word="cut", sites=None)
    assert (lost, kept) == (["lapsed"], ["cut"])
    assert not any(slot.queue for slot in downloader.slots.values())
