"""crawl: run a collection's crawl in this process, as `scrapy crawl fountain` does, and end it with words."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import click

from webfountain.commands import options
from webfountain.config import FountainConfig
from webfountain.errors import InputError, WebfountainError
from webfountain.policy.files import read_collection
from webfountain.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import Settings

__all__ = ["End", "crawl", "run"]


class End(NamedTuple):
    """How a crawl ended: its report document, and the error that ended it, if one did."""

    report: dict[str, Any] | None
    error: WebfountainError | None

    @property
    def exit_status(self) -> int:
        """0 done, 1 failed, 2 wrong input."""
        return 0 if self.error is None else self.error.exit_status


@click.command()
@click.argument("collection", metavar="COLLECTION")
@options.store
@options.repository
@click.option("--max-pages", type=click.IntRange(1), metavar="N", help="End after so many settled fetches.")
@click.option("--max-seconds", type=click.FloatRange(0), metavar="S", help="End after so many seconds.")
@click.option("--until-idle", is_flag=True, help="End when nothing is in flight and no new URL comes due within 60 s.")
@click.option("--report", metavar="FILE", help="Write the report as JSON when the crawl ends.")
@click.option(
    "-s", "settings", metavar="NAME=VALUE", multiple=True, help="A setting, as with scrapy crawl; repeatable."
)
@options.as_json
def crawl(*, collection: str, settings: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Crawl the collection that the policy file COLLECTION describes, and keep its copy fresh.

    Goes on until it is stopped (Ctrl-C, SIGTERM), unless an option ends it. A later call goes on where this one
    ended. Example: webfountain crawl policies/docs-site.toml --until-idle
    """
    chosen = {f"WEBFOUNTAIN_{name.upper()}": value for name, value in given.items() if value not in {None, False}}
    chosen.update(_pairs(settings))
    end = run(collection, {"WEBFOUNTAIN_PROGRESS": not as_json, **chosen})
    if end.report is not None:
        options.print_json(end.report) if as_json else _print(end.report, chosen)
    if end.error is not None:
        raise end.error
    return 0


def run(collection: str, chosen: Mapping[str, object]) -> End:
    """Crawl in this process until the crawl ends; at most once per process (Twisted's reactor starts once).

    Parameters
    ----------
    chosen : settings above those of `webfountain.settings`, WEBFOUNTAIN_* or Scrapy's

    Raises
    ------
    InputError
        when the policy file or a setting is wrong. What goes wrong later is in the result.
    """
    read_collection(collection)
    with Scratch() as folder:
        settings = _settings({"WEBFOUNTAIN_REPORT": str(folder / "report.json"), **chosen})
        FountainConfig.from_mapping(settings)
        file = Path(settings.get("WEBFOUNTAIN_REPORT"))
        if not os.access(file.parent, os.W_OK):
            raise InputError(f"--report {str(file)!r}: {file.parent} is not a folder that can be written")
        error = _run(settings, collection)
        report = json.loads(file.read_bytes()) if file.is_file() else None
    if error is None and report is None:
        error = WebfountainError("the crawl ended without a report; its log says why")
    return End(report, error)


def _pairs(settings: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in settings:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise InputError(f"-s {text!r}: is no setting (allowed: NAME=VALUE)")
        found[name] = value
    return found


def _settings(chosen: Mapping[str, object]) -> Settings:
    from scrapy.settings import Settings  # noqa: PLC0415  half a second of CPU, paid by crawls only

    settings = Settings()
    settings.setmodule("webfountain.settings", priority="project")
    # The display has the terminal for itself; -s LOG_LEVEL=INFO brings the log back.
    settings.set("LOG_LEVEL", "WARNING", priority="project")
    settings.update(dict(chosen), priority="cmdline")
    return settings


def _run(settings: Settings, collection: str) -> WebfountainError | None:
    """Start the crawl and wait for its end; the error that ended it."""
    from scrapy.crawler import AsyncCrawlerProcess  # noqa: PLC0415

    process = AsyncCrawlerProcess(settings)
    if not settings.get("LOG_FILE"):
        _Told.listen()
    crawler = process.create_crawler("fountain")
    errors = _errors_of(crawler)
    task = process.crawl(crawler, collection=collection)
    process.start()
    failure = task.exception() if task.done() and not task.cancelled() else None
    if failure is not None and not isinstance(failure, WebfountainError):
        raise failure
    return failure or next(iter(errors), None)


class _Told(logging.Filter):
    """What ended a crawl is one line that `cli.main` prints, so the log need not say it too."""

    _OURS: ClassVar = ("webfountain.crawl.engine", "webfountain.crawl.scheduler", "webfountain.crawl.worker")

    @classmethod
    def listen(cls) -> None:
        told = cls()
        for name in cls._OURS:
            logging.getLogger(name).addFilter(told)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.CRITICAL


def _errors_of(crawler: Crawler) -> list[WebfountainError]:
    """Will hold what ended the crawl, once it is closed."""
    from scrapy import signals  # noqa: PLC0415

    from webfountain.crawl.session import Session  # noqa: PLC0415

    errors: list[WebfountainError] = []

    def closed() -> None:
        if (error := Session.of(crawler).error) is not None:
            errors.append(error)

    crawler.signals.connect(closed, signals.spider_closed, weak=False)
    return errors


def _print(report: Mapping[str, Any], chosen: Mapping[str, object]) -> None:
    from webfountain.report.summary import places, summary  # noqa: PLC0415
    from webfountain.store import without_password  # noqa: PLC0415

    config = FountainConfig.from_mapping(chosen)
    print(summary(report))
    print(places(store=without_password(config.store), repository=config.repository_folder, example=None))
