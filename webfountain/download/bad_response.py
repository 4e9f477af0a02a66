"""The exception for a response that could not be used."""

from __future__ import annotations

from typing import Literal

__all__ = ["BadResponse", "ErrorWord"]

ErrorWord = Literal[
    "dns",
    "private-address",
    "connect",
    "tls",
    "certificate",
    "timeout",
    "too-slow",
    "headers-too-large",
    "too-large",
    "bomb",
    "cut",
    "bad-response",
    "content-type",
    "content-coding",
    "network",
    "lapsed",
]


class BadResponse(Exception):
    """Raised when a response cannot be used, with the reason in `word`. Code that catches this exception must close the
    connection.
    """

    def __init__(self, word: ErrorWord) -> None:
        super().__init__(word)
        self.word: ErrorWord = word
