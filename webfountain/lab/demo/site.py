"""One site of the generated web: which pages it has, when they exist and how they link.

A site is a tree of pages, each with about eight children, and additional random links. Of the random links, 85 % lead
to pages of the same site, chosen by Zipf's law, and 15 % lead to other sites. A few links lead to redirects, to private
pages or to missing pages.
"""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any, Final

from webfountain.lab.demo.answers import Answer
from webfountain.lab.demo.draws import TO_UNIT
from webfountain.lab.demo.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webfountain.lab.demo.draws import Draws

__all__ = ["LINKS", "WebPage", "WebSite"]

LINKS: Final = 4096  # number of prepared links of a site; a power of two, so that 16-bit draws select links evenly
_FAN = 8
_XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


class WebPage:
    """A page: its properties, drawn once, and its changes so far (`times`, `kinds`, `thirds`)."""

    __slots__ = (
        "birth", "child_births", "children", "death", "digest", "kinds", "listed", "made", "number", "parent",
        "path", "rate", "site", "stamped", "thirds", "times", "title",
    )  # fmt: skip

    def __init__(self, site: int, number: int, draws: tuple[int, ...], *, birth: float) -> None:
        self.site, self.number, self.birth, self.death = site, number, birth, inf
        self.path = f"{Prose.slug(draws[0])}-{number}" if number else "/"
        self.title = Prose.title(draws[1])
        self.parent = 0
        self.children: list[WebPage] = []  # in the order of birth
        self.child_births: list[float] = []  # births of the children born after time 0, ascending
        self.rate, self.stamped, self.listed, self.made = 0.0, False, False, birth
        self.times: list[float] = []
        self.kinds = bytearray()
        self.thirds = bytearray()
        self.digest: tuple[tuple[int, int], str] = ((-1, -1), "")


class WebSite:
    """The tree of a site's pages."""

    def __init__(
        self,
        number: int,
        sizes: Sequence[int],
        bases: Sequence[str],
        *,
        births: float,
        deaths: float,
        span: float,
        draw: Draws,
    ) -> None:
        self.number, self.size, self.base = number, sizes[number], bases[number]
        self.sizes, self.bases = sizes, bases
        late = sorted(draw(5, number, i)[0] * TO_UNIT * span for i in range(round(births * self.size)))
        times = [0.0] * self.size + late
        self.pages = [WebPage(number, i, draw(6, number, i), birth=birth) for i, birth in enumerate(times)]
        for page in self.pages[1:]:
            self._adopt(page, draw(7, number, page.number)[0])
        self._kill(deaths, span, draw)
        self.by_path = {page.path: page for page in self.pages}
        self.links = _Links(self, draw)

    def _adopt(self, page: WebPage, draw: int) -> None:
        """Choose the parent of a page. Pages from time 0 form a full tree, and are the parents of later pages."""
        early = page.number < self.size
        page.parent = (page.number - 1) // _FAN if early else _zipf(self.size, draw)
        parent = self.pages[page.parent]
        parent.children.append(page)
        if not early:
            parent.child_births.append(page.birth)

    def _kill(self, deaths: float, span: float, draw: Draws) -> None:
        """Let some pages die at random times, but only pages without children, so that links reach every live page."""
        leaves = [page for page in self.pages[1:] if not page.children]
        share = min(1.0, deaths * self.size / max(1, len(leaves)))
        for page in leaves:
            dies, when, *_ = (n * TO_UNIT for n in draw(8, self.number, page.number))
            if dies < share:
                page.death = page.birth + (when + 0.01) * span

    def find(self, path: str, t: float) -> WebPage | None:
        page = self.by_path.get(path)
        return page if page is not None and page.birth <= t < page.death else None

    def alive(self, t: float) -> Iterator[WebPage]:
        return (page for page in self.pages if page.birth <= t < page.death)

    # -- markup --------------------------------------------------------------------------------------------

    def head(self, page: WebPage) -> bytes:
        """Return the HTML of a page from its beginning to its text."""
        parent = self.pages[page.parent]
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{page.title}</title>\n'
            f'<link rel="canonical" href="{self.base}{page.path}">\n<style>p {{ margin: 1em }}</style></head>\n'
            f'<body><p><a href="/">Home</a> <a href="{parent.path}">{parent.title}</a></p>\n<h1>{page.title}</h1><p>'
        ).encode()

    def nav(self, page: WebPage, late: int) -> bytes:
        """Return the HTML list of a page's children; of the children born after time 0, only the first `late` are
        listed.
        """
        if not page.children:
            return b"</p>"
        early = len(page.children) - len(page.child_births)
        items = (f'<li><a href="{c.path}">{c.title}</a></li>' for c in page.children[: early + late])
        return f"</p><ul>{''.join(items)}</ul>".encode()

    # -- what is not a page --------------------------------------------------------------------------------

    def redirect(self, path: str) -> str:
        """Return the target of a redirect, or "". The path ``/old/N`` leads to page N, and ``/go/N`` to ``/old/N``."""
        folder, _, name = path[1:].partition("/")
        if folder not in ("old", "go") or not name.isdecimal() or int(name) >= self.size:
            return ""
        return self.pages[int(name)].path if folder == "old" else f"/old/{int(name)}"

    def sitemap(self, path: str, listed: Iterable[tuple[str, float]]) -> Answer:
        """Return a sitemap. Sites with an even number have a plain sitemap, sites with an odd number an index and a
        gzipped sitemap.
        """
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
    """The random links of a site by link number; each link is a piece of HTML at the end of a paragraph."""

    def __init__(self, site: WebSite, draw: Draws) -> None:
        super().__init__()
        self._site, self._draw = site, draw

    def __missing__(self, number: int) -> bytes:
        draws = self._draw(9, self._site.number, number)
        abroad = draws[0] % 1000 >= 850 and len(self._site.sizes) > 1
        href, title = self._to_other(draws) if abroad else self._to_own(draws)
        link = self[number] = f'<a href="{href}">{title}</a></p><p>'.encode()
        return link

    def _to_own(self, draws: tuple[int, ...]) -> tuple[str, str]:
        site = self._site
        target = site.pages[_zipf(site.size, draws[1])]
        few = draws[2] % max(1, site.size // 20)
        odd = {0: f"/missing/{few}", 1: f"/private/{few}", 2: f"/old/{few}", 3: f"/go/{few}"}
        spellings = (f"{target.path}#more", site.base + target.path, *(8 * [target.path]))
        return odd.get(draws[0] % 1000 // 12) or spellings[draws[3] % 10], target.title

    def _to_other(self, draws: tuple[int, ...]) -> tuple[str, str]:
        sizes = self._site.sizes
        other = (self._site.number + 1 + draws[1] % (len(sizes) - 1)) % len(sizes)
        number = _zipf(sizes[other], draws[2])
        target = WebPage(other, number, self._draw(6, other, number), birth=0.0)
        return self._site.bases[other] + target.path, target.title


def _zipf(n: int, draw: int) -> int:
    """Convert a 64-bit random value to a number from 0 to n-1, distributed by Zipf's law."""
    return min(n - 1, int((n + 1) ** (draw * TO_UNIT)) - 1) if n > 1 else 0


def _w3c_date(utc: float) -> str:
    return datetime.fromtimestamp(utc, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
