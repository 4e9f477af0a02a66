"""A frontier on a server for many processes: Redis or Valkey, a single server or a cluster.

Life of a step
--------------
A call uses one part of the store (`queues`, `sites`, `pages`) and names sites. `scripts` groups the sites by shard (a
hash of the site's name) and packs the arguments of each shard as msgpack. It sends one ``EVALSHA`` per shard in one
pipeline: one round trip for any number of sites. The server runs each script as an atomic step. The script first checks
the token of the site lease, so a process that was paused and resumes changes nothing. Then it moves places in the
site's *tree*, replaces values and updates the counts. If a server does not answer, `connection` waits for it. A step
that was sent but not answered is sent again.

What lies where
---------------
A shard has fourteen keys with one hash tag (`layout` names them). So a cluster can place shards, and each step can
declare all its keys. A page is one field of the shard's hash `pages`, about 100 bytes before it is crawled. The queues
of a site are one ordered tree of places. The nodes of the tree are fields of the hash `nodes`, about 24 bytes per URL.
Leased URLs are listed in the row of their site, so a takeover finds them. No count needs a scan. Each shard has its own
change log, written by the same steps that change the pages. `change_log` reads these logs as one.

`claims` contains what the processes of one store divide among themselves, and `due_times` the signals that they send
each other. `lives` detects that a server went back in time, and repeats lost work from `repeat_log`. `opening` opens or
creates the store, and warns of server settings that endanger it; `maintenance` agrees with other processes on the
store's units and time. `transfer` copies the store into another one, during a `write_pause`. `private` runs a server
that belongs to one crawl.
"""
