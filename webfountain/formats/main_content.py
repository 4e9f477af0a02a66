"""Select the main content of a page: the blocks that are not navigation, banners, teasers or footers.

A block is omitted in four cases:

1. the element, role, class or id of a region around it shows that the region is boilerplate (``nav``,
   ``cookie-consent``), unless that region contains most of the page's text;
2. the page marks its main part (``main``, ``role=main``) and the block is outside of it;
3. it is one of several consecutive blocks that consist of links, among them cards that are links as a whole, unless
   most of the text is in such cards;
4. it is a heading, and all blocks below it were omitted.

The rules follow the reader view of browsers (Readability), the link density of jusText, and resiliparse. The accuracy
of the selection is measured in docs/measurements/main-content.md.
"""

from __future__ import annotations

import re
from enum import IntFlag
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final

from webfountain.formats.page_blocks import attributes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.formats.page_blocks import Block, Region

__all__ = ["main_blocks"]

_BOILERPLATE_TAGS: Final = frozenset({"nav", "footer", "aside", "menu"})
_BOILERPLATE_ROLES: Final = frozenset(
    {
        "navigation",
        "banner",
        "contentinfo",
        "complementary",
        "search",
        "dialog",
        "alertdialog",
        "menu",
        "menubar",
        "toolbar",
    }
)
_BOILERPLATE_NAMES: Final = re.compile(
    r"cookie|consent|gdpr|onetrust|newsletter|subscribe|sign-?up|breadcrumb|crumbs|navigation|nav(?:bar|box|-?menu|-?links)?"
    r"|(?:top|left|right|main|sub|side|bottom)-?(?:nav|menu|bar)|menu|side-?bar|foot|bottom|footer|related"
    r"|recommend\w*|also-like|most-read|popular|trending|promo\w*|teaser|advert\w*|ads?|adthrive|sponsor\w*"
    r"|share|sharing|social|skip|skip-?link|paginat\w+|pager|toolbar|tool-?box|action-?bar|buttons?|login"
    r"|modal|popup|pop-up|overlay|announcement|ticker|alert-?bar|widget|tags|tag-?list|catlinks"
    r"|toc|table-?of-?contents|by-?line|(?:post|entry|article|release)-?meta|author|posted|signature"
    r"|post-?profile|jump-?box|jump|respond|comment-?form|reply|copyright|legal-copy|feedback|contact-box"
    r"|edit-?section|edit-?page|header-?bar|masthead|top-?bar|search\w*|site-?sub|sr-only|visually-?hidden"
    r"|screen-reader\w*|noprint|print-only|cart|basket|(?:site|page)-?header|globalnav|hatnote|disclaimer"
)
"""Pattern of the words in classes and ids that mark boilerplate. A class or id matches if it begins or ends with a
boilerplate word, as in ``site-footer``."""
_MAIN_NAMES: Final = re.compile(r"content|main|article|post|body|text|story|entry")
_SECTIONS: Final = frozenset({"article", "main", "section"})
_MOST: Final = 0.5
"""A region with more than this share of the page's text is never boilerplate."""
_LEAST_MAIN: Final = 0.25
"""The element ``main`` is ignored if it contains less than this share of the page's text."""
_LINK_SHARE: Final = 0.66
_ANY_LEVEL: Final = 7
_LINK_FIRST: Final = re.compile(r"\s*<a ")
_SENTENCE: Final = re.compile(r"[.!?\u3002\uff01\uff1f][\"')\]]?(?:\s|$)")
_HIDDEN: Final = re.compile(r"display:\s*none|visibility:\s*hidden", re.IGNORECASE)
_WORD_PARTS: Final = re.compile(r"[^\s_]+")
_LONGEST_REMEMBERED: Final = 200
"""The traits of an element are cached if its attributes have at most this number of characters."""


class _Trait(IntFlag):
    """Traits of an element, such as BOILERPLATE, that also apply to the blocks inside it."""

    BOILERPLATE = 1
    HEADER = 2
    MAIN = 4
    SECTION = 8
    HIDDEN = 16


_BOILERPLATE, _HEADER, _MAIN = int(_Trait.BOILERPLATE), int(_Trait.HEADER), int(_Trait.MAIN)
_SECTION, _IS_HIDDEN = int(_Trait.SECTION), int(_Trait.HIDDEN)


