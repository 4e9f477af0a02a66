"""Read the policy file of a collection, and judge every URL by it.

Life of a policy file
---------------------

`collection_file` makes a `Collection` from the policy file. The types in `tables` and `units` define the allowed values
of each key. For an invalid file, `errors` writes a one-line message with file, key and value.

A `Judge` gives each URL a policy and a trust value, or a reason to refuse the URL. The parts of a judge are in `scope`,
`url_rules` and `rules`. `patterns` compiles regular expressions; `linear_syntax` translates them so that a search takes
time linear in the text.

After each fetch, `switches` decides whether the page gets another policy. `provenance` records why a page has its
policy.

A running crawl polls its policy file (`collection_file`). If the edited file is valid, the crawl applies the edit, and
`lineage` computes the policies of known pages again. If the edited file is invalid, the crawl keeps the old rules.
`report.policy_check` shows what an edit would change, before the file is edited.
"""
