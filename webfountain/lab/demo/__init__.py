"""A generated web that changes over time, served on loopback.

`web` computes which pages exist, what they contain and when they change, as functions of a seed and of time (`site`,
`prose`). `server` serves it over HTTP, `serving` is the program that runs the server, and `process` starts and ends
this program and reads its true pages and its log.
"""
