"""A collection that programs read, even while a crawl writes it.

`webfountain.open` returns a collection. Each method reads the newest state of the store. Lists come in parts of bounded
size. Only one thread may use a collection at a time. `AsyncCollection` has the same methods for asyncio.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.api.answers import (
    AntAnswer,
    ComparisonAnswer,
    CopyAnswer,
    ExplanationAnswer,
    HistoryAnswer,
    PageAnswer,
    PageTextAnswer,
    PolicyAnswer,
    SiteAnswer,
    StatusAnswer,
    TextAnswer,
    VersionAnswer,
)
from webfountain.api.changes import change_of
from webfountain.api.notes import CollectionNotes
from webfountain.api.policy_file import seeds_file_in
from webfountain.api.reader import ReaderPlaces
from webfountain.api.search import INDEX_FILE, CollectionSearch
from webfountain.core.text_diff import unified
from webfountain.errors import InputError, PolicyError, RepositoryError
from webfountain.frontier.cluster.ant_notes import ants_of
from webfountain.history.archive import Archive
from webfountain.history.publishing import read_claims, read_file
from webfountain.history.sample import outcome_counts
from webfountain.policy.collection_file import parse_collection
from webfountain.records import STATES
from webfountain.report.copy import cat, version_beginnings
from webfountain.report.pages import page_of, site_of_record
from webfountain.report.plan import plan_of, plan_words
from webfountain.report.policy_check import described, effect_on
from webfountain.report.status import status
from webfountain.report.store_reading import known_site, link_log, page_at, places_of
from webfountain.report.texts import ListPlace, PageTexts, TextForm, is_list_cursor, texts, texts_since
from webfountain.repository.repository import Pages
from webfountain.store.locations import folder_of, is_in_use, without_password
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator, Iterator

    from webfountain.api.changes import PageChange
    from webfountain.formats.markdown import PageFormat
    from webfountain.history.archive import Step
    from webfountain.history.live import LiveSnapshot
    from webfountain.history.sample import HistorySample
    from webfountain.records import SiteRecord, State
    from webfountain.store.contract import FrontierStore
    from webfountain.store.site_orders import SiteOrder

__all__ = ["MAX_ROWS", "StoredCollection", "bounded"]

MAX_ROWS: Final = 1000
"""Maximum number of rows in one part of a list."""
MAX_JUDGED: Final = 10_000
"""Maximum number of pages that one check of a policy file reads, so that the check takes about one second."""


class StoredCollection(CollectionNotes):
    """A collection in an open store. `repository` is the folder of the collection's copies, if known."""

    def __init__(self, store: FrontierStore, url: str, *, repository: Path | None) -> None:
        super().__init__(store, url)
        self._repository = repository
        self._pages: Pages | None = None
        self._texts = PageTexts(store)
        folder = folder_of(url)
        self.search = CollectionSearch(store, None if folder is None else folder / INDEX_FILE, self.text)

    # -------------------------------------------------------------- the whole

    def status(self) -> StatusAnswer:
        """Return the state of the collection: counts, freshness, rate, plan."""
        at, store = self._clock.now(), self._store
        found = status(store, at=at)
        ants, folder = _ants(store, at), folder_of(self._url)
        crawling = bool(ants) if ants is not None else folder is not None and is_in_use(folder)
        more = {
            "store": without_password(self._url),
            "at": at,
            "crawling": crawling,
            "ants": ants,
            "plan": None if (plan := plan_of(store)) is None else plan_words(plan, at=at),
        }
        return msgspec.convert({**found, **more, "period_s": store.census.period_s}, StatusAnswer, from_attributes=True)

    def live(self) -> list[LiveSnapshot]:
        """Return the last snapshot of each crawling process, at most a few seconds old."""
        claims, folder = self._store.claims, folder_of(self._url)
        if claims is not None:
            return read_claims(claims)
        return [] if folder is None else read_file(folder)

    def history(self, step: Step = "minute", *, since: float, until: float | None = None) -> list[HistoryAnswer]:
        """Return what the crawl did in each minute, hour or day since a time. Rows per minute exist for the last two
        days, rows per hour for ninety days, rows per day forever."""
        end = float("inf") if until is None else until
        return [_history(sample) for sample in Archive(self._store.board).read(step, since=since, until=end)]

    # -------------------------------------------------------- sites and pages

    def sites(self, *, after: str = "", limit: int = 100) -> list[SiteAnswer]:
        """Return up to `limit` sites whose names come after `after`, sorted by name."""
        return [_site(record) for record in self._store.sites.after(after, bounded(limit))]

    def sorted_sites(
        self, order: SiteOrder, *, after: str = "", limit: int = 100
    ) -> tuple[list[SiteAnswer], str | None]:
        """Return up to `limit` sites after a cursor, sorted by `order`, and the next cursor (None at the end).

        The orders are `name`, `pages` (most URLs first), `due` (active sites first, then by due time), `failed` (most
        failed URLs first) and `changed` (latest change first). Raise InputError when `after` is not a cursor, or when
        an older version of webfountain wrote the store without the requested order.
        """
        found = self._store.sites.ranked(order, after, bounded(limit))
        return [_site(record) for _, record in found], found[-1][0] if len(found) == limit else None

    def site(self, site: str) -> SiteAnswer | None:
        """Return one site, or None when it is not known."""
        record = self._store.sites.get(site)
        return None if record is None else _site(record)

    def pages(
        self, site: str, *, state: State | None = None, after: str = "", limit: int = 100
    ) -> tuple[list[PageAnswer], str | None]:
        """Return up to `limit` pages of a site after a cursor, and the next cursor (None at the end).

        A call reads at most MAX_ROWS pages. If few pages have the state `state`, a part may be empty although more
        pages follow.

        Raises
        ------
        InputError
            when the site is not known, or `after` is not a cursor.
        """
        known_site(self._store, site)
        found: list[PageAnswer] = []
        cursor, observed_at = _decoded(after), 0
        while observed_at < MAX_ROWS and len(found) < bounded(limit):
            part, cursor = self._store.pages.part_of(site, cursor, limit - len(found))
            observed_at += limit
            found += [page_of(site, record) for record in part if state is None or record.state == state]
            if not cursor:
                return found, None
        return found, urlsafe_b64encode(cursor).decode()

    def every_page(self, site: str, *, state: State | None = None) -> Iterator[PageAnswer]:
        """Yield every page of a site. Raise InputError when the site is not known."""
        known_site(self._store, site)
        return (page_of(site, record) for _, record in self._store.pages.records(site=site, state=state))

    def page(self, url: str) -> PageAnswer | None:
        """Return one page by its URL, or None when it is not known. Raise UrlError when the text is not a URL."""
        name = canonical(url)
        record = page_at(self._store, name)
        return None if record is None else page_of(site_of(name), record)

    def copy(self, url: str, *, fetched: float | None = None) -> CopyAnswer:
        """Return the newest copy of a page, or the version that was fetched at the time `fetched`.

        Raises
        ------
        InputError
            when the URL is invalid, not known, or has no copy; the message names the reason.
        RepositoryError
            when the copy cannot be read.
        """
        found = cat(self._store, self._copies(), url, fetched=fetched)
        return CopyAnswer(found.url, found.at, found.status, list(found.headers), found.body)

    def text(self, url: str, *, format: PageFormat = "text", main: bool = False, fetched: float | None = None) -> str:
        """Return the newest copy of a page, or an older version, as plain text, Markdown or HTML.

        Only the main content is returned if `main` is set or if the page's policy says so (`content.text`). Raise the
        same errors as `copy`.
        """
        return self.page_text(url, format=format, main=main, fetched=fetched).text

    def page_text(
        self, url: str, *, format: PageFormat = "text", main: bool = False, fetched: float | None = None
    ) -> PageTextAnswer:
        """Return the same text as `text`, with title, time, status and metadata."""
        copy = cat(self._store, self._copies(), url, fetched=fetched)
        found = self._texts.of_copy(copy, TextForm(format, main))
        return PageTextAnswer(copy.url, copy.at, copy.status, found.title, format, found.text, found.metadata)

    def versions(self, url: str, *, limit: int = 20) -> list[VersionAnswer]:
        """Return the newest kept versions of a page, the newest first. Raise the same errors as `copy`.

        Older versions are guaranteed to be kept only if the policy file sets ``repository.keep = "all"``.
        """
        found = islice(version_beginnings(self._store, self._copies(), url), bounded(limit))
        form, rules = TextForm("html"), self._texts.rules()  # only titles are needed, and other formats take longer
        titled = ((each, self._texts.by_policy(each, form, "", rules).title) for each in found)
        return [VersionAnswer(each.at, each.status, each.size, title) for each, title in titled]

    def compare(self, url: str, *, old: float, new: float, format: PageFormat = "text") -> ComparisonAnswer:
        """Return the difference between the texts of two versions of a page. Raise the same errors as `copy`."""
        texts = (self.text(url, format=format, fetched=fetched) for fetched in (old, new))
        return ComparisonAnswer(canonical(url), old, new, unified(*texts))

    def texts(
        self, *, since: str | None = None, format: PageFormat = "text", main: bool = False, limit: int = 100
    ) -> list[TextAnswer]:
        """Return the texts of up to `limit` pages, from the beginning or after the cursor of a text or change.

        `format` and `main` mean the same as in `text`.

        An empty list means that no more texts exist at the moment. If a copy cannot be read, the list omits its page
        until a later call can read the copy.

        Raises
        ------
        InputError, CursorLost
            when `since` is not a cursor, or the log does not reach back that far.
        """
        lost: list[RepositoryError] = []
        form = TextForm(format, main)
        if since is None or is_list_cursor(since):
            place = None if since is None else ListPlace.parse(since)
            rows = texts(self._store, self._copies(), behind=place, unreadable=lost.append, form=form)
        else:
            rows = texts_since(self._store, self._copies(), since, unreadable=lost.append, form=form)
        found = [msgspec.convert(row, TextAnswer) for row in islice(rows, bounded(limit))]
        if lost and not found:
            raise lost[0]
        return found

    def explain(self, url: str, *, linked_by: str | None = None) -> ExplanationAnswer:
        """Explain why a URL is in its state, or why it was refused.

        An unknown URL is explained as if the page `linked_by` had a link to it.
        """
        from webfountain.report.explain import collection_of, explain  # noqa: PLC0415  numpy, 0.1 s

        rules, folder = collection_of(self._store), folder_of(self._url)
        found = explain(
            self._store,
            rules,
            url,
            at=self._clock.now(),
            linked_by=linked_by,
            scores=None if folder is None else folder / "scores",
            links=link_log(rules, self._url),
        )
        return msgspec.convert(msgspec.to_builtins(found), ExplanationAnswer)

    def _copies(self) -> Pages:
        if self._pages is None:
            if self._repository is None:
                raise InputError("the store is on a server; give the folder of its copies (repository=)")
            self._pages = Pages(self._repository, places=places_of(self._store))
        return self._pages

    # ---------------------------------------------------------------- changes

    def changes(self, *, since: str | None = None, reader: str | None = None, limit: int = 100) -> list[PageChange]:
        """Return up to `limit` entries of the change log after a cursor, or after the position of a named reader.

        Without cursor and reader, begin at the oldest entry. To continue, use the cursor of the last entry.

        Raises
        ------
        InputError, CursorLost
            when the text is not a cursor, or the log does not reach back that far:
            then read the whole list of `texts` first.
        """
        cursor = since
        if cursor is None and reader is not None:
            cursor = self.places().cursor(reader)
        found = [change_of(entry, place) for place, entry in self._store.changes.after(cursor, bounded(limit))]
        if reader is not None:
            for change in found:
                change.__dict__["keep"] = partial(_keep, self.places(), reader)
        return found

    def changes_end(self) -> str:
        """Return the cursor after the newest entry of the change log."""
        return self._store.changes.end()

    def changes_from(self, at: float) -> str:
        """Return the cursor to pass to `changes` to read the entries at or after a time. Raise CursorLost if the change
        log begins after the time `at`."""
        return self._store.changes.since(at)

    def places(self) -> ReaderPlaces:
        """Return the stored positions of named readers in the change log."""
        return ReaderPlaces(self._store.board, folder_of(self._url) if self._store.claims is None else None)

    def check_policy(self, text: str, *, against: bool = False) -> PolicyAnswer:
        """Check a policy file, and describe its rules in words.

        With `against`, also compute the effect of the file on up to MAX_JUDGED pages of the collection.

        The policy file must not name a file of seeds, because the policy file may come from an untrusted client.
        """
        path = Path("policy.toml")
        try:
            if seeds_file_in(text) is not None:
                raise PolicyError(f"{path}: collection.seeds_file is not allowed here; put the seeds into the file")
            rules = parse_collection(text, path)
            found = described(rules)
        except PolicyError as error:
            return PolicyAnswer(valid=False, error=str(error))
        effect = effect_on(self._store, rules, links=None, most=MAX_JUDGED) if against else None
        meaning = {name: found.pop(name) for name in ("rules", "notes", "seeds_refused")}
        return msgspec.convert({"valid": True, "describes": found, "effect": effect, **meaning}, PolicyAnswer)

    def end_within(self, seconds: float) -> None:
        """Before closing the collection, limit how long its calls wait for an unavailable server. Any thread may call
        this method.
        """
        if self._store.claims is not None:
            self._store.claims.end_within(seconds)

    def close(self) -> None:
        """Close the store and its copies. Calling `close` again has no effect."""
        if self._pages is not None:
            self._pages.close()
        self._texts.close()
        self.search.close()
        self._store.close()


