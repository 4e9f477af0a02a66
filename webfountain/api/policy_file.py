"""Edit the policy file of a crawl from a program: check the text, keep the previous version, and replace the file."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import xxhash

from webfountain.errors import InputError
from webfountain.policy.collection_file import parse_collection
from webfountain.private_files import replaced

if TYPE_CHECKING:
    from webfountain.policy.collection_file import CollectionInForce

__all__ = ["BEFORE", "PolicyFileEditor", "seeds_file_in"]

BEFORE: Final = ".before"
"""Suffix of the file that keeps the previous version of the policy file."""


class PolicyFileEditor:
    """Editor of the policy file that a crawl uses."""

    def __init__(self, in_force: CollectionInForce) -> None:
        self._in_force = in_force
        self._path = Path(in_force.path)

    @property
    def digest(self) -> str:
        """Return the digest of the text that the crawl uses now."""
        return _digest(self._in_force.text)

    @property
    def is_writable(self) -> bool:
        """Return whether the file is on this machine, equals the text that the crawl uses, and can be replaced."""
        return self._text() == self._in_force.text and os.access(self._path.parent, os.W_OK)

    def write(self, text: str, digest: str) -> str:
        """Replace the text of the file, and return the new digest.

        `digest` identifies the text that the user edited.

        Raises
        ------
        PolicyError
            when the text is no valid policy file.
        InputError
            if the text belongs to another collection or names another file of seeds, or the file was edited meanwhile.
        """
        text = text.replace("\r\n", "\n")
        before = self._text()
        if before is None:
            raise InputError(f"{self._path} is not on this machine; edit it where the crawl runs")
        if _digest(before) != digest:
            raise InputError(f"{self._path} was edited in the meantime; reload the page and repeat your edit")
        if seeds_file_in(text) != seeds_file_in(
            before
        ):  # checked first, because an error of the parser could show the file's content
            raise InputError("collection.seeds_file can only be changed on the machine of the crawl")
        edited, now = parse_collection(text, self._path), parse_collection(before, self._path)
        if edited.name != now.name:
            raise InputError(f"collection.name is {edited.name!r}, but this collection is {now.name!r}")
        self._replace(before, text)
        return _digest(text)

    def _text(self) -> str | None:
        try:
            return self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _replace(self, before: str, text: str) -> None:
        """Save the previous version of the policy file, then replace the file with the new version."""
        try:
            mode = self._path.stat().st_mode & 0o777
            for path, content in ((Path(f"{self._path}{BEFORE}"), before), (self._path, text)):
                with replaced(path, durable=True, mode=mode) as file:
                    file.write(content.encode())
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {error.strerror}") from None


def seeds_file_in(text: str) -> object:
    """Return the path of the seeds file that a policy file names. Return None for a text that is not valid TOML."""
    try:
        table = tomllib.loads(text).get("collection")
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    return table.get("seeds_file") if isinstance(table, dict) else None


def _digest(text: str) -> str:
    return xxhash.xxh3_64_hexdigest(text.encode())
