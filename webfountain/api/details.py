"""Details of a collection, such as its plan, its policy file, the sections of a site, or the links of a page.

Each method reads a bounded number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.api.policy_file import PolicyFileEditor
from webfountain.core.change_rate import decode
from webfountain.errors import CursorLost, InputError, PolicyError, UrlError
from webfountain.frontier.batch import remembered
from webfountain.report.last_check import last_check
from webfountain.report.pages import page_of
from webfountain.report.store_reading import known_site, link_log, page_at, policy_in_force
from webfountain.report.troubles import robots_words
from webfountain.store.locations import folder_of
from webfountain.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.policy.collection import Collection
    from webfountain.policy.collection_file import CollectionInForce
    from webfountain.records import Change
    from webfountain.report.last_check import CheckResult
    from webfountain.report.pages import PageAnswer
    from webfountain.store.contract import FrontierStore

__all__ = [
    "CheckAnswer",
    "CollectionDetails",
    "JudgedUrl",
    "LinkAnswer",
    "LinksAnswer",
    "PlanAnswer",
    "PolicyFileAnswer",
    "RobotsTextAnswer",
    "SectionAnswer",
    "SectionsAnswer",
]

MAX_JUDGED_URLS: Final = 200
"""Maximum number of URLs in one call of `judge`."""
MAX_SECTIONS: Final = 50
"""Maximum number of sections of a site that are listed."""
_SAMPLE: Final = 1000
_FIRST_SPAN_S: Final = 10.0
_SHORTEST_SPAN_S: Final = 0.01
_MOST_IN_SPAN: Final = 2000
"""Maximum number of change-log entries in memory at once."""
_READ: Final = 500
"""Number of change-log entries that one call reads from the store."""


class CheckAnswer(msgspec.Struct, frozen=True):
    """One comparison of a page with its copy."""

    interval: float
    """Time since the previous fetch, in seconds, with an error of up to 10 %."""
    changed: bool
    """True if the page had changed by more than a minor change."""


class RobotsTextAnswer(msgspec.Struct, frozen=True):
    """The robots.txt of a site."""

    site: str
    words: str
    text: str | None
    """The content of robots.txt, or None if the site has no robots.txt."""
    at: float | None
    """Time of the last request for robots.txt."""


class PlanAnswer(msgspec.Struct, frozen=True):
    """The current plan, with the fetches made so far."""

    plan: dict[str, Any] | None
    """The plan as plain data, or None if the crawl has no budget or has not made a plan yet."""


class PolicyFileAnswer(msgspec.Struct, frozen=True):
    """The policy file that the crawl uses now."""

    path: str | None
    """Path of the file, or None if the store contains no policy file."""
    text: str
    digest: str
    """Digest of the policy file's text. A call of `write_policy` must pass the digest of the text that was edited."""
    writable: bool = False
    """True if the file can be edited from this machine."""


class SectionAnswer(msgspec.Struct, frozen=True):
    """A section of a site: a directory of its URLs."""

    path: str
    """Path of the directory, or "" for the whole site."""
    pages: int
    """Number of known pages in the section, without those in its subsections."""
    changes_per_day: float
    """Mean number of changes per page and day."""


class SectionsAnswer(msgspec.Struct, frozen=True):
    """The sections of a site."""

    items: list[SectionAnswer]
    learned: bool
    """True if the crawl learned the change rates, False if they are estimated from a sample of the site's pages."""


class LinkAnswer(msgspec.Struct, frozen=True):
    """A link from or to a page. `url` is the page at the other end of the link."""

    url: str
    followed: bool
    """False if the crawl does not follow the link, because it is nofollow or refused by a rule."""


class LinksAnswer(msgspec.Struct, frozen=True):
    """The links from and to a page."""

    logged: bool
    """False if the crawl logs no links."""
    out: list[LinkAnswer] = []
    out_complete: bool = True
    into: list[LinkAnswer] = []
    into_complete: bool = True
    """False if the list may be incomplete, such as for a very large link log."""


