"""The worker thread pauses between two batches: briefly for few sites, which wait for it, longer for many."""

from __future__ import annotations

from itertools import pairwise

from webfountain.crawl.worker_thread import BATCH_S, pause_s


def test_few_sites_wait_for_a_batch_no_longer_than_one_site() -> None:
    assert {pause_s(sites) for sites in range(51)} == {BATCH_S}


def test_the_pause_grows_with_the_number_of_sites_up_to_a_tenth_of_a_second() -> None:
    pauses = [pause_s(sites) for sites in (50, 100, 200, 250)]
    assert all(longer > shorter for shorter, longer in pairwise(pauses))
    assert pause_s(1000) == pause_s(100_000) == 0.1
