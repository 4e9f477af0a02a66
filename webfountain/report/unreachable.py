"""List the sites that could not be reached at the last try, with the reason and the number of waiting URLs.

The URLs of such a site stay never-crawled, because they were never requested. Without the site's error, they would
look as if they waited for their turn. The module reads the store, also beside a crawl, and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.batch import remembered
from webfountain.records import STATES
from webfountain.report.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import SiteRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["MAX_SITES", "Unreachable", "robots_words", "site_error", "unreachable"]

MAX_SITES: Final = 20_000
"""Number of sites that `unreachable` reads; this takes a fraction of a second."""
_AT_ONCE: Final = 1000
_SHOWN: Final = 5
_NEVER_CRAWLED: Final = STATES.index("never-crawled")


class Unreachable(msgspec.Struct, frozen=True):
    """The unreachable sites among the first `read` sites of a store.

    `sites` is their number, `urls` the number of their waiting URLs, `why` the number of sites by error word,
    `examples` pairs (site, why).
    """

    sites: int
    urls: int
    why: dict[str, int]
    examples: list[tuple[str, str]]
    read: int

    def words(self) -> str:
        """Return one line for people, or "" if all sites answer."""
        if not self.sites:
            return ""
        sites = f"{counted(self.sites, 'site')} cannot be reached"
        urls = f"{counted(self.urls, 'URL')} {'waits' if self.urls == 1 else 'wait'}"
        examples = ", ".join(f"{site} ({why})" for site, why in self.examples)
        more = ", …" if self.sites > len(self.examples) else ""
        return f"{sites}, {urls}: {examples}{more}"


def site_error(record: SiteRecord) -> str:
    """Return why a site could not be reached at the last try; "" if it answered or was not tried."""
    return remembered(record).error


def robots_words(record: SiteRecord) -> str:
    """Return the state of a site's robots.txt in words: not fetched, none, read, or why it could not be fetched."""
    state = remembered(record)
    if not state.robots_ok or (state.robots_at is None and state.error):
        return f"unreachable ({state.error.removeprefix('robots.txt: ')})" if state.error else "unreachable"
    if state.robots_at is None:
        return "not asked"
    return "none" if state.robots is None else "read"


def unreachable(store: FrontierStore) -> Unreachable:
    """Return the sites that cannot be reached. It reads the store once per thousand sites, up to `MAX_SITES`."""
    why: Counter[str] = Counter()
    examples: list[tuple[str, str]] = []
    urls = read = 0
    for record in _sites(store):
        read += 1
        if error := site_error(record):
            why[error] += 1
            urls += record.pages[_NEVER_CRAWLED]
            if len(examples) < _SHOWN:
                examples.append((record.site, error))
    return Unreachable(sum(why.values()), urls, dict(why.most_common()), examples, read)


def _sites(store: FrontierStore) -> Iterator[SiteRecord]:
    after, left = "", MAX_SITES
    while left > 0 and (found := store.sites.after(after, min(_AT_ONCE, left))):
        yield from found
        after, left = found[-1].site, left - len(found)
