"""Read the policy file of a collection, and judge every URL by it.

Life of a policy file
---------------------

`collection_file` reads the file. Each key is checked against the tables (`tables`, `units`), and then the keys against
each other. The result is a `Collection`, or an error of one line that names file, key and value (`errors`).

One judge is built from the collection (`judge`, with `scope`, `url_rules` and `rules`). The judge takes URLs in
batches. A URL gets policy and trust, or a reason to refuse it. Regular expressions are `patterns`; `linear_syntax` lets
them be searched in linear time.

After each fetch, `switches` decides whether the page moves to another policy. `provenance` records why a page has its
policy.

A running crawl polls the file (`collection_file`). A valid edit takes effect between two batches, and an invalid edit
is refused. `lineage` then computes the policies of known pages again. `report.policy_check` shows beforehand what an
edit would change.
"""
