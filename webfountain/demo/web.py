"""A generated web: pages, links, births, deaths and changes are a function of a seed and of time.

Place in the walk: it is the outside world of the demo and the tests (`server.py` speaks HTTP for it). Time is
counted in *periods* from 0. A page's changes are a Poisson process of a stated rate; each change is *major*
(a third of the text and its links), *minor* (one short note) or *trivial* (a number in a comment; only on
stamped pages). The birth of a page is a change of the page that lists it, so links reach every live page.

It draws by hashing (seed, what, which): nothing depends on the order of asking. It reads no clock and opens
no socket, and it keeps no bodies: putting one together from ready passages takes 20 µs.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from hashlib import blake2b, sha1, shake_128
from math import log
from typing import TYPE_CHECKING, Final

from webfountain.demo.answers import Answer
from webfountain.demo.prose import Prose
from webfountain.demo.site import LINKS, Page, Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["MAJOR", "MINOR", "RATES", "TRIVIAL", "GeneratedWeb"]

TRIVIAL, MINOR, MAJOR = 0, 1, 2

# (share of the pages, changes a period): several times a period for a few, seldom for most, never for a quarter.
RATES: Final = ((0.03, 4.0), (0.05, 1.0), (0.1, 1 / 3), (0.17, 0.1), (0.2, 1 / 30), (0.2, 0.01), (0.25, 0.0))

_PASSAGES: Final = 3000
_TO_UNIT = 2.0**-64
_ROBOTS = "User-agent: *\nDisallow: /private/\nSitemap: {base}/sitemap.xml\n"


class GeneratedWeb:
    """`pages` is the number of live pages of all `sites` together at time 0.

    births, deaths: pages that appear and vanish during `span` periods, as a share of `pages`; later the number
    stays and changes go on. body_bytes, links: about what a page has. rates: (share, changes a period).
    sitemap_share: of the pages, how many a sitemap lists. bases: one URL without path per site.
    utc: web time to UTC seconds, for the sitemap's lastmod.
    """

    def __init__(
        self,
        seed: int = 1,
        *,
        sites: int = 5,
        pages: int = 200,
        body_bytes: int = 6000,
        links: int = 20,
        births: float = 0.2,
        deaths: float = 0.1,
        span: float = 30.0,
        rates: Sequence[tuple[float, float]] = RATES,
        sitemap_share: float = 0.25,
        bases: Sequence[str] = (),
        utc: Callable[[float], float] = float,
    ) -> None:
        if not 0 < sites <= pages:
            raise ValueError(f"sites {sites} must be 1 to pages ({pages})")
        self.bases = list(bases) or [f"http://site{i + 1}.example" for i in range(sites)]
        self._key = struct.pack("<q", seed)
        self._rates = rates
        self._units = max(3, links - 3)  # home, parent and itself are linked besides
        self._utc = utc
        self._prose = Prose(seed, length=body_bytes // self._units - 75)
        sizes = [pages // sites + (i < pages % sites) for i in range(sites)]
        self.sites = [
            Site(i, sizes, self.bases, births=births, deaths=deaths, span=span, draw=self._draw) for i in range(sites)
        ]
        for site in self.sites:
            self._set_habits(site, sitemap_share)

    def _draw(self, *which: int) -> tuple[int, ...]:
        """Four 64-bit numbers that belong to `which` and the seed."""
        packed = struct.pack(f"<{len(which)}q", *which)
        return struct.unpack("<4Q", blake2b(packed, digest_size=32, key=self._key).digest())

    def _set_habits(self, site: Site, sitemap_share: float) -> None:
        for page in site.pages:
            rate, stamped, listed, made = (n * _TO_UNIT for n in self._draw(1, site.number, page.number))
            page.rate = self._rate_at(rate)
            page.stamped = stamped < 0.2
            page.listed = listed < sitemap_share
            page.made = page.birth if page.birth else -50.0 * made

    def _rate_at(self, u: float) -> float:
        for share, rate in self._rates:
            if u < share:
                return rate
            u -= share
        return self._rates[-1][1]

    # -- changes -------------------------------------------------------------------------------------------

    def version(self, site: int, path: str, t: float) -> int:
        """How many different bodies the page has had until `t`; 0 where there is no live page."""
        page = self.sites[site].find(path, t)
        return 0 if page is None else 1 + self._own(page, t) + bisect_right(page.child_births, t)

    def changes(self, site: int, path: str, t: float) -> list[tuple[float, int]]:
        """Time and kind of the page's own changes until `t`; the births it lists are not among them."""
        page = self.sites[site].find(path, t)
        own = 0 if page is None else self._own(page, t)
        return [] if page is None else list(zip(page.times[:own], page.kinds[:own], strict=True))

    def rate(self, site: int, path: str) -> float:
        """The stated rate, own changes a period."""
        return self.sites[site].by_path[path].rate

    def _own(self, page: Page, t: float) -> int:
        """Count of the page's own changes until `t`; draws further ones first where needed."""
        if not page.rate:
            return 0
        times = page.times
        last = times[-1] if times else page.birth
        while last <= t:
            gap, kind, third, _ = self._draw(2, page.site, page.number, len(times))
            last -= log((gap + 1) * _TO_UNIT) / page.rate
            times.append(last)
            page.kinds.append(_kind(kind * _TO_UNIT, page.stamped))
            page.thirds.append(third % 3)
        return bisect_right(times, t)

    # -- bodies --------------------------------------------------------------------------------------------

    def body(self, site: int, path: str, t: float) -> bytes | None:
        """The page's bytes at `t`, None where there is no live page."""
        page = self.sites[site].find(path, t)
        return None if page is None else self._write(page, self._own(page, t), t)

    def _write(self, page: Page, own: int, t: float) -> bytes:
        """The body after `own` changes, listing the children born until `t`."""
        site = self.sites[page.site]
        texts, note, stamp = _state(page, own)
        parts = [site.head(page)]
        drawn = [self._stream(page, third, change) for third, change in enumerate(texts)]
        passages, links = self._prose, site.links
        for unit in range(self._units):
            at = 2 * (unit // 3)
            numbers = drawn[unit % 3]
            parts.append(passages[numbers[at] % _PASSAGES])
            parts.append(links[numbers[at + 1] % LINKS])
        parts.append(site.nav(page, bisect_right(page.child_births, t)))
        revised = self._draw(4, page.site, page.number, note)[0]
        parts.append(f"<p>Revised: {Prose.title(revised)}.</p>\n<!-- build {stamp} --></body></html>\n".encode())
        return b"\n".join(parts)

    def _stream(self, page: Page, third: int, change: int) -> memoryview:
        """16-bit draws for one third of the units of a page, as its change number `change` left them."""
        key = self._key + struct.pack("<5q", 3, page.site, page.number, third, change)
        size = 4 * (self._units // 3 + 1)
        return memoryview(shake_128(key).digest(size)).cast("H")

    # -- answers -------------------------------------------------------------------------------------------

    def respond(self, site: int, path: str, t: float) -> Answer:
        """A static server's answer: a query changes nothing, what does not exist now is 404 (or 410)."""
        path = path.partition("?")[0]
        page = self.sites[site].by_path.get(path)
        if page is None:
            return self._beside(self.sites[site], path, t)
        if not page.birth <= t < page.death:
            return Answer(410 if page.death <= t and page.number % 2 else 404, b"<p>Not here.</p>")
        own, born = self._own(page, t), bisect_right(page.child_births, t)
        etag = f"{page.site:x}-{page.number:x}-{own:x}-{born:x}"
        return Answer(200, self._write(page, own, t), etag, self._changed(page, own, born))

    def _changed(self, page: Page, own: int, born: int) -> float:
        changed = page.times[own - 1] if own else page.made
        return max(changed, page.child_births[born - 1]) if born else changed

    def _beside(self, site: Site, path: str, t: float) -> Answer:
        """What is no page: robots.txt, sitemaps, redirects, private pages, and nothing."""
        if path == "/robots.txt":
            robots = _ROBOTS.format(base=self.bases[site.number]).encode()
            return Answer(200, robots, media_type="text/plain")
        if path.startswith("/sitemap"):
            return site.sitemap(path, self._listed(site, t))
        if path.startswith("/private/"):
            return Answer(200, b"<title>Private</title><p>robots.txt asks not to read this.</p>")
        target = site.redirect(path)
        return Answer(301 if path.startswith("/old/") else 302, location=target) if target else Answer(404, b"Nothing")

    def _listed(self, site: Site, t: float) -> Iterator[tuple[str, float]]:
        """Path and UTC second of the last change of the live pages that the sitemap names."""
        for page in site.alive(t):
            if page.listed:
                own, born = self._own(page, t), bisect_right(page.child_births, t)
                yield page.path, self._utc(self._changed(page, own, born))

    def truth(self, t: float) -> Iterator[tuple[str, str]]:
        """URL and hex SHA-1 of every live page: the lists of children make all of them reachable."""
        for site, base in zip(self.sites, self.bases, strict=True):
            for page in site.alive(t):
                yield base + page.path, self._digest(page, t)

    def _digest(self, page: Page, t: float) -> str:
        own = self._own(page, t)
        state = (own, bisect_right(page.child_births, t))
        if page.digest[0] != state:
            page.digest = (state, sha1(self._write(page, own, t), usedforsecurity=False).hexdigest())
        return page.digest[1]


def _kind(u: float, stamped: bool) -> int:
    """A stamped page's changes are trivial in six cases of ten, another page's never."""
    if stamped and u < 0.6:
        return TRIVIAL
    return MAJOR if u * 97 % 1 < 0.6 else MINOR


def _state(page: Page, own: int) -> tuple[list[int], int, int]:
    """Which change last wrote each third of the text, which the note, and how many stamped the comment."""
    texts, note, stamp = [0, 0, 0], 0, 0
    for change in range(own):
        kind = page.kinds[change]
        if kind == MAJOR:
            texts[page.thirds[change]] = change + 1
        elif kind == MINOR:
            note = change + 1
        else:
            stamp += 1
    return texts, note, stamp
