"""Formatters of a crawl's log lines.

Scrapy formats a line for every answer and every item, even if the log level drops the line (0.03 ms a page).
`FountainLogFormatter` formats the lines of answers and items only with LOG_LEVEL=DEBUG.

`JsonFormatter` writes one object per line (WEBFOUNTAIN_LOG_FORMAT=json). An object has `time` (UTC, ISO 8601), `level`,
`logger`, `event`, `message`, and `error` with the traceback if there is one. `event` is the name of the stat that
counts the log line (`metrics.STATS`). If no stat counts a log line, `event` names the module that wrote the line.
"""

from __future__ import annotations

import datetime
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec
from scrapy.logformatter import LogFormatter

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

__all__ = ["EVENT", "FountainLogFormatter", "JsonFormatter", "install_json_handler", "use_json"]

EVENT: Final = "event"
"""Attribute of a log record that names the event: `extra={"event": "ant/broken"}`."""


class FountainLogFormatter(LogFormatter):
    """The log formatter. Settings read: LOG_LEVEL."""

    def __init__(self, *, every_page: bool) -> None:
        self._every_page = every_page

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        level = logging.getLevelName(str(crawler.settings.get("LOG_LEVEL")).upper())
        return cls(every_page=level == logging.DEBUG)

    def crawled(self, *args: Any, **kwargs: Any) -> Any:
        """Return the log line of an answer, or None if the log level is above DEBUG."""
        return super().crawled(*args, **kwargs) if self._every_page else None

    def scraped(self, *args: Any, **kwargs: Any) -> Any:
        """Return the log line of an item, or None if the log level is above DEBUG."""
        return super().scraped(*args, **kwargs) if self._every_page else None


class JsonFormatter(logging.Formatter):
    """A formatter that writes a log record as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON. Characters that UTF-8 cannot encode are escaped."""
        at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        found = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _event(record),
            "message": _encodable(record.getMessage()),
        }
        if record.exc_info:
            found["error"] = _encodable(self.formatException(record.exc_info))
        return msgspec.json.encode(found).decode()


def install_json_handler(settings: BaseSettings) -> None:
    """Log everything as JSON, to LOG_FILE or standard error, in place of Scrapy's own handler."""
    file = settings.get("LOG_FILE")
    handler = logging.FileHandler(file, encoding="utf-8") if file else logging.StreamHandler()
    handler.setLevel(settings.get("LOG_LEVEL"))
    handler.setFormatter(JsonFormatter())
    logging.getLogger().setLevel(logging.NOTSET)
    logging.getLogger().addHandler(handler)


def use_json(settings: BaseSettings) -> None:
    """If WEBFOUNTAIN_LOG_FORMAT is "json", make all handlers of the root logger write JSON."""
    if settings.get("WEBFOUNTAIN_LOG_FORMAT") == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())


def _event(record: logging.LogRecord) -> str:
    named = getattr(record, EVENT, None)
    if isinstance(named, str):
        return named
    room, *modules = record.name.removeprefix("webfountain.").split(".")
    return f"{room}/{modules[-1]}" if modules else room


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
