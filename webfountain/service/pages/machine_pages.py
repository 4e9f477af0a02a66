"""The values for the pages about machines: the crawling processes, and the disks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from webfountain.history.live import STALE_S
from webfountain.service.pages.charts import Series, lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.api.collection import StoredCollection
    from webfountain.service.operation import NoParameters

__all__ = ["DrainForm", "ants_page", "checks_page", "drain_ant"]

_SPAN_S: Final = 30 * 86400.0


class DrainForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The button that tells a crawling process to give up its sites and end."""

    drain: Annotated[str, Meta(min_length=1, max_length=200)]
    sure: Literal["yes"]


def drain_ant(collection: StoredCollection, form: DrainForm) -> Mapping[str, Any]:
    """Tell a crawling process to give up its sites and end."""
    collection.drain(form.drain)
    return {"done": f"The process {form.drain} gives up its sites and ends."}


def ants_page(collection: StoredCollection, _: NoParameters) -> Mapping[str, Any]:
    """Return the values for the page about the crawling processes."""
    status = collection.status()
    return {
        "status": status,
        "live": [(each, status.at - each.at < STALE_S) for each in collection.live()],
    }


def checks_page(collection: StoredCollection, _: NoParameters) -> Mapping[str, Any]:
    """Return the values for the page about disks and damage."""
    status = collection.status()
    hours = collection.history("hour", since=status.at - _SPAN_S)
    minutes = collection.history(since=status.at - 3600.0)
    times = [each.at for each in hours]
    series = [
        Series("store", [each.store_bytes for each in hours]),
        Series("copies", [each.repository_bytes for each in hours]),
    ]
    samples = minutes or hours
    newest = samples[-1] if samples else None
    return {
        "status": status,
        "newest": newest,
        "last": collection.details.last_check(),
        "hours": hours[-48:],
        "chart": lines("Bytes on disk over time", times, series),
    }
