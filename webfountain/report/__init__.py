"""What the commands show: the state of a crawl, as words and tables for people and as plain data for programs.

Life of a number
----------------

All numbers come from the running frontier (`metrics`) or from the store. `progress` shows the state during a crawl, and
`end_summary` describes the whole crawl at its end. `status`, `pages`, `texts`, `copy` and `plan` read the store at any
time. `explain` gives the reasons for a page's state. `wholeness` checks store and repository for damage.
"""
