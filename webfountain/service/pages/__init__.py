"""The web pages of the service: what a collection is doing, for people in a browser.

Life of a page
--------------

`views` is the table of pages: path, query, template, and the function that reads the values for the template. The
`router` checks the role, calls the function of the page in the thread of the store, and renders the template. To read
its values, each page calls the Python API, which reads a bounded number of rows. `rendering` formats times, numbers and
links; `strangers_text` makes untrusted texts harmless. `charts` draws SVG charts, each next to a table of its numbers.
`word_diff` marks the changed words of a diff.

The pages work without scripts. If scripts are allowed, `assets/live.js` keeps the figures on the page up to date.
"""
