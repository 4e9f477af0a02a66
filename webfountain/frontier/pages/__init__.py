"""Examine fetched bodies: judge pages and their links, and find the URLs in sitemaps.

Life of a visit
---------------
A body waits for its reader thread (`guarded_examiner`). The examiner (`examiner`) compares the body with the stored
copy (`page_comparison`), without learned noise (`noise_learner`). The examiner makes an outcome, a new record, a title,
a text and judged links from the answer and the page's record. Facts about a page can switch it to another policy
(`page_judge`). A sitemap yields links, changed pages and further sitemaps (`sitemap_reader`).

Stages of the store worker make extra visits to recognise noise (`extra_visits`) and store redirects of seeds
(`seed_forms`). If links under several policies lead to a page, a stage chooses the page's policy (`conflicts`). Other
stages apply an edited policy file to known pages (`review_stage`, `policy_review`), and replace pages in a collection
of a fixed size (`fixed_size`).
"""
