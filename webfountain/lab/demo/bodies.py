"""Bodies of generated pages, assembled from ready passages in 20 µs; none is stored."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from webfountain.lab.demo.changes import state_after
from webfountain.lab.demo.prose import Prose
from webfountain.lab.demo.site import LINKS

if TYPE_CHECKING:
    from webfountain.lab.demo.draws import Draws
    from webfountain.lab.demo.site import WebPage, WebSite

__all__ = ["PageBodies"]

_PASSAGES: Final = 3000


class PageBodies:
    """Writes pages of about `body_bytes` bytes with about `links` links."""

    def __init__(self, draw: Draws, prose_seed: int, *, body_bytes: int, links: int) -> None:
        self._draw = draw
        self._units = max(3, links - 3)  # besides links to the home page, the parent and the page itself
        self._prose = Prose(prose_seed, length=body_bytes // self._units - 75)

    def write(self, site: WebSite, page: WebPage, own: int, t: float) -> bytes:
        """Return the body after `own` changes, listing the children born until `t`."""
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
