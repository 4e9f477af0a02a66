"""Create the index of an embedded store's sites, if an older version wrote the store.

Place in the walk: at an opening for writing. After a kill the next opening starts again. The last change of a site is
unknown if the change log no longer contains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import Change
from webfountain.store.embedded.disk import WriteBatch
from webfountain.store.embedded.keys import CHANGE, RANK, RANKED, after
from webfountain.store.embedded.maintenance import put_meta
from webfountain.store.embedded.site_rows import SiteRows

if TYPE_CHECKING:
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.keys import Meta

__all__ = ["with_ranks"]

_AT_ONCE: Final = 2000
_entry = msgspec.msgpack.Decoder(Change)


def with_ranks(disk: Disk, meta: Meta) -> Meta:
    """Return the description of a store that has an index of its sites; create the index if there is none.

    One scan of the sites and of the change log.
    """
    if meta.is_ranked:
        return meta
    batch = WriteBatch(raw_mode=True)
    for family in (RANK, RANKED):
        batch.delete_range(family, after(family))
    disk.write(batch)
    sites, changes, name = SiteRows(disk), _changes_by_site(disk), ""
    while found := sites.after(name, _AT_ONCE):
        name = found[-1].site
        batch = WriteBatch(raw_mode=True)
        for record in found:
            sites.touch(record.site, sites.row(record.site) or [])
            if record.site in changes:
                sites.ranks.note(record.site, changes[record.site])
        sites.stage(batch)
        disk.write(batch)
    meta = msgspec.structs.replace(meta, is_ranked=True)
    put_meta(disk, meta, WriteBatch(raw_mode=True))
    return meta


def _changes_by_site(disk: Disk) -> dict[str, float]:
    entries = (_entry.decode(value) for _, value in disk.scan(CHANGE, after(CHANGE)))
    return {entry.site: entry.at for entry in entries}
