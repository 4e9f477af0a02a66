"""What a fetched body says: its title, its visible text and where it leads, by its type.

The one place that knows which reader is for which type: HTML (here), other XML (`sitemap`), anything else is
plain text. Pure, and as expensive as a body makes it: `PlainReader.read_at_once` reads a body only where that is short
whatever it holds. Whoever reads what strangers wrote has all others read by the `sandbox`.

Which markup a parser takes in its stride, and what is done to the rest so that most of it can still be read. An HTML
parser does more than linear work, all of it as the standard says: each paragraph opens again the formatting elements
that were left open (20 kB of ``<b 1><b 2>…<p>x<p>x`` are a gigabyte), every tag walks up the open elements, every
attribute is compared with those before it. `is_ordinary_markup` is a linear look that bounds all three, whatever the
body is; what it does not vouch for is parsed by a process that can be ended (`webfountain.sandbox`), where `tame`
comes first: depth beyond `MAX_DEPTH` is flattened, as browsers do (Blink: 512), and the attributes of a tag beyond
`MAX_TAG_BYTES` are dropped, so that what is only odd keeps its text.

Both work on bytes in which a ``<`` is one: UTF-8, or any encoding but UTF-16 and those that shift.

The visible text of a page: what changes are judged by, and what a search or RAG index takes in. A fetched body is
parsed once: `tree_of` gives the tree, the frontier takes the links from it, then `visible_text` takes the text.
Nothing here is stored; shingles and verdicts are made from the text in `core`.

The text of an HTML page: script, style, noscript and template removed, the text nodes of body joined with a blank.
It keeps its letters and white space; `core.resemblance` lower-cases and splits it.

Links of a parsed page: canonical URLs in document order, each once. That is the first thing that is done with a page's
tree (taking the text prunes it). Links come from a, area, frame, iframe, link rel next and canonical, meta refresh;
`<base>` moves what is relative. Whether a link belongs to the collection is the judge's business.

Speed is why this is no loop over `urls.join`: a plain path is joined by hand, which for the characters of `_PLAIN`
gives what ada-url gives (a test holds them together), after the page's folder, its site or another origin, each of
which is made canonical once and remembered. What is left and does not depend on the page is remembered too. The texts
of the links are taken where they are asked for, and cost nothing elsewhere.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

import msgspec
from selectolax.lexbor import LexborHTMLParser

from webfountain.formats.content_type import decode, encoding_of
from webfountain.formats.sitemap import xml_text
from webfountain.urls import join, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from selectolax.lexbor import LexborNode

    from webfountain.formats.content_type import ContentType

__all__ = [
    "MAX_DEPTH",
    "MAX_LINKS",
    "MAX_ORDINARY_BYTES",
    "MAX_TAG_BYTES",
    "MAX_TEXT_BYTES",
    "Document",
    "DocumentReader",
    "Extracted",
    "LinkExtractor",
    "LinksOf",
    "PlainReader",
    "ReadError",
    "capped",
    "forbids_following",
    "is_ordinary_markup",
    "tame",
    "text_of",
    "title_of",
    "tree_of",
    "visible_text",
]

MAX_ORDINARY_BYTES: Final = 65_536
"""Of a body that may be parsed where everything else waits for it."""
_MOST_TAGS: Final = 2_000
"""Each may walk up all the others: at 2,000 that is 10 ms."""
_MOST_REOPENED: Final = 30_000
"""Tags times formatting elements with attributes: about as many elements the parser makes, at 0.5 µs each. Without
attributes no more than three of each of the thirteen are ever opened again (the standard's Noah's Ark clause)."""
_FEW_TAGS: Final = 300
"""Whatever these are, half of them times the other half is less than `_MOST_REOPENED`."""
_SHORT_TAG_BYTES: Final = 2_048
"""Attributes are compared pairwise: 64 kB of tags of this size take 20 ms."""
_HARMLESS_TAG_BYTES: Final = 12_288
"""A single tag of this size takes 20 ms."""
_FORMATTING: Final = re.compile(
    rb"<[bcefinstuBCEFINSTU](?:(?<=[bB])[iI][gG]|[oO](?:[dD][eE]|[nN][tT]|[bB][rR])|[mM](?:[aA][lL][lL])?"
    rb"|[tT](?:[rR][iI][kK][eE]|[rR][oO][nN][gG])?)?[\s/][^>]*+"
)
"""A start tag of b, big, code, em, font, i, nobr, s, small, strike, strong, tt or u that has attributes. An ``a`` is
none: the parser never keeps two of them open."""
_TAG_START: Final = re.compile(rb"<[A-Za-z]")
_GREATER_IN_QUOTES: Final = re.compile(rb"=\s*+(?:\"[^\">]*+>|'[^'>]*+>)")
_GREATER_IN_APOSTROPHES: Final = re.compile(rb"=\s*+'[^'>]*+>")
_BEFORE_VALUE: Final = frozenset(b"= \t\n\v\f\r")
"""What may stand before a quote that opens a value."""

MAX_DEPTH: Final = 512
MAX_TAG_BYTES: Final = 8_192
_LONG_TAG: Final = re.compile(rb"<([A-Za-z][^\s/<>]{0,40})[^<>]{%d,}>?" % MAX_TAG_BYTES)
# Elements that never nest by their own tags: void ones, and those whose end tag may be left out.
_FLAT: Final = (
    b"area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|dd|dt|option|td|th|tr|tbody|thead|tfoot"
)
_TAG: Final = re.compile(rb"<(/?)(?!(?:%s)[\s/>])[A-Za-z][^<>]*>?" % _FLAT, re.IGNORECASE)


def is_ordinary_markup(body: bytes) -> bool:
    """Whether parsing a body takes at most about 20 ms and 20 MB, whatever it holds.

    Sound, not complete: what it refuses is mostly harmless. It costs some 12 µs for a page of 20 kB.
    """
    if len(body) > MAX_ORDINARY_BYTES:
        return False
    tags = body.count(b"<")
    if tags > _MOST_TAGS or (len(body) > _HARMLESS_TAG_BYTES and not _has_short_tags(body)):
        return False
    if tags <= _FEW_TAGS:
        return True
    formatting = _FORMATTING.findall(body)
    if tags * len(formatting) <= _MOST_REOPENED:
        return True
    # Of equal ones three are kept open; what looks equal up to the first ">" is, unless that stands in quotes.
    return tags * 3 * len(set(formatting)) <= _MOST_REOPENED and _GREATER_IN_QUOTES.search(body) is None


def _has_short_tags(body: bytes) -> bool:
    """Whether no tag can be longer than `_SHORT_TAG_BYTES`.

    ``">`` ends any tag, in all states but within a value that an apostrophe opened, unless what stands before it lets
    the quote open a value: else that quote closes one, or is part of a name. Pages with attributes are full of it,
    so this is a few jumps; a stretch without it is looked at more closely.
    """
    if b"'" in body and _GREATER_IN_APOSTROPHES.search(body) is not None:
        return False
    at = 0
    while at + _SHORT_TAG_BYTES < len(body):
        end = body.rfind(b'">', at + 1, at + _SHORT_TAG_BYTES)
        if end < 0 or body[end - 1] in _BEFORE_VALUE:
            end = body.find(b'">', at + _SHORT_TAG_BYTES)
            while end >= 0 and body[end - 1] in _BEFORE_VALUE:
                end = body.find(b'">', end + 1)
            end = len(body) if end < 0 else end + 2
            if not _has_only_short_tags(body, at, end):
                return False
            end -= 1
        at = end + 1
    return True


def _has_only_short_tags(body: bytes, at: int, last: int) -> bool:
    """The same of a stretch, by any two ``>`` of it, none of them part of a value."""
    if _GREATER_IN_QUOTES.search(body, at, last) is not None:
        return False
    while at + _SHORT_TAG_BYTES < last:
        end = body.rfind(b">", at, at + _SHORT_TAG_BYTES)
        if end < 0:  # a long text, script or tag
            end = body.find(b">", at, last)
            end = last if end < 0 else end
            tag = _TAG_START.search(body, at, end)
            if tag is not None and end - tag.start() > _SHORT_TAG_BYTES:
                return False
        at = end + 1
    return True


def tame(body: bytes) -> bytes:
    """The body with nothing in it that a parser would choke on; the same object where there is nothing."""
    if max(map(len, body.split(b"<"))) > MAX_TAG_BYTES:
        body = _LONG_TAG.sub(rb"<\1>", body)
    if body.count(b"<") <= MAX_DEPTH:
        return body
    return _flattened(body)


def _flattened(body: bytes) -> bytes:
    spans = list(_too_deep(body))
    if not spans:
        return body
    kept, at = [], 0
    for start, end in spans:
        kept.append(body[at:start])
        at = end
    return b"".join([*kept, body[at:]])


def _too_deep(body: bytes) -> Iterator[tuple[int, int]]:
    """Where the tags are that open, or close, an element deeper than `MAX_DEPTH`."""
    depth = 0
    for tag in _TAG.finditer(body):
        if tag[1]:
            deep = depth > MAX_DEPTH
            depth = max(0, depth - 1)
        else:
            depth += 1
            deep = depth > MAX_DEPTH
        if deep:
            yield tag.span()


MAX_TEXT_BYTES = 1_000_000
"""A page's text is cut here, in UTF-8 (Edwards 2001, section 2: "up to 1 MB of text of each page")."""

