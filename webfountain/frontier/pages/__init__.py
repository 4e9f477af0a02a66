"""Examine fetched bodies: text, verdict and links of their pages, and URLs in sitemaps.

Life of a visit
---------------
A body waits for its reader thread (`guarded_examiner`). The examiner (`examiner`) compares the body with the stored
copy (`page_comparison`), without learned noise (`noise_learner`). From the answer and the page's record it makes an
outcome, a new record, a title, a text and judged links. Facts about the page can switch it to another policy
(`page_judge`). A sitemap becomes links, changed pages and further sitemaps (`sitemap_reader`).

Stages of the store worker make extra visits that prove noise (`extra_visits`), store the redirects of seeds
(`seed_forms`) and settle conflicts between policies (`conflicts`). Other stages review known pages after an edit of the
policies (`review_stage`, `policy_review`), and replace pages in a collection of a fixed size (`fixed_size`).
"""