class JudgedUrl(msgspec.Struct, frozen=True):
    """A URL, and how the crawl would respond to a request to fetch the URL now."""

    url: str
    answer: str
    """`taken` for a new URL that the crawl would accept, `known` for a known URL, or `refused`."""
    why: str | None = None


class CollectionDetails:
    """The details of the collection in an open store."""

    def __init__(self, store: FrontierStore, url: str) -> None:
        self._store = store
        self._url = url
        self._rules: tuple[CollectionInForce, Collection] | None = None

    def plan(self, *, at: float) -> PlanAnswer:
        """Return the plan, with the results up to the time `at`."""
        from webfountain.report.plan import plan_in_force  # noqa: PLC0415  numpy, 0.1 s

        return PlanAnswer(plan_in_force(self._store, at=at))

    def policy(self) -> PolicyFileAnswer:
        """Return the policy file as the crawl read it."""
        found = policy_in_force(self._store)
        if found is None:
            return PolicyFileAnswer(None, "", "")
        file = PolicyFileEditor(found)
        return PolicyFileAnswer(found.path, found.text, file.digest, file.is_writable)

    def write_policy(self, text: str, digest: str) -> PolicyFileAnswer:
        """Replace the policy file, and keep the previous version in a second file.

        A running crawl starts to use the new file.

        Raises
        ------
        InputError, PolicyError
            if the text is not a valid policy file of this collection, or `digest` is not the digest of the current
            file.
        """
        found = policy_in_force(self._store)
        if found is None:
            raise InputError("the store has no policy file")
        written = PolicyFileEditor(found).write(text, digest)
        return PolicyFileAnswer(found.path, text, written, True)

    @property
    def fastest_s(self) -> float:
        """Return the mean change interval of the pages that change most often (bucket 0), in seconds."""
        return self._store.census.fastest_s

    def checks(self, url: str) -> list[CheckAnswer]:
        """Return the last checks of a page, the oldest first. Raise UrlError when the text is not a URL."""
        name = canonical(url)
        record = page_at(self._store, name)
        return [] if record is None else [CheckAnswer(each.interval, each.changed) for each in decode(record.history)]

    def robots(self, site: str) -> RobotsTextAnswer:
        """Return the robots.txt of a site as the crawl last read it. Raise InputError when the site is not known."""
        record = known_site(self._store, site)
        state = remembered(record)
        text = None if state.robots is None else state.robots.decode("utf-8", "replace")
        return RobotsTextAnswer(site, robots_words(record), text, state.robots_at)

    def sections(self, site: str) -> SectionsAnswer:
        """Return a row for the whole site, and rows for its largest sections, at most MAX_SECTIONS rows.

        A crawl with a budget learns how often the pages of each section change. If the crawl has no budget, the change
        rates are estimated from up to 1000 pages of the site.
        """
        from webfountain.report.site_sections import sections_by_pages, sections_learned  # noqa: PLC0415  numpy, 0.1 s

        found = sections_learned(self._store, site, most=MAX_SECTIONS)
        learned = bool(found)
        if not learned:
            pages, _ = self._store.pages.part_of(site, b"", _SAMPLE)
            crawled = [page for page in pages if page.state == "crawled"]
            found = sections_by_pages(crawled, fastest_s=self.fastest_s, most=MAX_SECTIONS)
        return SectionsAnswer([SectionAnswer(*each) for each in found], learned)

    def waiting(self, site: str, *, limit: int = 100) -> list[PageAnswer]:
        """Return the next never-fetched URLs of a site, in the order of its queue."""
        return [page_of(site, record) for record in self._store.pages.waiting(site, limit)]

    def links(self, url: str, *, limit: int = 100) -> LinksAnswer:
        """Return links from and to a page, if the crawl keeps a link log. Only a part of a large log is read.

        Raises
        ------
        RepositoryError
            when the log is damaged.
        """
        folder = folder_of(self._url)
        log = link_log(self._collection(), self._url)
        if log is None:
            return LinksAnswer(logged=False)
        from webfountain.ranking.link_lookup import LinkLookup  # noqa: PLC0415  pyarrow, 0.3 s

        lookup = LinkLookup(log, journal=None if folder is None else folder / "link-journal")
        name = canonical(url)
        out, into = lookup.out_of(name, most=limit), lookup.into(name, most=limit)
        links = ([LinkAnswer(*each) for each in found.links] for found in (out, into))
        return LinksAnswer(True, next(links), out.complete, next(links), into.complete)

    def last_check(self) -> CheckResult | None:
        """Return the result of the last `webfountain check`, or None before the first check."""
        return last_check(self._store, self._url)

    def judge(self, urls: Sequence[str], *, at: float) -> list[JudgedUrl]:
        """Return how the crawl would respond to a request to fetch URLs now, without sending the request. Raise
        InputError for more than MAX_JUDGED_URLS URLs."""
        if len(urls) > MAX_JUDGED_URLS:
            raise InputError(f"urls: {len(urls)} given (allowed: up to {MAX_JUDGED_URLS} to check at once)")
        return [self._judged(url, why) for url, why in self.refusals(urls, at=at)]

    def entries_before(self, at: float) -> Iterator[Change]:
        """Yield the entries of the change log before a time, newest first."""
        # Read backwards in time, in longer steps where entries are rare.
        end, span = at, _FIRST_SPAN_S
        while True:
            found, is_oldest = self._between(end - span, end)
            if found is None and span > _SHORTEST_SPAN_S:
                span /= 8
                continue
            yield from reversed(found or ())
            if is_oldest:
                return
            end -= span
            span = span * 8 if len(found or ()) < _READ // 4 else span

    def _between(self, begin: float, end: float) -> tuple[list[Change] | None, bool]:
        """Return the change-log entries between two times, and whether the log has no older entries. If there are too
        many entries, return None instead of a list.
        """
        changes, is_oldest = self._store.changes, begin <= 0
        try:
            cursor: str | None = changes.since(max(begin, 0.0))
        except CursorLost:
            cursor, is_oldest = None, True
        found: list[Change] = []
        while part := changes.after(cursor, _READ):
            found += [entry for _, entry in part if entry.at < end]
            if part[-1][1].at >= end:
                break
            if len(found) > _MOST_IN_SPAN and end - begin > _SHORTEST_SPAN_S:
                return None, False
            cursor = part[-1][0]
        return found, is_oldest

    def refusals(self, urls: Sequence[str], *, at: float) -> list[tuple[str, str | None]]:
        """Return each URL with the reason why the crawl would refuse a request to fetch it now. The reason is None for
        an accepted URL. Each returned URL is canonical, unless it is invalid."""
        from webfountain.report.explain import refusal_of  # noqa: PLC0415  numpy, 0.1 s

        found, rules = list[tuple[str, str | None]](), self._collection()
        for given in urls:
            try:
                url = canonical(given)
                found.append((url, refusal_of(self._store, rules, url, at=at)))
            except UrlError as error:
                found.append((given, str(error)))
        return found

    def _judged(self, url: str, why: str | None) -> JudgedUrl:
        if why is not None:
            return JudgedUrl(url, "refused", why)
        known = page_at(self._store, url)
        return JudgedUrl(url, "taken") if known is None else JudgedUrl(url, "known", f"its state is {known.state}")

    def _collection(self) -> Collection | None:
        """Parse the policy file that the crawl uses. Return None if the store contains no policy file, or if the seeds
        file of the policy file is on another machine."""
        kept = policy_in_force(self._store)
        if kept is None:
            return None
        if self._rules is None or self._rules[0] != kept:
            try:
                self._rules = kept, kept.read()
            except PolicyError:
                return None
        return self._rules[1]
