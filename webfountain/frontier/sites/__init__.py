"""The sites that a process crawls now: who may be asked, for what, and when.

Life of a site.

1. The store makes it active: `activate` gives its site lease, which the heartbeat renews (`active_list`). Its address
   is looked up; it takes its place there, beside the sites that share it (`politeness`).
2. Its robots.txt is asked, unless it is known (`politeness`); then its sitemaps. Files on other hosts are asked by the
   site there, in its turn: an active one, or a guest that is there for them alone.
3. Its hand is filled (`hand`, of `sequencer`), emptied one fetch at a time as its standing allows (`politeness`),
   filled again.
4. When the store has nothing due it waits for new URLs, or for the time when a known page comes due; when that is far
   it is parked, and the store keeps what was learned. So it is when it must be left alone for long, and after a quantum
   of fetches while others wait.
5. A process that was paused for longer than its lease may find the site taken over: it stops at once, and what it had
   under way there has no effect.

Every event goes once from the facade to the active list, and from there to its site, which owns its state (the table
of states stands in `site`); what the store must do is written into the batch that comes with the event.
"""
