"""A Scrapy extension that kills the crawl, as the kernel would, when a page that says so is examined."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from webfountain.frontier.pages.examiner import Examiner

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler

    from webfountain.formats.document import Document
    from webfountain.records import FetchResult

__all__ = ["DEADLY", "DyingExtension"]

DEADLY = b"whoever reads this dies"


class DyingExtension:
    """Switched on by ``-s EXTENSIONS={"tests.crawl.dying.DyingExtension": 1}``."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        document: Callable[..., Document] = Examiner._document

        def read(examiner: Examiner, fetched: FetchResult, *how: Any) -> Document:
            if DEADLY in fetched.body:
                os.kill(os.getpid(), signal.SIGKILL)
            return document(examiner, fetched, *how)

        Examiner._document = read  # type: ignore[method-assign,assignment]
        return cls()
