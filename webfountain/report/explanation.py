"""The explanation of one URL, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from webfountain.policy.url_rules import Reason
    from webfountain.report.page_path import Hop

__all__ = ["Explanation", "Robots", "Rule", "UrlVerdict"]


class Rule(msgspec.Struct, frozen=True):
    """A key of the policy file, such as ``policies.favor.deny[1]``, and its value."""

    key: str
    value: Any


class UrlVerdict(msgspec.Struct, frozen=True):
    """The judge's verdict on the URL: its policy, the reason if it is refused, and the rule that decided."""

    policy: str
    reason: Reason | None
    rule: Rule | None


class Robots(msgspec.Struct, frozen=True):
    """The verdict of the site's robots.txt: `line` is the number of the deciding line, None if no rule matches.

    `allowed` is None if robots.txt was not read yet. `at` is the time of the last read, UTC seconds.
    """

    allowed: bool | None
    line: str | None = None
    number: int | None = None
    at: float | None = None


class Explanation(msgspec.Struct, frozen=True):
    """Everything that explains a URL. `why` contains it in sentences.

    `url` is the canonical form, or None. For an unknown URL, `verdicts` has one verdict for each policy that a link
    could give it. `alike` are known URLs that differ only slightly. `next_visit` is UTC seconds, or None if no visit
    is expected.
    """

    given: str
    url: str | None
    known: bool
    why: tuple[str, ...]
    page: dict[str, Any] | None = None
    path: tuple[Hop, ...] = ()
    verdicts: tuple[UrlVerdict, ...] = ()
    robots: Robots | None = None
    next_visit: float | None = None
    alike: tuple[str, ...] = ()
