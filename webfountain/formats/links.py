"""Extract the links of a parsed page: canonical URLs in document order, each once.

Read the links before the text, because reading the text removes elements from the tree. Links come from a, area, frame
and iframe, from link elements with rel next or canonical, and from meta refresh. Relative links are resolved against
`<base>` if the page has one.

For speed, this module resolves simple relative links itself, without `urls.join`. The canonical forms of common links
are cached.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.urls import join, path_start, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from selectolax.lexbor import LexborHTMLParser, LexborNode

__all__ = ["MAX_ANCHOR", "MAX_LINKS", "LinkExtractor", "LinkSource", "PageLinks", "forbids_following"]

MAX_LINKS: Final = 5000
"""Maximum number of links of a page."""

MAX_ANCHOR: Final = 256
"""Maximum length of a link's text, characters."""
_MAX_ANCHORS: Final = 100_000
"""Maximum number of characters of all link texts of a page. Without this limit, the text in deeply nested elements
would be read many times."""

_SELECTOR: Final = "a,area,frame,iframe,link,meta,base"
_JOIN_MEMO: Final = 16_384
_FIXED: Final = ("/", "http://", "https://", "mailto:", "javascript:", "tel:")
"""Beginnings of hrefs that have the same target on every page of a site, so that the target can be cached."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9_~./-]*(?:\?[A-Za-z0-9_~./=&-]*)?")
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?")
"""Pattern of a URL that has only scheme, host and port."""
_REFRESH: Final = re.compile(r"\s*[0-9.]*\s*[;,]?\s*(?:url\s*=\s*)?(['\"]?)(.*)", re.IGNORECASE | re.DOTALL)
_FOLLOWED_RELATIONS: Final = frozenset({"next", "canonical"})
_FORBIDDING: Final = frozenset({"nofollow", "none"})
_VALUED_DIRECTIVES: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


class LinkSource(msgspec.Struct, frozen=True, array_like=True):
    """The page from which links are extracted, with the options of the extraction.

    `url` is canonical.

    `robots_header` is the X-Robots-Tag of the response, or None. If `anchors` is set, the texts of the links are
    returned too.
    """

    url: str
    robots_header: str | None = None
    anchors: bool = False
    nofollow: bool = False


class PageLinks(NamedTuple):
    """Links of a page, and its canonical URL (``rel=canonical``), if any.

    `anchors` are the texts of the links. `nofollow` are the links that must not be followed. `anchors` and `nofollow`
    are empty if they were not requested.
    """

    links: list[str]
    canonical: str | None = None
    anchors: Sequence[str] = ()
    nofollow: Sequence[str] = ()


class _RawLinks(NamedTuple):
    """Unresolved links of a page:

    - the links to follow
    - the first ``<base href>``
    - the canonical link
    - the links that must not be followed
    """

    hrefs: list[str]
    base: str | None
    canonical: str | None
    nofollow: list[str]


class LinkExtractor:
    """Extracts the links of parsed pages.

    Any thread may use the extractor.

    If `nofollow` is True, the extractor obeys ``rel=nofollow`` and the robots directives ``nofollow`` and ``none``.
    """

    __slots__ = ("_join", "_origin", "nofollow", "robot")

    def __init__(self, *, nofollow: bool = True, robot: str = "webfountain") -> None:
        self.nofollow = nofollow
        self.robot = robot.lower()
        self._join = functools.lru_cache(_JOIN_MEMO)(join)
        self._origin = functools.lru_cache(_JOIN_MEMO)(_canonical_origin)

    def extract(self, tree: LexborHTMLParser, page: LinkSource) -> PageLinks:
        """Return the canonical URLs that a page links to, without its own URL, at most `MAX_LINKS`."""
        url, robots_header = page.url, page.robots_header
        is_barred = bool(self.nofollow and robots_header and forbids_following(robots_header, self.robot))
        if is_barred and not page.nofollow:
            return PageLinks([])
        nodes = tree.css(_SELECTOR)
        taken = self._take(nodes, is_barred=is_barred)
        home = url if taken.base is None else join(url, taken.base) or url
        found = self._resolve(taken.hrefs, home)
        found.pop(url, None)
        canonical = None if taken.canonical is None else next(iter(self._resolve([taken.canonical], home)), None)
        links = list(found) if len(found) <= MAX_LINKS else list(found)[:MAX_LINKS]
        texts = self._anchors(nodes, links, home) if page.anchors else []
        barred: list[str] = []
        if page.nofollow and taken.nofollow:
            barred = [each for each in self._resolve(taken.nofollow, home) if each not in found and each != url]
        return PageLinks(links, None if canonical == url else canonical, texts, barred[: MAX_LINKS - len(links)])

    def _anchors(self, nodes: Iterable[LexborNode], links: list[str], base: str) -> list[str]:
        """Return the text of each link."""
        texts = dict.fromkeys(links, "")
        left = _MAX_ANCHORS
        for node in nodes:
            href = node.attributes.get("href") if node.tag == "a" else None
            if not href or left <= 0:
                continue
            [target] = self._resolve([href], base) or [""]
            before = texts.get(target)
            if before is not None and len(before) < MAX_ANCHOR:
                text = node.text()
                left -= len(text)
                text = " ".join(text[:MAX_ANCHOR].split())
                if text and text not in before:
                    texts[target] = f"{before} {text}"[:MAX_ANCHOR] if before else text
        return list(texts.values())

    def _take(self, nodes: Iterable[LexborNode], *, is_barred: bool) -> _RawLinks:
        """Return the links of the elements as they are written in the page. `is_barred` is True if the response header
        forbids following any link."""
        found: list[str] = []
        taken_back: list[str] = []
        base: str | None = None
        canonical: str | None = None
        nofollow = self.nofollow
        for node in nodes:
            tag, attrs = node.tag, node.attributes
            # Nine of ten elements are plain anchors.
            if tag == "a" or tag == "area":  # noqa: PLR1714  (a tuple costs a fiftieth of the whole)
                href = attrs.get("href")
                if not href:
                    continue
                if nofollow and "rel" in attrs and _has(attrs["rel"], "nofollow"):
                    taken_back.append(href)
                else:
                    found.append(href)
            elif tag == "meta" and nofollow and self._is_bar(attrs):
                is_barred = True
            elif tag == "base":
                base = base or attrs.get("href")
            else:
                found += _rare(tag, attrs)
                if tag == "link" and canonical is None and _has(attrs.get("rel"), "canonical"):
                    canonical = attrs.get("href") or None
        if is_barred:
            return _RawLinks([], base, None, [*found, *taken_back])
        return _RawLinks(found, base, canonical, taken_back)

    def _is_bar(self, attrs: dict[str, str | None]) -> bool:
        """Return whether a meta element forbids following the page's links."""
        name = (attrs.get("name") or "").strip().lower()
        return name in ("robots", self.robot) and forbids_following(attrs.get("content") or "", self.robot)

    def _resolve(self, hrefs: Iterable[str], base: str) -> dict[str, None]:
        """Return the canonical targets as the keys of a dict, in document order."""
        root, folder = site_of(base) + "/", base.partition("?")[0].rpartition("/")[0] + "/"
        join_memo, origin_memo, is_plain = self._join, self._origin, _PLAIN.fullmatch
        found: dict[str, None] = {}
        for href in hrefs:
            path = href.partition("#")[0] if "#" in href else href
            start: str | None = folder
            if not path:
                found[base] = None
                continue
            if path[0] == "/":
                start, path = root, path[1:]
            elif path.startswith(root):
                start, path = root, path[len(root) :]
            elif path.startswith(("http://", "https://")):
                end = path_start(path)
                start, path = (None, path) if end < 0 else (origin_memo(path[:end]), path[end + 1 :])
            # "/." starts a dot segment, which only a URL parser can remove.
            if start is not None and (not path or (is_plain(path) and "/." not in path)):
                target: str | None = start + path
            else:
                target = join_memo(root, href) if href.startswith(_FIXED) else join(base, href)
            if target is not None:
                found[target] = None
        return found


