"""Where the frontier's bytes live: the contract, its backends, and `open_store`.

Life of a lease
---------------
A link is *discovered*: its URL gets a record and stands in its site's never-crawled queue. When the site is
*active* the ant *leases* the URL into its hand: the entry stays where it is and is only hidden, so a crash at
any moment from here on loses nothing. The URL is fetched, its copy is written to the repository, its links are
discovered; then the lease is *settled*: in one atomic step the record takes the outcome, the census
counts it, the queue entry goes, and the page stands in the recrawl lane of its bucket. From there it is leased
again when the caller's horizon reaches it, for as long as the collection lives. A hand that is emptied early *releases*
its leases; one that is never emptied loses them to `reclaim`, and a settle that comes after that has no effect
and is counted. `forget` ends a page's life in any of these places, and bars it.

`base` is the contract, `memory` the reference, `embedded` the default; `codec`, `counting` and
`recrawl` hold the rules that all of them share.
"""

from __future__ import annotations

from webfountain.store.opening import DEFAULT_STORE, folder_of, is_held, open_store, read_every_entry, recount

__all__ = ["DEFAULT_STORE", "folder_of", "is_held", "open_store", "read_every_entry", "recount"]
