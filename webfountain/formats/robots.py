"""robots.txt by RFC 9309: what an answer means, and which URLs its rules allow us.

Protego reads the rules; here is what the standard says around them: which status is which verdict (section 2.3.1),
how much must be read (2.5), that robots.txt itself is always allowed (2.2.2). Fetching, redirects, the life of 24
hours (2.4) and the memory of verdicts are the errands'.
"""

from __future__ import annotations

import codecs
import contextlib
import math
import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import unquote

from protego import Protego

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
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
"""Section 2.5: a crawler must read at least this much, and so does not need to read more."""
MAX_ORDINARY_ROBOTS_BYTES: Final = 16_384
"""Reading a file of this size takes some milliseconds, whatever it holds; of a larger one what binds us is taken out
elsewhere (`binding_part`)."""
MAX_ROBOTS_SITEMAPS: Final = 1000

_AGENT: Final = re.compile(r"(?im)^([^\S\r\n]*user[ -]?agent[^\S\r\n]*:?[^\S\r\n]*[\w.-]+)[/ \t][^\r\n#]*")
"""Owners write "User-agent: bot/2.0" as they find it in their logs: the leading product token counts (RFC 2.2.1)."""

MAX_RULES: Final = 2000
"""Rules for us that are matched as they stand."""
MAX_WILDCARDS: Final = 800
"""Asterisks and end marks that are: each costs a comparison or a search in the URL, of which 500 KiB could ask for half
a million. Where there are more of either, nothing is allowed for its own sake, and of the rules that follow the folders
are refused, or all is where those are too many: more is refused, never less."""
_MAX_CHARS: Final = 65_536
"""Of all rules together (`_chars`)."""
_MAX_FOLDERS: Final = 500
_MAX_RULE_CHARS: Final = 8_192
"""A longer one is for no URL that is ever asked for."""
_STARS: Final = re.compile(r"\*+")
_AGENT_LINE: Final = re.compile(r"(?i)user(?:-|\s+)?agent\s*(?::|\s|$)(.*)")
_SITE_WIDE: Final = re.compile(r"(?i)(?:sitemaps?|site-map|host)\s*(?::|\s)")
_RULE_LINE: Final = re.compile(r"(?i)(?:(allow)|dis+al+[oa]w|diasllow)\s*(?::|\s|$)(.*)")
_DELAY_LINE: Final = re.compile(r"(?i)crawl[- ]delay\s*(?::|\s|$)\s*(.*)")
_END_OF_AGENTS: Final = re.compile(
    r"(?i)(?:dis+al+[oa]w|diasllow|allow|crawl[- ]delay|request[- ]rate|visit[- ]time)(?:\s|$)|.*:"
)
"""A line of a group that is no agent's: the next agent begins another group."""

_RULE: Final = re.compile(r"(?i)^[^\S\r\n]*(allow|disallow)[^\S\r\n]*:[^\S\r\n]*([^\r\n#]*?)\s*(?:#.*)?$")
_NO_RULE: Final = "Allow: /webfountain-none"
"""Stands for a rule that is left out: without any, two groups would be one."""
_MOST_TRIED: Final = 50

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
        """Read rules from any bytes at all; `token` is the product token, as "webfountain", or a whole User-Agent."""
        return cls(Protego.parse("\n".join(_binding_lines(body, token))), token)

    def allowed(self, url: str) -> bool:
        """Whether a canonical URL of this site may be fetched."""
        return self._protego.can_fetch(url, self._token) or url.endswith("/robots.txt")


class RobotsLine(NamedTuple):
    """A line of a robots.txt, counted from 1."""

    number: int
    text: str


def deciding_line(body: bytes, token: str, url: str) -> RobotsLine | None:
    """The rule by which `RobotsRules.allowed` decides about a URL; None: no rule of ours is for it, so it is allowed.

    Of the rules that are for the URL the longest counts, of two as long the one that allows (RFC 9309 section 2.2.2).
    """
    lines = _AGENT.sub(r"\1", _text(body)).splitlines()
    path = unquote(url[url.find("/", 8) :])
    rules = {number: found for number, line in enumerate(lines) if (found := _RULE.match(line)) is not None}
    likely = [number for number, rule in rules.items() if rule[2] and _is_for(unquote(rule[2]), path)]
    likely.sort(key=lambda number: (-len(rules[number][2]), rules[number][1].lower() != "allow", number))
    for number in likely[:_MOST_TRIED]:
        # Whether it stands in our group is Protego's to say: as the only rule of the file it must refuse the URL.
        alone = [_NO_RULE if other in rules else line for other, line in enumerate(lines)]
        alone[number] = f"Disallow: {rules[number][2]}"
        if not Protego.parse("\n".join(alone)).can_fetch(url, token):
            return RobotsLine(number + 1, lines[number].strip())
    return None


def _is_for(rule: str, path: str) -> bool:
    """Whether a rule is for a path: its parts between asterisks in order from the start, to the end if it says so."""
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
    """UTF-8 as the standard demands, UTF-16 with a mark because such files exist; the last cut line is dropped."""
    body = body[:MAX_ROBOTS_BYTES]
    if len(body) == MAX_ROBOTS_BYTES:  # cut here, or by who kept it
        # Half a line could refuse more than the whole one: "Disallow: /" of "Disallow: /private".
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", errors="replace")
    return body.decode("utf-8-sig", errors="replace")


def binding_part(body: bytes, token: str) -> bytes:
    """A short robots.txt that means the same to this robot as `body` does, in time linear in the size of `body`."""
    return "\n".join(_binding_lines(body, token)).encode()


def _binding_lines(body: bytes, token: str) -> list[str]:
    """What holds for the whole site, then the groups for this robot as one, within the bounds.

    Protego keeps each rule with each agent that its group names, of which 500 KiB could hold 20,000 and as many rules.
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
    """How well the agent that a group names, in lower case, fits the robot, as Protego has it: 0 for not at all."""
    if agent == "*" or not agent:
        return len(agent)
    at = robot.find(agent)
    while at > 0 and (robot[at - 1].isalnum() or robot[at - 1] in "-_"):
        at = robot.find(agent, at + 1)
    return 0 if at < 0 else len(agent)


def _group(lines: Sequence[str], name: str) -> Iterator[str]:
    """The lines of all groups that name an agent. A group begins with the agent lines that follow another line."""
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
    """The rules and the delay that the lines set, each once, in so many lines that no URL takes long."""
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
    return rule[1].count("*") + 2 * rule[1].count("$")  # an end mark is tried as a plain sign, too


def _chars(value: str) -> int:
    return len(value) + 3 * value.count("%")  # an escape is decoded by itself, and takes as long as six letters


def _delay(seconds: float | None) -> float | None:
    usable = seconds is not None and math.isfinite(seconds) and seconds >= 0
    return seconds if usable else None