_INVISIBLE = ["script", "style", "noscript", "template"]


def tree_of(body: bytes, charset: str | None) -> LexborHTMLParser:
    """Parse an HTML body, whatever it is: a browser's parser never fails.

    Parameters
    ----------
    charset : from the Content-Type header, or None: then the byte order mark, the meta declaration, else UTF-8
    """
    return LexborHTMLParser(tame(_utf8(body, *encoding_of(body, charset))))


def _utf8(body: bytes, encoding: str, mark: int) -> bytes:
    """What lexbor reads, without its byte order mark: it decodes UTF-8 itself, faster than Python does."""
    body = body[mark:] if mark else body
    return body if encoding == "utf-8" else body.decode(encoding, "webfountain.browser").encode()


def visible_text(tree: LexborHTMLParser) -> str:
    """Visible text of a tree, at most `MAX_TEXT_BYTES` in UTF-8; empty for a frameset.

    Call it after the links are taken: it removes the invisible elements from the tree, and with noscript its links.
    """
    tree.strip_tags(_INVISIBLE)
    body = tree.body
    return "" if body is None else capped(body.text(separator=" "))


def title_of(tree: LexborHTMLParser) -> str | None:
    """The title of a tree with its white space collapsed; None when it has none or an empty one."""
    node = tree.css_first("title")
    return None if node is None else " ".join(node.text().split()) or None


