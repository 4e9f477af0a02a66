"""Let many ants crawl together from one shared store.

Life of an ant
--------------
1. The ant opens the shared store under its own name, and *claims* ``ant/NAME`` for nearly two heartbeats
   (`membership`). The note of the claim says what other ants need: how many sites the ant has, its metrics, how busy
   its core is, and whether it is idle (`ant_notes`). If there are few ants, each ant reads the notes of all ants. If
   there are many, one ant claims the role of reading all notes, and stores the sum of the notes beside this claim. The
   cost for the server would otherwise grow with the square of the number of ants.
2. The ant takes sites by *site leases* of the same length, and claims the addresses of the sites separately (`claims`).
   Only the ant that holds an address sends requests there, so politeness per address needs no round trip for a fetch.
   If another ant holds a site's address, this ant gives the site back. A letter makes the other ant take the site:
   sites follow their address. An ant that only requests a file from a site claims the site as a guest.
3. At each *heartbeat*, all leases and claims are renewed at once. A separate thread does this, so that no lease expires
   during a long batch. The loop applies the result (`heart`): sites and addresses that other ants have taken over are
   dropped. The heartbeat also checks whether the ant can read the copies of all other ants.
4. Before each request, the ant checks its *term* (`term`), the time until which all its leases and claims are valid.
   The term is measured by a clock that runs on while the process is stopped. The term ends if the store does not answer
   or if the process was stopped. After the end, the ant sends nothing more, cuts its transfers and gives its leased
   URLs back.
5. An ant that has many more sites than other ants gives up whole addresses, whose sites become due for the other ants.
   If a site allows several simultaneous requests, an ant with a busy core *lends* some slots of the site to ants with
   little work (`loans`). An ant with a full disk fetches nothing and gives up all of its sites. The ant that reads all
   notes logs this once.
6. One ant has the *controller's* role, by a claim. The controller plans, sets the price, and stores both beside the
   claim. All other ants read plan and price at their heartbeats. If the controller is gone, the next heartbeat of any
   other ant takes the role over. While there is no controller, the last plan is used.
7. An ant that leaves parks its sites, with what it learned about them. The ant drops the claims on its name and its
   addresses, and leaves for each address the time from which politeness allows the next request. A killed ant drops
   nothing: its claims and leases expire within two heartbeats. Other ants take over the sites of the killed ant with
   all their URLs. Before the first request to each site, they wait for the site's delay, because the time of the last
   request is unknown.

A process that shares its store with no other process is a lone ant.
"""
