"""Pages on disk. The life of a copy:

A fetch with a new body becomes a response and a request record (`warc`), appended with its batch to the newest
file (`writer`, which also cuts what a kill tore); the place is a `Copy` in the page's record. Fetches that
repeat it are revisit records. `folder` and `record` read it back, by number and byte range, for ``cat`` and
change detection. A changed body supersedes it: when a file has no live copy left it is deleted, and above
`max_bytes` the live ones of the emptiest files move (`retention`). A take-down removes it, all versions.
`pages` is the door to all this; `text` makes a page's visible text and keeps nothing.
"""
