"""The form that a seed redirects to is kept: by the next start, and by another ant that is given its site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.frontier.pages.seed_forms import MAX_LINES, SharedSeedForms
from webfountain.policy.judge import Judge
from webfountain.policy.scope import keep_forms
from webfountain.records import SiteLease, SiteRecord
from webfountain.store.memory.store import MemoryStore

if TYPE_CHECKING:
    import pytest

    from webfountain.records import Fetch

SEED, FORM = "http://home.example/", "https://www.home.example/"


def moved(fetch: Fetch, at: float) -> Answer:
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    if fetch.url == SEED:
        return 301, {"location": FORM}, b"", 0.01
    return 200, {"content-type": "text/html"}, f"{fetch.url} {at} <a href='/next'>next</a>".encode(), 0.01


def leases(site: str) -> list[SiteLease]:
    return [SiteLease(site, 1, 1.0, SiteRecord(site, (), 0.0, 0.0))]


def test_a_restart_goes_on_with_the_form_in_the_seed_s_place() -> None:
    collection = collection_of([SEED], rest="[policies.default]\nrevisit = { max_interval = '1h' }\n")
    drive = Drive(collection, moved)
    drive.run(seconds=600.0)
    drive.frontier.close()
    again = Drive(collection, moved, store=drive.store, clock=drive.clock)
    assert again.frontier.worker.entrance.judge.is_in_scope("https://www.home.example")
    again.run(seconds=86_400.0)
    assert any(url.startswith(FORM) for url in again.asked())
    assert again.outcomes["refused"] == 0
    again.check_valid()


def test_an_ant_that_is_given_the_site_of_a_form_takes_up_what_another_ant_found() -> None:
    store = MemoryStore(period_s=1.0)
    judge = Judge(collection_of([SEED]), year=2026)
    keep_forms(store.board, {"https://www.home.example": "http://home.example"})
    forms = SharedSeedForms(store.board, judge)
    forms.activated(leases("http://home.example"), 0.0)
    assert not judge.forms, "nothing is out of scope: the store is not read"
    forms.activated(leases("https://www.home.example"), 0.0)
    assert judge.is_in_scope("https://www.home.example")


def test_of_many_seeds_that_redirect_the_log_names_some(caplog: pytest.LogCaptureFixture) -> None:
    seeds = [f"http://s{number}.example/" for number in range(MAX_LINES + 10)]

    def away(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        return 301, {"location": f"http://away.example/{at}"}, b"", 0.01

    drive = Drive(collection_of(seeds), away, recrawl=False)
    with caplog.at_level("WARNING"):
        drive.run()
    lines = [line for line in caplog.messages if "seed" in line]
    assert len(lines) == MAX_LINES + 1
    assert "which is refused (out of scope)" in lines[0]
