"""webfountain: an incremental crawler that keeps a fresh copy of chosen parts of the web.

For programs: `open` reads a collection, `run_crawl` runs a crawl, and `open_frontier` leases URLs to a crawler that the
user has written. The packages are internal. From the lowest to the highest:

- the common modules: errors, records, clock, urls, config, metrics
- ``core`` (mathematics), ``policy``, ``store``, ``repository``
- ``frontier``, the crawler without Scrapy
- ``history``, ``report``, and ``crawl``, the adapters to Scrapy
- ``api`` and ``service``
- the entry points ``cli`` and ``settings``

A package imports only from the packages before it. ``lab`` is independent.
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
            "open": "webfountain.api.opening:open_collection",
            "open_frontier": "webfountain.api.leases:open_frontier",
            "OpenFrontier": "webfountain.api.leases:OpenFrontier",
            "LeasedUrl": "webfountain.api.leases:LeasedUrl",
            "run_crawl": "webfountain.api.crawling:run_crawl",
            "StoredCollection": "webfountain.api.collection:StoredCollection",
            "AsyncCollection": "webfountain.api.async_collection:AsyncCollection",
            "AntAnswer": "webfountain.api.answers:AntAnswer",
            "CopyAnswer": "webfountain.api.answers:CopyAnswer",
            "ExplanationAnswer": "webfountain.api.answers:ExplanationAnswer",
            "HistoryAnswer": "webfountain.api.answers:HistoryAnswer",
            "NoteAnswer": "webfountain.api.answers:NoteAnswer",
            "PageAnswer": "webfountain.api.answers:PageAnswer",
            "PolicyAnswer": "webfountain.api.answers:PolicyAnswer",
            "RefusedUrl": "webfountain.api.answers:RefusedUrl",
            "SiteAnswer": "webfountain.api.answers:SiteAnswer",
            "StatusAnswer": "webfountain.api.answers:StatusAnswer",
            "TextAnswer": "webfountain.api.answers:TextAnswer",
            "PageChange": "webfountain.api.changes:PageChange",
            "NewPage": "webfountain.api.changes:NewPage",
            "ChangedPage": "webfountain.api.changes:ChangedPage",
            "MinorChange": "webfountain.api.changes:MinorChange",
            "ReturnedPage": "webfountain.api.changes:ReturnedPage",
            "GonePage": "webfountain.api.changes:GonePage",
            "RedirectedPage": "webfountain.api.changes:RedirectedPage",
            "RefusedPage": "webfountain.api.changes:RefusedPage",
            "DuplicatePage": "webfountain.api.changes:DuplicatePage",
            "ForgottenPage": "webfountain.api.changes:ForgottenPage",
            "EvictedPage": "webfountain.api.changes:EvictedPage",
            "OtherChange": "webfountain.api.changes:OtherChange",
            "WebfountainError": "webfountain.errors:WebfountainError",
            "InputError": "webfountain.errors:InputError",
            "CursorLost": "webfountain.errors:CursorLost",
            "StoreError": "webfountain.errors:StoreError",
            "RepositoryError": "webfountain.errors:RepositoryError",
            "LiveSnapshot": "webfountain.history.live:LiveSnapshot",
        },
    )
