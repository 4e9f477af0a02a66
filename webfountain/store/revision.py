"""A revision: one rule that changes all pages of a store, and its sites, while no process crawls.

Place in the walk: the opening of a store for writing. The rules are a change of units (`bucket_units`) and a
correction of times (`clock_correction`). The pass is the same for every kind of store. Each step of it is written
together with its position, so that after a kill the next opening continues there and changes nothing twice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.records import PageRecord, SiteRecord, SiteState

__all__ = ["PAGES_AT_ONCE", "Revisable", "Revision", "revise"]

PAGES_AT_ONCE: Final = 500
"""Number of pages that one step of a pass replaces."""
_SITES_AT_ONCE: Final = 100


class Revision(Protocol):
    """The rule of a revision."""

    @property
    def values(self) -> tuple[str, ...]:
        """Names of the published values that become meaningless."""
        ...

    @property
    def moves_sites(self) -> bool:
        """Return whether it changes sites, too; then their parts are deleted."""
        ...

    def site(self, site: SiteRecord) -> SiteRecord:
        """Return the new record of a site: its times, its state and what was learned about it may differ."""
        ...

    def page(self, state: SiteState, record: PageRecord) -> PageRecord:
        """Return the new record of a page, in the same state. `state` is that of its site."""
        ...


class Revisable(Protocol):
    """The sites and pages of a store, or of a part of it, while they are revised."""

    @property
    def place(self) -> tuple[str, bytes]:
        """The site that a killed pass had reached, and the key of its last page that was processed; ("", b"") at the
        start."""
        ...

    def get(self, site: str) -> SiteRecord | None:
        """Return a site, or None when it is unknown."""
        ...

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Return up to `n` sites in order of name, from the first after `name`."""
        ...

    def keys(self, site: str, after: bytes, n: int) -> list[bytes]:
        """Return the keys of up to `n` pages of a site in order, from the first after `after`."""
        ...

    def move(self, site: SiteRecord) -> None:
        """Give a site the times, the state and the learned data of a record; delete its parts."""
        ...

    def replace(self, site: str, keys: Sequence[bytes], rule: Callable[[PageRecord], PageRecord]) -> None:
        """Replace the records of some pages."""
        ...


def revise(store: Revisable, revision: Revision) -> None:
    """Apply a revision to all sites and pages, in order of name and key, or continue a pass that was killed."""
    name, key = store.place
    begun = store.get(name) if name else None
    if begun is not None:
        _revise_pages(store, revision, begun, key)
    while found := store.after(name, _SITES_AT_ONCE):
        for site in found:
            if revision.moves_sites:
                store.move(revision.site(site))
            _revise_pages(store, revision, site, b"")
        name = found[-1].site


def _revise_pages(store: Revisable, revision: Revision, site: SiteRecord, after: bytes) -> None:
    while keys := store.keys(site.site, after, PAGES_AT_ONCE):
        store.replace(site.site, keys, partial(revision.page, site.state))
        after = keys[-1]
