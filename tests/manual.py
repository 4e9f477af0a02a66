"""The tables of README.md that follow from the code: ``python -m tests.manual`` writes them into it anew.

Each stands between ``<!-- NAME -->`` and ``<!-- /NAME -->``; `tests/test_readme.py` compares.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.config import settings
from webfountain.policy.files import describe, parse_collection

if TYPE_CHECKING:
    from collections.abc import Iterator

README = Path(__file__).resolve().parents[1] / "README.md"

MEANING = {
    "collection.name": "What the store is bound to.",
    "collection.seeds": "URLs to begin with; a table `{ url = …, policy = … }` will do too.",
    "collection.seeds_file": "A file of seeds, one a line, `#` for comments; beside the policy file.",
    "collection.scope": "Which discovered URLs are kept: on a seed's `site`, on its registered `domain`, or `any`.",
    "collection.policy": "Policy of seeds that name none.",
    "collection.limits.depth": "Hops from a seed at most; 0 keeps the seeds alone.",
    "collection.limits.pages": "A collection of a fixed size: less important pages are replaced; without it it grows.",
    "collection.limits.domain_share": "The part of a period's fetches that one registered domain may have at most.",
    "politeness.user_agent": "Who asks: with a contact, for public addresses; its first token is the robots.txt name.",
    "politeness.min_delay": "Least time between two requests to a site.",
    "politeness.delay_factor": "… and at least so many times as long as the last request took.",
    "politeness.max_delay": "The longest Crawl-delay that is honoured.",
    "politeness.concurrency": "Requests at once per site (and IP).",
    "politeness.per_ip": "Sites behind one address are asked as one; of a host with several, the first that "
    "answers counts.",
    "politeness.timeout": "A fetch takes no longer, from the first attempt to connect to the last byte.",
    "politeness.max_bytes": "A body is cut (and the fetch failed) above this, also while it is unpacked.",
    "politeness.min_bytes_per_second": "Slower servers are cut sooner: within ten seconds of a body that brings less.",
    "politeness.accept": "Media types that are fetched; others are cut after the headers.",
    "network.allow_private": "Whether loopback and private addresses may be asked.",
    "change.min_change": "A change counts when the resemblance of the texts is below 1 - this; 0 counts every byte.",
    "changes.diff": "Keep a unified diff of the texts with each change, at most 20 kB.",
    "changes.keep": "How long the entries of the change log are kept …",
    "changes.max_entries": "… and how many of them at most.",
    "repository.keep": "`newest` deletes WARC files whose copies are all superseded; `all` keeps every version.",
    "repository.max_bytes": "Bound of the folder, kept while it is written; the crawl ends when only newest copies are "
    "left above it. Without it `newest` keeps to about three times what is live.",
    "repository.answers": "Whether redirects, 404s and other answers that are no copy, robots.txt and sitemaps are "
    'recorded, too; on with `keep = "all"`.',
    "cycle.periods": "Time periods that are planned together.",
    "cycle.period": "Length of a time period.",
    "cycle.fastest": "Mean change interval of bucket 0, the fastest.",
    "cycle.capacity_pages_per_period": "Fetches per period at most; without it as fast as politeness allows.",
    "cycle.strategy": "What a plan aims at: strategy 1, 2 or 3 of Edwards 2001, or `fountain` with its own signals.",
    "duplicates.detect": "Whether pages that repeat others, on any site, are detected: they point to what they repeat, "
    "are asked rarely, and their links are not followed again.",
    "duplicates.resemblance": "From which resemblance of the texts on a page repeats another.",
    "duplicates.revisit": "How long until a duplicate is fetched again; 30 periods unless set.",
    "signals.siblings": "Under `fountain`: a page found changed makes those of its directory and site more urgent.",
    "signals.sections": "Each directory has a change rate of its own, drawn to that of the one above.",
    "signals.history": "Each page has a change rate of its own, drawn to that of its directory.",
    "signals.forgetting": "Old evidence fades.",
    "signals.weekdays": "A site has busy and quiet days of the week.",
    "signals.importance": "A page's freshness counts as much as the page: by its importance, else by its depth.",
    "signals.lastmod": "Under every strategy: a page is due when a sitemap or feed dates it later than our copy.",
    "ranking.every": "How often the crawl's links are ranked anew, in a process beside it; sooner while the collection "
    "doubles, as far as rankings take at most a twentieth of the CPU time. Without it no link is logged and nothing "
    "ranked.",
    "ranking.links": "Folder or fsspec URL of the link log (Parquet); `links` beside the store unless set.",
    "discovery.nofollow": "Honour rel=nofollow, robots meta and X-Robots-Tag.",
    "discovery.sitemaps": "Read the sitemaps that robots.txt names; one on another host waits its turn there.",
    "discovery.max_url_length": "Longer URLs are refused, characters.",
    "discovery.max_repeated_segments": "A path that repeats a segment more often is a trap.",
    "discovery.calendar_years": "How far ahead of today the pages of a calendar are followed.",
    "policies.default.trust": "Of its seeds, 0 to 1, and the most for what comes under it from another policy.",
    "policies.default.dampening": "Trust of a linked page over that of the linking one.",
    "policies.default.splitting": "A page's trust is divided among its links.",
    "policies.default.spread": "How far links inherit the policy: on its `site`, its registered `domain`, or `any`.",
    "policies.default.otherwise": "Policy of links beyond that.",
    "policies.default.follow": "Whether its links are taken in.",
    "policies.default.allow": "Regular expressions; a URL must match one, if there are any.",
    "policies.default.deny": "Regular expressions; a URL that matches one is refused, also when it is queued already.",
    "policies.default.score": "Weights of what a page's importance is made of: `{ pagerank, trust, backlinks, topic, "
    "location }`; without it trust, where policies tell pages apart by it.",
    "policies.default.topic": "`{ query, min_similarity }`: what it is about; a page so similar (`0.1` unless set) is "
    "on topic. New pages that a link's text or their URL says are, and those within three links of one, go before all "
    "others; the link log has the texts of links.",
    "policies.default.revisit.min_interval": "A page is not fetched again sooner, unless `now` or a sitemap asks.",
    "policies.default.revisit.max_interval": "A page with a copy is fetched again at the latest then.",
    "switch": "`[[switch]]`: a page that shows all of `when` gets `to`, and what it links from then on; with "
    '`also = "discovered"` what was discovered through it before, too. `when`: `text` found `count` times, `status`, '
    "`language` or `language_not` (lists), `similarity` to the topic at least or `similarity_below`, `duplicates` "
    "(share of its site's pages), or alone `discovered`: of what was discovered through it and fetched, the share "
    "that was switched to the same policy, and `count` of it.",
    "conflict.rule": "Which policy a page has that is found under several: of the `first`, the `most-trusted` or the "
    "`least-trusted` link.",
}
"""Each key of a policy file in a sentence."""

_MINIMAL = '[collection]\nname = "x"\nseeds = ["http://127.0.0.1/"]\n[network]\nallow_private = true\n'


def settings_table() -> str:
    """Every WEBFOUNTAIN_* setting."""
    rows = ["| setting | default | unit | meaning |", "|---|---|---|---|"]
    for setting in settings():
        default = "" if setting.default is None or setting.default is msgspec.NODEFAULT else f"`{setting.default}`"
        rows.append(f"| `{setting.name}` | {default} | {setting.unit} | {setting.sentence} |")
    return "\n".join(rows)


def policy_table() -> str:
    """Every key of a policy file with its default."""
    defaults = describe(parse_collection(_MINIMAL, Path("x.toml")))
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for key, value in _flat(defaults):
        if key in _DERIVED:
            continue
        shown = {"collection.name": "", "collection.seeds": "", "network.allow_private": "`false`"}.get(key)
        rows.append(f"| `{key}` | {_shown(value) if shown is None else shown} | {MEANING[key]} |")
    return "\n".join(rows)


_DERIVED = {"politeness.robots_token"}
"""What `policy check --json` tells beside the keys."""


def _flat(tables: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _shown(value: object) -> str:
    if value is None or value == []:
        return ""
    if isinstance(value, list):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


TABLES = {"settings": settings_table, "policy keys": policy_table}


def with_tables(text: str) -> str:
    """README's text with every table made anew."""
    for name, make in TABLES.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        assert pattern.search(text), f"README.md has no place for the table {name!r}"
        text = pattern.sub(lambda found, make=make: found[1] + make() + "\n" + found[2], text)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
