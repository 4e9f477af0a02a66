"""A generated web: pages, links, births, deaths and changes are a function of a seed and of time.

Place in the walk: it is the outside world of the demo and the tests (`server.py` speaks HTTP for it). Time is
counted in *periods* from 0. A page's changes are a Poisson process of a stated rate; each change is *major*
(a third of the text and its links), *minor* (one short note) or *trivial* (a number in a comment; only on
stamped pages). The birth of a page is a change of the page that lists it, so links reach every live page.

It draws by hashing (seed, what, which): nothing depends on the order of asking. It reads no clock and opens
no socket, and it keeps no bodies: putting one together from ready passages takes 20 µs.

Text for generated pages: sentences that read like prose, made once each and shared by all pages of a web. Place in
the walk: none, it only feeds `web.py`. It makes no page and knows no time.

One site of the generated web: which pages it has, when they live, how they link; not what they say. Place in the
walk: `web.py` writes and serves these pages. A site is a tree of pages (each lists its children, eight or so) under
random links: 85 of 100 to pages of the same site, Zipf within it, the others to other sites; a few lead to redirects,
to private pages and to nothing, in the spellings that real links have.
"""

from __future__ import annotations

import argparse
import gzip
import re
import struct
import sys
from bisect import bisect_right
from datetime import UTC, datetime
from hashlib import blake2b, sha1, shake_128
from math import inf, log
from random import Random
from typing import TYPE_CHECKING, Any, Final

from webfountain.demo.server import Answer, WebClock, add_serving_options, run_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["LINKS", "MAJOR", "MINOR", "RATES", "TRIVIAL", "GeneratedWeb", "Prose", "WebPage", "WebSite", "main"]


def _words(text: str) -> list[str]:
    return text.split()


_ADJECTIVES = _words(
    "quiet amber brittle careful distant early faint gentle hollow idle keen lively mellow narrow open patient "
    "quick remote steady tender upper vivid warm young ancient bitter clear damp eager formal golden humble "
    "inner joint local modest naïve ordered plain rapid"
)
_NOUNS = _words(
    "river market harbour window engine garden letter bridge forest signal copper theatre valley journal lantern "
    "kitchen orchard station compass library meadow captain village painter summer winter shadow bakery ladder "
    "mirror needle office pocket quarry ribbon saddle tunnel velvet whistle archive barrel candle dialect ember "
    "fountain glacier hammer island jacket kettle lemon mountain notebook ocean pigeon café"
)
_VERBS = _words(
    "follows carries measures hides answers crosses gathers paints repeats shelters weighs borrows counts divides "
    "explains finds guards holds invites joins keeps leaves mends names opens prints questions remembers settles "
    "teaches unites visits watches yields admires builds"
)
_PLACES = _words("near beyond under beside above behind within across along toward before after without against")
_OPENINGS = _words(
    "The A Every One Another This Perhaps|the Sometimes|a Today|the Slowly|every Once|a Again|the Often|one"
)


class Prose(dict[int, bytes]):
    """Passages of about `length` bytes each, by number, made when first asked for; equal for equal seeds."""

    def __init__(self, seed: int, *, length: int = 250) -> None:
        super().__init__()
        self._seed, self._length = seed, length

    def __missing__(self, number: int) -> bytes:
        passage = self[number] = self._passage(Random(f"{self._seed} {number}"), self._length).encode()
        return passage

    def _passage(self, rng: Random, length: int) -> str:
        """At least one sentence, then more while `length` has room for half of another."""
        sentences = [_sentence(rng)]
        size = len(sentences[0])
        while size + 35 < length:
            sentences.append(_sentence(rng))
            size += 1 + len(sentences[-1])
        return " ".join(sentences)

    @staticmethod
    def title(draw: int) -> str:
        """Three words chosen by a 64-bit draw, like ``Quiet river of letters``."""
        draw, a = divmod(draw, len(_ADJECTIVES))
        draw, b = divmod(draw, len(_NOUNS))
        return f"{_ADJECTIVES[a].capitalize()} {_NOUNS[b]} {_PLACES[draw % 14]} the {_NOUNS[draw // 14 % len(_NOUNS)]}"

    @staticmethod
    def slug(draw: int) -> str:
        """A folder and a name for a path, ASCII only, like ``/harbour/patient-signal``."""
        draw, a = divmod(draw, len(_ADJECTIVES) - 7)
        draw, b = divmod(draw, len(_NOUNS) - 1)
        adjective = _ADJECTIVES[a].replace("ï", "i")
        return f"/{_NOUNS[draw % 12]}/{adjective}-{_NOUNS[b]}"


