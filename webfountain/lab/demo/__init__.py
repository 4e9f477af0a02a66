"""A generated web that changes over time, served on loopback.

`web` computes pages, their content and their changes from a seed and the time (`site`, `prose`). `server` serves the
web over HTTP. `serving` is the program that runs the server, and `process` controls the program.
"""
