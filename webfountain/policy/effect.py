"""Count what a policy file would do to an existing frontier: which pages it would move, drop or accept again.

Place in the walk: before the crawl, and before an edited file takes effect (`webfountain policy check FILE --against
STORE`). Policy and trust are computed as in the review after an edit (`policy.lineage`). Refused URLs are judged as
the crawl will judge them. So the figures are those that the edit would have. The store is only read, even while a
crawl writes it. URLs are judged in batches of up to a thousand with the same policy and depth.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.policy.judge import Origin, judge_again
from webfountain.policy.url_rules import REASONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.policy.judge import Judge
    from webfountain.policy.lineage import Lineage
    from webfountain.records import PageRecord

__all__ = ["PolicyEffect", "newly_followed", "policy_effect"]

_BATCH: Final = 1000
_SAMPLE: Final = 10
"""Number of examples per kind."""


class PolicyEffect(msgspec.Struct, frozen=True):
    """Numbers and examples: `known` URLs, those that would be dropped, by reason, and refused ones that would be
    accepted again.

    `moved` counts the pages that would get another policy, as ``before -> after``. `retrusted` counts the pages that
    would keep their policy but get another trust.
    """

    known: int
    dropped: dict[str, int]
    taken: int
    sample_dropped: tuple[str, ...]
    sample_taken: tuple[str, ...]
    moved: dict[str, int] = {}
    retrusted: int = 0
    sample_moved: tuple[str, ...] = ()


def policy_effect(judge: Judge, records: Iterable[PageRecord], lineage: Lineage | None = None) -> PolicyEffect:
    """Return the effect on every page record. Without a lineage, each record is judged under its present policy.

    URLs that the policy never accepted are not in a store. `newly_followed` judges those in the link log; they are
    accepted when the pages that link to them are fetched again. Requests of other projects are not judged.
    """
    known = taken = retrusted = 0
    dropped: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    samples: tuple[list[str], list[str], list[str]] = ([], [], [])
    remaining = iter(records)
    while batch := list(itertools.islice(remaining, _BATCH)):
        known += len(batch)
        for place, record in enumerate(batch):
            new = None if lineage is None else lineage.revised(record, at=0.0)
            if new is None:
                continue
            batch[place] = new
            if new.policy != record.policy:
                moved[f"{record.policy} -> {new.policy}"] += 1
                _keep(samples[2], record.url)
            else:
                retrusted += new.trust != record.trust
        for page, verdict in judge_again(judge, batch):
            was_refused = page.state == "refused" and page.error in REASONS
            if verdict.reason is not None and not was_refused:
                dropped[verdict.reason] += 1
                _keep(samples[0], page.url)
            elif verdict.reason is None and was_refused:
                taken += 1
                _keep(samples[1], page.url)
    return PolicyEffect(
        known,
        dict(dropped.most_common()),
        taken,
        sample_dropped=tuple(samples[0]),
        sample_taken=tuple(samples[1]),
        moved=dict(moved.most_common()),
        retrusted=retrusted,
        sample_moved=tuple(samples[2]),
    )


def newly_followed(
    judge: Judge, pages: Iterable[tuple[PageRecord, Sequence[str]]], lineage: Lineage | None = None
) -> set[str]:
    """Return links that were refused when their pages were fetched, and that the judge would accept now."""
    found: set[str] = set()
    for record, urls in pages:
        page = (None if lineage is None else lineage.revised(record, at=0.0)) or record
        verdicts = judge.judge(urls, Origin("link", page.depth + 1, page.policy, page.trust, page.url))
        found.update(url for url, verdict in zip(urls, verdicts, strict=True) if verdict.reason is None)
    return found


def _keep(sample: list[str], url: str) -> None:
    if len(sample) < _SAMPLE:
        sample.append(url)
