"""Select the main content of a page: its blocks without navigation, banners, teasers and footers.

Place in the walk: after `page_blocks`, before the text is written. A block is omitted when

1. a region around it is boilerplate by its element, role, class or id (``nav``, ``cookie-consent``), unless that region
   contains most of the page's text;
2. the page marks its main part (``main``, ``role=main``) and the block is outside of it;
3. it is one of several blocks in a row that consist of links;
4. it is a heading, and all blocks below it were omitted.

The rules follow readers' views in browsers (Readability, jusText's link density, resiliparse); the figures are in
docs/measurements/main-content.md.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

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
"""Words in classes and ids that mark boilerplate. Each is compared with the blank-separated names, whole and at their
ends (before or after ``-``, ``_``).
"""
_MAIN_NAMES: Final = re.compile(r"(?:^|[\s_-])(?:content|main|article|post|body|text|story|entry)(?:$|[\s_-])")
_SECTIONS: Final = frozenset({"article", "main", "section"})
_MOST: Final = 0.5
"""A region with a larger share of the page's text is not boilerplate, whatever its name."""
_LEAST_MAIN: Final = 0.25
"""Smallest share of the text that a marked main part must contain; a smaller one is ignored."""
_LINK_SHARE: Final = 0.66
_ANY_LEVEL: Final = 7
_SENTENCE: Final = re.compile(r"[.!?\u3002\uff01\uff1f][\"')\]]?(?:\s|$)")
_WORD_PARTS: Final = re.compile(r"[^\s_]+")


def main_blocks(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks of the main content in order; if none would remain, return all visible blocks."""
    visible = [block for block in blocks if not any(region.hidden for region in _around(block.region))]
    sizes = _sizes(visible)
    total = max(1, sum(len(block.text) for block in visible))
    boilerplate = _Boilerplate(sizes, total)
    kept = [block for block in visible if not boilerplate.holds(block)]
    kept = _within_main(kept, total)
    kept = _without_link_lists(kept)
    kept = _without_empty_sections(kept)
    return kept if any(block.text for block in kept) else visible


def _around(region: Region) -> list[Region]:
    """Return a region and the regions around it, innermost first."""
    found = [region]
    while (parent := found[-1].parent) is not None:
        found.append(parent)
    return found


def _sizes(blocks: Sequence[Block]) -> dict[int, int]:
    """Return the number of characters of text in each region, by the region's number."""
    sizes: dict[int, int] = defaultdict(int)
    for block in blocks:
        length = len(block.text)
        for region in _around(block.region):
            sizes[region.number] += length
    return sizes


class _Boilerplate:
    """Decides which regions are boilerplate, once for each region."""

    def __init__(self, sizes: dict[int, int], total: int) -> None:
        self._sizes, self._total = sizes, total
        self._known: dict[int, bool] = {}

    def holds(self, block: Block) -> bool:
        """Return whether any region around a block is boilerplate."""
        return any(self._is(region, block) for region in _around(block.region))

    def _is(self, region: Region, block: Block) -> bool:
        if (known := self._known.get(region.number)) is None:
            known = self._known[region.number] = self._decide(region)
        return known and not (block.level and region.tag == "header")

    def _decide(self, region: Region) -> bool:
        if region.parent is None or self._sizes[region.number] > _MOST * self._total:
            return False
        if region.tag in _BOILERPLATE_TAGS or region.role in _BOILERPLATE_ROLES:
            return True
        if region.tag == "header":
            return not any(
                each.tag in ("article", "main", "section") or each.role == "main" for each in _around(region)[1:]
            )
        return any(_is_named(name) for name in _WORD_PARTS.findall(region.names))


def _is_named(name: str) -> bool:
    """Return whether a class or id contains a boilerplate word, alone or at an end: ``site-footer``, ``toc_x1``."""
    name = re.sub(r"([a-z])_+\w*$", r"\1", name)
    if _BOILERPLATE_NAMES.fullmatch(name):
        return True
    parts = re.split(r"[-_]+", name)
    return len(parts) > 1 and any(
        _BOILERPLATE_NAMES.fullmatch("-".join(some)) is not None
        for some in (parts[:1], parts[-1:], parts[:2], parts[-2:])
        if not _MAIN_NAMES.search("-".join(parts[-1:]))
    )


def _within_main(blocks: list[Block], total: int) -> list[Block]:
    """Return the blocks inside the marked main part, or all blocks if none is marked."""
    inside = [
        block for block in blocks if any(each.tag == "main" or each.role == "main" for each in _around(block.region))
    ]
    if sum(len(block.text) for block in inside) >= _LEAST_MAIN * total:
        return inside
    return blocks


def _without_link_lists(blocks: list[Block]) -> list[Block]:
    """Return the blocks without lists of links: two or more blocks in a row that are mostly links and contain no
    sentences.
    """
    found: list[Block] = []
    row: list[Block] = []
    for block in blocks:
        if _is_link(block):
            row.append(block)
            continue
        found += row if len(row) == 1 and row[0].level else []
        row = []
        found.append(block)
    return found + [block for block in row if block.level]


def _is_link(block: Block) -> bool:
    if block.kind in ("code", "table", "rule"):
        return False
    return block.link_share > _LINK_SHARE and not (_SENTENCE.search(block.text) and len(block.text) > 80)


def _without_empty_sections(blocks: list[Block]) -> list[Block]:
    """Return the blocks without headings that have no content before the next heading of the same or a higher level."""
    found: list[Block] = []
    content_below = 0  # content may follow under headings of a lower level
    for block in reversed(blocks):
        if block.kind == "rule" or (block.level > 1 and block.level >= content_below):
            continue
        content_below = min(content_below, block.level) if block.level else _ANY_LEVEL
        found.append(block)
    return found[::-1]
