"""A frontier on a server for many processes: Redis or Valkey, a single server or a cluster.

Life of a step
--------------
A call of one part of the store (`queues`, `sites`, `pages`) names sites. `scripts` groups the sites by shard, a hash of
the name, and packs the arguments of each shard as msgpack. It sends one ``EVALSHA`` per shard, all in one round trip.
The server runs each script as an atomic step. The script first checks the token of the site lease. Then it moves places
in the *tree* of the site, replaces values and updates the counts. If a server does not answer, `connection` waits for
it. A step that was sent but not answered is sent again.

What lies where
---------------
A shard has fourteen keys with one hash tag (`layout` names them). A page is one field of the hash `pages`, about 100
bytes before it is crawled. The queues of a site are one ordered tree of places. The nodes of the tree are fields of the
hash `nodes`, about 24 bytes per URL. Leased URLs are listed in the row of their site, so a takeover finds them. Each
shard has its own change log, written by the steps that change its pages. `change_log` reads these logs as one.

`claims` divides addresses and roles among the processes of a store, and `due_times` sends signals between them. `lives`
detects that a server lost its latest steps, and repeats lost work from `repeat_log`. `opening` opens or creates the
store, and warns of server settings that endanger the data. `maintenance` changes units and corrects times while no
process crawls. `transfer` copies the store into another store, during a `write_pause`. `private` runs a server that
belongs to one crawl.
"""