def _sentence(rng: Random) -> str:
    """Subject, verb, object and a place: about 70 bytes, 12 words."""
    opening = rng.choice(_OPENINGS).replace("|", " ")
    subject = f"{opening} {rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)}"
    deed = f"{rng.choice(_VERBS)} the {rng.choice(_NOUNS)}"
    place = f"{rng.choice(_PLACES)} a {rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)}"
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", f"{subject} {deed} {place}.")


LINKS: Final = 4096  # ready links of a site; a power of two, so that 16-bit draws hit them evenly
_FAN = 8
_TO_UNIT = 2.0**-64
_XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


class WebPage:
    """What is drawn once for a page, and its changes so far as anybody asked (`times`, `kinds`, `thirds`)."""

    __slots__ = (
        "birth", "child_births", "children", "death", "digest", "kinds", "listed", "made", "number", "parent",
        "path", "rate", "site", "stamped", "thirds", "times", "title",
    )  # fmt: skip

    def __init__(self, site: int, number: int, draws: tuple[int, ...], *, birth: float) -> None:
        self.site, self.number, self.birth, self.death = site, number, birth, inf
        self.path = f"{Prose.slug(draws[0])}-{number}" if number else "/"
        self.title = Prose.title(draws[1])
        self.parent = 0
        self.children: list[WebPage] = []  # in the order of their births
        self.child_births: list[float] = []  # only of those born after time 0, ascending
        self.rate, self.stamped, self.listed, self.made = 0.0, False, False, birth
        self.times: list[float] = []
        self.kinds = bytearray()
        self.thirds = bytearray()
        self.digest: tuple[tuple[int, int], str] = ((-1, -1), "")


