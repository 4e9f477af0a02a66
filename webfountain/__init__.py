"""webfountain: an incremental crawler that keeps a fresh copy of chosen parts of the web.

For programs: `open` reads a collection, `run_crawl` runs a crawl, and `open_frontier` leases URLs to a crawler that the
user has written. Programs should use only these names; all packages are internal. A package imports only from packages
that come before it in this list:

- the common modules: errors, records, clock, urls, config, metrics
- ``core`` (mathematics), ``policy``, ``store``, ``repository``
- ``frontier``, the crawler without Scrapy
- ``history``, ``report``, and ``crawl``, the adapters to Scrapy
- ``api`` and ``service``
- the entry points ``cli`` and ``settings``

No other package imports ``lab``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.lazy_names import lazy_names

if TYPE_CHECKING:
    from webfountain.api.answers import (
        AntAnswer,
        CopyAnswer,
        ExplanationAnswer,
        HistoryAnswer,
        NoteAnswer,
        PageAnswer,
        PolicyAnswer,
        RefusedUrl,
        SiteAnswer,
        StatusAnswer,
        TextAnswer,
    )
    from webfountain.api.async_collection import AsyncCollection
    from webfountain.api.changes import (
        ChangedPage,
        DuplicatePage,
        EvictedPage,
        ForgottenPage,
        GonePage,
        MinorChange,
        NewPage,
        OtherChange,
        PageChange,
        RedirectedPage,
        RefusedPage,
        ReturnedPage,
    )
    from webfountain.api.collection import StoredCollection
    from webfountain.api.crawling import run_crawl
    from webfountain.api.leases import LeasedUrl, OpenFrontier, open_frontier
    from webfountain.api.opening import open_collection as open
    from webfountain.errors import CursorLost, InputError, RepositoryError, StoreError, WebfountainError
    from webfountain.history.live import LiveSnapshot

__all__ = [
    "AntAnswer",
    "AsyncCollection",
    "ChangedPage",
    "CopyAnswer",
    "CursorLost",
    "DuplicatePage",
    "EvictedPage",
    "ExplanationAnswer",
    "ForgottenPage",
    "GonePage",
    "HistoryAnswer",
    "InputError",
    "LeasedUrl",
    "LiveSnapshot",
    "MinorChange",
    "NewPage",
    "NoteAnswer",
    "OpenFrontier",
    "OtherChange",
    "PageAnswer",
    "PageChange",
    "PolicyAnswer",
    "RedirectedPage",
    "RefusedPage",
    "RefusedUrl",
    "RepositoryError",
    "ReturnedPage",
    "SiteAnswer",
    "StatusAnswer",
    "StoreError",
    "StoredCollection",
    "TextAnswer",
    "WebfountainError",
    "__version__",
    "open",
    "open_frontier",
    "run_crawl",
]

__version__ = "1.1.0"

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "webfountain.api.opening": "open=open_collection",
            "webfountain.api.leases": "open_frontier OpenFrontier LeasedUrl",
            "webfountain.api.crawling": "run_crawl",
            "webfountain.api.collection": "StoredCollection",
            "webfountain.api.async_collection": "AsyncCollection",
            "webfountain.api.answers": (
                "AntAnswer CopyAnswer ExplanationAnswer HistoryAnswer NoteAnswer PageAnswer PolicyAnswer "
                "RefusedUrl SiteAnswer StatusAnswer TextAnswer"
            ),
            "webfountain.api.changes": (
                "PageChange NewPage ChangedPage MinorChange ReturnedPage GonePage RedirectedPage RefusedPage "
                "DuplicatePage ForgottenPage EvictedPage OtherChange"
            ),
            "webfountain.errors": "WebfountainError InputError CursorLost StoreError RepositoryError",
            "webfountain.history.live": "LiveSnapshot",
        },
    )
