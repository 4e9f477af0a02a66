"""robots.txt by RFC 9309: what an answer means, and which URLs its rules allow us.

Protego reads the rules; here is what the standard says around them: which status is which verdict (section 2.3.1),
how much must be read (2.5), that robots.txt itself is always allowed (2.2.2). Fetching, redirects, the life of 24
hours (2.4) and the memory of verdicts are the errands'.
"""

from __future__ import annotations

import codecs
import math
import re
from typing import TYPE_CHECKING, Final, Literal

from protego import Protego

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_ROBOTS_BYTES", "MAX_ROBOTS_SITEMAPS", "RobotsRules", "Ruling", "robots_verdict"]

MAX_ROBOTS_BYTES: Final = 500 * 1024
"""Section 2.5: a crawler must read at least this much, and so does not need to read more."""
MAX_ROBOTS_SITEMAPS: Final = 1000

_AGENT: Final = re.compile(r"(?im)^([^\S\r\n]*user[ -]?agent[^\S\r\n]*:?[^\S\r\n]*[\w.-]+)[/ \t][^\r\n#]*")
"""Owners write "User-agent: bot/2.0" as they find it in their logs: the leading product token counts (RFC 2.2.1)."""

MAX_WILDCARDS: Final = 2000
"""Asterisks that are matched as such; each may cost a search in the URL, of which 500 KiB could ask for half a million.
In rules after that one stands for "whatever follows" at its first asterisk, or for nothing if it allows: more is
refused, never less."""
_WILD: Final = re.compile(r"(?im)^[^\S\r\n]*(dis)?allow[^\S\r\n]*:[^\r\n*#]*(\*[^\r\n#]*)")

Ruling = Literal["rules", "allow", "refuse"]


def robots_verdict(status: int | None, error: str | None) -> Ruling:
    """What the end of a robots.txt fetch (redirects followed) means for its site.

    "rules": read the body (2xx). "allow": there are none, all is allowed: 4xx, and redirects that lead nowhere or
    on and on (2.3.1.2, 2.3.1.3). "refuse": nothing is asked until robots.txt answers: 5xx, no answer (2.3.1.4), and
    429, which the standard counts among 4xx but which says that the site is too busy even for this.
    """
    if error is not None or status is None or status == 429:
        return "refuse"
    if 200 <= status < 300:
        return "rules"
    return "allow" if 300 <= status < 500 else "refuse"


class RobotsRules:
    """The rules that one robots.txt sets for one robot."""

    __slots__ = ("_protego", "_token", "crawl_delay", "sitemaps")

    def __init__(self, protego: Protego, token: str) -> None:
        self._protego = protego
        self._token = token
        self.crawl_delay = _delay(protego.crawl_delay(token))
        """Seconds, None when the site names none; no part of the standard, honoured up to `politeness.max_delay`."""
        self.sitemaps: Sequence[str] = tuple(dict.fromkeys(protego.sitemaps))[:MAX_ROBOTS_SITEMAPS]
        """As written, in order: they may be relative, or nonsense."""

    @classmethod
    def parse(cls, body: bytes, token: str) -> RobotsRules:
        """Read rules from any bytes at all; `token` is the product token, as "webfountain"."""
        return cls(Protego.parse(_bounded(_AGENT.sub(r"\1", _text(body)))), token)

    def allowed(self, url: str) -> bool:
        """Whether a canonical URL of this site may be fetched."""
        return self._protego.can_fetch(url, self._token) or url.endswith("/robots.txt")


def _text(body: bytes) -> str:
    """UTF-8 as the standard demands, UTF-16 with a mark because such files exist; the last cut line is dropped."""
    body = body[:MAX_ROBOTS_BYTES]
    if len(body) == MAX_ROBOTS_BYTES:  # cut here, or by who kept it
        # Half a line could refuse more than the whole one: "Disallow: /" of "Disallow: /private".
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", errors="replace")
    return body.decode("utf-8-sig", errors="replace")


def _bounded(text: str) -> str:
    """The text with so few wildcards that no URL takes long."""
    if text.count("*") <= MAX_WILDCARDS:
        return text
    left = MAX_WILDCARDS

    def shorten(rule: re.Match[str]) -> str:
        nonlocal left
        left -= rule[2].count("*")
        if left >= 0:
            return rule[0]
        return rule[0][: rule.start(2) - rule.start()] if rule[1] else ""

    return _WILD.sub(shorten, text)


def _delay(seconds: float | None) -> float | None:
    usable = seconds is not None and math.isfinite(seconds) and seconds >= 0
    return seconds if usable else None