class _CompletedAwaitable:
    """Awaitable that is already done."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


def _keep(places: ReaderPlaces, reader: str, cursor: str) -> Awaitable[None]:
    """Record a reader's position in the change log at once. Return a completed awaitable, because `PageChange.done`
    must return an awaitable."""
    places.keep(reader, cursor)
    return _CompletedAwaitable()


def _ants(store: FrontierStore, at: float) -> list[AntAnswer] | None:
    """Return the processes of the crawl, or None if only one process can use the store."""
    claims = store.claims
    if claims is None:
        return None
    found = ants_of(claims, claims.time() or at)
    return [
        AntAnswer(name, ant.sites, ant.addresses, ant.in_flight, ant.idle_since, ant.load, ant.at)
        for name, ant in sorted(found.items())
    ]


def _decoded(cursor: str) -> bytes:
    try:
        return b64decode(cursor, altchars=b"-_", validate=True)
    except ValueError:
        raise InputError(f"{cursor!r} is not a cursor of a list of pages") from None


def bounded(limit: int, most: int = MAX_ROWS) -> int:
    """Check and return `limit`. Raise InputError if `limit` is less than 1 or more than `most`."""
    if not 1 <= limit <= most:
        raise InputError(f"limit {limit} is out of range (allowed: 1 to {most})")
    return limit


def _site(record: SiteRecord) -> SiteAnswer:
    return msgspec.convert({**site_of_record(record), "owner": record.owner}, SiteAnswer)


def _history(sample: HistorySample) -> HistoryAnswer:
    named = {
        "pages": dict(zip(STATES, sample.pages, strict=False)),
        "outcomes": outcome_counts(sample),
        "fetches": sample.fetches,
    }
    return msgspec.convert(msgspec.structs.asdict(sample) | named, HistoryAnswer)