class WebSite:
    """The tree of a site's pages; number `i` of `len(sizes)` sites, `sizes[i]` pages at time 0."""

    def __init__(
        self,
        number: int,
        sizes: Sequence[int],
        bases: Sequence[str],
        *,
        births: float,
        deaths: float,
        span: float,
        draw: Callable[..., tuple[int, ...]],
    ) -> None:
        self.number, self.size, self.base = number, sizes[number], bases[number]
        self.sizes, self.bases = sizes, bases
        late = sorted(draw(5, number, i)[0] * _TO_UNIT * span for i in range(round(births * self.size)))
        times = [0.0] * self.size + late
        self.pages = [WebPage(number, i, draw(6, number, i), birth=birth) for i, birth in enumerate(times)]
        for page in self.pages[1:]:
            self._adopt(page, draw(7, number, page.number)[0])
        self._kill(deaths, span, draw)
        self.by_path = {page.path: page for page in self.pages}
        self.links = _Links(self, draw)

    def _adopt(self, page: WebPage, draw: int) -> None:
        """Early pages form a full tree; a late one is listed by a page that lived at time 0, mostly a high one."""
        early = page.number < self.size
        page.parent = (page.number - 1) // _FAN if early else _zipf(self.size, draw)
        parent = self.pages[page.parent]
        parent.children.append(page)
        if not early:
            parent.child_births.append(page.birth)

    def _kill(self, deaths: float, span: float, draw: Callable[..., tuple[int, ...]]) -> None:
        """Only pages without children die, so that no other page loses the list that names it."""
        leaves = [page for page in self.pages[1:] if not page.children]
        share = min(1.0, deaths * self.size / max(1, len(leaves)))
        for page in leaves:
            dies, when, *_ = (n * _TO_UNIT for n in draw(8, self.number, page.number))
            if dies < share:
                page.death = page.birth + (when + 0.01) * span

    def find(self, path: str, t: float) -> WebPage | None:
        """The page of a path if it lives at `t`."""
        page = self.by_path.get(path)
        return page if page is not None and page.birth <= t < page.death else None

    def alive(self, t: float) -> Iterator[WebPage]:
        """The pages that live at `t`."""
        return (page for page in self.pages if page.birth <= t < page.death)

    # -- markup --------------------------------------------------------------------------------------------

    def head(self, page: WebPage) -> bytes:
        """Everything before the text."""
        parent = self.pages[page.parent]
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{page.title}</title>\n'
            f'<link rel="canonical" href="{self.base}{page.path}">\n<style>p {{ margin: 1em }}</style></head>\n'
            f'<body><p><a href="/">Home</a> <a href="{parent.path}">{parent.title}</a></p>\n<h1>{page.title}</h1><p>'
        ).encode()

    def nav(self, page: WebPage, late: int) -> bytes:
        """The list of a page's children: those of time 0 and the first `late` of the later ones."""
        if not page.children:
            return b"</p>"
        early = len(page.children) - len(page.child_births)
        items = (f'<li><a href="{c.path}">{c.title}</a></li>' for c in page.children[: early + late])
        return f"</p><ul>{''.join(items)}</ul>".encode()

    # -- beside the pages ----------------------------------------------------------------------------------

    def redirect(self, path: str) -> str:
        """Where ``/old/N`` (to page N) and ``/go/N`` (to ``/old/N``) lead; empty for every other path."""
        folder, _, name = path[1:].partition("/")
        if folder not in ("old", "go") or not name.isdecimal() or int(name) >= self.size:
            return ""
        return self.pages[int(name)].path if folder == "old" else f"/old/{int(name)}"

    def sitemap(self, path: str, listed: Iterable[tuple[str, float]]) -> Answer:
        """Even sites have one plain sitemap; odd ones an index that names a gzipped one."""
        xml: dict[str, Any] = {"media_type": "application/xml"}
        if self.number % 2 and path == "/sitemap.xml":
            inner = f"<sitemap><loc>{self.base}/sitemap-1.xml.gz</loc></sitemap>"
            return Answer(200, f"<sitemapindex {_XMLNS}>{inner}</sitemapindex>".encode(), **xml)
        if path not in ("/sitemap.xml", "/sitemap-1.xml.gz"):
            return Answer(404)
        urls = "".join(
            f"<url><loc>{self.base}{path}</loc><lastmod>{_w3c_date(changed)}</lastmod></url>"
            for path, changed in listed
        )
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_XMLNS}>{urls}</urlset>'.encode()
        if path == "/sitemap.xml":
            return Answer(200, body, **xml)
        return Answer(200, gzip.compress(body, 1, mtime=0), media_type="application/gzip")


