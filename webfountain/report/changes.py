"""The change log as plain rows, for `changes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webfountain.core.text_diff import blocks_of_diff
from webfountain.report.store_reading import every_change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.store.contract import FrontierStore

__all__ = ["changes"]


def changes(store: FrontierStore, cursor: str | None, *, site: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the entries of the change log after a cursor, in order. If `site` is given, yield only the entries of that
    site.

    Without a cursor all stored entries are yielded. The last row has the cursor for the next call. If the newest entry
    belongs to another site, an extra row contains only this cursor.

    Raises
    ------
    InputError, CursorLost
        if the text is not a cursor, or the log no longer reaches back that far.
    """
    # Read the end before the entries, so that no entry that is added in between is missed.
    end, reported = store.changes.end() if cursor is None else cursor, False
    for end, entry in every_change(store, cursor):
        reported = site is None or entry.site == site
        if reported:
            blocks = None if entry.diff is None else blocks_of_diff(entry.diff)
            yield {
                "cursor": end,
                "sequence": entry.sequence,
                "url": entry.url,
                "site": entry.site,
                "verdict": entry.verdict,
                "time": entry.at,
                "digest": entry.digest,
                "digest_before": entry.before,
                "resemblance": entry.resemblance,
                "title": entry.title,
                "target": entry.target,
                "diff": entry.diff,
                "removed": [] if blocks is None else list(blocks.removed),
                "added": [] if blocks is None else list(blocks.added),
                "words": [] if blocks is None else list(blocks.words),
            }
    if not reported:
        yield {"cursor": end}
