"""The data that another crawler left on a server: the lists and sets of scrapy-redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webfountain.store.shared.scrapy_redis import ScrapyRedisKeys

__all__ = ["left_by_scrapy_redis"]


def left_by_scrapy_redis(url: str, *, requests: str, dupefilter: str) -> ScrapyRedisKeys:
    """Return the data of a scrapy-redis spider under these keys of a server, as a context manager."""
    from webfountain.store.shared.scrapy_redis import ScrapyRedisKeys  # noqa: PLC0415

    return ScrapyRedisKeys(url, requests=requests, dupefilter=dupefilter)
