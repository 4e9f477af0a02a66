"""A generated web: pages, links, births, deaths and changes depend only on a seed and the time.

Time is counted in *periods* from 0. The birth of a page changes the page that lists it, so links reach every live page.
``python -m webfountain.lab.demo.web`` serves a generated web.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_right
from hashlib import sha1
from typing import TYPE_CHECKING, Final

from webfountain.lab.demo.answers import Answer, WebClock
from webfountain.lab.demo.changes import RATES, PageChanges, state_after
from webfountain.lab.demo.draws import Draws
from webfountain.lab.demo.prose import Prose
from webfountain.lab.demo.serving import add_serving_options, run_server
from webfountain.lab.demo.site import LINKS, WebSite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webfountain.lab.demo.site import WebPage

__all__ = ["GeneratedWeb", "PageBodies", "generated_web", "main"]

_PASSAGES: Final = 3000
_ROBOTS: Final = "User-agent: *\nDisallow: /private/\nSitemap: {base}/sitemap.xml\n"


class PageBodies:
    """Writer of pages with about `body_bytes` bytes and `links` links."""

    def __init__(self, draw: Draws, prose_seed: int, *, body_bytes: int, links: int) -> None:
        self._draw = draw
        self._units = max(3, links - 3)  # besides links to the home page, the parent and the page itself
        self._prose = Prose(prose_seed, length=body_bytes // self._units - 75)

    def write(self, site: WebSite, page: WebPage, own: int, t: float) -> bytes:
        """Return the body of a page after `own` changes. The body lists the page's children that were born by the time
        `t`.
        """
        texts, note, stamp = state_after(page, own)
        parts = [site.head(page)]
        size = 2 * (self._units // 3 + 1)
        drawn = [self._draw.stream(3, page.site, page.number, *which, size=size) for which in enumerate(texts)]
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


def generated_web(
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
) -> GeneratedWeb:
    """Return a web that has `pages` live pages at time 0, divided among `sites` sites.

    - `births`, `deaths`: pages that appear and disappear in the first `span` periods, as a share of `pages`.
    - `body_bytes`, `links`: approximate values per page.
    - `rates`: (share, changes per period).
    - `sitemap_share`: share of the pages in a sitemap.
    - `bases`: one URL without a path per site.
    - `utc`: converts web time to UTC seconds.
    """
    if not 0 < sites <= pages:
        raise ValueError(f"sites {sites} must be from 1 to {pages}, the number of pages")
    homes = list(bases) or [f"http://site{i + 1}.example" for i in range(sites)]
    sizes = [pages // sites + (i < pages % sites) for i in range(sites)]
    draw = Draws(seed)
    built = [WebSite(i, sizes, homes, births=births, deaths=deaths, span=span, draw=draw) for i in range(sites)]
    changes = PageChanges(draw, rates)
    for site in built:
        changes.set_habits(site, sitemap_share=sitemap_share)
    return GeneratedWeb(built, changes, PageBodies(draw, seed, body_bytes=body_bytes, links=links), utc=utc)


class GeneratedWeb:
    def __init__(
        self, sites: Sequence[WebSite], changes: PageChanges, bodies: PageBodies, *, utc: Callable[[float], float]
    ) -> None:
        self.sites = sites
        self.bases = [site.base for site in sites]
        self._changes = changes
        self._bodies = bodies
        self._utc = utc

    def version(self, site: int, path: str, t: float) -> int:
        """Return how many different bodies a page has had by the time `t`; 0 if there is no page at `t`."""
        page = self.sites[site].find(path, t)
        return 0 if page is None else 1 + self._changes.until(page, t) + bisect_right(page.child_births, t)

    def changes(self, site: int, path: str, t: float) -> list[tuple[float, int]]:
        """Return the time and kind of each change of a page up to `t`; births of its children do not count."""
        page = self.sites[site].find(path, t)
        own = 0 if page is None else self._changes.until(page, t)
        return [] if page is None else list(zip(page.times[:own], page.kinds[:own], strict=True))

    def rate(self, site: int, path: str) -> float:
        """Return how many changes per period a page has on average; births of its children do not count."""
        return self.sites[site].by_path[path].rate

    def body(self, site: int, path: str, t: float) -> bytes | None:
        """Return the body of a page at `t`; None if there is no page at `t`."""
        page = self.sites[site].find(path, t)
        return None if page is None else self._write(page, self._changes.until(page, t), t)

    def _write(self, page: WebPage, own: int, t: float) -> bytes:
        return self._bodies.write(self.sites[page.site], page, own, t)

    def respond(self, site: int, path: str, t: float) -> Answer:
        """Return the answer of a static server, which ignores queries. A missing page gives 404 or 410."""
        path = path.partition("?")[0]
        page = self.sites[site].by_path.get(path)
        if page is None:
            return self._beside(self.sites[site], path, t)
        if not page.birth <= t < page.death:
            return Answer(410 if page.death <= t and page.number % 2 else 404, b"<p>Not here.</p>")
        own, born = self._changes.until(page, t), bisect_right(page.child_births, t)
        etag = f"{page.site:x}-{page.number:x}-{own:x}-{born:x}"
        return Answer(200, self._write(page, own, t), etag, self._changed(page, own, born))

    def _changed(self, page: WebPage, own: int, born: int) -> float:
        changed = page.times[own - 1] if own else page.made
        return max(changed, page.child_births[born - 1]) if born else changed

    def _beside(self, site: WebSite, path: str, t: float) -> Answer:
        """Return the answer to a path that is no page of the tree: a robots.txt, sitemap, redirect or private page, or
        404.
        """
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
        """Return path and last change (UTC seconds) of each live page in the sitemap."""
        for page in site.alive(t):
            if page.listed:
                own, born = self._changes.until(page, t), bisect_right(page.child_births, t)
                yield page.path, self._utc(self._changed(page, own, born))

    def truth(self, t: float) -> Iterator[tuple[str, str]]:
        """Yield the URL of each live page, with the hex SHA-1 of its body."""
        for site, base in zip(self.sites, self.bases, strict=True):
            for page in site.alive(t):
                yield base + page.path, self._digest(page, t)

    def _digest(self, page: WebPage, t: float) -> str:
        own = self._changes.until(page, t)
        state = (own, bisect_right(page.child_births, t))
        if page.digest[0] != state:
            page.digest = (
                state,
                sha1(self._write(page, own, t), usedforsecurity=False).hexdigest(),
            )
        return page.digest[1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m webfountain.lab.demo.web", description=main.__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="each seed gives another web")
    add("--sites", type=int, default=5)
    add("--pages", type=int, default=200, help="number of live pages at the start, over all sites")
    add("--period", type=float, default=10.0, help="length of a period of the web in seconds; 0 stops its time")
    add("--origin", type=float, default=0.0, help="the web's time at the start, in periods")
    add("--body-bytes", type=int, default=6000, help="approximate size of a page")
    add("--links", type=int, default=20, help="approximate number of links on a page")
    add("--births", type=float, default=0.2, help="pages that appear during the span, as a share of the pages")
    add("--deaths", type=float, default=0.1, help="pages that vanish during the span, as a share of the pages")
    add("--span", type=float, default=30.0, help="periods in which pages appear and vanish")
    add("--sitemap-share", type=float, default=0.25, help="share of the pages that the sitemaps list")
    add_serving_options(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a generated web on loopback until the process must end, and return the exit status."""
    options = _parser().parse_args(arguments)
    rate = 1 / options.period if options.period else 0.0
    clock = WebClock.start(options.origin, rate)

    def make_web(bases: list[str], clock: WebClock) -> GeneratedWeb:
        return generated_web(
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
