"""Convert download errors between Scrapy's exceptions and the error words in records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)

if TYPE_CHECKING:
    from webfountain.download.bad_response import ErrorWord

__all__ = ["download_error", "error_word"]

_EXCEPTIONS: Final[dict[str, type[Exception]]] = {
    "dns": CannotResolveHostError,
    "private-address": DownloadCancelledError,
    "connect": DownloadConnectionRefusedError,
    "tls": DownloadConnectionRefusedError,
    "certificate": DownloadConnectionRefusedError,
    "timeout": DownloadTimeoutError,
    "too-slow": DownloadTimeoutError,
    "headers-too-large": DownloadCancelledError,
    "too-large": DownloadCancelledError,
    "bomb": DownloadCancelledError,
    "content-type": DownloadCancelledError,
    "cut": ResponseDataLossError,
    "bad-response": DownloadFailedError,
    "network": DownloadFailedError,
    "lapsed": DownloadFailedError,
}
_WORDS: Final[tuple[tuple[type[Exception], ErrorWord], ...]] = (
    (CannotResolveHostError, "dns"),
    (DownloadConnectionRefusedError, "connect"),
    (DownloadTimeoutError, "timeout"),
    (TimeoutError, "timeout"),
    (DownloadCancelledError, "too-large"),
    (ResponseDataLossError, "cut"),
    (DownloadFailedError, "bad-response"),
    (OSError, "connect"),
)


def download_error(word: str, url: str) -> Exception:
    """Return the Scrapy exception for an error word; the exception has the error word as its attribute `word`."""
    error = _EXCEPTIONS[word](f"{word}: {url}")
    error.word = word  # type: ignore[attr-defined]
    return error


def error_word(exception: BaseException) -> str:
    """Return the error word for an exception of any download handler, or "filtered" if it is not a download error."""
    word = getattr(exception, "word", None)
    if isinstance(word, str):
        return word
    return next((word for kind, word in _WORDS if isinstance(exception, kind)), "filtered")