def capped(text: str) -> str:
    """Text that encodes to at most `MAX_TEXT_BYTES`: no lone surrogates, cut between two characters."""
    if len(text) * 4 <= MAX_TEXT_BYTES:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= MAX_TEXT_BYTES else encoded[:MAX_TEXT_BYTES].decode("utf-8", "ignore")


ReadError = Literal["parse-time", "parse-memory", "parse-crash"]
"""Why a body has no document: it took too long, too much memory, or its reader broke on it."""
_MAX_XML_BYTES: Final = 8_192
_SHIFTING: Final = frozenset({"utf-16-le", "utf-16-be", "iso2022_jp", "iso2022_kr", "hz"})
"""Encodings in which a byte that looks like a ``<`` may be none, or the other way round."""


class Document(msgspec.Struct, frozen=True, array_like=True):
    """Title (None where there is none), visible text of at most `MAX_TEXT_BYTES`, and canonical links in order.

    With an `error` the body could not be read, and there is nothing of it.
    """

    title: str | None = None
    text: str = ""
    links: list[str] = []
    error: ReadError | None = None
    canonical: str | None = None
    """Another URL that the page says it is a form of."""
    language: str | None = None
    """The language that the page declares, as ``de-AT``."""
    anchors: list[str] = []
    """What the page writes on each of its links, "" where nothing; empty where that was not asked for."""
    nofollow: list[str] = []
    """Other canonical URLs that it leads to and wants nobody to follow it to; empty where they were not asked for."""


class LinksOf(msgspec.Struct, frozen=True, array_like=True):
    """The page whose links are asked for, by its canonical `url`, and with `anchors` what is written on them.

    `robots_header` is the answer's X-Robots-Tag, None without one. `nofollow`: those that are not to be followed, too.
    """

    url: str
    robots_header: str | None = None
    anchors: bool = False
    nofollow: bool = False


class DocumentReader(Protocol):
    """Whoever reads bodies."""

    def read(self, body: bytes, kind: ContentType, links: LinksOf | None = None) -> Document:
        """What a body says, with its links where they are asked for."""
        ...

    def read_at_once(self, body: bytes, kind: ContentType, links: LinksOf | None = None) -> Document | None:
        """As `read`, where that is short whatever the body holds; else None."""
        ...


