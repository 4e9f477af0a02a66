"""What the loop thread orders from the store with each batch.

Life of an order
----------------
`frontier.work_exchange` takes the open batch. Each order (`frontier.order`) that is due adds what its part of the crawl
needs: leases and sites (`site_supply`), notes, counts and ranks (`polls`), what is done from time to time (`chores`).
Orders of other rooms are `planning.planner`, `planning.earlier_due_times`, `cluster.address_claims` and
`cluster.heart`. The worker carries the batch out. Each order then reads in the result what it must order again.
`frontier.assembly` lists the orders. A feature that is off has none.
"""
