"""Links of a parsed page: canonical URLs in document order, each once.

Place in the walk: first thing that is done with a page's tree (taking the text prunes it). Links come from a, area,
frame, iframe, link rel next and canonical, meta refresh; `<base>` moves what is relative. Whether a link
belongs to the collection is the judge's business.

Speed is why this is no loop over `urls.join`: a plain path is joined by hand, which for the characters of `_PLAIN`
gives what ada-url gives (a test holds them together), after the page's folder, its site or another origin, each of
which is made canonical once and remembered. What is left and does not depend on the page is remembered too.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from webfountain.urls import join, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from selectolax.lexbor import LexborHTMLParser, LexborNode

__all__ = ["MAX_LINKS", "LinkExtractor", "forbids_following"]

MAX_LINKS: Final = 5000
"""Of one page; further ones are left out. No page for readers has as many, link farms have."""

_SELECTOR: Final = "a,area,frame,iframe,link,meta,base"
_JOIN_MEMO: Final = 16_384
_FIXED: Final = ("/", "http://", "https://", "mailto:", "javascript:", "tel:")
"""Beginnings of an href that means the same on every page of a site."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9_~./-]*(?:\?[A-Za-z0-9_~./=&-]*)?")
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?")
"""Scheme, host and port and nothing else, so that a path may be put behind its canonical form."""
_REFRESH: Final = re.compile(r"\s*[0-9.]*\s*[;,]?\s*(?:url\s*=\s*)?(['\"]?)(.*)", re.IGNORECASE | re.DOTALL)
_FOLLOWED_RELATIONS: Final = frozenset({"next", "canonical"})
_FORBIDDING: Final = frozenset({"nofollow", "none"})
_VALUED_DIRECTIVES: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


class LinkExtractor:
    """Takes links from trees; keeps only the memo of joined links, so any thread may use it.

    `nofollow`: honour rel=nofollow and the robots directives nofollow and none, of all robots or of `robot`.
    """

    __slots__ = ("_join", "_origin", "nofollow", "robot")

    def __init__(self, *, nofollow: bool = True, robot: str = "webfountain") -> None:
        self.nofollow = nofollow
        self.robot = robot.lower()
        self._join = functools.lru_cache(_JOIN_MEMO)(join)
        self._origin = functools.lru_cache(_JOIN_MEMO)(_canonical_origin)

    def extract(self, tree: LexborHTMLParser, url: str, *, robots_header: str | None = None) -> list[str]:
        """Canonical URLs that the page at canonical `url` leads to, without itself, at most MAX_LINKS.

        `robots_header` is the answer's X-Robots-Tag, None without one.
        """
        if self.nofollow and robots_header and forbids_following(robots_header, self.robot):
            return []
        hrefs, base = self._take(tree.css(_SELECTOR))
        found = self._resolve(hrefs, url if base is None else join(url, base) or url)
        found.pop(url, None)
        return list(found) if len(found) <= MAX_LINKS else list(found)[:MAX_LINKS]

    def _take(self, nodes: Iterable[LexborNode]) -> tuple[list[str], str | None]:
        """The links as written, none when the page does not want them followed; and the first `<base href>`."""
        found: list[str] = []
        base: str | None = None
        nofollow = self.nofollow
        for node in nodes:
            tag, attrs = node.tag, node.attributes
            # Nine of ten are plain anchors.
            if tag == "a":
                href = attrs.get("href")
                if href and not (nofollow and "rel" in attrs and _has(attrs["rel"], "nofollow")):
                    found.append(href)
            elif tag == "meta" and nofollow and self._is_bar(attrs):
                return [], None
            elif tag == "base":
                base = base or attrs.get("href")
            else:
                found += _rare(tag, attrs, nofollow=nofollow)
        return found, base

    def _is_bar(self, attrs: dict[str, str | None]) -> bool:
        """Whether a meta element forbids us to follow the page's links."""
        name = (attrs.get("name") or "").strip().lower()
        return name in ("robots", self.robot) and forbids_following(attrs.get("content") or "", self.robot)

    def _resolve(self, hrefs: Iterable[str], base: str) -> dict[str, None]:
        """Canonical targets as keys, in order."""
        home, folder = site_of(base), base.partition("?")[0].rpartition("/")[0] + "/"
        join_memo, origin_memo, is_plain = self._join, self._origin, _PLAIN.fullmatch
        found: dict[str, None] = {}
        for href in hrefs:
            path = href.partition("#")[0]
            start: str | None = folder
            if not path:
                found[base] = None
                continue
            if path[0] == "/":
                start, path = home + "/", path[1:]
            elif path.startswith(("http://", "https://")):
                end = path.find("/", 8)
                start, path = (None, path) if end < 0 else (origin_memo(path[:end]), path[end + 1 :])
            # "/." begins a dot segment, which only a parser knows how to take away.
            if start is not None and (not path or (is_plain(path) and "/." not in path)):
                target: str | None = start + path
            else:
                target = join_memo(home + "/", href) if href.startswith(_FIXED) else join(base, href)
            if target is not None:
                found[target] = None
        return found


def _canonical_origin(origin: str) -> str | None:
    """``http://host/`` in canonical form, None where a parser must see the whole URL."""
    return join(origin, "/") if _ORIGIN.fullmatch(origin) else None


def _rare(tag: str | None, attrs: dict[str, str | None], *, nofollow: bool) -> Iterator[str]:
    """The link of an element that is no anchor, if it has one."""
    if tag in ("frame", "iframe"):
        href = attrs.get("src")
    elif tag == "meta":
        refresh = (attrs.get("http-equiv") or "").strip().lower() == "refresh"
        href = _refresh_target(attrs.get("content") or "") if refresh else None
    elif tag == "link":
        relations = (attrs.get("rel") or "").lower().split()
        href = attrs.get("href") if not _FOLLOWED_RELATIONS.isdisjoint(relations) else None
    elif tag == "area":
        href = None if nofollow and _has(attrs.get("rel"), "nofollow") else attrs.get("href")
    else:
        href = None
    if href:
        yield href


def _has(relations: str | None, word: str) -> bool:
    return relations is not None and word in relations.lower().split()


def _refresh_target(content: str) -> str | None:
    """The URL in ``5; url='/next'`` (WHATWG HTML, shared declarative refresh steps, in their lenient spirit)."""
    found = _REFRESH.fullmatch(content)
    if found is None or not found[2]:
        return None
    quote, target = found[1], found[2]
    return (target.partition(quote)[0] if quote else target).strip() or None


def forbids_following(directives: str, robot: str) -> bool:
    """Whether an X-Robots-Tag or robots meta says nofollow or none to all robots or to `robot` (lower case).

    ``otherbot: nofollow, noindex`` binds that robot alone: a name holds until the next.
    """
    mine = True
    for part in directives.lower().split(","):
        name, colon, rest = part.partition(":")
        word = name.strip()
        if colon and word not in _VALUED_DIRECTIVES:
            mine, word = word in ("*", "robots", robot), rest.strip()
        if mine and word in _FORBIDDING:
            return True
    return False
