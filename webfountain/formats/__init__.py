"""Parsers for fetched bodies: pages with their links and texts, feeds, sitemaps, robots.txt.

Life of a body
--------------
A body comes from a server (`download`) or from the repository, with a Content-Type that may be wrong (`media_type`).
Its encoding is decided as browsers decide it (`charset`). `html_safety` checks an HTML page for markup that would keep
a parser busy for minutes. Then `document`, the entrance of this package, parses the page: first its `links` are taken,
then its title and visible text. Other XML is read as a stream of character data (`xml_text`). A body with unusual
markup goes to the `sandbox`, where the same functions run in a process that can be killed. A `sitemap` or feed gives
URLs and times, a robots.txt gives rules (`robots`). `language` detects the language of a text.

No function of this package opens a file, uses the network, reads a clock or logs. A malformed body is no error: each
function reads as much of the body as it can.
"""
