"""Collections for tests, from a line or two of a policy file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from webfountain.policy.collection_file import parse_collection

if TYPE_CHECKING:
    from webfountain.policy.collection import Collection

__all__ = ["FILE", "collection_of"]

FILE = Path("policies/test.toml")
HEAD = """
[politeness]
user_agent = "webfountain/1.0 (+https://example.org/bot)"
"""


def collection_of(
    tables: str = "",
    *,
    seeds: tuple[str, ...] = ("https://docs.example.org/",),
    collection: str = "",
    path: Path = FILE,
) -> Collection:
    """A collection named "test"; `collection` are further keys of its first table, `tables` what follows."""
    return parse_collection(f'[collection]\nname = "test"\nseeds = {list(seeds)}\n{collection}\n{HEAD}{tables}', path)
