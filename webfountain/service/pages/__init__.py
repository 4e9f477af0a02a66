"""The web pages of the service: what a collection is doing, for people in a browser.

Life of a page
--------------
`views` is the table of pages: path, query, template, and the function that reads what the template shows. The `router`
checks the role, reads in the thread of the store, and renders. The functions use the Python API, and none of them scans
a store. `rendering` makes every text of a stranger harmless (`strangers_text`) and lays out times, numbers and links.
`charts` are drawn as SVG, each beside a table of its numbers. `word_diff` marks the changed words of a diff.

The pages work without scripts. If scripts are allowed, `assets/live.js` follows the live snapshots and updates the
figures that change.
"""
