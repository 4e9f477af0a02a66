"""Read robots.txt by RFC 9309, and decide which URLs may be fetched.

Protego evaluates the rules. This module adds what Protego lacks: response statuses (section 2.3.1), limits (2.5), and
that robots.txt itself is allowed (2.2.2).
"""

from __future__ import annotations

import codecs
import contextlib
import math
import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import unquote

from protego import Protego

from webfountain.urls import path_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "IGNORED",
    "MAX_ORDINARY_ROBOTS_BYTES",
    "MAX_ROBOTS_BYTES",
    "MAX_ROBOTS_SITEMAPS",
    "MAX_RULES",
    "MAX_WILDCARDS",
    "RobotsLine",
    "RobotsRules",
    "Ruling",
    "binding_part",
    "deciding_line",
    "robots_verdict",
]

MAX_ROBOTS_BYTES: Final = 500 * 1024
"""Maximum size of a robots.txt that is read, bytes. RFC 9309 requires that a crawler reads at least 500 KiB (section
2.5).
"""
MAX_ORDINARY_ROBOTS_BYTES: Final = 16_384
"""Maximum size of a file that is read in the calling thread, bytes. If a file is larger than this, another process
first extracts the rules for our robot (`binding_part`)."""
MAX_ROBOTS_SITEMAPS: Final = 1000

_AGENT: Final = re.compile(r"(?im)^([^\S\r\n]*user[ -]?agent[^\S\r\n]*:?[^\S\r\n]*[\w.-]+)[/ \t][^\r\n#]*")
"""Pattern of an agent line with more than a product token, such as "User-agent: bot/2.0". Of a User-agent line, only
the product token counts (RFC 9309, section 2.2.1)."""

MAX_RULES: Final = 2000
"""Maximum number of rules for our robot that are applied exactly."""
MAX_WILDCARDS: Final = 800
"""Maximum number of wildcards (``*`` and ``$``) in the rules that are applied exactly. Each wildcard costs a search in
the URL, and a hostile file could contain half a million wildcards. If a file exceeds a limit, its Allow rules are
ignored. In a file that exceeds a limit, each further Disallow pattern is shortened to its folder. If the shortened
patterns name more than `_MAX_FOLDERS` folders, the whole site is disallowed. A URL that the file disallows remains
disallowed, even if the file exceeds the limits."""
_MAX_CHARS: Final = 65_536
"""Maximum number of characters of all rules together; an escape such as ``%20`` counts as six."""
_MAX_FOLDERS: Final = 500
_MAX_RULE_CHARS: Final = 8_192
"""Maximum length of a rule."""
_STARS: Final = re.compile(r"\*+")
_AGENT_LINE: Final = re.compile(r"(?i)user(?:-|\s+)?agent\s*(?::|\s|$)(.*)")
_SITE_WIDE: Final = re.compile(r"(?i)(?:sitemaps?|site-map|host)\s*(?::|\s)")
_RULE_LINE: Final = re.compile(r"(?i)(?:(allow)|dis+al+[oa]w|diasllow)\s*(?::|\s|$)(.*)")
_DELAY_LINE: Final = re.compile(r"(?i)crawl[- ]delay\s*(?::|\s|$)\s*(.*)")
_END_OF_AGENTS: Final = re.compile(
    r"(?i)(?:dis+al+[oa]w|diasllow|allow|crawl[- ]delay|request[- ]rate|visit[- ]time)(?:\s|$)|.*:"
)
"""Pattern of a line that ends the agent lines of a group."""

_RULE: Final = re.compile(r"(?i)^[^\S\r\n]*(allow|disallow)[^\S\r\n]*:[^\S\r\n]*([^\r\n#]*?)\s*(?:#.*)?$")
_NO_RULE: Final = "Allow: /webfountain-none"
"""Line that replaces a removed rule, so that the groups before and after it do not become one group."""
_MOST_TRIED: Final = 50

Ruling = Literal["rules", "allow", "refuse"]
IGNORED: Final = "ignored"
"""Error word for a robots.txt that was not fetched because a middleware of the Scrapy project dropped the request."""


