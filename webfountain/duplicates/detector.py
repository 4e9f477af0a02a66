"""The duplicate detector decides which fetched pages repeat another page, on the same or another site.

The detector runs in the worker thread, after copies are written and before links are discovered (DESIGN.md section 3).
Pages with equal bodies are duplicates. Pages with different bodies are duplicates if their texts are similar enough.
The index finds pages with similar sketches. If an estimated resemblance is close to the threshold, the texts themselves
are compared. A page that repeats no other page is a *representative*, and is added to the index before the store
records its fetch. The record of a duplicate points to its representative, and the duplicate is fetched rarely. Most
links of a duplicate are not followed (`_own_links`).

If a page outranks its representative (`precedence`), the page becomes the representative, and the old representative is
fetched again at once. If a page declares a canonical URL (``rel=canonical``) and the texts agree, the canonical page is
the representative. Two pages on different sites are compared by their texts, or by their sketches if a text cannot be
read. Each fetch of a duplicate checks that the representative still exists and has not changed. If the original page is
known, a page of a *mirror* is fetched only as a sample (`mirrors`).

Each ant has its own index, and reads the indices of other ants, which may be out of date. The detector uses a record of
another ant's index only if the store still has the same digest of the page. If two ants fetch a page and its duplicate
at the same moment, the duplicate is found only at their next fetches. Of two pages with equal precedence, the page with
the smaller fingerprint is the representative.

Source: Edwards 2001, section 2 (duplicate detectors); Cho, Shivakumar, Garcia-Molina, *Finding replicated web
collections*, 2000.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.shingles import exact_resemblance
from webfountain.core.sketch import sketches
from webfountain.duplicates.index import IndexedPage, Match
from webfountain.duplicates.mirrors import Mirrors
from webfountain.duplicates.page_records import digest_number, number_of
from webfountain.duplicates.precedence import Precedence
from webfountain.frontier.planning.plan import bounds_of
from webfountain.records import ANSWERED, COPIED, Outcome
from webfountain.store.change_log import is_held
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webfountain.duplicates.index import DuplicateIndex, Probe
    from webfountain.frontier.visit import Visit
    from webfountain.policy.collection import Collection
    from webfountain.records import Lease, Link, PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["MARGIN", "MIRROR", "DuplicateDetector"]

MIRROR: Final = "mirror"
"""Error word for a page that was not fetched, because the original site of the mirror has the page."""
MARGIN: Final = 0.06
"""Two texts are compared if the estimated resemblance is at most this far from the threshold: two standard errors."""
_COMPARED: Final = 3
"""Largest number of texts that are compared with one page."""
_REOPENED: Final = 2000
"""Largest number of unfetched pages per batch that are queued again after their site has proved to be no mirror."""
_UNREAD: Final = ANSWERED - COPIED


class DuplicateDetector:
    """The detector of one process. Only the worker thread may use the detector, but any thread may call `share_of`.

    Parameters
    ----------
    text_of : returns the visible text of a page's stored copy, None if it is not available
    resemblance : least resemblance of near-duplicate texts
    revisit_s : seconds after which a duplicate is fetched again
    precedence : decides between two pages; None: the older one is the representative
    """

    def __init__(
        self,
        index: DuplicateIndex,
        *,
        store: FrontierStore,
        text_of: Callable[[PageRecord], str | None],
        resemblance: float,
        revisit_s: float,
        precedence: Precedence | None = None,
    ) -> None:
        self._index = index
        self._store = store
        self._text_of = text_of
        self._least = resemblance
        self._revisit_s = revisit_s
        self.precedence = precedence or Precedence()
        """The rule that decides which of two duplicates is the representative."""
        self._mirrors = Mirrors(key=index.key)
        self._reopened: dict[str, tuple[str, Iterator[tuple[str, PageRecord]]]] = {}  # by site, with its original site
        self._texts: dict[str, str] = {}  # copies of this batch, which no page record names yet
        # Records of this batch's pages that will be held once it is settled.
        self._held: dict[str, PageRecord | None] = {}
        self.counts: Counter[str] = Counter()

    # ------------------------------------------------------------ mirrors

    def judge(self, visits: Sequence[Visit]) -> tuple[list[Visit], list[str]]:
        """Return the visits, with duplicates marked, and the URLs of representatives that a better page replaced. The
        caller must request a new fetch of the replaced representatives.
        """
        self._texts.clear()
        self._held.clear()
        judged = [_without_pointer(visit) for visit in visits]
        asked: list[tuple[int, IndexedPage]] = []
        unread = [visit.record.url for visit in visits if visit.kind in _UNREAD and visit.record.duplicate_of is None]
        known = dict(zip(unread, self._index.known(unread), strict=True))
        for place, visit in enumerate(visits):
            page = self._page(visit, known)
            if isinstance(page, IndexedPage):
                asked.append((place, page))
            elif page:
                judged[place] = self._repeats(visit, page)
        outranked: list[str] = []
        for (place, _), probe in zip(asked, self._index.probe([page for _, page in asked]), strict=True):
            visit = visits[place]
            match, beaten = self._choose(probe, visit)
            self._count(visit, match)
            if match is None:
                self._index.keep(probe)
                for each in beaten:
                    self._index.give_way(each, probe.page.url)
                outranked += beaten
            else:
                judged[place] = self._repeats(visit, match.url, canonical=probe.page.canonical)
            self._held[probe.page.url] = judged[place].record if match is None else None
        return judged, outranked

    def unasked(self, lease: Lease, *, at: float) -> Outcome | None:
        """Return the outcome that ends the lease of a mirror's page, or None if the page must be fetched."""
        record = lease.record
        original = self._original_of(lease.site, record)
        if original is None or self._mirrors.is_sample(lease.key, record.failures):
            return None
        url = _counterpart(record.url, lease.site, original)
        counterpart = self._store.pages.get(original, fingerprint(url))
        if counterpart is None or not is_held(counterpart) or self.precedence.outranks(record, counterpart):
            return None
        self.counts["duplicates/mirrored"] += 1
        due = at + self._revisit_s
        refused = msgspec.structs.replace(
            record, state="refused", error=MIRROR, failures=record.failures + 1, due=due, duplicate_of=url
        )
        return Outcome(lease.id, "refused", refused)

    @property
    def reopening(self) -> list[str]:
        """Return the sites that were wrongly taken for mirrors and still have pages to queue again."""
        return list(self._reopened)

    def reopen(self, site: str) -> list[bytes]:
        """Return keys of the next pages to queue again on a site that was wrongly taken for a mirror."""
        original, records = self._reopened[site]
        some = [record for _, record in itertools.islice(records, _REOPENED)]
        if len(some) < _REOPENED:
            del self._reopened[site]
        wrong = [each for each in some if each.error == MIRROR and site_of(each.duplicate_of or "") == original]
        self.counts["duplicates/reopened"] += len(wrong)
        return [fingerprint(record.url) for record in wrong]

    def left(self, sites: Iterable[str]) -> None:
        """Record that this process no longer crawls some sites."""
        for site in sites:
            self._reopened.pop(site, None)

    def share_of(self, site: str) -> float:
        """Return the share of a site's pages that repeat other pages; 0.0 if no page was compared recently."""
        return self._mirrors.share_of(site)

    def close(self) -> None:
        self._reopened.clear()
        self._index.close()

    # ---------------------------------------------------------------- private

    def _original_of(self, site: str, record: PageRecord) -> str | None:
        """Return the original site if the page belongs to a mirror and may be skipped, else None."""
        if record.error == MIRROR and record.duplicate_of is not None:
            original = site_of(record.duplicate_of)
            return None if self._mirrors.is_refuted(site, original) else original
        return self._mirrors.original_of(site) if record.state == "never-crawled" else None

    def _page(self, visit: Visit, known: Mapping[str, tuple[IndexedPage, int] | None]) -> IndexedPage | str | None:
        """Return the visited page if it must be looked up in the index. If the page still repeats its representative,
        return the representative's URL."""
        record = visit.record
        if visit.kind in COPIED:
            return self._read(record, visit.reading.text, canonical=visit.reading.canonical)
        if visit.kind not in _UNREAD or record.digest is None:
            return None
        before, target = _before(visit), record.duplicate_of
        is_recounted = before is not None and before.counted[:4] != record.counted[:4]  # its text may be another now
        is_kept = target is not None and self._still_repeats(visit, target)
        if target is not None and is_kept and (not is_recounted or self._are_alike(record.url, target)):
            return target
        found = known.get(record.url)
        if found is not None and not is_recounted:
            return self._kept(*found, record)
        text = self._text_of(visit.fetch.lease.record if visit.fetch.lease is not None else record)
        if text is None:
            return None
        self.counts["duplicates/taken_in"] += 1
        return self._read(record, text)

    def _still_repeats(self, visit: Visit, url: str) -> bool:
        other, before = self._standing(url), _before(visit)
        if other is None or self.precedence.outranks(visit.record, other, before=before):
            return False
        return other.copied is None or before is None or other.copied <= (before.last_crawled or 0.0)

    def _kept(self, page: IndexedPage, names: int, record: PageRecord) -> IndexedPage | None:
        """Return an unchanged representative if it must be looked up again: it may repeat a page that was fetched
        later.
        """
        canonical = self._index.url_of(names) if names else None
        if canonical is None and self._index.is_alone:
            return None
        return msgspec.structs.replace(page, digest=record.digest, canonical=canonical)

    def _read(self, record: PageRecord, text: str, *, canonical: str | None = None) -> IndexedPage:
        """Return the digest and the sketches of a page, for look-ups in the index. A page without words resembles no
        other page.
        """
        assert record.digest is not None
        if not text or text.isspace():
            return IndexedPage(record.url, f"{number_of(record.url):016x}")
        self._texts[record.url] = text
        drawn, second, *_ = [*sketches(text, self._index.key), None, None]
        return IndexedPage(record.url, record.digest, drawn, None if canonical == record.url else canonical, second)

    def _choose(self, probe: Probe, visit: Visit) -> tuple[Match | None, list[str]]:
        """Return the representative of a page, and the URLs that the page outranks.

        A page's representative is its canonical page if the two are similar, else the most similar page.
        """
        page, compared = probe.page, 0
        chosen: Match | None = None
        beaten: list[str] = []
        for match in self._index.nearest(probe, least=self._least - MARGIN):
            is_named = match.url == page.canonical
            other = self._standing(match.url)
            if (chosen is not None and not is_named) or other is None or _digest(other) != match.digest:
                continue
            is_sure = match.is_exact or (
                site_of(match.url) == visit.fetch.site and abs(match.resemblance - self._least) >= MARGIN
            )
            if not is_sure:
                if compared >= _COMPARED and not is_named:
                    continue
                compared += 1
            if (match.resemblance if is_sure else self._compared(page.url, match)) < self._least:
                continue
            if not is_named and self._gives_way(match, other, probe, visit):
                beaten.append(match.url)
                continue
            chosen = match
            if is_named or page.canonical is None:
                break
        self._count_canonical(page, chosen)
        return chosen, beaten if chosen is None else []

    def _gives_way(self, match: Match, other: PageRecord, probe: Probe, visit: Visit) -> bool:
        """Return whether the page should replace its representative."""
        before = _before(visit)
        if match.names == number_of(probe.page.url):
            self.counts["duplicates/canonical"] += 1
            return True
        if self.precedence.outranks(visit.record, other, before=before):
            self.counts["duplicates/outranked"] += 1
            return True
        is_late = self._index.is_alone or visit.kind not in _UNREAD or before is None or not is_held(before)
        if is_late or not self.precedence.is_equal(visit.record, other):
            return False
        return number_of(probe.page.url) < number_of(match.url)  # both were kept, because different ants fetched them

    def _count_canonical(self, page: IndexedPage, chosen: Match | None) -> None:
        if page.canonical is not None:
            if chosen is not None and chosen.url == page.canonical:
                self.counts["duplicates/canonical"] += 1
            elif self._standing(page.canonical) is not None:
                self.counts["duplicates/canonical_refused"] += 1

    def _compared(self, url: str, match: Match) -> float:
        """Return the resemblance of two texts if both are available, else the estimate from their sketches."""
        text, other = self._text(url), self._text(match.url)
        if text is None or other is None:
            return match.resemblance
        self.counts["duplicates/compared"] += 1
        return exact_resemblance(text, other)

    def _are_alike(self, *urls: str) -> bool:
        """Return True if the texts of two pages are similar, or if a text cannot be read."""
        texts = [text for url in urls if (text := self._text(url)) is not None]
        return len(texts) < 2 or exact_resemblance(*texts) >= self._least

    def _text(self, url: str) -> str | None:
        if url not in self._texts:
            record = self._store.pages.get(site_of(url), fingerprint(url))
            text = None if record is None else self._text_of(record)
            if text is None:
                return None
            self._texts[url] = text
        return self._texts[url]

    def _standing(self, url: str) -> PageRecord | None:
        """Return the record of a page if the page can be a representative (crawled, and no duplicate), else None."""
        if url not in self._held:
            record = self._store.pages.get(site_of(url), fingerprint(url))
            self._held[url] = None if record is None or not is_held(record) or record.digest is None else record
        return self._held[url]

    def _repeats(self, visit: Visit, url: str, *, canonical: str | None = None) -> Visit:
        """Return the visit of a duplicate. Of its links, only few are followed."""
        due, reading = visit.fetched.at + self._revisit_s, visit.reading
        record = msgspec.structs.replace(visit.record, duplicate_of=url, due=due)
        named = [link for link in reading.links if link.url == canonical]
        links = (*named, *(link for link in self._own_links(visit, url) if link.url != canonical))
        followed = {link.key for link in links}
        unfollowed = tuple(link for link in reading.links if link.key not in followed)
        reading = msgspec.structs.replace(reading, links=links, unfollowed=reading.unfollowed + unfollowed)
        return msgspec.structs.replace(visit, record=record, reading=reading)

    def _own_links(self, visit: Visit, url: str) -> list[Link]:
        """Return the links of a duplicate to pages of its own site that the representative's site lacks. Of the
        duplicate's links to pages that both sites have, one in `SAMPLED` is returned as a sample.

        If the duplicate and its representative are on one site, return no links.
        """
        site, original = visit.fetch.site, site_of(url)
        links = [] if site == original else [link for link in visit.reading.links if link.site == site]
        keys = [fingerprint(_counterpart(link.url, site, original)) for link in links]
        turn = visit.record.checks
        return [
            link
            for link, there in zip(links, self._store.pages.get_many(original, keys) if keys else [], strict=True)
            if there is None or self._mirrors.is_sample(link.key, turn)
        ]

    def _count(self, visit: Visit, match: Match | None) -> None:
        site = visit.fetch.site
        if match is not None and visit.record.duplicate_of != match.url:
            self.counts["duplicates/exact" if match.is_exact else "duplicates/near"] += 1
        if visit.kind == "new":
            self._count_sample(visit, match)
            self._mirrors.count(site, None if match is None else site_of(match.url))

    def _count_sample(self, visit: Visit, match: Match | None) -> None:
        site, before = visit.fetch.site, _before(visit)
        original = None if before is None else self._original_of(site, before)
        if original is None or self._standing(_counterpart(visit.record.url, site, original)) is None:
            return
        repeats = match is not None and site_of(match.url) == original
        if self._mirrors.count_sample(site, original, repeats=repeats):
            self.counts["duplicates/unmirrored"] += 1
            self._reopened[site] = original, self._store.pages.records(site=site, state="refused")


def _before(visit: Visit) -> PageRecord | None:
    return None if visit.fetch.lease is None else visit.fetch.lease.record


def _counterpart(url: str, site: str, original: str) -> str:
    """Return the URL of the same path on another site."""
    return original + url[len(site) :]


def _digest(record: PageRecord) -> int | None:
    """Return the part of a digest that the index stores."""
    return None if record.digest is None else digest_number(record.digest)


def _without_pointer(visit: Visit) -> Visit:
    """Return a visit; if it did not fail, clear `duplicate_of` in its record."""
    if visit.record.duplicate_of is None or visit.kind == "failed":
        return visit
    return msgspec.structs.replace(visit, record=msgspec.structs.replace(visit.record, duplicate_of=None))


def detector_of(
    collection: Collection,
    index: DuplicateIndex | None,
    store: FrontierStore,
    text_of: Callable[[PageRecord], str | None],
) -> DuplicateDetector | None:
    """Return the detector of a collection, or None if there is no index."""
    if index is None:
        return None
    return DuplicateDetector(
        index,
        store=store,
        text_of=text_of,
        resemblance=collection.duplicates.resemblance,
        revisit_s=min(collection.duplicates_revisit_s, bounds_of(collection).longest),
        precedence=Precedence(collection),
    )
