"""What stands in a body, read without I/O: pages, their links and texts, feeds, sitemaps, robots.txt.

Life of a body: it came from a stranger, through `download` or out of the repository, with a Content-Type that may be
right (`content_type`, which knows languages, too). Its encoding is decided as browsers decide it; a page is then
looked over for markup that would hold a parser for minutes, parsed, and gives first its links, then its title and
visible text; other XML gives its character data as it streams (`sitemap`). `document` knows which of them is for which
type, and is the door: what is not ordinary goes to the `sandbox`, where the same functions run in a process that can
be ended. A sitemap or feed gives URLs and times (`sitemap`), a robots.txt rules (`robots`).

Nothing here opens a file, asks the network, reads a clock or logs, and nothing raises over what a body holds: it is
read as far as it makes sense. What a page means for the crawl is the examiner's business (`frontier.pages`).
"""