class PlainReader:
    """Reads every body here and now: for bodies that are trusted."""

    __slots__ = ("_extractor",)

    def __init__(self, extractor: LinkExtractor) -> None:
        self._extractor = extractor

    def read(self, body: bytes, kind: ContentType, links: LinksOf | None = None) -> Document:
        if not kind.is_html:
            return text_of(body, kind)
        return self._said(tree_of(body, kind.charset), links)

    def read_at_once(self, body: bytes, kind: ContentType, links: LinksOf | None = None) -> Document | None:
        if not kind.is_html:
            return text_of(body, kind) if len(body) <= (_MAX_XML_BYTES if kind.is_xml else MAX_ORDINARY_BYTES) else None
        if not is_ordinary_markup(body):
            return None
        encoding, mark = encoding_of(body, kind.charset)
        if encoding in _SHIFTING:
            return None
        return self._said(LexborHTMLParser(_utf8(body, encoding, mark)), links)

    def _said(self, tree: LexborHTMLParser, links: LinksOf | None) -> Document:
        title = title_of(tree)
        # Links first: taking the text prunes the tree.
        found = Extracted([]) if links is None else self._extractor.extract(tree, links)
        language = tree.root.attributes.get("lang") if tree.root is not None else None
        return Document(
            title,
            visible_text(tree),
            found.links,
            canonical=found.canonical,
            language=language,
            anchors=list(found.anchors),
            nofollow=list(found.nofollow),
        )


def text_of(body: bytes, kind: ContentType) -> Document:
    """Title and text of a body, without its links."""
    if kind.is_html:
        tree = tree_of(body, kind.charset)
        return Document(title_of(tree), visible_text(tree))
    if kind.is_xml:
        title, text = xml_text(body, kind.charset, most=MAX_TEXT_BYTES)
        return Document(title, capped(text))
    return Document(None, capped(decode(body, kind.charset)))


MAX_LINKS: Final = 5000
"""Of one page; further ones are left out. No page for readers has as many, link farms have."""

MAX_ANCHOR: Final = 256
"""Characters that are kept of what a page writes on a link."""
_MAX_ANCHORS: Final = 100_000
"""Characters of a page that are read for that: elements within elements would be read again and again."""

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


class Extracted(NamedTuple):
    """What a page leads to, and the other page that it calls its canonical form (``rel=canonical``), if any.

    `anchors` are the texts of the links, one each, where they were asked for; `nofollow` what it leads to and does not
    want followed, likewise.
    """

    links: list[str]
    canonical: str | None = None
    anchors: Sequence[str] = ()
    nofollow: Sequence[str] = ()


class _Taken(NamedTuple):
    """Links as they are written: those to follow, first ``<base href>`` and canonical, those not to be followed."""

    hrefs: list[str]
    base: str | None
    canonical: str | None
    nofollow: list[str]


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

    def extract(self, tree: LexborHTMLParser, page: LinksOf) -> Extracted:
        """Canonical URLs that a page leads to, without itself, at most MAX_LINKS."""
        url, robots_header = page.url, page.robots_header
        is_barred = bool(self.nofollow and robots_header and forbids_following(robots_header, self.robot))
        if is_barred and not page.nofollow:
            return Extracted([])
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
        return Extracted(links, None if canonical == url else canonical, texts, barred[: MAX_LINKS - len(links)])

    def _anchors(self, nodes: Iterable[LexborNode], links: list[str], base: str) -> list[str]:
        """The different texts of each link, one after the other, white space collapsed."""
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

    def _take(self, nodes: Iterable[LexborNode], *, is_barred: bool) -> _Taken:
        """The links of the elements, as written; `is_barred`: the answer's head wants none of them followed."""
        found: list[str] = []
        taken_back: list[str] = []
        base: str | None = None
        canonical: str | None = None
        nofollow = self.nofollow
        for node in nodes:
            tag, attrs = node.tag, node.attributes
            # Nine of ten are plain anchors.
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
            return _Taken([], base, None, [*found, *taken_back])
        return _Taken(found, base, canonical, taken_back)

    def _is_bar(self, attrs: dict[str, str | None]) -> bool:
        """Whether a meta element forbids us to follow the page's links."""
        name = (attrs.get("name") or "").strip().lower()
        return name in ("robots", self.robot) and forbids_following(attrs.get("content") or "", self.robot)

    def _resolve(self, hrefs: Iterable[str], base: str) -> dict[str, None]:
        """Canonical targets as keys, in order."""
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
                end = path.find("/", 8)
                start, path = (None, path) if end < 0 else (origin_memo(path[:end]), path[end + 1 :])
            # "/." begins a dot segment, which only a parser knows how to take away.
            if start is not None and (not path or (is_plain(path) and "/." not in path)):
                target: str | None = start + path
            else:
                target = join_memo(root, href) if href.startswith(_FIXED) else join(base, href)
            if target is not None:
                found[target] = None
        return found


def _canonical_origin(origin: str) -> str | None:
    """``http://host/`` in canonical form, None where a parser must see the whole URL."""
    return join(origin, "/") if _ORIGIN.fullmatch(origin) else None


def _rare(tag: str | None, attrs: dict[str, str | None]) -> Iterator[str]:
    """The link of an element that is no anchor, if it has one."""
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
