"""The values for the three pages about one URL: its state and text, its versions, its links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from webfountain.api.answers import ExplanationAnswer
from webfountain.errors import InputError, PolicyError, RepositoryError
from webfountain.service.pages.change_pages import ChangesPageQuery, items_of
from webfountain.service.pages.charts import strip
from webfountain.service.pages.strangers_text import cut
from webfountain.service.pages.word_diff import WordBudget, diff_rows
from webfountain.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.api.answers import VersionAnswer
    from webfountain.api.collection import StoredCollection

__all__ = [
    "ComparePageQuery",
    "LinksPageQuery",
    "PageForm",
    "PagePageQuery",
    "act_on_page",
    "compare_page",
    "links_page",
    "page_page",
]

MAX_TEXT: Final = 20_000
"""Maximum number of characters of a copy's text that the page shows."""
_HEADERS: Final = 100
_CHANGES: Final = 20
"""Maximum number of change-log entries that the page shows."""
_VERSIONS: Final = 50


class PagePageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of the web page about one URL."""

    url: Annotated[str, Meta(max_length=8000)] = ""


class ComparePageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of the web page that compares two versions. `old` and `new` are the times at which the versions
    were fetched; by default, the newest two are compared."""

    url: Annotated[str, Meta(min_length=1, max_length=8000)]
    old: Annotated[str, Meta(max_length=30, pattern=r"^\d*(\.\d+)?$")] = ""
    new: Annotated[str, Meta(max_length=30, pattern=r"^\d*(\.\d+)?$")] = ""
    view: Literal["inline", "side"] = "inline"


class LinksPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of the web page with the links of one URL."""

    url: Annotated[str, Meta(min_length=1, max_length=8000)]


class PageForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The buttons on the web page about one URL."""

    url: Annotated[str, Meta(min_length=1, max_length=8000)]
    act: Literal["now", "forget"]


def page_page(collection: StoredCollection, query: PagePageQuery) -> Mapping[str, Any]:
    """Return the values for the page about one URL, even for an unknown URL."""
    if not query.url:
        return {"asked": "", "explained": None, "page": None}
    explained = _explained(collection, query.url)
    page = None if explained.url is None else collection.page(explained.url)
    if page is None:
        return {"asked": query.url, "explained": explained, "page": None}
    checks = collection.details.checks(page.url)
    at = collection.status().at
    changes, _ = items_of(collection, ChangesPageQuery(), at + 3600.0, url=page.url, most=_CHANGES)
    return {
        "asked": page.url,
        "explained": explained,
        "page": page,
        "checks": checks,
        "strip": strip(
            f"The last {len(checks)} checks, the oldest first; a high bar is a change", [c.changed for c in checks]
        ),
        "changed": changes,
        "at": at,
        **_copy(collection, page.url),
    }


def compare_page(collection: StoredCollection, query: ComparePageQuery) -> Mapping[str, Any]:
    """Return the values for the kept versions of a page, and the difference between two of them."""
    found: list[VersionAnswer] = []
    values: dict[str, Any] = {"url": query.url, "versions": found, "rows": [], "side": query.view == "side"}
    try:
        found += collection.versions(query.url, limit=_VERSIONS)
    except (InputError, RepositoryError) as error:
        return values | {"problem": str(error), "old": None, "new": None}
    new = float(query.new or found[0].fetched)
    older = [each.fetched for each in found if each.fetched < new]
    old = float(query.old) if query.old else older[0] if older else None
    values |= {"old": old, "new": new}
    if old is None:
        return values
    try:
        diff = collection.compare(query.url, old=old, new=new).diff
    except (InputError, RepositoryError) as error:
        return values | {"problem": str(error)}
    return values | {"rows": diff_rows(diff, WordBudget())}


def links_page(collection: StoredCollection, query: LinksPageQuery) -> Mapping[str, Any]:
    try:
        found = collection.details.links(query.url)
    except (InputError, RepositoryError) as error:
        return {"url": query.url, "links": None, "problem": str(error)}
    return {"url": query.url, "links": found}


def act_on_page(collection: StoredCollection, form: PageForm) -> Mapping[str, Any]:
    """Make the crawl fetch or forget a page."""
    if form.act == "forget":
        collection.forget(form.url)
        return {"done": "The page is forgotten within a second, if a crawl runs."}
    answer = collection.now([form.url])
    if answer.refused:
        return {"problem": f"It is refused: {answer.refused[0].why}."}
    return {"done": "It is fetched as soon as politeness allows."}


def _explained(collection: StoredCollection, url: str) -> ExplanationAnswer:
    """Return the explanation of a URL. If the store has no readable policy file, the explanation says so."""
    try:
        return collection.explain(url)
    except PolicyError as error:
        name = canonical(url)
        return ExplanationAnswer(
            url, name, collection.page(name) is not None, [f"The page cannot be explained: {error}."]
        )


def _copy(collection: StoredCollection, url: str) -> dict[str, Any]:
    """Return headers and text of the newest copy, or the reason why there is none."""
    try:
        copy = collection.copy(url)
        text = collection.text(url)
    except (InputError, RepositoryError) as error:
        return {"copy": None, "no_copy": str(error), "text": "", "text_size": 0, "headers": []}
    return {
        "copy": copy,
        "no_copy": None,
        "text": cut(text, MAX_TEXT),
        "text_size": len(text),
        "headers": copy.headers[:_HEADERS],
    }
