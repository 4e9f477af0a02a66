"""The entries of the change log, with one class for each verdict, so that programs can use `match`.

::

    for change in collection.changes(reader="my-index"):
        match change:
            case NewPage() | ChangedPage() | MinorChange() | ReturnedPage():
                index(change.url, collection.text(change.url))
            case _:                      # gone, redirected, refused, duplicate, forgotten, evicted
                remove(change.url)
        change.done()

A search index should contain a page after a NewPage, ChangedPage, MinorChange or ReturnedPage, and drop the page after
an entry of any other class. `OtherChange` stands for verdicts that later versions of webfountain add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Union

import msgspec

from webfountain.core.text_diff import DiffBlocks, blocks_of_diff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webfountain.records import Change

__all__ = [
    "VERDICTS",
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
    """A change of a page. To continue after a change, pass the change's `cursor`."""

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
    """Target of a redirect, or the page of which this page is a duplicate."""
    diff: str | None = None
    """Unified diff of the texts, if the collection keeps diffs. Each line of the diff is a block of the page, such as a
    paragraph."""
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
        """Record that the reader has processed this entry and all earlier ones.

        If the collection is async, the caller must await the result.

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
    """The collection has a copy of the page for the first time."""


class ChangedPage(PageChange, frozen=True, dict=True, tag="changed"):
    """The page has a new copy that differs by more than a minor change."""


class MinorChange(PageChange, frozen=True, dict=True, tag="minor"):
    """The page has a new copy with nearly the same text."""


class ReturnedPage(PageChange, frozen=True, dict=True, tag="returned"):
    """The collection has a copy of the page again after the page was removed."""


class GonePage(PageChange, frozen=True, dict=True, tag="gone"):
    """The site reports that the page no longer exists."""


class RedirectedPage(PageChange, frozen=True, dict=True, tag="redirected"):
    """The page redirects to another page."""


class RefusedPage(PageChange, frozen=True, dict=True, tag="refused"):
    """robots.txt or an edited policy refuses the page."""


class DuplicatePage(PageChange, frozen=True, dict=True, tag="duplicate"):
    """The page has the same content as the page `target`."""


class ForgottenPage(PageChange, frozen=True, dict=True, tag="forgotten"):
    """A user removed the page permanently."""


class EvictedPage(PageChange, frozen=True, dict=True, tag="evicted"):
    """A more important page took the place of this page in a collection of fixed size."""


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
VERDICTS: Final = tuple(verdict for verdict, kind in _CLASSES.items() if kind is not OtherChange)
"""The verdicts that this version knows."""


def change_of(entry: Change, cursor: str) -> PageChange:
    """Convert an entry of the change log into an instance of the class for its verdict."""
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
