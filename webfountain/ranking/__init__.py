"""Importance of pages by their links: the link log, its rankings, and how the crawl uses the scores.

Life of a link
--------------
A page is fetched. Its outlinks become one row of the link log (`link_log`), including known targets and links that are
not followed. The row is written to a journal before the page is settled (`link_journal`). It replaces the page's older
row when the log is compacted. The ranker (`ranker`) runs beside the crawl in its own process (`ranker_process`). It
reads the compacted shards, turns them into in-links on disk and ranks all pages, including those never fetched. Scores
are published as an epoch (`scores`): sorted files that the crawl maps into memory and reads in batches. No record of
the store changes. Until the next epoch `core.importance.OnlineImportance` credits the targets of fetched pages
(`link_importance`).
"""
