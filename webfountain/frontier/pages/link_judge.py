"""Judge the links of a page: which ones its policy admits, and how important they promise to be.

Place in the walk: judging the links is the last step of the `examiner` for a body. The worker discovers the admitted
links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from webfountain import urls
from webfountain.core.topics import NEAR, links_from_hot
from webfountain.formats.links import MAX_LINKS
from webfountain.frontier.visit import PageContent
from webfountain.policy.judge import Origin
from webfountain.policy.provenance import arrived
from webfountain.records import Link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.core.topics import Topics
    from webfountain.formats.document import Document
    from webfountain.policy.judge import Judge
    from webfountain.policy.url_rules import Verdict
    from webfountain.records import Fetch, FetchResult, PageRecord

__all__ = ["LinkJudge"]


class LinkJudge:
    """Judges the links of pages. If `logs` is True, refused links are returned too, for the link log."""

    def __init__(self, judge: Judge, topics: Topics, *, logs: bool) -> None:
        self._judge = judge
        self._topics = topics
        self._logs = logs

    def reading(self, fetched: FetchResult, document: Document, record: PageRecord) -> PageContent:
        """Return the content of a page with its judged links."""
        links, refused, unfollowed = self.judged(document.links, fetched.fetch, "link", record)
        if document.anchors:
            links = self._promising(links, dict(zip(document.links, document.anchors, strict=True)), record)
        if len(document.links) >= MAX_LINKS:
            refused["links/too_many"] = 1
        seen, nofollow = len(document.links), tuple(map(_logged, document.nofollow))
        return PageContent(
            document.title, document.text, links, seen, refused, document.canonical, nofollow, unfollowed
        )

    def judged(
        self, found: Sequence[str], fetch: Fetch, kind: Literal["link", "redirect"], record: PageRecord
    ) -> tuple[tuple[Link, ...], dict[str, int], tuple[Link, ...]]:
        """Return the links that the page's policy admits, the number of refused links by reason, and the refused links
        for the link log.
        """
        depth, hops = record.depth + (kind == "link"), record.hops + 1 if kind == "redirect" else 0
        refused: dict[str, int] = {}
        links, unfollowed = [], []
        fingerprint = urls.fingerprint
        source, home = fetch.url, fetch.site
        near = home + "/"
        sites: dict[str, str] = {}  # one string for all links of a site: later steps hash it only once
        verdicts = self._judge.judge(found, Origin(kind, depth, record.policy, record.trust, source))
        kept = 0 if kind == "redirect" else _accepted(verdicts)
        last = None
        for url, judged in zip(found, verdicts, strict=True):
            if judged is not last:  # nearly all links of a page get the same verdict
                last, (policy, trust, reason, rule), worth = judged, judged, self._judge.importance(judged)
                provenance = arrived(kind, rule=rule, links=kept)
            if reason is None:
                if url.startswith(near):
                    site = home
                else:
                    site = urls.site_of(url)
                    site = sites.setdefault(site, site)
                key = fingerprint(url)
                links.append(Link(url, site, key, depth, policy, worth, source, None, trust, (), "", provenance, hops))
            else:
                refused[f"judge/{reason}"] = refused.get(f"judge/{reason}", 0) + 1
                if self._logs:
                    unfollowed.append(_logged(url))
        return tuple(links), refused, tuple(unfollowed)

    def _promising(self, links: Sequence[Link], anchors: Mapping[str, str], record: PageRecord) -> tuple[Link, ...]:
        """Return the links with their link texts. Under a policy with a topic they also get a score from their words.

        Each link is one hop farther from a page on topic than this page is.
        """
        far = links_from_hot(record.scores) + 1
        found = []
        for link in links:
            topic, anchor = self._judge.policy(link.policy).topic, anchors.get(link.url, "")
            promised = 0.0 if topic is None else self._topics.promise(topic.query, link.url, anchor)
            says = topic is not None and (promised > 0.0 or far <= NEAR)
            scores = (promised, far) if says else ()
            found.append(msgspec.structs.replace(link, scores=scores, anchor=anchor) if scores or anchor else link)
        return tuple(found)


def _accepted(verdicts: Sequence[Verdict]) -> int:
    """Return how many links are accepted. On nearly all pages all links have the same verdict, so no loop is needed to
    count them.
    """
    if verdicts and verdicts.count(verdicts[0]) == len(verdicts):
        return len(verdicts) if verdicts[0].reason is None else 0
    return sum(verdict.reason is None for verdict in verdicts)


def _logged(url: str) -> Link:
    """Return a link that is logged but not followed."""
    return Link(url, urls.site_of(url), urls.fingerprint(url))
