"""Every `WEBFOUNTAIN_*` setting: one field each, with default, unit, bounds and one sentence.

These are the settings of an installation (where files are, how much memory); the rules of a crawl are in its policy
file. Settings come from Scrapy (`settings.py`, `-s NAME=VALUE`) and so may be strings. Unknown names, mistyped and
out-of-range values are errors at start. What changes during a crawl is not a setting.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

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
    """All settings with their values. Field `active_sites` is the setting WEBFOUNTAIN_ACTIVE_SITES, and so on."""

    collection: Annotated[str, _text("file", "Policy file of the crawl; the spider's -a collection=FILE.")] | None = (
        None
    )
    store: Annotated[
        str,
        _text(
            "URL",
            "Where the frontier lives: memory:, rocksdb://folder, valkey://folder, or a server's.",
        ),
    ] = DEFAULT_STORE
    repository: (
        Annotated[str, _text("folder", "Where copies and WARC files lie; <store folder>/repository unless set.")] | None
    ) = None
    active_sites: Annotated[int, _meta("sites", "Sites crawled at a time, the active list.", ge=1, le=1_000_000)] = 1000
    hand: Annotated[int, _meta("URLs", "URLs leased at once for one site.", ge=1, le=10_000)] = 16
    lease_seconds: Annotated[
        float,
        _meta("s", "A site whose process is not heard of for so long may be taken over.", ge=1, le=604_800),
    ] = 600.0
    heartbeat_seconds: Annotated[
        float,
        _meta(
            "s",
            "On a store that several ants share each tells so often that it lives; dead for two, its sites are "
            "taken over.",
            ge=0.1,
            le=3600,
        ),
    ] = 5.0
    cache_bytes: Annotated[
        int,
        _meta(
            "bytes",
            "Memory of the cache before the duplicate URL eliminator: 224 for each URL met lately.",
            ge=0,
            le=2**36,
        ),
    ] = 45_000_000
    max_pages: Annotated[int, _meta("pages", "The crawl ends after so many settled fetches.", ge=1)] | None = None
    max_seconds: Annotated[float, _meta("s", "The crawl ends after this time.", ge=0)] | None = None
    until_idle: Annotated[
        bool, _meta("", "The crawl ends when nothing is in flight and no new URL comes due within a minute.")
    ] = False
    report: Annotated[str, _text("file", "Where the summary is written as JSON when the crawl ends.")] | None = None
    recrawl: Annotated[
        bool,
        _meta(
            "",
            "With the add-on: known requests are made again when they come due, and the crawl goes on until it is "
            "stopped or one of its limits ends it.",
        ),
    ] = False
    fresh: Annotated[
        bool, _meta("", "With the add-on: what is known and waits is forgotten first, and the crawl begins anew.")
    ] = False
    allow_private: Annotated[
        bool, _meta("", "With the add-on and no collection file: loopback and private addresses may be asked.")
    ] = True
    crawl_delay: Annotated[
        bool,
        _meta(
            "",
            "With the add-on and no collection file: the Crawl-delay of a robots.txt that is obeyed holds, too.",
        ),
    ] = True
    retry_after: Annotated[
        bool,
        _meta(
            "",
            "With the add-on and no collection file: a site is left alone as long as the Retry-After of a 429 or 503 "
            "says.",
        ),
    ] = True
    backoff: Annotated[
        bool,
        _meta(
            "",
            "With the add-on and no collection file: a site that answers 429 or 503, or not at all, is left alone for "
            "longer each time, and given up after five in a row without an answer.",
        ),
    ] = False
    delay_factor: Annotated[
        float,
        _meta(
            "times",
            "With the add-on and no collection file: after a request a slot of a site rests so many times as long as "
            "it took.",
            ge=0,
            le=1000,
        ),
    ] = 0.0
    retry_failed: Annotated[
        bool, _meta("", "With the add-on: what failed when it was made last is made again, at the start.")
    ] = False
    items: Annotated[
        Literal["all", "changed"],
        _meta("which", "With the add-on: `changed` drops items that their page yielded before, as they are."),
    ] = "all"
    item_fields_ignored: (
        Annotated[
            str, _text("names", "Fields, with commas between, that do not count as a change (a time of scraping).")
        ]
        | None
    ) = None
    cookies: Annotated[
        bool, _meta("", "With the add-on: the cookies of sessions are kept with the store, for its owner alone.")
    ] = False
    progress: Annotated[bool, _meta("", "A live progress display on a terminal.")] = False
    log_format: Annotated[
        Literal["text", "json"], _meta("which", "The log as plain lines, or as one JSON object a line.")
    ] = "text"
    metrics: (
        Annotated[
            str,
            _text(
                "address",
                "The crawl answers /metrics and /healthz there, as 127.0.0.1:9410; a loopback address or a port.",
            ),
        ]
        | None
    ) = None
    rotate_bytes: Annotated[
        int, _meta("bytes", "A WARC file is closed and the next one begun at this size.", ge=1, le=10**12)
    ] = 1_000_000_000
    least_free_bytes: Annotated[
        int,
        _meta(
            "bytes",
            "While the disk of the copies has less, nothing is fetched; among several ants the others go on.",
            ge=0,
            le=10**15,
        ),
    ] = 200_000_000

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object]) -> FountainConfig:
        """Return the settings whose name begins with WEBFOUNTAIN_; those that are None or missing get their default.

        Raises
        ------
        InputError
            for an unknown name, a mistyped or an out-of-range value; the text names setting and value.
        """
        given = {name: mapping[name] for name in mapping if name.startswith(PREFIX) and mapping[name] is not None}
        for name in given:
            if name not in cls.__struct_encode_fields__:
                raise InputError(f"setting {name}: is unknown ({_near(name)})")
        # Settings are checked one at a time, so that the error names the setting and its value.
        for name, value in given.items():
            _check(cls, name, value)
        return msgspec.convert(given, cls, strict=False)

    @property
    def repository_folder(self) -> Path:
        """Return the folder of copies.

        Raises
        ------
        InputError
            when the store has no folder of its own and none is set.
        """
        if self.repository is not None:
            return Path(self.repository)
        scheme, _, folder = self.store.partition("://")
        if scheme not in ("rocksdb", "valkey"):
            raise InputError(
                f"setting {PREFIX}REPOSITORY: is required with the store {self.store!r} (allowed: a folder)"
            )
        return Path(folder) / "repository"


class Setting(NamedTuple):
    """One row of the manual."""

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
    except msgspec.ValidationError as error:
        expected = str(error).partition(" - at ")[0].removeprefix("Expected ").replace("`", "").partition(", got")[0]
        raise InputError(f"setting {name}: {value!r} is not allowed (allowed: {expected})") from None
