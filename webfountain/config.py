"""All `WEBFOUNTAIN_*` settings. Each field declares one setting: its default, its unit, its bounds, and a sentence for
the manual.

The settings describe an installation, such as its folders and its memory. The rules of a crawl are in the policy file.
Settings come from Scrapy (`settings.py`, `-s NAME=VALUE`), so their values may be strings. An unknown setting, or a
value of a wrong type or out of range, prevents the start of a crawl.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from webfountain.allowed_values import allowed_words
from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_STORE", "PREFIX", "FountainConfig", "Setting", "settings"]

PREFIX: Final = "WEBFOUNTAIN_"
DEFAULT_STORE: Final = "rocksdb://.webfountain"


def _meta(unit: str, sentence: str, *, ge: float | None = None, le: float | None = None) -> Meta:
    return Meta(ge=ge, le=le, description=sentence, extra={"unit": unit})


def _text(unit: str, sentence: str) -> Meta:
    return Meta(min_length=1, description=sentence, extra={"unit": unit})


class FountainConfig(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=lambda name: PREFIX + name.upper()
):
    """All settings with their values. For example, the field `active_sites` is the setting WEBFOUNTAIN_ACTIVE_SITES."""

    collection: (
        Annotated[str, _text("file", "Policy file of the crawl; the spider's argument -a collection=FILE.")] | None
    ) = None
    store: Annotated[
        str,
        _text(
            "URL",
            "The store: memory:, rocksdb://folder, valkey://folder, or the URL of a server.",
        ),
    ] = DEFAULT_STORE
    repository: (
        Annotated[str, _text("folder", "Folder of copies and WARC files; <store folder>/repository unless set.")] | None
    ) = None
    active_sites: Annotated[
        int, _meta("sites", "Maximum number of sites that are crawled at a time.", ge=1, le=1_000_000)
    ] = 1000
    hand: Annotated[int, _meta("URLs", "URLs leased at once for one site.", ge=1, le=10_000)] = 16
    lease_seconds: Annotated[
        float,
        _meta(
            "s",
            "On a store in a folder: time without a sign of life from the owner of a site after which another "
            "process may take the site over.",
            ge=1,
            le=604_800,
        ),
    ] = 600.0
    heartbeat_seconds: Annotated[
        float,
        _meta(
            "s",
            "On a shared store: interval of an ant's heartbeats. An ant without a heartbeat for two intervals loses "
            "its sites.",
            ge=0.1,
            le=3600,
        ),
    ] = 5.0
    cache_bytes: Annotated[
        int,
        _meta(
            "bytes",
            "Memory of the cache of recently seen URLs, 224 bytes each.",
            ge=0,
            le=2**36,
        ),
    ] = 45_000_000
    max_pages: Annotated[int, _meta("pages", "The crawl ends after this many settled fetches.", ge=1)] | None = None
    max_seconds: Annotated[float, _meta("s", "The crawl ends after this time.", ge=0)] | None = None
    until_idle: Annotated[
        bool, _meta("", "The crawl ends when nothing is in flight and no new URL comes due within a minute.")
    ] = False
    report: Annotated[str, _text("file", "File for the report, written as JSON when the crawl ends.")] | None = None
    recrawl: Annotated[
        bool,
        _meta(
            "",
            "With the add-on: repeat known requests when they are due. The crawl runs until it is stopped or "
            "reaches a limit.",
        ),
    ] = False
    fresh: Annotated[
        bool, _meta("", "With the add-on: forget all known and waiting requests first, and start from the beginning.")
    ] = False
    allow_private: Annotated[
        bool, _meta("", "With the add-on and no collection file: allow requests to loopback and private addresses.")
    ] = True
    crawl_delay: Annotated[
        bool,
        _meta(
            "",
            "With the add-on and no collection file: obey Crawl-delay, if robots.txt is obeyed.",
        ),
    ] = True
    retry_after: Annotated[
        bool,
        _meta(
            "",
            "With the add-on and no collection file: obey the Retry-After of a 429 or 503.",
        ),
    ] = True
    backoff: Annotated[
        bool,
        _meta(
            "",
            "With the add-on and no collection file: wait longer after each 429, 503 or missing answer of a "
            "site, and give the site up after five missing answers in a row.",
        ),
    ] = False
    delay_factor: Annotated[
        float,
        _meta(
            "times",
            "With the add-on and no collection file: the delay after a request, as a multiple of its duration.",
            ge=0,
            le=1000,
        ),
    ] = 0.0
    retry_failed: Annotated[
        bool, _meta("", "With the add-on: at the start, repeat the requests that failed last time.")
    ] = False
    items: Annotated[
        Literal["all", "changed"],
        _meta("all, changed", "With the add-on: `changed` drops an item if its page yielded an equal item before."),
    ] = "all"
    item_fields_ignored: (
        Annotated[
            str,
            _text("names", "Item fields, separated by commas, that are not compared (such as the time of scraping)."),
        ]
        | None
    ) = None
    cookies: Annotated[
        bool, _meta("", "With the add-on: keep session cookies beside the store, readable by its owner only.")
    ] = False
    progress: Annotated[bool, _meta("", "Show live progress on a terminal.")] = False
    log_format: Annotated[Literal["text", "json"], _meta("text, json", "Format of the log: plain or JSON lines.")] = (
        "text"
    )
    metrics: (
        Annotated[
            str,
            _text(
                "address",
                "Address for /metrics and /healthz: a loopback address or a port, such as 127.0.0.1:9410.",
            ),
        ]
        | None
    ) = None
    rotate_bytes: Annotated[
        int, _meta("bytes", "Size at which a WARC file is closed and the next one begins.", ge=1, le=10**12)
    ] = 1_000_000_000
    least_free_bytes: Annotated[
        int,
        _meta(
            "bytes",
            "Free space on the disk of the copies below which an ant stops fetching.",
            ge=0,
            le=10**15,
        ),
    ] = 200_000_000

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object]) -> FountainConfig:
        """Return the settings from all entries whose names begin with WEBFOUNTAIN_. A setting that has no entry, or the
        value None, keeps its default.

        Raises
        ------
        InputError
            for an unknown name, a mistyped or an out-of-range value; the text names setting and value.
        """
        given = {name: mapping[name] for name in mapping if name.startswith(PREFIX) and mapping[name] is not None}
        for name in given:
            if name not in cls.__struct_encode_fields__:
                raise InputError(f"setting {name} is unknown ({_near(name)})")
        # Settings are checked one at a time, so that the error names the setting and its value.
        for name, value in given.items():
            _check(cls, name, value)
        return msgspec.convert(given, cls, strict=False)

    @property
    def repository_folder(self) -> Path:
        """Return the folder in which the copies of pages are stored.

        Raises
        ------
        InputError
            when the store has no folder of its own and no folder of copies is set.
        """
        if self.repository is not None:
            return Path(self.repository)
        scheme, _, folder = self.store.partition("://")
        if scheme not in ("rocksdb", "valkey"):
            raise InputError(
                f"the setting {PREFIX}REPOSITORY is required with the store {self.store!r} (allowed: a folder)"
            )
        return Path(folder) / "repository"


class Setting(NamedTuple):
    """One setting, as the manual shows it."""

    name: str
    default: object
    unit: str
    sentence: str


def settings() -> list[Setting]:
    """Return every setting, for the manual and `--help`."""
    return [_setting(field) for field in msgspec.inspect.type_info(FountainConfig).fields]  # type: ignore[attr-defined]


def _setting(field: msgspec.inspect.Field) -> Setting:
    kind = field.type
    types = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    meta = next(kind for kind in types if isinstance(kind, msgspec.inspect.Metadata))
    schema, extra = meta.extra_json_schema or {}, meta.extra or {}
    return Setting(field.encode_name, field.default, extra["unit"], schema["description"])


def _near(name: str) -> str:
    known = [other.removeprefix(PREFIX) for other in FountainConfig.__struct_encode_fields__]
    near = difflib.get_close_matches(name.removeprefix(PREFIX), known, n=1)
    return f"did you mean {PREFIX}{near[0]}?" if near else f"allowed: {PREFIX} with {', '.join(known)}"


def _check(cls: type[FountainConfig], name: str, value: object) -> None:
    try:
        msgspec.convert({name: value}, cls, strict=False)
    except msgspec.ValidationError:
        fields = msgspec.inspect.type_info(cls).fields  # type: ignore[attr-defined]
        allowed = allowed_words(next(field.type for field in fields if field.encode_name == name))
        allowed += " that is not empty" if value == "" and allowed == "a text" else ""
        raise InputError(f"setting {name}: {value!r} is not allowed (allowed: {allowed})") from None
