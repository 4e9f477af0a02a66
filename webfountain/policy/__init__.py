"""Read the policy file of a collection, and judge every URL by it.

Life of a policy file
---------------------
`collection_file` reads the file. It checks the file against its tables (`tables`, `units`), and its keys against each
other. The result is a `Collection`, or an error of one line that names file, key and value (`errors`). One judge is
built from the collection (`judge`, with `scope`, `url_rules`, `rules`; all expressions are `patterns`, searched in
linear time by `linear_syntax`). It judges all URLs, in batches, and says which policy a URL gets, how far the URL is
trusted, or why it is refused. After each fetch `switches` decides whether the page moves to another policy;
`provenance` records why a page has its policy. While the crawl runs, the file is polled (`collection_file`). An edited
file takes effect between two batches; an invalid one is refused, and the old one stays. `lineage` derives the policies
of known pages again, and `report.policy_check` shows beforehand what an edit would change. This room does not use the
store or the queues.
"""
