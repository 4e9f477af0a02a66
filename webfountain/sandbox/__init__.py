"""Parsing of bodies that may be hostile, in child processes.

Life of a job
-------------
A thread that has a body to parse uses its own child process (`reader`). The child (`child`) parses the body within
limits of memory and CPU time, and either answers or is killed. `crash_guard` remembers the pages that were being
examined when the crawl's own process died: they are examined last and alone, and after three deaths they count as
failed.
"""
