"""Describe a collection as plain data with all its values, for `policy check`.

`notes_on` warns about values that are valid but may not do what the author expects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.policy.collection import named_policies
from webfountain.policy.patterns import Pattern
from webfountain.policy.tables import PolicyFile
from webfountain.policy.units import Duration, Size, spell_duration, spell_size

if TYPE_CHECKING:
    from webfountain.policy.collection import Collection

__all__ = ["describe", "notes_on"]

_EMBEDDED: Final = ("image/", "text/css", "text/javascript", "application/javascript", "font/", "audio/", "video/")
"""Media types of resources that pages embed."""


def notes_on(collection: Collection) -> list[str]:
    """Return warnings, one sentence each, about values that are valid but may not do what the author expects."""
    embedded = [kind for kind in collection.politeness.accept if kind.strip().lower().startswith(_EMBEDDED)]
    if not embedded:
        return []
    return [
        f"politeness.accept: {', '.join(embedded)}: fetched where a page links to it (<a href>), not what pages embed "
        "(<img>, style sheets, scripts)"
    ]


def describe(collection: Collection) -> dict[str, Any]:
    """Return all values with units: one dictionary per table, for people and for JSON."""
    shown: dict[str, Any] = {field: _shown(getattr(collection.tables, field)) for field in PolicyFile.__struct_fields__}
    written = {"default", *collection.tables.policies, *(name for _, name in named_policies(collection.tables))}
    shown["policies"] = {name: _shown(table) for name, table in collection.policies.items() if name in written}
    shown["collection"]["seeds"] = sum(1 for _ in collection.seeds())
    shown["politeness"]["robots_token"] = collection.politeness.robots_token
    shown["cycle"]["fastest"] = spell_duration(collection.cycle.fastest_s)
    return shown


def _shown(value: object) -> Any:
    """Return a table, a list, a pattern or a number as plain data."""
    if isinstance(value, msgspec.Struct):
        return {field: _shown(getattr(value, field)) for field in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {name: _shown(item) for name, item in value.items()}
    if isinstance(value, Duration):
        return spell_duration(value)
    if isinstance(value, Size):
        return spell_size(value)
    return value.pattern if isinstance(value, Pattern) else value
