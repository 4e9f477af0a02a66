"""An HTTP client on asyncio that obeys the limits of the policy file, without Scrapy and without the store.

Life of a fetch
---------------
When politeness allows it, the frontier hands out a `Fetch` with an address, whose gate counts the fetch. `fetcher`
checks that the crawl may connect to this address (or, for a file on another host, to the addresses that `resolver`
finds). The fetcher then writes the request and makes an `Exchange`. `connection_pool` runs the exchange over a kept
connection, or opens one. `http_reader` splits the received bytes into head and body. When the head is complete, the
fetcher decides whether the body is wanted, and `content_coding` decodes it. The exchange ends with a body or an error
word (`bad_response`), which becomes part of a `FetchResult`.

Life of a connection
--------------------
A connection belongs to one endpoint: address, port, host name, plain or TLS.

1. *Counted.* A connection needs a file, and RLIMIT_NOFILE limits the files of a process. So the connection is counted
   before its file is opened. If no file is free, the longest idle connection is closed and the exchange waits for its
   file; the time limit does not run during this wait.
2. *Opened*, within the time limit of the exchange. If the first address does not answer, the host's other addresses are
   tried one after another. The request is sent to another address only when the frontier allows it for that address.
3. *Busy* with one exchange. One timer checks all exchanges: `timeout` limits the whole exchange, `min_bytes_per_second`
   each window of its body. A body that is too large, an endless head or a false coding ends the exchange and the
   connection at once. While the bodies in memory fill `body_budget`, the connections do not read, and their time limits
   do not run.
4. *Kept* for half a minute, if the response ended as its framing says and the peer did not send "close". It is closed
   earlier if another connection needs its file. A kept connection is closed if it receives bytes that were not
   requested. If the peer closes the connection just when the next request is sent, that request is sent once more over
   a new connection.
5. *Closed*, always at once. Nothing that was not requested is read.

All time limits of the client use the monotonic clock.
"""
