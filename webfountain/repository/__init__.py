"""Pages on disk, in WARC files.

Life of a copy
--------------
A fetch with a new body becomes a response and a request record (`warc_writer`). They are appended with their batch to
the newest file (`writer`). A file torn by a kill is cut back to its last whole record (`index`). The page's record
stores the location as a `Copy`. A fetch that repeats the copy becomes a revisit record. `folder` and `warc_reader` read
a copy back by file number and byte range, for ``cat`` and for change detection. A changed body supersedes the copy. A
file without a live copy is deleted. When the folder approaches `max_bytes`, the live copies move out of the files that
have the smallest live share (`retention`). A removal request deletes all versions of a page. `repository` is the
entrance of this package.
"""
