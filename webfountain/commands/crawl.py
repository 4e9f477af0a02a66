"""The command `crawl`: crawl a collection in this process or with several ants, and print a summary."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import click
import msgspec

from webfountain.commands import options, printing
from webfountain.commands.ants import PARENT, follow_parent, run_ants, shared_url
from webfountain.commands.children import AUTO, service_beside
from webfountain.commands.file_owners import require_writable_folder
from webfountain.commands.time_limit import call_within
from webfountain.config import FountainConfig
from webfountain.errors import InputError, WebfountainError
from webfountain.policy.collection_file import read_collection
from webfountain.private_files import write_document
from webfountain.report.store_reading import reading
from webfountain.report.troubles import Troubles, troubles_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from scrapy.settings import Settings

__all__ = ["CrawlEnd", "crawl", "exit_on_signals", "run"]

_LEVELS: Final = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")
_TROUBLES_S: Final = 1.5
"""Maximum time for reading the failed seeds and the unreachable sites after a signal to stop, in seconds."""
_WITHOUT_REPORT: Final = (
    "the crawl ended without a report; its log says why",
    None,  # The signal came before the crawl was open.
    "a second signal ended the crawl at once; the next start fetches its unsettled pages again",
)
"""For 0, 1 and more signals to stop: the error of a crawl that ended without a report, or None."""


@contextlib.contextmanager
def exit_on_signals() -> Iterator[None]:
    """End the process with status 0 on SIGINT or SIGTERM, until the crawl installs its own signal handlers."""
    before = {number: signal.signal(number, _exit) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) in (_exit, _exit_again):
                signal.signal(number, handler)


def _exit(_: int, __: FrameType | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _exit_again)
    sys.exit(0)


def _exit_again(_: int, __: FrameType | None) -> None:
    sys.exit(0)


def _exit_if_signalled() -> None:
    """End the process if a signal has arrived. Some imported modules swallow the SystemExit of the signal handler."""
    if signal.getsignal(signal.SIGTERM) is _exit_again:
        sys.exit(0)


class CrawlEnd(NamedTuple):
    """Result of a crawl: its report, and the error that ended the crawl, if any."""

    report: dict[str, Any] | None
    error: WebfountainError | None

    @property
    def exit_status(self) -> int:
        """Return 0 for success, 1 for failure, 2 for wrong input."""
        return 0 if self.error is None else self.error.exit_status


@click.command(epilog="Example: webfountain crawl mine.toml --until-idle")
@click.argument("collection", metavar="COLLECTION")
@options.store
@options.repository
@click.option(
    "--ants",
    type=click.IntRange(1),
    metavar="N",
    help="Crawl in N processes. Without the URL of a server, they start a private one.",
)
@click.option("--max-pages", type=click.IntRange(1), metavar="N", help="End after this many settled fetches.")
@click.option("--max-seconds", type=options.FiniteRange(0), metavar="S", help="End after this many seconds.")
@click.option("--until-idle", is_flag=True, help="End when nothing is in flight and no new URL comes due within 60 s.")
@click.option("--strict", is_flag=True, help="Exit with status 1 if a seed was tried but gave no page.")
@click.option("--report", metavar="FILE", help="Write the report as JSON when the crawl ends.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Plain lines, or JSON lines.  [default: text]")
@click.option(
    "-s", "settings", metavar="NAME=VALUE", multiple=True, help="Set a setting, as for `scrapy crawl`; repeatable."
)
@click.option(
    "--serve",
    "address",
    metavar="[ADDRESS]",
    is_flag=False,
    flag_value=AUTO,
    help="Serve the collection beside the crawl (see `serve`); the first line of output is the address.",
)
@options.as_json
@exit_on_signals()
def crawl(*, collection: str, ants: int | None, address: str | None, **given: Any) -> int:
    """Crawl the collection that the policy file COLLECTION describes, and keep its copies fresh.

    The crawl runs until it is stopped (Ctrl-C, SIGTERM), unless an option ends it. A later call continues where the
    last call ended.
    """
    store = given["store"] if ants is None else shared_url(given["store"])
    with service_beside(store, given["repository"], address):
        if ants is not None:
            return _crawl_together(collection, ants, **given)
        return _crawl_alone(collection, **given)


def _crawl_alone(collection: str, *, settings: tuple[str, ...], strict: bool, as_json: bool, **given: Any) -> int:
    follow_parent()
    chosen = {
        f"WEBFOUNTAIN_{name.upper()}": value
        for name, value in given.items()
        if value is not None and value is not False
    }
    chosen.update(_pairs(settings))
    shows = not as_json and given["log_format"] != "json"
    end = run(collection, {"WEBFOUNTAIN_PROGRESS": shows, **chosen})
    report = end.report
    if report is not None:
        config = FountainConfig.from_mapping(chosen)
        try:
            report |= _troubles(config, given["report"], report)
        except WebfountainError as error:
            raise end.error or error from None  # a store whose error ended the crawl does not answer now
        printing.print_json(report) if as_json else _print(report, config)
    if end.error is not None:
        raise end.error
    if strict and report is not None:
        _require_pages(report)
    return 0


def _troubles(config: FountainConfig, file: str | None, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the unreachable sites and the failed seeds, and add both to the report file.

    In an ant of `crawl --ants`, return {}, because the parent process reads the list for all ants. Return {} if the
    crawl was stopped by a signal and the store does not answer within `_TROUBLES_S`.
    """
    if PARENT in os.environ or config.store == "memory:":
        return {}

    def read() -> dict[str, Any]:
        with reading(config.store) as opened:
            found: dict[str, Any] = msgspec.to_builtins(troubles_of(opened, year=time.gmtime().tm_year))
        return found

    found = call_within(_TROUBLES_S, read) if report["finish_reason"] == "shutdown" else read()
    if found is None:
        return {}
    if file is not None:
        write_document(Path(file), {**report, **found})
    return found


