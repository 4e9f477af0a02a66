"""Input to a crawl from outside: notes, letters of other ants, and seeds.

Life of a note
--------------
Another process leaves a note (`now`, `forget`, `pause`, `resume`) in a folder or in a list on the server (`inboxes`). A
running crawl reads the note within a second, carries it out (`notes`), and removes it when the effect is in the store.
A paused crawl stays paused through restarts. `blocks` are URLs that are not fetched.

Ants of one store send each other letters, which are notes too. `seeds` puts the seeds of a policy file into the store
at the start and after an edit.
"""
