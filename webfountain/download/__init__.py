"""HTTP on asyncio, without Scrapy: one conditional GET at a time and many at once, within the policy's bounds.

**Life of a fetch.** The frontier hands out a `Fetch` when politeness allows, with the address that it was counted for.
`fetcher` looks whether that address (or, for a file on another host, what `resolver` finds) may be asked at all, writes
the request and makes an `Exchange`. `connection` runs it over a connection that is kept, or opens one. `http1` cuts the
bytes that come into head and body; when the head is complete the fetcher sees whether the body is wanted, and
`decoding` takes it. The exchange ends with the body, or with one word for why there is none; either makes a `Fetched`.

**Life of a connection.** It belongs to one endpoint: address, port, host name, plain or TLS.

1. *Counted.* Before its file is opened it has a place among those that RLIMIT_NOFILE leaves room for; where there is
   none the longest idle one is closed and the exchange waits, and its time with it.
2. *Opened*, within the exchange's time. Where the first address does not answer, the host's others are tried one after
   the other; the request goes to one of them only once the frontier says that its turn there has come.
3. *Busy* with one exchange. One timer looks at all of them: `timeout` for the whole, `min_bytes_per_second` within.
   A body that is too much, a head without end, a coding that lies end the exchange at once, and the connection.
4. *Kept*, if the response ended as it was framed, without a byte too many, and the peer did not say close: for ten
   seconds, while nobody waits for a file. Bytes that come unasked end it. If the peer closes it just when the next
   request goes out, that one is sent again over a new connection, once.
5. *Closed*: always at once; nothing that was not asked for is read.

Nothing here knows Scrapy, a store or a clock but the monotonic one: what politeness is, which redirect is followed,
what a status means is decided by those who call. The way of a project's own request through Scrapy's code, over the
same connections, is told in `webfountain.crawl.download_handler`.
"""
