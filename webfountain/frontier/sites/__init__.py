"""The sites that a process crawls now.

Life of a site
--------------
1. The store makes it active: `activate` returns its site lease, which the heartbeat renews (`active_list`, with its
   `site_table`). A state machine (`site`) with shared rules (`site_context`) begins. The host is resolved, and the site
   is placed at its address (`addresses`), in the group of sites that share this address.
2. Its robots.txt is fetched unless it is known (`site_files`), then its sitemaps. If a file is on another host, the
   site of that host fetches it in its turn (`site_table`). That site is active, or is added as a guest that only serves
   files.
3. Its pages are leased (`site_pages`) into its hand (`hand`). Two tiers of rings (`sequencers`) choose the next
   fetch, as its politeness allows (`politeness`). Its domain may have only a share of all fetches
   (`domain_shares`), and few of its bodies may wait to be read. Each fetch is in flight until it lands (`flights`), and
   its result improves the estimate of the site's change rate. Another ant may borrow slots of a very large site
   (`slot_lending`, `cluster.loans`).
4. When the store has nothing due, the site waits for new URLs or for the time when a known page comes due. It is parked
   (`departures`) if that time is far away, if it must be left alone for long, or after a number of fetches while others
   wait. The store keeps what was learned. After a change of plan, its due time is computed again
   (`planning.earlier_due_times`).
5. A process that was paused for longer than its lease may find that another process took the site over. It stops at
   once, and its fetches in flight have no effect.

The facade passes every event, with the open batch, to the active list, which passes both to the site. The site object
changes its state (`site` lists the states). It adds to the batch what the store must do.
"""
