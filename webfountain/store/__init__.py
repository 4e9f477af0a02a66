"""Where the frontier's bytes live: the contract, its backends, and `open_store`.

Life of a lease
---------------
A link is *discovered*: its URL gets a record and stands in its site's never-crawled queue, in the lane of its
importance. An ant takes the site by a *site lease*, whose token every later step names, and leases the URL into its
hand: the entry stays where it is and is only hidden, so a crash at any moment from here on loses nothing. The URL is
fetched, its copy is written to the repository, its links are discovered; then the lease is *settled*: in one atomic
step the record takes the outcome, the census counts it, the change log tells of it, the queue entry goes, and the
page stands in the recrawl lane of its bucket. From there it is leased again when the caller's horizon reaches it, for
as long as the collection lives. A hand that is emptied early *releases* its leases. A URL lease has no deadline of its
own: it ends with the site lease, when the site is parked or another takes it over after its time ran out; a settle that
comes after that has no effect and is counted. `forget` ends a page's life in any of these places, and bars it;
`evict` ends that of its copy.

`contract` is what every store keeps, `memory` the reference, `embedded` the default, `shared` that of many processes;
`codec`, `counting`, `changes` and `lanes` hold the rules that all of them share.
"""

from __future__ import annotations

from webfountain.store.opening import (
    DEFAULT_STORE,
    folder_of,
    is_held,
    is_shared,
    open_store,
    read_every_entry,
    recount,
    without_password,
)

__all__ = [
    "DEFAULT_STORE",
    "folder_of",
    "is_held",
    "is_shared",
    "open_store",
    "read_every_entry",
    "recount",
    "without_password",
]