def robots_verdict(status: int | None, error: str | None) -> Ruling:
    """Return how a site may be crawled, given the answer to the request for its robots.txt.

    - "rules" (2xx): read the body.
    - "allow" (4xx, endless or broken redirects; 2.3.1.2, 2.3.1.3): every URL is allowed. `IGNORED` gives "allow", too,
      as with Scrapy: the same middlewares decide about the pages.
    - "refuse" (5xx, no answer; 2.3.1.4): no page is fetched until robots.txt is available. 429 also gives "refuse",
      because the site is too busy even for this request.
    """
    if error == IGNORED:
        return "allow"
    if error is not None or status is None or status == 429:
        return "refuse"
    if 200 <= status < 300:
        return "rules"
    return "allow" if 300 <= status < 500 else "refuse"


class RobotsRules:
    """The rules of one robots.txt for one robot."""

    __slots__ = ("_protego", "_token", "crawl_delay", "sitemaps")

    def __init__(self, protego: Protego, token: str) -> None:
        self._protego = protego
        self._token = token
        self.crawl_delay = _delay(protego.crawl_delay(token))
        """Crawl-delay in seconds, or None. Crawl-delay is not in the standard, but the crawl obeys it up to
        `politeness.max_delay`."""
        self.sitemaps: Sequence[str] = tuple(dict.fromkeys(protego.sitemaps))[:MAX_ROBOTS_SITEMAPS]
        """Sitemap URLs as written, in order. A sitemap URL may be relative or malformed."""

    @classmethod
    def parse(cls, body: bytes, token: str) -> RobotsRules:
        """Parse a robots.txt, which may consist of any bytes. `token` is the product token, such as "webfountain", or a
        whole User-Agent."""
        return cls(Protego.parse("\n".join(_binding_lines(body, token))), token)

    def allowed(self, url: str) -> bool:
        """Return whether a canonical URL of this site may be fetched."""
        return self._protego.can_fetch(url, self._token) or url.endswith("/robots.txt")


class RobotsLine(NamedTuple):
    """A line of a robots.txt file, numbered from 1."""

    number: int
    text: str


def deciding_line(body: bytes, token: str, url: str) -> RobotsLine | None:
    """Return the line with the rule that decides about a URL, or None if no rule matches and the URL is allowed.

    The longest matching rule decides. If an Allow and a Disallow rule are equally long, Allow decides (RFC 9309,
    section 2.2.2).
    """
    lines = _AGENT.sub(r"\1", _text(body)).splitlines()
    path = unquote(url[path_start(url) :])
    rules = {number: found for number, line in enumerate(lines) if (found := _RULE.match(line)) is not None}
    likely = [number for number, rule in rules.items() if rule[2] and _is_for(unquote(rule[2]), path)]
    likely.sort(key=lambda number: (-len(rules[number][2]), rules[number][1].lower() != "allow", number))
    for number in likely[:_MOST_TRIED]:
        # Test with Protego whether the line is in our group: if it is, and is the only rule of the file, it refuses the
        # URL.
        alone = [_NO_RULE if other in rules else line for other, line in enumerate(lines)]
        alone[number] = f"Disallow: {rules[number][2]}"
        if not Protego.parse("\n".join(alone)).can_fetch(url, token):
            return RobotsLine(number + 1, lines[number].strip())
    return None


