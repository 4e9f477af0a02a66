"""Explain a URL that the store does not have.

A part of `webfountain explain`. It judges the URL as a seed, as a link of the pages that link to it, and under each
policy in use.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, Literal

from webfountain.policy.judge import Origin
from webfountain.policy.rules import spell_rule
from webfountain.public_addresses import is_private_host
from webfountain.ranking.scores import NOFOLLOW, REDIRECT
from webfountain.report.explanation import Explanation, UrlVerdict
from webfountain.report.page_path import seed_place
from webfountain.report.plurals import counted
from webfountain.report.verdict_words import robots_words, verdict_words
from webfountain.urls import fingerprint, host_of, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webfountain.records import PageRecord
    from webfountain.report.url_facts import UrlFacts

__all__ = ["UnknownUrl"]

_SHOWN: Final = 3
"""Number of linking pages that are shown."""


class UnknownUrl:
    """A URL that the store does not have. `linking` is the known page for which the link is to be judged."""

    def __init__(self, facts: UrlFacts, linking: PageRecord | None) -> None:
        self._facts, self._linking = facts, linking

    def explain(self, given: str, links: str | None) -> Explanation:
        """Return the explanation; `links` is the link log, in which pages may link to the URL."""
        facts = self._facts
        verdicts, named = self._verdicts(), seed_place(facts.collection, facts.url)
        robots = facts.robots()
        alike = tuple(self._alike())
        why = [*facts.form_words(given)]
        if (rule := facts.collection.rules.find(facts.url)) is not None:
            spelled = spell_rule(facts.collection.tables.rule[rule.place])
            why.append(f"rule[{rule.place}] applies to it, whatever page links to it ({spelled}).")
        if named is not None:
            seed = facts.verdict(Origin("seed", 0, named[1]))
            end = "that no crawl has loaded yet, or it was forgotten" if seed.reason is None else "that is refused"
            why.append(f"It is a seed ({named[0]}) {end}{'' if seed.reason is None else ': ' + verdict_words(seed)}.")
        elif self._linking is not None:
            why.append(self._link_words(self._linking, verdicts[0]))
        elif linked := {} if links is None else _sources_of(links, facts.url):
            why += itertools.islice(self._linked_words(linked), _SHOWN)
            if len(linked) > _SHOWN:
                more = len(linked) - _SHOWN
                why.append(f"{counted(more, 'more page')} {'links' if more == 1 else 'link'} to it.")
        elif all(verdict.reason is not None for verdict in verdicts):
            why.append(f"It is not known here: {verdict_words(verdicts[0])}.")
        else:
            open_to = ", ".join(repr(each.policy) for each in verdicts if each.reason is None)
            why.append(f"No rule refuses it (under {open_to}): no fetched page links to it, or it was forgotten.")
            if facts.home is None:
                why.append(f"No page of its site {facts.site} is known.")
        if not facts.collection.network.allow_private and is_private_host(host_of(facts.site)):
            why.append("It would not be fetched: its address is private (network.allow_private = False).")
        if robots.allowed is False:
            why.append(f"It would not be fetched: {robots_words(robots)}.")
        why += [f"{url} is known, but is a different page." for url in alike]
        return Explanation(given, facts.url, known=False, why=tuple(why), verdicts=verdicts, robots=robots, alike=alike)

    def _verdicts(self) -> tuple[UrlVerdict, ...]:
        """Yield the verdict on a link to it under each policy in use, the default policy first."""
        facts = self._facts
        if self._linking is not None:
            page = self._linking
            return (facts.verdict(Origin("link", page.depth + 1, page.policy, page.trust, page.url)),)
        standard = facts.collection.tables.collection.policy
        names = dict.fromkeys([standard, *(policy for _, policy in facts.collection.named_seeds()), *self._reached()])
        if seed_place(facts.collection, facts.url) is not None:
            return tuple(facts.verdict(Origin("seed", 0, name)) for name in names)
        return tuple(facts.verdict(Origin("link", 1, name)) for name in names)

    def _linked_words(self, linked: Mapping[str, int]) -> Iterator[str]:
        """Yield sentences about links to it that the crawl has found."""
        for url, flag in sorted(linked.items()):
            page = self._facts.store.pages.get(site_of(url), fingerprint(url))
            if flag & NOFOLLOW:
                yield f"{url} links to it with nofollow."
            elif page is None:
                yield f"{url} links to it, but is not known any more."
            elif page.duplicate_of is not None:
                yield f"{url} links to it, but repeats {page.duplicate_of}, so its links are not followed."
            else:
                is_redirect = bool(flag & REDIRECT)
                depth = page.depth + (not is_redirect)
                kind: Literal["link", "redirect"] = "redirect" if is_redirect else "link"
                verdict = self._facts.verdict(Origin(kind, depth, page.policy, page.trust, page.url))
                end = "it was forgotten, or it will be added when that page changes" if verdict.reason is None else ""
                yield f"{url} links to it, under {verdict.policy!r}: {end or 'refused, ' + verdict_words(verdict)}."

    def _link_words(self, page: PageRecord, verdict: UrlVerdict) -> str:
        """Yield sentences about the link from the known page that the user named."""
        hops = counted(page.depth + 1, "hop")
        under = f"As a link of {page.url}, under {verdict.policy!r} and {hops} from the seed, it"
        if verdict.reason is not None:
            return f"{under} is refused: {verdict_words(verdict)}."
        if page.last_crawled is None:
            return f"{under} would be added, but that page was not fetched yet."
        return f"{under} would be added. So that page did not link to it at its last fetch, or it was forgotten."

    def _reached(self) -> Iterator[str]:
        tables = self._facts.collection.tables
        yield from (table.otherwise for table in tables.policies.values())
        yield from (rule.policy for rule in tables.rule if rule.policy is not None)
        yield from (rule.to for rule in tables.switch)

    def _alike(self) -> Iterator[str]:
        """Return known URLs that many sites treat as the same: with or without the last slash or www., or with the
        other scheme.
        """
        scheme, rest = self._facts.url.split("://", 1)
        host, path = rest.split("/", 1)
        paths = [path[:-1] if path.endswith("/") else path + "/"] if path and "?" not in path else []
        hosts = [host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"]
        other = "http" if scheme == "https" else "https"
        for url in (
            *(f"{scheme}://{host}/{each}" for each in paths),
            *(f"{scheme}://{each}/{path}" for each in hosts),
            f"{other}://{host}/{path}",
        ):
            if self._facts.store.pages.get(site_of(url), fingerprint(url)) is not None:
                yield url


def _sources_of(links: str, url: str) -> dict[str, int]:
    from webfountain.ranking.link_log import LinkLogReader, fingerprint  # noqa: PLC0415  (pyarrow, 0.3 s)

    return LinkLogReader(links).sources_of(fingerprint(url))