def main_blocks(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks of the main content in order. If no block remains, return all visible blocks."""
    regions = _Regions(blocks)
    visible = regions.visible
    total = max(1, regions.total)
    left_out, left_out_heading = regions.boilerplate(total)
    kept = [block for block in visible if block.region.number not in (left_out_heading if block.level else left_out)]
    kept = _within_main(kept, regions, total)
    kept = _without_link_lists(kept)
    kept = _without_empty_sections(kept)
    return kept if any(block.text for block in kept) else visible


class _Regions:
    """The elements around the blocks of a page, with their traits and the number of characters in each."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        found: dict[int, Region] = {}
        last: Region | None = None
        for block in blocks:
            region: Region | None = block.region
            if region is last:
                continue
            last = region
            while region is not None and region.number not in found:
                found[region.number] = region
                region = region.parent
        self._in_order = [found[number] for number in sorted(found)]
        self.traits: dict[int, int] = {}
        """Traits of each region, including those that it inherits from the regions around it."""
        self._own: dict[int, int] = {}
        hidden = 0
        for region in self._in_order:
            number, around = region.number, region.parent
            own = self._own[number] = traits_of(region.tag, region.attributes)
            inherited = self.traits[number] = own if around is None else own | self.traits[around.number]
            hidden |= inherited & _IS_HIDDEN
        self.visible = list(blocks)
        """The blocks that are not inside a hidden element."""
        if hidden:
            self.visible = [block for block in blocks if not self.traits[block.region.number] & _IS_HIDDEN]
        self._sizes = dict.fromkeys(self.traits, 0)
        for block in self.visible:
            self._sizes[block.region.number] += len(block.text)
        for region in reversed(self._in_order):
            if region.parent is not None:
                self._sizes[region.parent.number] += self._sizes[region.number]
        self.total = self._sizes[self._in_order[0].number] if self._in_order else 0

    def boilerplate(self, total: int) -> tuple[set[int], set[int]]:
        """Return the numbers of all boilerplate regions, and of those in which even the headings are boilerplate."""
        blocks: set[int] = set()
        headings: set[int] = set()
        for region in self._in_order:
            if region.parent is None:
                continue
            number, around = region.number, region.parent.number
            own = self._own[number]
            is_small = self._sizes[number] <= _MOST * total
            is_banner = own & _HEADER and not self.traits[around] & (_SECTION | _MAIN)
            if around in headings or (is_small and own & _BOILERPLATE):
                headings.add(number)
                blocks.add(number)
            elif around in blocks or (is_small and is_banner):
                blocks.add(number)
        return blocks, headings


def traits_of(tag: str, attributes: str) -> int:
    """Return the traits of an element, as bits of `_Trait`."""
    if len(attributes) > _LONGEST_REMEMBERED:
        return _traits_of(tag, attributes)
    return _remembered_traits(tag, attributes)


def _traits_of(tag: str, attributes: str) -> int:
    said = attributes_of(attributes) if attributes else {}
    role = said.get("role", "").lower()
    found = 0
    if "hidden" in said or _HIDDEN.search(said.get("style", "")):
        found |= _IS_HIDDEN
    if tag == "main" or role == "main":
        found |= _MAIN
    if tag in _SECTIONS:
        found |= _SECTION
    if tag in _BOILERPLATE_TAGS or role in _BOILERPLATE_ROLES:
        return found | _BOILERPLATE
    if tag == "header":
        return found | _HEADER
    names = f"{said.get('class', '')} {said.get('id', '')}".lower()
    is_named = any(_is_named(name) for name in _WORD_PARTS.findall(names))
    return found | _BOILERPLATE if is_named else found


_remembered_traits = lru_cache(4096)(_traits_of)


def _is_named(name: str) -> bool:
    """Return whether a class or id begins or ends with a boilerplate word, such as ``site-footer``."""
    if _BOILERPLATE_NAMES.fullmatch(name):
        return True
    parts = name.split("-")
    if len(parts) == 1 or _MAIN_NAMES.fullmatch(parts[-1]):
        return False
    ends = (parts[:1], parts[-1:], parts[:2], parts[-2:])
    return any(_BOILERPLATE_NAMES.fullmatch("-".join(end)) is not None for end in ends)


def _within_main(blocks: list[Block], regions: _Regions, total: int) -> list[Block]:
    """Return the blocks inside the element ``main``, or all blocks if the page has no such element."""
    inside = [block for block in blocks if regions.traits[block.region.number] & _MAIN]
    if sum(len(block.text) for block in inside) >= _LEAST_MAIN * total:
        return inside
    return blocks


def _without_link_lists(blocks: list[Block]) -> list[Block]:
    """Return the blocks without lists of links.

    A list of links consists of several successive blocks that are mostly links.

    Teaser cards, which are links around whole paragraphs, are kept only if they contain most of the page's text.
    """
    rows = [(is_link, list(row)) for is_link, row in groupby(blocks, key=_is_link)]
    in_cards = sum(_size(row) for is_link, row in rows if is_link and _has_prose(row))
    is_list = in_cards > 0 and in_cards > _MOST * _size(blocks)
    found: list[Block] = []
    for is_link, row in rows:
        if not is_link or (is_list and _has_prose(row)):
            found += row
        elif len(row) == 1:
            found += [block for block in row if block.level or _is_prose(block.text)]
    return found


def _size(blocks: Sequence[Block]) -> int:
    return sum(len(block.text) for block in blocks)


def _has_prose(row: Sequence[Block]) -> bool:
    return any(_is_prose(block.text) for block in row)


def _is_link(block: Block) -> bool:
    return _is_whole_link(block.html) if _is_prose(block.text) else block.link_share > _LINK_SHARE


def _is_prose(text: str) -> bool:
    # Most sentences end in a full stop, which is found sooner without the expression.
    return len(text) > 80 and (". " in text or _SENTENCE.search(text) is not None)


def _is_whole_link(html: str) -> bool:
    # Most prose does not begin with a link.
    return _LINK_FIRST.match(html) is not None and html.rstrip().endswith("</a>") and html.count("<a ") == 1


def _without_empty_sections(blocks: list[Block]) -> list[Block]:
    """Return the blocks, except headings without content below them."""
    found: list[Block] = []
    content_below = 0  # content may follow under headings of a lower level
    for block in reversed(blocks):
        if block.kind == "rule" or (block.level > 1 and block.level >= content_below):
            continue
        content_below = min(content_below, block.level) if block.level else _ANY_LEVEL
        found.append(block)
    return found[::-1]
