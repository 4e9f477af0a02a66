"""Where bodies that may be hostile are read: processes that can be ended, whatever a body holds.

Life of a job: a thread that has a body to read (`reader`) takes its own child process, which is started when the first
body needs it and serves many. The child (`child`) gets the body through a pipe and bounds itself before it looks at it:
its address space, by `setrlimit`, and its CPU time, by a timer whose signal ends it, also within the parser's C code.
What it read comes back as a `formats.document.Document` or a `SitemapFile`; if it ends instead, the job has an error
word by the way it ended, and the next job starts another child. A child ends by itself when its parent does, when a job
has left it large, and at once when the crawl is told to stop.

It imports the formats and nothing else of the package. On systems that do not enforce RLIMIT_AS (macOS) the memory of
a child is bounded by its CPU time only.
"""
