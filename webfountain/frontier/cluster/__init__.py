"""The cooperation of many ants on one shared store.

Life of an ant
--------------
1. It opens the shared store under its own name and *claims* ``ant/NAME`` for nearly two heartbeats (`membership`). The
   claim carries a note with what other ants need: how many sites the ant has, its metrics, how busy its core is,
   whether it is idle (`ant_notes`). If there are few ants, each reads the notes of all. If there are many, one ant
   claims the role of reading them all, and stores their sum beside that claim. Otherwise the cost for the server would
   grow with the square of the number of ants.
2. It takes sites by *site leases* of the same length. It claims their addresses separately (`claims`). Only the
   ant that holds an address sends requests there, so politeness per address needs no round trip for a fetch. If another
   ant holds a site's address, the site is given back, and a letter makes the other ant take it: sites
   follow their address. If an ant only requests a file from a site, it claims the site as a guest.
3. At each *heartbeat* all leases and claims are renewed at once. This happens beside the worker thread, so that no
   lease expires during a long batch. The loop applies the result (`heart`): it drops sites and addresses
   that other ants have taken over. The heartbeat also checks whether the ant can read the copies of all other ants.
4. Before each request it checks its *term* (`term`): the time until which all its leases and claims are valid. The term
   is measured by a clock that runs on while the process is stopped. The term ends if the store does not answer or
   the process was stopped. Then the ant sends nothing more, cuts its transfers and gives its leased URLs back.
5. An ant that has many more sites than the others gives up whole addresses, whose sites then become due for the others.
   If a site allows several simultaneous requests, an ant with a busy core *lends* some of its slots to ants with little
   work (`loans`). An ant with a full disk fetches nothing and gives up all of its sites; the ant that reads all notes
   logs this once.
6. One ant has the *controller's* role, again by a claim. It plans and sets the price. It stores both beside the claim,
   and all other ants read them at their heartbeats. If the controller is gone, the next heartbeat of any other ant
   takes the role over. While there is no controller, the last plan is used.
7. An ant that leaves parks its sites, with what it learned about them. It drops the claims on its name and its
   addresses, and leaves for each address the time from which politeness allows the next request. A killed ant drops
   nothing: its claims and leases expire within two heartbeats. Other ants take its sites over with all their URLs. They
   wait the delay of each site before the first request, because the time of the last request is unknown.

A process that has its store to itself is a lone ant.
"""
