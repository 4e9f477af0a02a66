"""What a fetched body means: for its page, for the URLs that it names.

Life of a page's visit: the fetch's answer and the page's record become an outcome, a new record, a title, a text and
judged links (`examiner`); the links pass the duplicate URL eliminator on their way to the store (`duplicates`). A
sitemap becomes links, pages that changed, and sitemaps to fetch. All but the look at the old copy is pure. What is
held already is walked over again and again: after an edit of the policies, and where the collection is full
(`sweeps`).
"""
