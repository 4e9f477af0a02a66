"""The result of the last `webfountain check`, stored for the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.private_files import replaced
from webfountain.store.locations import folder_of

if TYPE_CHECKING:
    from webfountain.store.contract import FrontierStore

__all__ = ["MAX_LISTED", "CheckResult", "keep_check", "last_check"]

MAX_LISTED: Final = 50
"""Maximum number of problems that a result lists."""
_NAME: Final = "check"
_FILE: Final = "check.json"


class CheckResult(msgspec.Struct, frozen=True):
    """What a check of a store found."""

    at: float
    """End of the check, UTC seconds."""
    seconds: float
    whole: bool
    mended: bool
    beside: bool = False
    """True if a crawl was running, so that the counts could not be compared."""
    damage: str | None = None
    """Reason why the store cannot be read, or None if it can be read."""
    pages: int = 0
    sites: int = 0
    copies: int = 0
    wrong_counts: int = 0
    lost_copies: int = 0
    damaged_files: int = 0
    examples: list[str] = []
    """One line for each problem, at most `MAX_LISTED` lines."""


def keep_check(store: FrontierStore | None, url: str, result: CheckResult) -> None:
    """Record the result of a check, which replaces the previous result.

    For an embedded store, the result is written to a file in its folder, and `store` may be None.

    Raises
    ------
    OSError
        if the file cannot be written.
    """
    folder = folder_of(url)
    if folder is not None:
        with replaced(folder / _FILE) as file:
            file.write(msgspec.json.encode(result))
    elif store is not None:
        store.board.put_value(_NAME, msgspec.json.encode(result))


def last_check(store: FrontierStore, url: str) -> CheckResult | None:
    """Return the result of the last check, or None if no result can be read."""
    folder = folder_of(url)
    try:
        data = store.board.value(_NAME) if folder is None else (folder / _FILE).read_bytes()
        return None if data is None else msgspec.json.decode(data, type=CheckResult)
    except (OSError, msgspec.MsgspecError):
        return None
