"""What a policy file would do to a frontier that exists: which known URLs it would drop, which refused ones it takes.

Asked before an edited file is used (`webfountain policy check FILE --against STORE`). Reads the store, also beside the
crawl that writes it; one judge's batch for each thousand URLs of one policy and depth.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.policy.judge import REASONS, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.policy.judge import Judge
    from webfountain.records import PageRecord

__all__ = ["PolicyEffect", "policy_effect"]

_BATCH: Final = 1000
_SAMPLE: Final = 10
"""URLs shown of each kind."""


class PolicyEffect(msgspec.Struct, frozen=True):
    """Of `known` URLs: how many would be dropped by reason, how many refused ones taken in again, and some of each."""

    known: int
    dropped: dict[str, int]
    taken: int
    sample_dropped: tuple[str, ...]
    sample_taken: tuple[str, ...]


def policy_effect(judge: Judge, records: Iterable[PageRecord]) -> PolicyEffect:
    """What the judge says of every record.

    URLs that the policy never let in are not in a store; new ones show themselves only as their pages are fetched
    again. Requests of other projects are not judged.
    """
    known = taken = 0
    dropped: Counter[str] = Counter()
    samples: tuple[list[str], list[str]] = ([], [])
    remaining = iter(records)
    while batch := list(itertools.islice(remaining, _BATCH)):
        known += len(batch)
        own = sorted((each for each in batch if each.request is None), key=lambda each: (each.policy, each.depth))
        for (policy, depth), group in itertools.groupby(own, key=lambda each: (each.policy, each.depth)):
            pages = list(group)
            verdicts = judge.judge([page.url for page in pages], Origin("queued", depth, policy))
            for page, verdict in zip(pages, verdicts, strict=True):
                was_refused = page.state == "refused" and page.error in REASONS
                if verdict.reason is not None and not was_refused:
                    dropped[verdict.reason] += 1
                    _keep(samples[0], page.url)
                elif verdict.reason is None and was_refused:
                    taken += 1
                    _keep(samples[1], page.url)
    return PolicyEffect(known, dict(dropped.most_common()), taken, tuple(samples[0]), tuple(samples[1]))


def _keep(sample: list[str], url: str) -> None:
    if len(sample) < _SAMPLE:
        sample.append(url)
