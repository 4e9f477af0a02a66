"""The table of operations: each URL of the service below ``/v1`` with its query, its answer and the required role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.api.answers import (
    ComparisonAnswer,
    CopyAnswer,
    ExplanationAnswer,
    NoteAnswer,
    PageAnswer,
    PageTextAnswer,
    PolicyAnswer,
    SiteAnswer,
    StatusAnswer,
)
from webfountain.api.details import LinksAnswer, PlanAnswer, PolicyFileAnswer, RobotsTextAnswer, SectionsAnswer
from webfountain.api.search import SearchAnswer
from webfountain.service import answers
from webfountain.service.feeds import changes, live
from webfountain.service.operation import NoParameters, Operation
from webfountain.service.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webfountain.api.collection import StoredCollection
    from webfountain.service.operation import Call

    _Handler = Callable[[StoredCollection, Any], object]

__all__ = ["OPERATIONS", "PREFIX"]

PREFIX: Final = "/v1/collections/{collection}"


def _sites(collection: StoredCollection, query: answers.SitesQuery) -> answers.SitesPart:
    if query.sort != "name":
        return answers.SitesPart(*collection.sorted_sites(query.sort, after=query.after, limit=query.limit))
    found = collection.sites(after=query.after, limit=query.limit)
    return answers.SitesPart(found, found[-1].site if len(found) == query.limit else None)


def _site(collection: StoredCollection, query: answers.SiteQuery) -> SiteAnswer:
    found = collection.site(query.site)
    if found is None:
        raise ProblemError(404, "unknown-site", f"{query.site} is not known here")
    return found


def _pages(collection: StoredCollection, query: answers.PagesQuery) -> answers.PagesPart:
    return answers.PagesPart(*collection.pages(query.site, state=query.state, after=query.after, limit=query.limit))


def _page(collection: StoredCollection, query: answers.PageQuery) -> PageAnswer:
    found = collection.page(query.url)
    if found is None:
        raise ProblemError(404, "unknown-page", f"{query.url} is not known here")
    return found


def _known(check: _Handler, read: _Handler) -> _Handler:
    """Return a function that calls `check` and then `read`. `check` raises ProblemError for an unknown site or page."""

    def checked(collection: StoredCollection, query: Any) -> object:
        check(collection, query)
        return read(collection, query)

    return checked


def _texts(collection: StoredCollection, query: answers.TextsQuery) -> answers.TextsPart:
    found = collection.texts(since=query.since or None, format=query.format, main=query.main, limit=query.limit)
    return answers.TextsPart(found, found[-1].cursor if found else query.since or None)


def _history(collection: StoredCollection, query: answers.HistoryQuery) -> answers.HistoryPart:
    found = collection.history(query.step, since=query.since, until=query.until)
    return answers.HistoryPart(found[-query.limit :])


def _search(collection: StoredCollection, query: answers.SearchQuery) -> SearchAnswer:
    return collection.search.find(
        query.words, site=query.site, since=query.since, until=query.until, verdict=query.verdict, limit=query.limit
    )


def _read(
    name: str,
    summary: str,
    answer: Any,
    read: _Handler,
    query: type[msgspec.Struct] = NoParameters,
    *,
    path: str | None = None,
    **more: Any,
) -> Operation:
    """Return an operation that reads a collection. The URL of the operation ends with `path`, or by default with the
    name of the operation.
    """
    return Operation(name, "GET", f"{PREFIX}/{path or name}", summary, answer, query, read=read, **more)


def _feed(
    name: str, summary: str, answer: Any, handle: Callable[[Call], Awaitable[object]], query: type[msgspec.Struct]
) -> Operation:
    """Return an operation that a client can also use as a stream."""
    return Operation(name, "GET", f"{PREFIX}/{name}", summary, answer, query, handle=handle)


def _note(name: str, summary: str, body: type[msgspec.Struct], write: _Handler) -> Operation:
    """Return an operation that sends a request to the crawl."""
    return Operation(
        name, "POST", f"{PREFIX}/{name}", summary, NoteAnswer, body=body, role="operate", write=write, tag="notes"
    )


OPERATIONS: Final = (
    _read("status", "The state of the collection.", StatusAnswer, lambda found, _: found.status()),
    _read(
        "sites", "Sites by name, pages, failures, due time or change.", answers.SitesPart, _sites, answers.SitesQuery
    ),
    _read("site", "One site.", SiteAnswer, _site, answers.SiteQuery),
    _read("pages", "Pages of a site.", answers.PagesPart, _known(_site, _pages), answers.PagesQuery),
    _read("page", "One page.", PageAnswer, _page, answers.PageQuery),
    _read(
        "copy", "The newest copy of a page, or a version, as an attachment.", CopyAnswer,
        _known(_page, lambda found, query: found.copy(query.url, fetched=query.fetched)), answers.CopyQuery,
        media="application/octet-stream",
    ),
    _read(
        "text", "A copy of a page as text, Markdown or HTML, with its metadata.", PageTextAnswer,
        _known(_page, lambda found, query: found.page_text(**msgspec.structs.asdict(query))), answers.TextQuery,
    ),
    _read(
        "versions", "The kept versions of a page.", answers.VersionsPart,
        _known(_page, lambda found, query: answers.VersionsPart(found.versions(query.url, limit=query.limit))),
        answers.VersionsQuery,
    ),
    _read(
        "compare", "The difference between two versions of a page.", ComparisonAnswer,
        _known(_page, lambda found, query: found.compare(**msgspec.structs.asdict(query))), answers.CompareQuery,
    ),
    _read(
        "links", "The links from and to a page, where they are logged.", LinksAnswer,
        _known(_page, lambda found, query: found.details.links(query.url)), answers.PageQuery,
    ),
    _read(
        "texts", "Pages as texts: the whole list, then the changes.", answers.TextsPart, _texts, answers.TextsQuery
    ),
    _read(
        "explain", "The state of a URL, or why it was refused.", ExplanationAnswer,
        lambda found, query: found.explain(query.url, linked_by=query.linked_by or None), answers.ExplainQuery,
    ),
    _read(
        "blocks", "The blocked sites and URL prefixes.", answers.BlocksPart,
        lambda found, _: answers.BlocksPart(found.blocks()),
    ),
    _read("history", "The crawl per minute, hour or day.", answers.HistoryPart, _history, answers.HistoryQuery),
    _read("search", "Pages whose title or text matches, the best first.", SearchAnswer, _search, answers.SearchQuery),
    _read(
        "robots", "The robots.txt of a site as it was read.", RobotsTextAnswer,
        _known(_site, lambda found, query: found.details.robots(query.site)), answers.SiteQuery,
    ),
    _read(
        "sections", "The sections of a site and how often they change.", SectionsAnswer,
        _known(_site, lambda found, query: found.details.sections(query.site)), answers.SiteQuery,
    ),
    _read(
        "waiting", "The next URLs of a site that were never fetched.", answers.WaitingPart,
        _known(_site, lambda found, query: answers.WaitingPart(found.details.waiting(query.site))), answers.SiteQuery,
    ),
    _read(
        "plan", "The plan in force, with the fetches made so far.", PlanAnswer,
        lambda found, _: found.details.plan(at=found.status().at),
    ),
    _read(
        "policy", "The policy file in force.", PolicyFileAnswer, lambda found, _: found.details.policy(), tag="policy"
    ),
    _read(
        "last-check", "The result of the last `webfountain check`.", answers.LastCheckAnswer,
        lambda found, _: answers.LastCheckAnswer(found.details.last_check()), path="check",
    ),
    _feed(
        "changes", "The change log: by poll, long poll or server-sent events.", answers.ChangesPart, changes,
        answers.ChangesQuery,
    ),
    _feed("live", "The current state of each crawling process.", answers.LivePart, live, answers.LiveQuery),
    _note("now", "Fetch URLs as soon as politeness allows.", answers.NowBody, lambda found, body: found.now(body.urls)),
    _note(
        "forget", "Remove a page or a site for good.", answers.ForgetBody,
        lambda found, body: found.forget(body.url, site=body.site),
    ),
    _note("pause", "Stop all requests of the crawl until it is resumed.", NoParameters, lambda found, _: found.pause()),
    _note("resume", "Resume a paused crawl.", NoParameters, lambda found, _: found.resume()),
    _note(
        "block", "Block a site or a URL prefix.", answers.BlockBody,
        lambda found, body: found.block(body.prefix, until=body.until),
    ),
    _note(
        "unblock", "Remove the block of a site or a URL prefix.", answers.UnblockBody,
        lambda found, body: found.unblock(body.prefix),
    ),
    _note(
        "drain", "End one crawling process and give its sites to the others.", answers.DrainBody,
        lambda found, body: found.drain(body.ant),
    ),
    Operation(
        "check-policy", "POST", f"{PREFIX}/policy/check", "The meaning and the effect of a policy file.", PolicyAnswer,
        body=answers.PolicyBody, role="operate", tag="policy",
        write=lambda found, body: found.check_policy(body.text, against=body.against),
    ),
)  # fmt: skip
