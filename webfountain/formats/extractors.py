"""An extractor reads the title, text and links of a body. Each media type has an extractor.

HTML, XML and plain text have built-in extractors (`document`). A policy file names further extractors by media type
(`content.extractors`)::

    [content.extractors]
    "application/pdf" = "my_project.pdf:extract"

The extractor function gets the body and its Content-Type and returns an `ExtractedText`. Each extractor function runs
in a child process with limits on time and memory. The child process must be able to import the function's module
(installed, or in PYTHONPATH).
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

if TYPE_CHECKING:
    from webfountain.formats.media_type import ContentType

__all__ = ["ExtractedText", "Extractor", "extractor_named"]


class ExtractedText(msgspec.Struct, frozen=True):
    """What an extractor finds in a body: title, text (one line per block), and URLs of links."""

    title: str | None = None
    text: str = ""
    links: list[str] = []


class Extractor(Protocol):
    """A function that reads the bodies of a media type, without side effects."""

    def __call__(self, body: bytes, kind: ContentType) -> ExtractedText:
        """Return the text, title and links of a body. If an extractor function raises an exception, the page counts as
        unreadable."""
        ...


@lru_cache(64)
def extractor_named(name: str) -> Extractor:
    """Return the extractor that a policy file names, ``package.module:function``.

    Raises
    ------
    ImportError
        if there is no function of this name, or what has this name is not callable.
    """
    module, _, function = name.partition(":")
    found = getattr(importlib.import_module(module), function, None)
    if not callable(found):
        raise ImportError(f"{module} has no function {function}")
    return cast("Extractor", found)
