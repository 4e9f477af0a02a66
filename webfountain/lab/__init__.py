"""The laboratory: tools for studying the crawler and the web outside a crawl.

`simulate` runs virtual crawlers on recorded traces and graphs. `evolution` measures how pages change (Cho 2000).
`solving`, `findings` and `plan_figures` reproduce the tables and figures of Edwards 2001, from the files in
`instances`. `demo` is the generated web of the demonstration and the tests. The product never imports the laboratory
(`tests/test_floors.py`).
"""
