"""Receive notes, letters from other ants, and seeds.

Life of a note
--------------
Another process leaves a note (`now`, `forget`, `pause`, `resume`) in a folder or in a list on the server (`inboxes`). A
running crawl reads the note within a second, carries it out (`notes`), and deletes it when its effect is in the store.
A paused crawl stays paused when it is restarted. `blocks` lists URLs that must not be fetched.

Ants that share a store send each other letters. `seeds` adds the policy file's seeds to the store at the start and
after an edit.
"""