def _is_for(rule: str, path: str) -> bool:
    to_the_end = rule.endswith("$")
    first, *others = rule.rstrip("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for part in others:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return not to_the_end or at == len(path) or (bool(others) and path.endswith(others[-1]))


def _text(body: bytes) -> str:
    """Return the file as text: UTF-8, or UTF-16 with a byte order mark. If the file was truncated, its last line is
    dropped."""
    body = body[:MAX_ROBOTS_BYTES]
    if len(body) == MAX_ROBOTS_BYTES:  # truncated here or by the server
        # Half a line could refuse more than the whole line: "Disallow: /" is half of "Disallow: /private".
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", errors="replace")
    return body.decode("utf-8-sig", errors="replace")


def binding_part(body: bytes, token: str) -> bytes:
    """Return a short robots.txt with only the rules for this robot, in linear time."""
    return "\n".join(_binding_lines(body, token)).encode()


def _binding_lines(body: bytes, token: str) -> list[str]:
    """Return the lines that concern the whole site, such as sitemaps, and one group with all rules for this robot.

    A group with one agent saves memory, because Protego stores a copy of each rule for each agent of a group.
    """
    lines = [line.partition("#")[0].strip() for line in _AGENT.sub(r"\1", _text(body)).splitlines()]
    lines = [line for line in lines if line]
    wide = list(dict.fromkeys(line for line in lines if _SITE_WIDE.match(line)))[:MAX_ROBOTS_SITEMAPS]
    robot, best, name = token.strip().lower(), 0, ""
    for agent in dict.fromkeys(found[1].strip().lower() for line in lines if (found := _AGENT_LINE.fullmatch(line))):
        for each in (agent, agent.replace("*", "")):
            if (fits := _fit(each, robot)) > best:
                best, name = fits, each
    return [*wide, "User-agent: *", *_within_bounds(_group(lines, name))] if best else wide


def _fit(agent: str, robot: str) -> int:
    """Return the length of an agent name that matches the robot, or 0 if the name does not match (as in Protego).
    `agent` and `robot` are in lower case."""
    if agent == "*" or not agent:
        return len(agent)
    at = robot.find(agent)
    while at > 0 and (robot[at - 1].isalnum() or robot[at - 1] in "-_"):
        at = robot.find(agent, at + 1)
    return 0 if at < 0 else len(agent)


def _group(lines: Sequence[str], name: str) -> Iterator[str]:
    ours = names = False
    for line in lines:
        if found := _AGENT_LINE.fullmatch(line):
            agent = found[1].strip().lower()
            ours = (ours and names) or name in (agent, agent.replace("*", ""))
            names = True
        elif not _SITE_WIDE.match(line) and _END_OF_AGENTS.match(line):
            names = False
            if ours:
                yield line


def _within_bounds(lines: Iterator[str]) -> Iterator[str]:
    """Yield the crawl delay and the distinct rules, simplified if they exceed a limit."""
    rules: dict[tuple[bool, str], None] = {}
    delay = None
    for line in lines:
        if rule := _RULE_LINE.fullmatch(line):
            value = _STARS.sub("*", rule[2].strip())
            if value and len(value) <= _MAX_RULE_CHARS:
                rules[rule[1] is not None, value] = None
        elif found := _DELAY_LINE.fullmatch(line):
            with contextlib.suppress(ValueError):
                delay = found[1] if _delay(float(found[1])) is not None else delay
    if delay is not None:
        yield f"Crawl-delay: {delay}"
    wildcards = chars = 0
    folders: dict[str, None] = {}
    too_many = (
        len(rules) > MAX_RULES
        or sum(map(_wildcards, rules)) > MAX_WILDCARDS
        or sum(_chars(value) for _, value in rules) > _MAX_CHARS
    )
    for number, (allow, value) in enumerate(rules):
        wildcards += _wildcards((allow, value))
        chars += _chars(value)
        if number < MAX_RULES and wildcards <= MAX_WILDCARDS and chars <= _MAX_CHARS:
            if not (allow and too_many):
                yield f"{'Allow' if allow else 'Disallow'}: {value}"
        elif not allow:
            folders[re.split(r"[*$]", value, maxsplit=1)[0].rpartition("/")[0] + "/"] = None
    yield from [f"Disallow: {folder}" for folder in folders] if len(folders) <= _MAX_FOLDERS else ["Disallow: /"]


def _wildcards(rule: tuple[bool, str]) -> int:
    return rule[1].count("*") + 2 * rule[1].count("$")  # an end mark is also tried as a plain character


def _chars(value: str) -> int:
    return len(value) + 3 * value.count("%")  # decoding an escape takes as long as reading six letters


def _delay(seconds: float | None) -> float | None:
    usable = seconds is not None and math.isfinite(seconds) and seconds >= 0
    return seconds if usable else None