def _canonical_origin(origin: str) -> str | None:
    """Return the canonical form ``http://host/`` of an origin, or None for an unusual origin, which a URL parser must
    read."""
    return join(origin, "/") if _ORIGIN.fullmatch(origin) else None


def _rare(tag: str | None, attrs: dict[str, str | None]) -> Iterator[str]:
    """Return the link of an element other than ``a``, if any."""
    if tag in ("frame", "iframe"):
        href = attrs.get("src")
    elif tag == "meta":
        refresh = (attrs.get("http-equiv") or "").strip().lower() == "refresh"
        href = _refresh_target(attrs.get("content") or "") if refresh else None
    elif tag == "link":
        relations = (attrs.get("rel") or "").lower().split()
        href = attrs.get("href") if not _FOLLOWED_RELATIONS.isdisjoint(relations) else None
    else:
        href = None
    if href:
        yield href


def _has(relations: str | None, word: str) -> bool:
    return relations is not None and word in relations.lower().split()


def _refresh_target(content: str) -> str | None:
    """Return the URL of a refresh such as ``5; url='/next'`` (WHATWG HTML, shared declarative refresh steps)."""
    found = _REFRESH.fullmatch(content)
    if found is None or not found[2]:
        return None
    quote, target = found[1], found[2]
    return (target.partition(quote)[0] if quote else target).strip() or None


def forbids_following(directives: str, robot: str) -> bool:
    """Return whether robots directives contain ``nofollow`` or ``none``, for all robots or for `robot` (in lower case).

    In ``otherbot: nofollow, noindex``, both directives are for otherbot.
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
