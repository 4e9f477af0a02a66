"""The store of the frontier: the contract, its backends, and `opening.open_store`.

Life of a lease
---------------
A link is *discovered*: its URL gets a record and enters the never-crawled queue of its site, in the lane of its
importance. An ant takes the site with a *site lease*, whose token is part of every later step. It leases the URL into
its hand. The queue entry stays in its place and is only hidden, so a crash loses nothing. The ant fetches the URL,
writes its copy to the repository, and discovers its links. Then the lease is *settled*, in one atomic step: the record
gets the outcome, the census counts it, the change log gets an entry, the queue entry is deleted, and the page enters
the recrawl lane of its bucket. The page is leased again when the caller's horizon reaches it. An ant *releases* leases
that it does not use. A URL lease has no deadline of its own. It ends when the site is parked, or when another ant takes
the site over after the deadline. An outcome that comes later has no effect. `forget` removes a page in any of these
states and refuses links to it. `evict` removes its copy.

A store consists of parts with one protocol each: `queues`, `sites`, `pages`, `census`, `changes`, `board`. `contract`
is the interface of every store, `shared_contract` the interface of stores that many processes share. `answers` defines
the arguments and results of the contract. `lanes` defines the order of URLs, and `site_orders` defines the order of
sites. `codec`, `census_counting`, `change_log` and `revision` contain rules that all stores use. `memory` is the
reference, `embedded` (RocksDB) the default, and `shared` (Redis or Valkey) is for many processes. `transfer_rows`
copies a whole store into another store. `transfer_file` writes a store to a file and reads it back. `locations` parses
the URLs of stores. Only `opening` imports the backends.
"""
