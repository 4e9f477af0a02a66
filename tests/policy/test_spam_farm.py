"""Favor and distrust against a spam farm: what the fetches go to, and when the good pages are found.

Ten webs of 200 good sites and 20,000 pages of spam, fixed before the policies were tuned (`spam_web`). Web 1004, one
of four that were drawn later, has 5.2 % of good pages to which no good page leads.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.policy.spam_web import WEBS, SpamWeb
from tests.policy.virtual_crawl import VirtualCrawl, breadth_first
from webfountain.policy.collection_file import parse_collection

RULES = """
[collection.limits]
depth = 1000
[politeness]
user_agent = "tester/1.0 (+http://example.org/bot)"
[policies.favor]
dampening = 0.95
splitting = true
score = { trust = 1 }
[[switch]]
when = { text = '(?i)casino|viagra', count = 2 }
to = "distrust"
[[switch]]
when = { discovered = 0.5, count = 2 }
to = "distrust"
also = "discovered"
[conflict]
rule = "most-trusted"
"""


class FetchEvidence(NamedTuple):
    """How a crawl went."""

    half: int
    """Fetches by which breadth-first has half of the good pages."""
    enough: int
    """Fetches by which this crawl has 95 % of them."""
    spam: float
    """Share of its fetches until then that went to spam."""
    breadth_first_spam: float
    """The same of breadth-first by the time `half`."""


def crawl_of(web: SpamWeb) -> VirtualCrawl:
    seeds = [f'{{ url = "{url}", policy = "favor" }}' for url in web.favored]
    seeds += [f'{{ url = "{url}", policy = "distrust" }}' for url in web.distrusted]
    text = f'[collection]\nname = "farm"\nscope = "any"\nseeds = [{", ".join(seeds)}]\n{RULES}'
    return VirtualCrawl(web, parse_collection(text, Path("farm.toml")))


def crawled(web: SpamWeb) -> FetchEvidence:
    good, half = 0, 0
    for half, url in enumerate(breadth_first(web), start=1):  # noqa: B007  where it stops is asked for
        good += url in web.good
        if 2 * good >= len(web.good):
            break
    rival = 1 - good / half
    good, enough = 0, 0
    for enough, url in enumerate(crawl_of(web), start=1):  # noqa: B007
        good += url in web.good
        if good >= 0.95 * len(web.good):
            break
    assert good >= 0.95 * len(web.good)
    return FetchEvidence(half, enough, 1 - good / enough, rival)


def test_with_favor_and_distrust_few_fetches_go_to_spam_and_the_good_pages_come_first() -> None:
    """A tenth of the farm: breadth-first spends most of its fetches on it."""
    found = crawled(SpamWeb(WEBS[0], good_sites=40, spam_hosts=100))
    assert found.enough < found.half
    assert found.spam < 0.05
    assert found.breadth_first_spam > 0.5


def linked_by_good(web: SpamWeb) -> set[str]:
    """The good pages to which good pages lead from the favored seeds: what a crawl can find that follows no spam."""
    found, waiting = set(web.favored), list(web.favored)
    while waiting:
        new = [link for link in web.pages[waiting.pop()].links if link in web.good and link not in found]
        found.update(new)
        waiting += new
    return found


@pytest.mark.soak
@pytest.mark.parametrize("number", [*WEBS, 1001, 1002, 1003, 1004])
def test_nearly_all_good_pages_are_found_that_good_pages_lead_to(number: int) -> None:
    web = SpamWeb(number)
    reached = linked_by_good(web)
    lost = reached - set(crawl_of(web))
    print(number, len(reached) / len(web.good), len(lost))
    assert len(lost) <= 0.01 * len(reached)


@pytest.mark.soak
def test_on_each_of_the_ten_webs_95_percent_are_found_long_before_breadth_first_has_half() -> None:
    every = [crawled(SpamWeb(number)) for number in WEBS]
    for number, found in zip(WEBS, every, strict=True):
        print(number, found)
    assert all(found.enough < 0.4 * found.half for found in every)
    assert max(found.spam for found in every) <= 0.02
