"""Switch a page to another policy, because of its facts or a request from outside.

Place in the walk: after each fetch (`examiner`), and when pages discovered through it are counted (`policy_review`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.policy.judge import Origin
from webfountain.policy.provenance import Provenance, arrived, rule_number

if TYPE_CHECKING:
    from webfountain.policy.judge import Judge
    from webfountain.policy.switches import PageFacts
    from webfountain.records import PageRecord

__all__ = ["switched"]

_BY_HAND: Final = arrived("now")


def switched(judge: Judge, record: PageRecord, seen: PageFacts, *, at: float) -> PageRecord:
    """Return the record under the policy that the page's facts require. Its links inherit that policy from then on."""
    if record.provenance == _BY_HAND:  # It was not judged when it was requested.
        record = _ruled(judge, record)
    switch = judge.switched(record.policy, seen)
    if switch is None:
        return record
    trust = judge.trust_switched(record.policy, record.trust, to=switch.to)
    reported = Provenance.decode(record.provenance).because("switch", at=at, rule=rule_number(switch))
    worth = judge.importance_of(record, trust)
    return msgspec.structs.replace(
        record, policy=switch.to, trust=trust, importance=worth, provenance=reported.encode()
    )


def _ruled(judge: Judge, record: PageRecord) -> PageRecord:
    """Return the record of a page that `now` requested, under the ``[[rule]]`` that matches it."""
    verdict = judge.inherited(record.url, Origin("seed", record.depth, record.policy, record.trust))
    if not verdict.rule:
        return record
    return msgspec.structs.replace(
        record,
        policy=verdict.policy,
        trust=verdict.trust,
        importance=judge.importance_of(record, verdict.trust),
        provenance=arrived("now", rule=verdict.rule),
    )
