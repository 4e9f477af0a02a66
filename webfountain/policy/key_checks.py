"""Checks of a policy file that the types of its tables cannot express.

Two keys must agree, policies must exist, seeds must be public or allowed, and public crawls need a contact. Each error
names file, key, value and the allowed values.
"""

from __future__ import annotations

import mimetypes
import re
from typing import TYPE_CHECKING, Final

from webfountain.errors import PolicyError
from webfountain.policy.collection import named_policies
from webfountain.policy.errors import at_key, cut
from webfountain.policy.patterns import compile_pattern
from webfountain.policy.rules import host_pattern
from webfountain.policy.tables import PRESETS, PolicyFile, PolicyTable, WhenTable
from webfountain.policy.units import spell_duration
from webfountain.public_addresses import is_private_host
from webfountain.urls import host_of

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.policy.collection import Collection

__all__ = ["check_keys", "check_seeds"]

_MEDIA_TYPE: Final = re.compile(r"\*/\*|[\w!#$&^.+-]+/(?:\*|[\w!#$&^.+-]+)", re.ASCII)


def check_keys(path: Path, tables: PolicyFile) -> None:
    """Check the keys that must agree with each other, and raise PolicyError for the first that does not."""
    politeness, cycle = tables.politeness, tables.cycle
    if politeness.max_delay < politeness.min_delay:
        allowed = f"politeness.min_delay or more: {spell_duration(politeness.min_delay)}"
        raise at_key(path, "politeness.max_delay", spell_duration(politeness.max_delay), allowed)
    for number, kind in enumerate(politeness.accept):
        if not _MEDIA_TYPE.fullmatch(kind.strip()):
            raise at_key(path, f"politeness.accept[{number}]", kind, _media_type_words(kind))
    if cycle.fastest_s > cycle.period_s:
        allowed = f"cycle.period at most: {spell_duration(cycle.period)}"
        raise at_key(path, "cycle.fastest", spell_duration(cycle.fastest_s), allowed)
    for name, policy in tables.policies.items():
        revisit = policy.revisit
        if revisit.max_interval is not None and revisit.max_interval < revisit.min_interval:
            allowed = f"min_interval or more: {spell_duration(revisit.min_interval)}"
            raise at_key(path, f"policies.{name}.revisit.max_interval", spell_duration(revisit.max_interval), allowed)
        _check_score(path, name, policy)
    _check_switches(path, tables)
    _check_rules(path, tables)
    for key, name in named_policies(tables):
        if name not in PRESETS and name not in tables.policies:
            raise at_key(path, key, name, f"a policy: {', '.join(sorted({*PRESETS, *tables.policies}))}")


def _media_type_words(written: str) -> str:
    """Return the values that `politeness.accept` allows, including the media type that was probably meant."""
    extension = written.strip().lower().lstrip(".")
    kind = mimetypes.guess_type(f"x.{extension}")[0] if extension.isalnum() else written.partition(";")[0].strip()
    meant = f"did you mean {kind!r}? " if kind and _MEDIA_TYPE.fullmatch(kind) else ""
    return f'{meant}a media type without parameters, such as "text/html", "image/*" or "*/*"'


def _check_score(path: Path, name: str, policy: PolicyTable) -> None:
    if policy.score is None:
        return
    weights = policy.score.weights
    if not weights:
        raise at_key(path, f"policies.{name}.score", policy.score.weights, "at least one weight above 0")
    if "topic" in weights and policy.topic is None:
        raise at_key(path, f"policies.{name}.score.topic", weights["topic"], f"with policies.{name}.topic")


def _check_switches(path: Path, tables: PolicyFile) -> None:
    has_topic = any(policy.topic is not None for policy in tables.policies.values())
    for number, switch in enumerate(tables.switch):
        when = switch.when
        if when == WhenTable(count=when.count):
            raise at_key(
                path, f"switch[{number}].when", {}, f"at least one of {', '.join(WhenTable.__struct_fields__)}"
            )
        if when.discovered is not None and when != WhenTable(count=when.count, discovered=when.discovered):
            raise at_key(path, f"switch[{number}].when.discovered", when.discovered, "with count, and nothing else")
        if when.duplicates is not None and not tables.duplicates.detect:
            raise at_key(path, f"switch[{number}].when.duplicates", when.duplicates, "with duplicates.detect = true")
        for key in ("similarity", "similarity_below"):
            if getattr(when, key) is not None and not has_topic:
                place = f"switch[{number}].when.{key}"
                raise at_key(path, place, getattr(when, key), "if a policy has a topic, such as policies.default.topic")


def _check_rules(path: Path, tables: PolicyFile) -> None:
    for number, rule in enumerate(tables.rule):
        key = f"rule[{number}]"
        if rule.policy is None and rule.trust is None:
            raise at_key(path, key, {"match": rule.match}, "with policy, trust or both")
        if not rule.matches:
            raise at_key(path, f"{key}.match", [], 'a host such as "*.example.org", a regular expression, or a list')
        for match in rule.matches:
            try:
                if host_pattern(match) is None:
                    compile_pattern(match)
            except ValueError as error:
                raise PolicyError(f"{path}: {key}.match: {cut(match)} is no host and {error}") from None


def check_seeds(collection: Collection) -> None:
    """Check that there is a seed, that private seeds are allowed and that public ones come with a contact."""
    path, empty = collection.path, True
    allow_private, has_contact = collection.network.allow_private, collection.politeness.has_contact
    for url in collection.seeds():
        empty = False
        private = is_private_host(host_of(url))
        if private and not allow_private:
            raise PolicyError(
                f"{path}: network.allow_private: False refuses the seed {url!r}, whose address is private "
                "(allowed: true if the address is yours)"
            )
        if not has_contact and (not private or collection.scope == "any"):
            raise PolicyError(
                f"{path}: politeness.user_agent: {collection.politeness.user_agent!r} has no contact, which a crawl "
                f'of public addresses needs (allowed: such as "{collection.politeness.robots_token}/1.0 '
                '(+https://example.org/bot)" or with an e-mail address)'
            )
    if empty:
        raise PolicyError(f"{path}: collection.seeds: () is empty (allowed: URLs here or in collection.seeds_file)")
