"""Which pages matter by their links: what is logged, how it is ranked, how scores reach the crawl.

Life of a link
--------------
A page is fetched; its outlinks, known targets too, become one row of the link log (`link_log`), which replaces the
page's older row when the log is compacted. The ranker (`ranker`), a process of its own beside the crawl, reads the
compacted shards, turns them into in-links on disk and ranks all pages, also those that no one has fetched. The scores
are published as an epoch (`scores`), sorted files that the crawl maps into memory and looks up in batches; no record
of the store is touched. Until the next epoch `core.rank.OnlineImportance` credits what is fetched.
"""
