"""Facts about one URL: the present verdicts of the judge, its site and the site's robots.txt.

They are read from a store, also beside the crawl that writes it, and nothing is changed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from webfountain.formats.robots import RobotsRules, deciding_line
from webfountain.policy.judge import Judge, Origin
from webfountain.policy.scope import kept_forms
from webfountain.report.explanation import Robots, UrlVerdict
from webfountain.report.verdict_words import rule_behind
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.policy.collection import Collection
    from webfountain.store.contract import FrontierStore

__all__ = ["UrlFacts"]


class UrlFacts:
    """One canonical URL in one collection, at `at` UTC seconds."""

    def __init__(self, store: FrontierStore, collection: Collection, url: str, *, at: float) -> None:
        self.store, self.collection = store, collection
        self.url, self.site, self.at = url, site_of(url), at
        self.judge = Judge(collection, year=time.gmtime(at).tm_year, forms=kept_forms(store.board))
        self.home = store.sites.get(self.site)
        """The record of its site, None if the site is unknown."""

    def verdict(self, origin: Origin, *, of: str | None = None) -> UrlVerdict:
        """Return the judge's verdict on the URL or on another one, and the key that decided."""
        url = of or self.url
        [found] = self.judge.judge([url], origin)
        return UrlVerdict(found.policy, found.reason, rule_behind(self.collection, url, found.policy, found.reason))

    def robots(self) -> Robots:
        """Return the verdict of the newest robots.txt of the site in the store."""
        home = self.home
        if home is None or home.state.robots_at is None:
            return Robots(None)
        state = home.state
        if not state.robots_ok:
            return Robots(False, at=state.robots_at)
        body, token = state.robots or b"", self.collection.politeness.robots_token
        allowed = RobotsRules.parse(body, token).allowed(self.url)
        line = deciding_line(body, token, self.url)
        return Robots(allowed, None if line is None else line.text, line and line.number, state.robots_at)

    def form_words(self, given: str) -> Iterator[str]:
        """Yield a sentence if the canonical form differs from the given URL."""
        if given != self.url:
            yield f"Its canonical form is {self.url}."
