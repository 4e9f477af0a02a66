"""Find duplicates: URLs that the store already knows, and fetched texts that repeat another page.

Life of a link
--------------
`url_dedup` checks a cache of recent fingerprints, then the store. A known URL is counted and goes no further.

Life of a fetched text
----------------------
`detector` computes a sketch of the text with the key of this store (`index.sketch_key`). It searches for similar
sketches in the `index` on disk. The index consists of `page_records` and their keys (`key_runs`); the newest keys are
in memory, the others in sorted files. The ants of one crawl read each other's indices (`other_indices`). `index_check`
finds and removes damaged indices. If two pages repeat each other, `precedence` decides which one becomes the
representative. If most pages of a site repeat those of another site, `mirrors` refuses the rest without a fetch, except
for samples, which may revise the verdict. `detector_stage` calls all this from the store worker.
"""
