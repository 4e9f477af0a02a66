"""Provenance: how a page was discovered and why it has its policy, in a few bytes of the page's record.

A link carries the provenance to the store (`Link.provenance`), and the page's record keeps it
(`PageRecord.provenance`). If a ``[[switch]]``, a conflict or an edit changes a page's policy, the provenance is
replaced. `webfountain explain` shows the provenance, and `policy.lineage` uses the provenance to compute policy and
trust again. Encoded form:

- 1 byte: kind of arrival (bits 0-2, of which 6 is an added link), cause of the policy (3-5), whether a rule (6) and a
  time (7) follow
- 2 bytes: number of the rule, a hash of its text, so that an edited or moved rule is not mistaken for another
- 4 bytes: time when the cause applied, UTC seconds; left out if it was at discovery (`PageRecord.first_seen`)
- varint: number of accepted links that shared the trust of the linking page; left out if there is no room

A record of an earlier version of webfountain contains no provenance.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec
import xxhash

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "UNRECORDED", "Arrival", "Cause", "Provenance", "arrival_of", "arrived", "numbered", "rule_number", "was_added",
]  # fmt: skip

Arrival = Literal["unrecorded", "seed", "link", "redirect", "sitemap", "now"]
"""How a URL was discovered. `now` means that a user requested the URL with the command `webfountain now`."""
Cause = Literal["found", "rule", "switch", "conflict", "followed", "edit"]
"""Why a page has its policy and trust.

- `found`: the seed's line, or the link that made the page known
- `rule`: a ``[[rule]]``
- `switch`: a ``[[switch]]``
- `conflict`: the link that `conflict.rule` preferred
- `followed`: a ``[[switch]]`` of the page through which this page was discovered
- `edit`: an edit of the policy file
"""
_ARRIVALS: Final[tuple[Arrival, ...]] = (*get_args(Arrival), "link")
_CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
_ADDED: Final = 6
"""Number of the arrival "link" if the link was added."""
_HAS_RULE: Final = 0x40
_HAS_TIME: Final = 0x80
_RULE_BYTES: Final = 2
_TIME_BYTES: Final = 4
_LAST_TIME: Final = 2**32 - 1
_MOST_BYTES: Final = 8
"""Maximum size of an encoded provenance, bytes."""


class Provenance(msgspec.Struct, frozen=True):
    """The provenance of a page.

    - `rule`: number of the rule that was the cause, or b"".
    - `at`: time when the cause applied; None: at discovery.
    - `links`: number of links that shared the trust; 0: trust was not divided.
    - `is_added`: the link was added: an earlier copy of the linking page did not make the URL known.
    """

    arrival: Arrival = "unrecorded"
    cause: Cause = "found"
    rule: bytes = b""
    at: int | None = None
    links: int = 0
    is_added: bool = False

    @classmethod
    def decode(cls, data: bytes) -> Provenance:
        """Decode the bytes that `encode` returns. Return UNRECORDED for empty bytes, and for bytes of a later version
        of webfountain.
        """
        if not data:
            return UNRECORDED
        head, place = data[0], 1
        arrival, cause = head & 7, head >> 3 & 7
        if arrival >= len(_ARRIVALS) or cause >= len(_CAUSES):
            return UNRECORDED
        rule, at = b"", None
        if head & _HAS_RULE:
            rule, place = data[place : place + _RULE_BYTES], place + _RULE_BYTES
        if head & _HAS_TIME:
            at, place = int.from_bytes(data[place : place + _TIME_BYTES], "big"), place + _TIME_BYTES
        links = sum((byte & 0x7F) << 7 * nth for nth, byte in enumerate(data[place:]))
        return cls(_ARRIVALS[arrival], _CAUSES[cause], rule, at, links, arrival == _ADDED)

    def encode(self) -> bytes:
        """Return the provenance as bytes, for the page's record."""
        if self.arrival == "unrecorded" and self.cause == "found":
            return b""
        head = (_ADDED if self.is_added else _ARRIVALS.index(self.arrival)) | _CAUSES.index(self.cause) << 3
        head |= (_HAS_RULE if self.rule else 0) | (_HAS_TIME if self.at is not None else 0)
        time = b"" if self.at is None else self.at.to_bytes(_TIME_BYTES, "big")
        found, links = bytes([head]) + self.rule + time, _varint(self.links)
        return found + links if len(found) + len(links) <= _MOST_BYTES else found

    def because(self, cause: Cause, *, at: float, rule: bytes = b"") -> Provenance:
        """Return the provenance of the page after its policy was changed for the reason `cause`."""
        return Provenance(self.arrival, cause, rule, min(max(int(at), 0), _LAST_TIME), self.links, self.is_added)


UNRECORDED: Final = Provenance()


def arrival_of(data: bytes) -> Arrival:
    """Return how a page was discovered, from its encoded provenance. `arrival_of` is faster than
    `Provenance.decode`.
    """
    number = data[0] & 7 if data else 0
    return _ARRIVALS[number] if number < len(_ARRIVALS) else "unrecorded"


def was_added(data: bytes) -> bool:
    """Return whether a URL was discovered by an added link, from its encoded provenance."""
    return bool(data) and data[0] & 7 == _ADDED


@functools.lru_cache(maxsize=4096)
def arrived(arrival: Arrival, *, rule: bytes = b"", links: int = 0, is_added: bool = False) -> bytes:
    """Return the encoded provenance of a newly found URL. Results are cached, because all links of a page have the same
    provenance.
    """
    return Provenance(arrival, "rule" if rule else "found", rule, None, links, is_added).encode()


def rule_number(rule: msgspec.Struct) -> bytes:
    """Return the number that identifies a ``[[rule]]`` or ``[[switch]]``, a hash of its content."""
    text = msgspec.json.encode(_plain(rule), enc_hook=repr)
    return xxhash.xxh3_64_digest(text)[:_RULE_BYTES]


def numbered(rules: Sequence[msgspec.Struct]) -> dict[bytes, int]:
    """Return the position in the policy file for each rule number; for equal rules, the position of the first."""
    return {rule_number(rule): place for place, rule in reversed(list(enumerate(rules)))}


def _plain(value: Any) -> Any:
    """Return a table as plain data without default values, so that a new key of the format changes no rule's hash."""
    if isinstance(value, msgspec.Struct):
        fields = ((each.name, getattr(value, each.name), each.default) for each in msgspec.structs.fields(value))
        return {name: _plain(given) for name, given, default in fields if given != default}
    return getattr(value, "pattern", value)  # a compiled expression is represented by its text


def _varint(number: int) -> bytes:
    """Encode a number in groups of seven bits, lowest group first; b"" for 0. The eighth bit of each byte is 1, except
    in the last byte.
    """
    parts = bytearray()
    while number:
        number, low = number >> 7, number & 0x7F
        parts.append(low | (0x80 if number else 0))
    return bytes(parts)
