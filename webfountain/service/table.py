"""The table of operations: each URL of the service below ``/v1`` with its query, its answer and the required role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    from collections.abc import Iterable

    from webfountain.api.collection import StoredCollection

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
    if collection.site(query.site) is None:
        raise ProblemError(404, "unknown-site", f"{query.site} is not known here")
    return answers.PagesPart(*collection.pages(query.site, state=query.state, after=query.after, limit=query.limit))


def _page(collection: StoredCollection, query: answers.PageQuery) -> PageAnswer:
    found = collection.page(query.url)
    if found is None:
        raise ProblemError(404, "unknown-page", f"{query.url} is not known here")
    return found


def _copy(collection: StoredCollection, query: answers.CopyQuery) -> CopyAnswer:
    _page(collection, answers.PageQuery(query.url))
    return collection.copy(query.url, fetched=query.fetched)


def _text(collection: StoredCollection, query: answers.TextQuery) -> PageTextAnswer:
    _page(collection, answers.PageQuery(query.url))
    return collection.page_text(query.url, format=query.format, main=query.main, fetched=query.fetched)


def _versions(collection: StoredCollection, query: answers.VersionsQuery) -> answers.VersionsPart:
    _page(collection, answers.PageQuery(query.url))
    return answers.VersionsPart(collection.versions(query.url, limit=query.limit))


def _compare(collection: StoredCollection, query: answers.CompareQuery) -> ComparisonAnswer:
    _page(collection, answers.PageQuery(query.url))
    return collection.compare(query.url, old=query.old, new=query.new, format=query.format)


def _links(collection: StoredCollection, query: answers.PageQuery) -> LinksAnswer:
    _page(collection, query)
    return collection.details.links(query.url)


def _robots(collection: StoredCollection, query: answers.SiteQuery) -> RobotsTextAnswer:
    _site(collection, query)
    return collection.details.robots(query.site)


def _sections(collection: StoredCollection, query: answers.SiteQuery) -> SectionsAnswer:
    _site(collection, query)
    return collection.details.sections(query.site)


def _waiting(collection: StoredCollection, query: answers.SiteQuery) -> answers.WaitingPart:
    _site(collection, query)
    return answers.WaitingPart(collection.details.waiting(query.site))


def _texts(collection: StoredCollection, query: answers.TextsQuery) -> answers.TextsPart:
    found = collection.texts(since=query.since or None, format=query.format, main=query.main, limit=query.limit)
    return answers.TextsPart(found, found[-1].cursor if found else query.since or None)


def _explain(collection: StoredCollection, query: answers.ExplainQuery) -> ExplanationAnswer:
    return collection.explain(query.url, linked_by=query.linked_by or None)


def _history(collection: StoredCollection, query: answers.HistoryQuery) -> answers.HistoryPart:
    found = collection.history(query.step, since=query.since, until=query.until)
    return answers.HistoryPart(found[-query.limit :])


def _search(collection: StoredCollection, query: answers.SearchQuery) -> SearchAnswer:
    return collection.search.find(
        query.words, site=query.site, since=query.since, until=query.until, verdict=query.verdict, limit=query.limit
    )


def _now(collection: StoredCollection, body: answers.NowBody) -> NoteAnswer:
    return collection.now(body.urls)


def _forget(collection: StoredCollection, body: answers.ForgetBody) -> NoteAnswer:
    return collection.forget(body.url, site=body.site)


def _pause(collection: StoredCollection, _: NoParameters) -> NoteAnswer:
    return collection.pause()


def _resume(collection: StoredCollection, _: NoParameters) -> NoteAnswer:
    return collection.resume()


def _block(collection: StoredCollection, body: answers.BlockBody) -> NoteAnswer:
    return collection.block(body.prefix, until=body.until)


def _unblock(collection: StoredCollection, body: answers.UnblockBody) -> NoteAnswer:
    return collection.unblock(body.prefix)


def _drain(collection: StoredCollection, body: answers.DrainBody) -> NoteAnswer:
    return collection.drain(body.ant)


def _check_policy(collection: StoredCollection, body: answers.PolicyBody) -> PolicyAnswer:
    return collection.check_policy(body.text, against=body.against)


def _reads() -> Iterable[Operation]:
    """Yield the operations that read a collection."""
    yield Operation(
        "status", "GET", f"{PREFIX}/status", "The state of the collection.", StatusAnswer,
        read=lambda collection, _: collection.status(),
    )  # fmt: skip
    yield Operation(
        "sites", "GET", f"{PREFIX}/sites", "Sites by name, pages, failures, due time or change.", answers.SitesPart,
        query=answers.SitesQuery, read=_sites,
    )  # fmt: skip
    yield Operation("site", "GET", f"{PREFIX}/site", "One site.", SiteAnswer, query=answers.SiteQuery, read=_site)
    yield Operation(
        "pages", "GET", f"{PREFIX}/pages", "Pages of a site.", answers.PagesPart, query=answers.PagesQuery, read=_pages
    )
    yield Operation("page", "GET", f"{PREFIX}/page", "One page.", PageAnswer, query=answers.PageQuery, read=_page)
    yield Operation(
        "copy", "GET", f"{PREFIX}/copy", "The newest copy of a page, or a version, as an attachment.", CopyAnswer,
        query=answers.CopyQuery, read=_copy, media="application/octet-stream",
    )  # fmt: skip
    yield Operation(
        "text", "GET", f"{PREFIX}/text", "A copy of a page as text, Markdown or HTML, with its metadata.",
        PageTextAnswer, query=answers.TextQuery, read=_text,
    )  # fmt: skip
    yield Operation(
        "versions", "GET", f"{PREFIX}/versions", "The kept versions of a page.", answers.VersionsPart,
        query=answers.VersionsQuery, read=_versions,
    )  # fmt: skip
    yield Operation(
        "compare", "GET", f"{PREFIX}/compare", "The difference between two versions of a page.", ComparisonAnswer,
        query=answers.CompareQuery, read=_compare,
    )  # fmt: skip
    yield Operation(
        "links", "GET", f"{PREFIX}/links", "The links from and to a page, where they are logged.", LinksAnswer,
        query=answers.PageQuery, read=_links,
    )  # fmt: skip
    yield Operation(
        "texts", "GET", f"{PREFIX}/texts", "Pages as texts: the whole list, then the changes.", answers.TextsPart,
        query=answers.TextsQuery, read=_texts,
    )  # fmt: skip


def _explanations() -> Iterable[Operation]:
    """Yield the operations that explain a URL, list blocks and samples, and search."""
    yield Operation(
        "explain", "GET", f"{PREFIX}/explain", "The state of a URL, or why it was refused.", ExplanationAnswer,
        query=answers.ExplainQuery, read=_explain,
    )  # fmt: skip
    yield Operation(
        "blocks", "GET", f"{PREFIX}/blocks", "The blocked sites and URL prefixes.", answers.BlocksPart,
        read=lambda collection, _: answers.BlocksPart(collection.blocks()),
    )  # fmt: skip
    yield Operation(
        "history", "GET", f"{PREFIX}/history", "The crawl per minute, hour or day.", answers.HistoryPart,
        query=answers.HistoryQuery, read=_history,
    )  # fmt: skip
    yield Operation(
        "search", "GET", f"{PREFIX}/search", "Pages whose title or text matches, the best first.",
        SearchAnswer, query=answers.SearchQuery, read=_search,
    )  # fmt: skip


def _details() -> Iterable[Operation]:
    """Yield the operations about a site, the plan, the policy file, and the last check."""
    yield Operation(
        "robots", "GET", f"{PREFIX}/robots", "The robots.txt of a site as it was read.", RobotsTextAnswer,
        query=answers.SiteQuery, read=_robots,
    )  # fmt: skip
    yield Operation(
        "sections", "GET", f"{PREFIX}/sections", "The sections of a site and how often they change.", SectionsAnswer,
        query=answers.SiteQuery, read=_sections,
    )  # fmt: skip
    yield Operation(
        "waiting", "GET", f"{PREFIX}/waiting", "The next URLs of a site that were never fetched.",
        answers.WaitingPart, query=answers.SiteQuery, read=_waiting,
    )  # fmt: skip
    yield Operation(
        "plan", "GET", f"{PREFIX}/plan", "The plan in force, with the fetches made so far.", PlanAnswer,
        read=lambda collection, _: collection.details.plan(at=collection.status().at),
    )  # fmt: skip
    yield Operation(
        "policy", "GET", f"{PREFIX}/policy", "The policy file in force.", PolicyFileAnswer,
        read=lambda collection, _: collection.details.policy(), tag="policy",
    )  # fmt: skip
    yield Operation(
        "last-check", "GET", f"{PREFIX}/check", "The result of the last `webfountain check`.",
        answers.LastCheckAnswer, read=lambda collection, _: answers.LastCheckAnswer(collection.details.last_check()),
    )  # fmt: skip


def _feeds() -> Iterable[Operation]:
    """Yield the operations that can wait for news."""
    yield Operation(
        "changes", "GET", f"{PREFIX}/changes", "The change log: by poll, long poll or server-sent events.",
        answers.ChangesPart, query=answers.ChangesQuery, handle=changes,
    )  # fmt: skip
    yield Operation(
        "live", "GET", f"{PREFIX}/live", "The current state of each crawling process.", answers.LivePart,
        query=answers.LiveQuery, handle=live,
    )  # fmt: skip


def _notes() -> Iterable[Operation]:
    """Yield the operations of operators: the notes to the crawl, and the check of a policy file."""
    yield Operation(
        "now", "POST", f"{PREFIX}/now", "Fetch URLs as soon as politeness allows.", NoteAnswer,
        body=answers.NowBody, role="operate", write=_now, tag="notes",
    )  # fmt: skip
    yield Operation(
        "forget", "POST", f"{PREFIX}/forget", "Remove a page or a site for good.", NoteAnswer,
        body=answers.ForgetBody, role="operate", write=_forget, tag="notes",
    )  # fmt: skip
    yield Operation(
        "pause", "POST", f"{PREFIX}/pause", "Stop all requests of the crawl until it is resumed.", NoteAnswer,
        body=NoParameters, role="operate", write=_pause, tag="notes",
    )  # fmt: skip
    yield Operation(
        "resume", "POST", f"{PREFIX}/resume", "Resume a paused crawl.", NoteAnswer,
        body=NoParameters, role="operate", write=_resume, tag="notes",
    )  # fmt: skip
    yield Operation(
        "block", "POST", f"{PREFIX}/block", "Block a site or a URL prefix.", NoteAnswer,
        body=answers.BlockBody, role="operate", write=_block, tag="notes",
    )  # fmt: skip
    yield Operation(
        "unblock", "POST", f"{PREFIX}/unblock", "Remove the block of a site or a URL prefix.", NoteAnswer,
        body=answers.UnblockBody, role="operate", write=_unblock, tag="notes",
    )  # fmt: skip
    yield Operation(
        "drain", "POST", f"{PREFIX}/drain", "End one crawling process and give its sites to the others.", NoteAnswer,
        body=answers.DrainBody, role="operate", write=_drain, tag="notes",
    )  # fmt: skip
    yield Operation(
        "check-policy", "POST", f"{PREFIX}/policy/check", "The meaning and the effect of a policy file.",
        PolicyAnswer, body=answers.PolicyBody, role="operate", write=_check_policy, tag="policy",
    )  # fmt: skip


OPERATIONS: Final = (*_reads(), *_explanations(), *_details(), *_feeds(), *_notes())
assert all(issubclass(each.query, msgspec.Struct) for each in OPERATIONS)
