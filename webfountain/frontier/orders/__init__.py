"""What the loop thread orders from the store with each batch.

Life of an order
----------------
`frontier.work_exchange` takes the open batch. Each `order` adds what its feature needs: leases for hands (`refills`),
sites (`site_intake`), notes and counts (`polls`), pages to judge again (`policy_in_force`), waiting pages to weigh
(`rank_turns`). Others act on the way: timers of sites (`site_timers`), the shares of domains (`share_check`), the end
of the crawl (`idle_check`). `chores` need nothing but a timer, such as the report of what limits the rate
(`limit_report`). Orders of other rooms are `planning.planner`, `planning.earlier_due_times`, `cluster.address_claims`
and `cluster.heart`. The worker carries the batch out. Each order then reads in the result what it must order again.
`frontier.assembly` lists the orders. A feature that is off has none.
"""