class _Links(dict[int, bytes]):
    """The LINKS ready links of a site by number, each made when first asked for; the end of a paragraph."""

    def __init__(self, site: WebSite, draw: Callable[..., tuple[int, ...]]) -> None:
        super().__init__()
        self._site, self._draw = site, draw

    def __missing__(self, number: int) -> bytes:
        draws = self._draw(9, self._site.number, number)
        abroad = draws[0] % 1000 >= 850 and len(self._site.sizes) > 1
        href, title = self._to_other(draws) if abroad else self._to_own(draws)
        link = self[number] = f'<a href="{href}">{title}</a></p><p>'.encode()
        return link

    def _to_own(self, draws: tuple[int, ...]) -> tuple[str, str]:
        """Four kinds of 12 in a thousand lead to no page; a page's link has a fragment or a host in two of ten."""
        site = self._site
        target = site.pages[_zipf(site.size, draws[1])]
        few = draws[2] % max(1, site.size // 20)
        odd = {0: f"/missing/{few}", 1: f"/private/{few}", 2: f"/old/{few}", 3: f"/go/{few}"}
        spellings = (f"{target.path}#more", site.base + target.path, *(8 * [target.path]))
        return odd.get(draws[0] % 1000 // 12) or spellings[draws[3] % 10], target.title

    def _to_other(self, draws: tuple[int, ...]) -> tuple[str, str]:
        """A page of another site, whose path and title follow from its number alone."""
        sizes = self._site.sizes
        other = (self._site.number + 1 + draws[1] % (len(sizes) - 1)) % len(sizes)
        number = _zipf(sizes[other], draws[2])
        target = WebPage(other, number, self._draw(6, other, number), birth=0.0)
        return self._site.bases[other] + target.path, target.title


def _zipf(n: int, draw: int) -> int:
    """0 … n-1 with weight about 1/(rank + 1), from a 64-bit draw."""
    return min(n - 1, int((n + 1) ** (draw * _TO_UNIT)) - 1) if n > 1 else 0


def _w3c_date(utc: float) -> str:
    return datetime.fromtimestamp(utc, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


TRIVIAL, MINOR, MAJOR = 0, 1, 2

# (share of the pages, changes a period): several times a period for a few, seldom for most, never for a quarter.
RATES: Final = ((0.03, 4.0), (0.05, 1.0), (0.1, 1 / 3), (0.17, 0.1), (0.2, 1 / 30), (0.2, 0.01), (0.25, 0.0))

_PASSAGES: Final = 3000
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
            WebSite(i, sizes, self.bases, births=births, deaths=deaths, span=span, draw=self._draw)
            for i in range(sites)
        ]
        for site in self.sites:
            self._set_habits(site, sitemap_share)

    def _draw(self, *which: int) -> tuple[int, ...]:
        """Four 64-bit numbers that belong to `which` and the seed."""
        packed = struct.pack(f"<{len(which)}q", *which)
        return struct.unpack("<4Q", blake2b(packed, digest_size=32, key=self._key).digest())

    def _set_habits(self, site: WebSite, sitemap_share: float) -> None:
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

    def _own(self, page: WebPage, t: float) -> int:
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

    def _write(self, page: WebPage, own: int, t: float) -> bytes:
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

    def _stream(self, page: WebPage, third: int, change: int) -> memoryview:
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

    def _changed(self, page: WebPage, own: int, born: int) -> float:
        changed = page.times[own - 1] if own else page.made
        return max(changed, page.child_births[born - 1]) if born else changed

    def _beside(self, site: WebSite, path: str, t: float) -> Answer:
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

    def _listed(self, site: WebSite, t: float) -> Iterator[tuple[str, float]]:
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

    def _digest(self, page: WebPage, t: float) -> str:
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


def _state(page: WebPage, own: int) -> tuple[list[int], int, int]:
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m webfountain.demo.web", description=main.__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="another seed, another web")
    add("--sites", type=int, default=5)
    add("--pages", type=int, default=200, help="live pages of all sites together at the start")
    add("--period", type=float, default=10.0, help="seconds that a period of the web lasts; 0 stops its time")
    add("--origin", type=float, default=0.0, help="the web's time at the start, in periods")
    add("--body-bytes", type=int, default=6000, help="about what a page has")
    add("--links", type=int, default=20, help="about what a page has")
    add("--births", type=float, default=0.2, help="pages that appear during the span, as a share of the pages")
    add("--deaths", type=float, default=0.1, help="pages that vanish during the span, as a share of the pages")
    add("--span", type=float, default=30.0, help="periods in which pages appear and vanish")
    add("--sitemap-share", type=float, default=0.25, help="share of the pages that the sitemaps list")
    add_serving_options(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a generated web on loopback until told to end; the exit status."""
    options = _parser().parse_args(arguments)
    rate = 1 / options.period if options.period else 0.0
    clock = WebClock.start(options.origin, rate)

    def make_web(bases: list[str], clock: WebClock) -> GeneratedWeb:
        return GeneratedWeb(
            options.seed,
            sites=options.sites,
            pages=options.pages,
            body_bytes=options.body_bytes,
            links=options.links,
            births=options.births,
            deaths=options.deaths,
            span=options.span,
            sitemap_share=options.sitemap_share,
            bases=bases,
            utc=clock.utc,
        )

    try:
        run_server(options, options.sites, make_web, clock)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"webfountain demo: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
