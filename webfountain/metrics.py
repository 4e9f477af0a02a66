"""The names of all stats that a crawl counts, and the counter of a process. A name has the form ``room/event``.

A name that is not in `STATS` cannot be counted: `Metrics.inc` raises KeyError, and `tests/test_metrics.py` checks each
name in the package. A name in `STATS` that ends in ``*`` stands for a family (``fetch/status/404``). The counts of a
process begin at 0 when it starts.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HISTOGRAMS", "STATS", "Metrics", "Stat", "observed"]


HISTOGRAMS: Final[Mapping[str, tuple[float, ...]]] = {
    "fetch/duration": (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    "due/lag": (1.0, 10.0, 60.0, 600.0, 3600.0, 21_600.0, 86_400.0, 604_800.0),
    "batch/duration": (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0),
}
"""For each histogram, by name, the upper bounds of its buckets, in seconds. Each histogram has one more bucket, without
an upper bound.
"""
_BUCKETS: Final = {
    name: (*(f"{name}/{bound:g}" for bound in bounds), f"{name}/inf") for name, bounds in HISTOGRAMS.items()
}


class Stat(NamedTuple):
    """Meaning and unit of a stat."""

    unit: str
    sentence: str


STATS: Final[Mapping[str, Stat]] = {
    # seeds and links, in the order of their walk
    "seeds/read": Stat("URLs", "Seeds read from the policy file and the seeds file."),
    "seeds/new": Stat("URLs", "Seeds that the store did not know."),
    "seeds/moved": Stat(
        "sites", "Forms of seed sites (https, www.) added to the scope, because a seed redirects there."
    ),
    "links/seen": Stat("URLs", "Distinct links found on fetched pages."),
    "links/too_many": Stat("pages", "Pages with too many links: the links after the maximum were dropped."),
    "links/chain_ended": Stat("pages", "Redirects not followed, because 20 redirects led to them."),
    "judge/out_of_scope": Stat("URLs", "Refused: the site is out of the collection's scope."),
    "judge/denied": Stat("URLs", "Refused by a deny pattern."),
    "judge/not_allowed": Stat("URLs", "Refused: no allow pattern matches."),
    "judge/too_deep": Stat("URLs", "Refused: more hops from a seed than the collection's depth."),
    "judge/too_long": Stat("URLs", "Refused: more characters than discovery.max_url_length."),
    "judge/trap_repeated": Stat("URLs", "Refused: a path segment or parameter repeats too often."),
    "judge/trap_calendar": Stat("URLs", "Refused: a calendar page too far in the past or future."),
    "judge/not_followed": Stat("URLs", "Refused: the linking page's policy says follow = false."),
    "duplicates/new": Stat("URLs", "Passed the duplicate URL eliminator: new to the store."),
    "duplicates/by_cache": Stat("URLs", "Eliminated by the cache of recent fingerprints."),
    "duplicates/by_store": Stat("URLs", "Eliminated by the store."),
    # the ant
    "ant/sites_activated": Stat("sites", "Sites that joined the active list."),
    "ant/sites_parked": Stat("sites", "Sites that left the active list."),
    "ant/sites_handed_over": Stat("sites", "Sites given to the ant that has their address."),
    "ant/lapsed": Stat("pages", "Fetches given back, because the ant's heartbeat was late."),
    "ant/loans_given": Stat("loans", "Slots of a large site lent to another ant."),
    "ant/loans_taken": Stat("loans", "Slots borrowed from another ant's site."),
    "ant/sites_lost": Stat("sites", "Sites that another process took over; their open fetches are dropped."),
    "ant/unreachable": Stat("sites", "Host names without an address; the site waits longer after each failure."),
    "ant/leased": Stat("URLs", "URLs leased."),
    "ant/released": Stat("URLs", "Leases given back unused."),
    "ant/slow_pages": Stat("pages", "Pages that took too long to read; their site waits longer after each."),
    "ant/settled": Stat("URLs", "Leases settled with an outcome."),
    "ant/settle_lost": Stat("URLs", "Settlements without effect: the lease was lost."),
    "ant/broken": Stat(
        "items", "Pages, links, sitemaps or answers that could not be processed; each has a line in the log."
    ),
    "ant/immediate": Stat("URLs", "URLs put on the immediate queue."),
    "sequencer/never_crawled": Stat("URLs", "Fetches taken from never-crawled queues."),
    "sequencer/recrawl": Stat("URLs", "Fetches taken from recrawl queues."),
    "politeness/retry_after": Stat("answers", "429 and 503 answers with a Retry-After."),
    "politeness/backed_off": Stat("times", "Delays of a site by exponential back-off."),
    # robots.txt and sitemaps
    "policy/reassigned": Stat("pages", "Known pages that moved to another policy, because a better link was found."),
    "policy/made_due": Stat(
        "pages", "Held pages that an edited policy file refuses; they become due and are then removed."
    ),
    "robots/fetched": Stat("fetches", "robots.txt fetches, redirects among them."),
    "robots/rules": Stat("sites", "robots.txt files read as rules."),
    "robots/allow": Stat("sites", "No robots.txt (4xx): everything is allowed."),
    "robots/refuse": Stat("sites", "robots.txt unreachable, 429 or 5xx: everything is refused until it answers."),
    "robots/refused_urls": Stat("URLs", "Leased URLs that robots.txt refuses."),
    "sitemap/fetched": Stat("fetches", "Sitemap fetches."),
    "sitemap/out_of_scope": Stat("sitemaps", "Sitemaps named by a robots.txt or an index, but outside the collection."),
    "sitemap/too_many": Stat("sitemaps", "Sitemaps dropped, because a site names more than 100."),
    "sitemap/urls": Stat("URLs", "Distinct URLs found in sitemaps and feeds."),
    "sitemap/foreign": Stat("URLs", "URLs dropped, because the sitemap of another site names them."),
    "sitemap/made_due": Stat(
        "URLs",
        "Known pages whose lastmod is newer than our copy; they become due, or more urgent if dates are reliable.",
    ),
    "sitemap/failed": Stat("sitemaps", "Sitemaps that did not answer with 200."),
    "sitemap/error/*": Stat("sitemaps", "Sitemaps that are broken or hostile, by what is wrong."),
    # fetches
    "fetch/started": Stat("fetches", "Requests given to the downloader, of all kinds."),
    "fetch/bytes": Stat("bytes", "Bodies received, after content decoding."),
    "fetch/seconds": Stat("s", "Sum of the time from request to last byte."),
    "fetch/duration/*": Stat("fetches", "Page fetches that took at most this many seconds from request to last byte."),
    "fetch/duration_sum": Stat("s", "Sum of these times."),
    "due/lag/*": Stat("fetches", "Fetches of known pages that began at most this many seconds after the due time."),
    "due/lag_sum": Stat("s", "Sum of these times."),
    "batch/duration/*": Stat("batches", "Batches that took the store worker at most this many seconds."),
    "batch/duration_sum": Stat("s", "Sum of these times."),
    "fetch/status/*": Stat("answers", "Page fetches by HTTP status."),
    "fetch/error/*": Stat("fetches", "Page fetches without an answer, or with an unreadable one, by kind of error."),
    "pages/hint/*": Stat("pages", "Fetched pages without the visible content, by reason: javascript, login, consent."),
    "outcome/new": Stat("pages", "First copies."),
    "outcome/changed": Stat("pages", "Changes that count."),
    "outcome/minor": Stat("pages", "The bytes differ, but the text changed by less than change.min_change."),
    "outcome/same": Stat("pages", "200 with the digest of the copy."),
    "outcome/not_modified": Stat("pages", "304: the copy is fresh."),
    "outcome/redirected": Stat("pages", "Redirects; the target counts as a link."),
    "outcome/gone": Stat("pages", "404 and 410."),
    "outcome/failed": Stat("pages", "Fetches without a usable answer."),
    "outcome/refused_by_robots": Stat("pages", "Not fetched: robots.txt refuses."),
    "outcome/refused": Stat("pages", "Not fetched: the current policy file refuses the URL."),
    "outcome/put_off": Stat("pages", "Not fetched yet: a gone page whose request is not worth the current price."),
    "change/compared": Stat(
        "pages", "Bodies that differ from the copy; their texts are compared unless min_change is 0."
    ),
    "suspects/found": Stat(
        "pages", "Pages that were being read when the last process died; their sites fetch them last."
    ),
    # duplicate detector
    "duplicates/exact": Stat("pages", "Pages with the same bytes as another page."),
    "duplicates/near": Stat("pages", "Pages with nearly the same text as another page."),
    "duplicates/compared": Stat("pairs", "Pairs of texts compared, because their sketches were not decisive."),
    "duplicates/canonical": Stat("pages", "Duplicates that name their original by rel=canonical."),
    "duplicates/canonical_refused": Stat("pages", "Pages that name a page with a different text as canonical."),
    "duplicates/taken_in": Stat("pages", "Pages missing in the index, read again from their copies."),
    "duplicates/mirrored": Stat("pages", "URLs of a mirror, not fetched because the original has them."),
    "duplicates/outranked": Stat(
        "pages", "Held pages found to repeat a page that has precedence; they are fetched again."
    ),
    "duplicates/unmirrored": Stat("sites", "Mirrors that samples of their pages disproved."),
    "duplicates/reopened": Stat("pages", "URLs refused for a disproved mirror, due now."),
    # shares of domains
    "shares/busy": Stat("domains", "Domains that are fetched now or within seconds, at the last check."),
    "shares/blocked": Stat("domains", "Domains that have used their share or must wait, at the last check."),
    "shares/reassigned": Stat(
        "times", "Doublings of the share for the rest of a period, because few domains could still be fetched."
    ),
    # fixed-size collections
    "collection/evicted": Stat(
        "pages", "Evicted pages: a more important page takes their place in a collection of fixed size."
    ),
    # repository
    "repository/healed": Stat("copies", "Lost copies that were written again."),
    "repository/deleted": Stat("files", "WARC files deleted: superseded, or over repository.max_bytes."),
    # controller
    "controller/plan_adopted": Stat("plans", "Plans put in force."),
    "controller/plan_kept": Stat("plans", "Planning failed, the last plan stays."),
    "controller/made_due": Stat("pages", "Pages made due as the most urgent ones."),
    "controller/corrected": Stat(
        "times", "Corrections of weights within a cycle, because reality differs from the plan."
    ),
    # importance of pages
    "ranking/epochs": Stat("rankings", "Rankings adopted."),
    "ranking/moved": Stat("URLs", "Waiting URLs that a new ranking moved to another lane."),
    "ranking/risen": Stat("URLs", "Waiting URLs that changed lanes between two rankings, because of new links."),
    # Scrapy side
    "scheduler/woken": Stat("times", "The engine was woken because a site came due."),
    "addon/in_memory": Stat("requests", "Requests that are not plain data and stay in memory."),
    "addon/items_unchanged": Stat("items", "Items dropped, because their page yielded equal items before."),
    "addon/made_again": Stat("requests", "Known requests made again, because of their meta or because they failed."),
    "addon/lost_in_memory": Stat(
        "requests", "Requests that an earlier run had in memory; the page that yielded them is fetched again."
    ),
    "addon/asked_for_items": Stat(
        "pages", "Pages fetched again, because an item's target was unreachable for too long."
    ),
    "addon/withheld": Stat(
        "requests", "Requests that stay in the queue, because the project lacks their callback or class."
    ),
}


def observed(name: str, value: float) -> dict[str, float]:
    """Return what one value adds to a histogram: 1 to the count of its bucket, and the value to the sum."""
    return {_BUCKETS[name][bisect_left(HISTOGRAMS[name], value)]: 1, f"{name}_sum": value}


class _Counts(dict[str, float]):
    """Dictionary of counts by name, which raises KeyError for a name that is not in `STATS`."""

    def __missing__(self, name: str) -> float:
        if name not in STATS and f"{name.rpartition('/')[0]}/*" not in STATS:
            raise KeyError(f"{name!r} is not listed in webfountain/metrics.py")
        return 0


class Metrics:
    """The counter of one process."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts = _Counts()

    def inc(self, name: str, amount: float = 1) -> None:
        """Add `amount` to the count of `name`. Raise KeyError if the name is not in `STATS`."""
        self._counts[name] += amount

    def add(self, counts: Mapping[str, float]) -> None:
        """Add the given amounts to the counts of several names. Raise KeyError if a name is not in `STATS`."""
        for name, amount in counts.items():
            self._counts[name] += amount

    def get(self, name: str) -> float:
        """Return the current count of a name, or 0 if nothing has been counted. Raise KeyError if the name is not in
        `STATS`.
        """
        return self._counts[name]

    def family(self, name: str) -> dict[str, float]:
        """Return the counts of a family, keyed by the last part of each name, for example ``{"404": 2}`` for
        ``family("fetch/status")``.
        """
        return {key.rpartition("/")[2]: many for key, many in self._counts.items() if key.rpartition("/")[0] == name}

    def snapshot(self) -> dict[str, float]:
        """Return a copy of all counts, sorted by name."""
        return dict(sorted(self._counts.items()))
