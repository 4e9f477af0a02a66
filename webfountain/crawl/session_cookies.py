"""The cookies of a project's sessions, kept in a file so that a log-in survives a restart.

The cookies are stored only with WEBFOUNTAIN_COOKIES. The jars of Scrapy's CookiesMiddleware are loaded before the first
request. If an answer changes a jar, the jar is written before the answer's page is settled. Cookies are secrets: only
the owner can read the file `cookies` in the store's folder. A jar whose key (`meta["cookiejar"]`) is not plain data is
not stored.
"""

from __future__ import annotations

import inspect
import logging
from http.cookiejar import Cookie
from typing import TYPE_CHECKING, Any, Final

from scrapy.downloadermiddlewares.cookies import CookiesMiddleware

from webfountain.crawl.values import UnstorableValue, Values
from webfountain.errors import InputError, StoreError
from webfountain.private_files import replaced

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

__all__ = ["SessionCookies"]

logger = logging.getLogger(__name__)

FILE: Final = "cookies"
_FIELDS: Final = tuple(name for name in inspect.signature(Cookie).parameters if name != "rest")


class SessionCookies:
    """The cookies of one crawl, and their file."""

    def __init__(self, crawler: Crawler, folder: Path | None) -> None:
        """Raise InputError if the store is on a server, because the file needs a folder."""
        if folder is None:
            raise InputError("the setting WEBFOUNTAIN_COOKIES needs a store in a folder, rocksdb://FOLDER")
        self._path = folder / FILE
        found = crawler.engine.downloader.middleware.middlewares
        self._middlewares = [each for each in found if isinstance(each, CookiesMiddleware)]
        self._written = b""

    def load(self) -> None:
        """Put the stored cookies into the jars, or rename the file if it cannot be read."""
        try:
            self._written = self._path.read_bytes()
        except FileNotFoundError:
            return
        try:
            for key, kept in Values().unpack(self._written):
                for fields in kept:
                    cookie = Cookie(**dict(zip(_FIELDS, fields, strict=True)), rest={})
                    for middleware in self._middlewares:
                        middleware.jars[key].jar.set_cookie(cookie)
        except (ValueError, TypeError, KeyError) as error:
            logger.warning(
                "%s cannot be read; all sessions start without cookies (%s)", self._path, type(error).__name__
            )
            self._path.replace(self._path.with_suffix(".refused"))

    def save(self) -> None:
        """Write the jars, if they have changed. Raises StoreError."""
        data = self._packed()
        if data == self._written:
            return
        try:
            with replaced(self._path) as file:
                file.write(data)
        except OSError as error:
            raise StoreError(f"{self._path}: the cookies cannot be written: {error.strerror}") from None
        self._written = data

    def _packed(self) -> bytes:
        jars: list[tuple[Any, list[list[Any]]]] = []
        for middleware in self._middlewares:
            for key, jar in middleware.jars.items():
                try:
                    Values.pack(key)
                except UnstorableValue:
                    continue
                jars.append((key, [[getattr(each, name) for name in _FIELDS] for each in jar.jar]))
        return Values.pack(jars) if jars else b""