def _require_pages(report: Mapping[str, Any]) -> None:
    """For the option `--strict`, raise WebfountainError if a seed was tried but gave no page."""
    if "unreachable" not in report:
        return  # the store did not answer when the crawl was stopped
    troubles = msgspec.convert(report, Troubles)
    if words := troubles.seed_words():
        raise WebfountainError(f"--strict: {words}")


def _crawl_together(
    collection: str, ants: int, *, settings: tuple[str, ...], strict: bool, as_json: bool, **given: Any
) -> int:
    """Crawl with many ants, and write one report for all."""
    store = shared_url(given["store"])
    config = FountainConfig.from_mapping(
        {"WEBFOUNTAIN_STORE": store, "WEBFOUNTAIN_REPOSITORY": given["repository"], **_pairs(settings)}
    )
    file = None if given["report"] is None else Path(given["report"])
    if file is not None:
        require_writable_folder(file, name=f"--report {str(file)!r}")
    more = [part for pair in settings for part in ("-s", pair)]
    more += ["--until-idle"] if given["until_idle"] else []
    more += [] if given["log_format"] is None else ["--log-format", given["log_format"]]
    more += [] if given["max_seconds"] is None else ["--max-seconds", str(given["max_seconds"])]
    report = run_ants(
        collection,
        ants=ants,
        store=store,
        repository=config.repository_folder,
        options=more,
        max_pages=given["max_pages"],
        show=not as_json,
    )
    if file is not None:
        write_document(file, report)
    printing.print_json(report) if as_json else _print(report, config)
    if report["ants_failed"]:
        raise WebfountainError("; ".join(report["ants_failed"]))
    if strict:
        _require_pages(report)
    return 0


def run(collection: str, chosen: Mapping[str, object]) -> CrawlEnd:
    """Crawl in this process until the crawl ends.

    A process can call this function only once, because Twisted's reactor cannot start again.

    Parameters
    ----------
    chosen : settings by name, WEBFOUNTAIN_* or Scrapy's; they override `webfountain.settings`

    Raises
    ------
    InputError
        if the policy file or a setting is wrong. Later errors are in the result.
    """
    read_collection(collection)
    settings = _settings(chosen)
    file = FountainConfig.from_mapping(settings).report
    if file is not None:
        require_writable_folder(Path(file), name=f"--report {file!r}")
    return _run(settings, collection)


def _pairs(settings: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in settings:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise InputError(f"-s {text!r} is not a setting (allowed: NAME=VALUE)")
        if name != name.upper():
            raise InputError(f"-s {text!r}: settings have capital letters (did you mean {name.upper()}?)")
        if name == "LOG_LEVEL" and value not in logging.getLevelNamesMapping():
            raise InputError(f"-s {text!r} is not a log level (allowed: {', '.join(_LEVELS)})")
        found[name] = value
    return found


def _settings(chosen: Mapping[str, object]) -> Settings:
    from scrapy.settings import Settings  # noqa: PLC0415  half a second of CPU, paid by crawls only

    settings = Settings()
    settings.setmodule("webfountain.settings", priority="project")
    # The display needs the terminal for itself; -s LOG_LEVEL=INFO switches the log on again.
    is_json = chosen.get("WEBFOUNTAIN_LOG_FORMAT") == "json"  # the output goes to a journal, not to a screen
    settings.set("LOG_LEVEL", "INFO" if is_json else "WARNING", priority="project")
    settings.update(dict(chosen), priority="cmdline")
    return settings


def _run(settings: Settings, collection: str) -> CrawlEnd:
    """Start the crawl, and wait for its end."""
    gc.disable()  # off until it crawls (`tune_memory`): the imports take a tenth less time
    from scrapy.crawler import AsyncCrawlerProcess  # noqa: PLC0415

    if settings.get("WEBFOUNTAIN_LOG_FORMAT") == "json":
        from webfountain.crawl.log_formatter import install_json_handler  # noqa: PLC0415

        install_json_handler(settings)
        settings.set("LOG_INSTALL_ROOT_HANDLER", False, priority="cmdline")
    process = AsyncCrawlerProcess(settings)
    if not settings.get("LOG_FILE"):
        _PrintedOnce.listen()
    crawler = process.create_crawler("fountain")
    _exit_if_signalled()
    task = process.crawl(crawler, collection=collection)
    process.start()
    failure = task.exception() if task.done() and not task.cancelled() else None
    if failure is not None and not isinstance(failure, WebfountainError):
        raise failure
    from webfountain.crawl.engine import stop_signals  # noqa: PLC0415
    from webfountain.crawl.session import Session  # noqa: PLC0415

    session = Session.of(crawler)
    error = failure or session.error
    if error is None and session.report is None and (why := _WITHOUT_REPORT[stop_signals()]) is not None:
        error = WebfountainError(why)
    return CrawlEnd(session.report, error)


class _PrintedOnce(logging.Filter):
    """A logging filter that drops critical errors, because `cli.main` prints the error that ended the crawl."""

    _OURS: ClassVar = ("webfountain.crawl.engine", "webfountain.crawl.scheduler", "webfountain.crawl.worker_thread")

    @classmethod
    def listen(cls) -> None:
        reported = cls()
        for name in cls._OURS:
            logging.getLogger(name).addFilter(reported)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.CRITICAL


def _print(report: Mapping[str, Any], config: FountainConfig) -> None:
    from webfountain.report.end_summary import places, summary  # noqa: PLC0415
    from webfountain.store.locations import without_password  # noqa: PLC0415

    print(summary(report))
    print(places(store=without_password(config.store), repository=config.repository_folder, example=None))
