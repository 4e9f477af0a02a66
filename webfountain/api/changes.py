"""The entries of the change log, one class for each verdict, for `match`.

::

    for change in collection.changes(reader="my-index"):
        match change:
            case NewPage() | ChangedPage() | MinorChange() | ReturnedPage():
                index(change.url, collection.text(change.url))
            case _:                      # gone, redirected, refused, duplicate, forgotten, evicted
                remove(change.url)
        change.done()

After an entry of these four classes, a reader should hold the page. After any other entry, it should remove the page.
An entry is an `OtherChange` if a later version added its verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Union

import msgspec

from webfountain.core.text_diff import DiffBlocks, blocks_of_diff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webfountain.records import Change

__all__ = [
    "ChangedPage",
    "DuplicatePage",
    "EvictedPage",
    "ForgottenPage",
    "GonePage",
    "MinorChange",
    "NewPage",
    "OtherChange",
    "PageChange",
    "PageChangeAnswer",
    "RedirectedPage",
    "RefusedPage",
    "ReturnedPage",
    "change_of",
]


class PageChange(msgspec.Struct, frozen=True, dict=True, tag_field="verdict", tag="other"):
    """A change of a page. `cursor` is the place in the log after the entry."""

    url: str
    site: str
    time: float
    """Time when the change was found, UTC seconds."""
    sequence: int
    cursor: str
    digest: str | None = None
    """Hex SHA-1 of the new copy; None if the page must be removed."""
    digest_before: str | None = None
    resemblance: float | None = None
    """Resemblance of the new text to the previous text, 0 to 1; None if it was not computed."""
    title: str | None = None
    target: str | None = None
    """Target of a redirect, or the page that a duplicate repeats."""
    diff: str | None = None
    """Unified diff of the texts, if the collection keeps diffs. A line is a block of the page."""
    removed: tuple[str, ...] = ()
    """Blocks that the page no longer contains."""
    added: tuple[str, ...] = ()
    """Blocks that are new in the page."""
    words: tuple[str, ...] = ()
    """The changed blocks with their changed words marked: ``[-old-]{+new+}``."""

    @property
    def verdict(self) -> str:
        """Return the verdict as a word: `new`, `changed` and so on."""
        return str(self.__struct_config__.tag)

    def done(self) -> Awaitable[None]:
        """Store the place after this entry as the reader's place. With an async collection, await the result.

        Raises
        ------
        RuntimeError
            when the change was read without a reader's name.
        """
        keep: Callable[[str], Awaitable[None]] | None = self.__dict__.get("keep")
        if keep is None:
            raise RuntimeError(
                "give the reader a name, so that its position is kept: collection.changes(reader='NAME')"
            )
        return keep(self.cursor)


class NewPage(PageChange, frozen=True, dict=True, tag="new"):
    """A page is now held for the first time."""


class ChangedPage(PageChange, frozen=True, dict=True, tag="changed"):
    """The page has a new copy, which differs by a change that counts."""


class MinorChange(PageChange, frozen=True, dict=True, tag="minor"):
    """The page has a new copy with nearly the same text."""


class ReturnedPage(PageChange, frozen=True, dict=True, tag="returned"):
    """A page that was removed is held again."""


class GonePage(PageChange, frozen=True, dict=True, tag="gone"):
    """The site reports that the page no longer exists."""


class RedirectedPage(PageChange, frozen=True, dict=True, tag="redirected"):
    """The page leads to another page."""


class RefusedPage(PageChange, frozen=True, dict=True, tag="refused"):
    """robots.txt or an edited policy refuses the page."""


class DuplicatePage(PageChange, frozen=True, dict=True, tag="duplicate"):
    """The page repeats the page `target`."""


class ForgottenPage(PageChange, frozen=True, dict=True, tag="forgotten"):
    """A user removed the page permanently."""


class EvictedPage(PageChange, frozen=True, dict=True, tag="evicted"):
    """The page left a collection of fixed size for a more important page."""


class OtherChange(PageChange, frozen=True, dict=True, tag="other"):
    """A change with a verdict that this version does not know."""


PageChangeAnswer = Union[  # noqa: UP007  (the schema needs its name)
    NewPage,
    ChangedPage,
    MinorChange,
    ReturnedPage,
    GonePage,
    RedirectedPage,
    RefusedPage,
    DuplicatePage,
    ForgottenPage,
    EvictedPage,
    OtherChange,
]
_CLASSES: Final = {str(kind.__struct_config__.tag): kind for kind in PageChange.__subclasses__()}


def change_of(entry: Change, cursor: str) -> PageChange:
    """Return the entry of a change log as an instance of its class."""
    blocks = DiffBlocks((), (), ()) if entry.diff is None else blocks_of_diff(entry.diff)
    return _CLASSES.get(entry.verdict, OtherChange)(
        url=entry.url,
        site=entry.site,
        time=entry.at,
        sequence=entry.sequence,
        cursor=cursor,
        digest=entry.digest,
        digest_before=entry.before,
        resemblance=entry.resemblance,
        title=entry.title,
        target=entry.target,
        diff=entry.diff,
        removed=blocks.removed,
        added=blocks.added,
        words=blocks.words,
    )
