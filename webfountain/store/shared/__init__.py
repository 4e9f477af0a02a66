"""A frontier on a server, for many processes: Redis or Valkey, one of them or a cluster.

Life of a step
--------------
A call of the contract names sites. `scripts` groups them by shard (a hash of the site's name), packs the arguments
of each shard as msgpack, and sends one ``EVALSHA`` for each in one pipeline: one round trip however many sites
there are. On the server the script of the step runs whole: it looks at the site lease's token first, so that a
process that was paused and wakes changes nothing; it moves places in the site's *tree*, replaces values, and keeps
the counts that it changed. A server that is away is waited for (`opening`); a step that was sent and not
answered is sent again.

What lies where
---------------
A shard has thirteen keys with one hash tag (`lua/prelude.lua` names them): so a cluster can place shards, and every
key of a step is declared. A page is one field of the shard's hash `pages`, about 100 bytes before it is crawled.
The queues of a site are one ordered tree of places whose nodes are fields of the hash `nodes`, about 24 bytes a
URL; the leased stand in it too, in a lane of their own, so a takeover finds them. Nothing is scanned to be counted.
The change log is one to a shard, written by the step that it tells of; `scripts` reads them as one.

What the processes of one store claim, post and ring is in `colony`. `opening` finds or makes the store and says what
of its server endangers a frontier.
"""
