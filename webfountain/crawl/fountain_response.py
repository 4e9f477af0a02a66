"""The response of one of our own fetches, as Scrapy's middlewares and the spider see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import Headers, Response

if TYPE_CHECKING:
    from webfountain.records import FetchResult

__all__ = ["FountainResponse"]


class FountainResponse(Response):
    """The response of one of our own fetches. Its `headers` are made only when they are read."""

    __slots__ = ("fetched",)

    def __init__(self, url: str, *, fetched: FetchResult | None = None, **kwargs: Any) -> None:
        self.fetched = fetched
        super().__init__(url, **kwargs)

    @property
    def headers(self) -> Headers:
        if self._headers is None:
            self._headers = Headers()
            for name, value in self.fetched.headers if self.fetched is not None else ():
                self._headers.appendlist(name, value.encode("latin-1"))
        return self._headers

    @headers.setter
    def headers(self, value: Any) -> None:
        self._headers = Headers(value)
