"""Write signatures of page texts, so that programs can find near-duplicates across collections.

A signature is datasketch's `MinHash` with its standard seed and hash function, so anybody who has the text can compute
it. The duplicate index uses other sketches, which depend on a secret key and cannot be compared across stores.

A shingle is four words, lower-cased and joined by one space, in UTF-8. A text of fewer than four words is one shingle.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from webfountain.errors import InputError
from webfountain.private_files import draft_of
from webfountain.report.texts import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from datasketch import MinHash

    from webfountain.errors import RepositoryError
    from webfountain.repository.repository import Pages
    from webfountain.store.contract import FrontierStore

__all__ = ["PERMUTATIONS", "signature", "signatures", "write_signatures"]

PERMUTATIONS: Final = 128
_WORDS: Final = 4
_AT_ONCE: Final = 1000
"""Maximum number of signatures in memory at once."""


def signature(text: str) -> MinHash:
    """Return the MinHash of a text: datasketch's standard seed, its `affine32` permutations, SHA-1 of each shingle."""
    words = text.lower().split()
    runs = {
        " ".join(words[first : first + _WORDS]) for first in range(max(len(words) - _WORDS + 1, min(len(words), 1)))
    }
    made = _prototype().copy()
    made.update_batch([run.encode("utf-8", "surrogatepass") for run in runs])
    return made


def signatures(
    store: FrontierStore, repository: Pages, *, unreadable: Callable[[RepositoryError], None]
) -> Iterator[dict[str, Any]]:
    """Yield url, fetched and minhash of each page that has a copy with text. `unreadable` is called for each copy that
    cannot be read."""
    for row in texts(store, repository, unreadable=unreadable):
        if row["text"] and row["text"].strip():
            yield {"url": row["url"], "fetched": row["fetched"], "minhash": signature(row["text"]).hashvalues}


def write_signatures(file: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write signatures to a Parquet file, completely or not at all.

    Return the number of written rows.

    Raises
    ------
    InputError
        if the file cannot be written.
    """
    import pyarrow as pa  # noqa: PLC0415  (0.3 s)
    import pyarrow.parquet as pq  # noqa: PLC0415

    kept = {
        "minhash": f"datasketch.MinHash(num_perm={PERMUTATIONS}, seed=1, scheme='affine32'), hashfunc sha1_hash32",
        "shingle": "four words of the lower-cased text, joined by one space, in UTF-8",
    }
    columns = [("url", pa.string()), ("fetched", pa.float64()), ("minhash", pa.list_(pa.uint32(), PERMUTATIONS))]
    schema = pa.schema(columns, metadata=kept)
    count, left = 0, iter(rows)
    try:
        with draft_of(file) as draft, pq.ParquetWriter(draft, schema) as writer:
            while some := list(itertools.islice(left, _AT_ONCE)):
                writer.write_table(pa.Table.from_pylist(some, schema=schema))
                count += len(some)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror or error})") from None
    return count


@cache
def _prototype() -> MinHash:
    """Return an empty MinHash, which callers copy because copying is faster than creating one."""
    from datasketch import MinHash  # noqa: PLC0415  (0.4 s)

    return MinHash(PERMUTATIONS, seed=1, scheme="affine32")
