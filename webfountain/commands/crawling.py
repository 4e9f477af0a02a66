"""crawl, now, forget, demo: a crawl in this process, notes to one that runs, and one of a generated web.

`crawl` does what `scrapy crawl fountain` does, and ends with words. `now` and `forget` go through the store's inbox,
so that they work whether a crawl runs or not. `demo` crawls through several periods and compares with the web's truth.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import threading
import time
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import click

from webfountain import commands
from webfountain.clock import SystemClock
from webfountain.commands.ants import follow_parent, run_ants, shared_url, write_whole
from webfountain.config import FountainConfig
from webfountain.errors import InputError, StoreHeld, WebfountainError
from webfountain.frontier.inbox import Delivered, FeedInbox, Forget, Inbox, Now
from webfountain.policy.files import read_collection
from webfountain.report.progress import Sample, freshness_summary, places, summary
from webfountain.store import Scratch, folder_of, is_held, is_shared, open_store
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import Settings

    from webfountain.demo.server import DemoServer
    from webfountain.policy.files import Collection
    from webfountain.store.contract import FrontierStore

__all__ = ["CrawlEnd", "crawl", "demo", "forget", "now", "run"]


class CrawlEnd(NamedTuple):
    """How a crawl ended: its report document, and the error that ended it, if one did."""

    report: dict[str, Any] | None
    error: WebfountainError | None

    @property
    def exit_status(self) -> int:
        """0 done, 1 failed, 2 wrong input."""
        return 0 if self.error is None else self.error.exit_status


@click.command(epilog="Example: webfountain crawl policies/docs-site.toml --until-idle")
@click.argument("collection", metavar="COLLECTION")
@commands.store
@commands.repository
@click.option(
    "--ants",
    type=click.IntRange(1),
    metavar="N",
    help="Crawl in N processes; without a server they get one of their own.",
)
@click.option("--max-pages", type=click.IntRange(1), metavar="N", help="End after so many settled fetches.")
@click.option("--max-seconds", type=click.FloatRange(0), metavar="S", help="End after so many seconds.")
@click.option("--until-idle", is_flag=True, help="End when nothing is in flight and no new URL comes due within 60 s.")
@click.option("--report", metavar="FILE", help="Write the report as JSON when the crawl ends.")
@click.option(
    "-s", "settings", metavar="NAME=VALUE", multiple=True, help="A setting, as with scrapy crawl; repeatable."
)
@commands.as_json
def crawl(*, collection: str, ants: int | None, settings: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Crawl the collection that the policy file COLLECTION describes, and keep its copy fresh.

    Goes on until it is stopped (Ctrl-C, SIGTERM), unless an option ends it. A later call goes on where this one
    ended.
    """
    if ants is not None:
        return _crawl_together(collection, ants, settings, given, as_json=as_json)
    follow_parent()
    chosen = {f"WEBFOUNTAIN_{name.upper()}": value for name, value in given.items() if value not in {None, False}}
    chosen.update(_pairs(settings))
    end = run(collection, {"WEBFOUNTAIN_PROGRESS": not as_json, **chosen})
    if end.report is not None:
        commands.print_json(end.report) if as_json else _print(end.report, FountainConfig.from_mapping(chosen))
    if end.error is not None:
        raise end.error
    return 0


def _crawl_together(
    collection: str, ants: int, settings: tuple[str, ...], given: dict[str, Any], *, as_json: bool
) -> int:
    """With many ants: a report for all, where a single one would have written its own."""
    store = shared_url(given["store"])
    config = FountainConfig.from_mapping(
        {"WEBFOUNTAIN_STORE": store, "WEBFOUNTAIN_REPOSITORY": given["repository"], **_pairs(settings)}
    )
    file = None if given["report"] is None else Path(given["report"])
    if file is not None and not os.access(file.parent, os.W_OK):
        raise InputError(f"--report {str(file)!r}: {file.parent} is not a folder that can be written")
    more = [part for pair in settings for part in ("-s", pair)]
    more += ["--until-idle"] if given["until_idle"] else []
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
        write_whole(file, report)
    commands.print_json(report) if as_json else _print(report, config)
    if report["ants_failed"]:
        raise WebfountainError("; ".join(report["ants_failed"]))
    return 0


def run(collection: str, chosen: Mapping[str, object]) -> CrawlEnd:
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
    return CrawlEnd(report, error)


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
        _PrintedOnce.listen()
    crawler = process.create_crawler("fountain")
    errors = _errors_of(crawler)
    task = process.crawl(crawler, collection=collection)
    process.start()
    failure = task.exception() if task.done() and not task.cancelled() else None
    if failure is not None and not isinstance(failure, WebfountainError):
        raise failure
    return failure or next(iter(errors), None)


class _PrintedOnce(logging.Filter):
    """What ended a crawl is one line that `cli.main` prints, so the log need not say it too."""

    _OURS: ClassVar = ("webfountain.crawl.engine", "webfountain.crawl.scheduler", "webfountain.crawl.session")

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


def _print(report: Mapping[str, Any], config: FountainConfig) -> None:
    from webfountain.report.progress import places, summary  # noqa: PLC0415
    from webfountain.store import without_password  # noqa: PLC0415

    print(summary(report))
    print(places(store=without_password(config.store), repository=config.repository_folder, example=None))


_TAKES_AT_MOST_S: Final = 5.0
"""How long to wait for a running crawl to take a note; it looks once a second."""


@click.command(epilog="Example: webfountain now https://example.org/news --store rocksdb://news")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@commands.store
@commands.as_json
def now(urls: tuple[str, ...], store: str, as_json: bool) -> None:
    """Put URLs on the immediate queue, also of a running crawl.

    A running crawl takes them within a second; otherwise they wait for the next one. Politeness and robots.txt hold
    for them too.
    """
    note = Now(tuple(canonical(url) for url in urls))
    if is_shared(store):
        with commands.reading(store) as opened:
            taken = _leave(opened, note) and opened.statistics().active_sites > 0
    else:
        folder = commands.existing_folder(store)
        path = Inbox(commands.inbox_folder(folder)).put(note)
        taken = is_held(folder) and _gone_soon(path.exists)
    if as_json:
        commands.print_json({"urls": note.urls, "taken": taken})
    else:
        waits = "in the crawl's immediate queue" if taken else "waiting for the next crawl of this store"
        print(f"{len(note.urls):,} {'URL is' if len(note.urls) == 1 else 'URLs are'} {waits}")


@click.command(epilog="Example: webfountain forget --site https://example.org")
@click.argument("url", required=False)
@click.option("--site", metavar="S", help="A whole site, as https://example.org, instead of one URL.")
@commands.store
@commands.repository
@commands.as_json
def forget(url: str | None, site: str | None, store: str, repository: str | None, as_json: bool) -> None:
    """Remove a page or a site for good: records and copies go, links to it are refused from then on."""
    note = _note(url, site)
    if is_shared(store):
        _forget_on_server(note, store, repository, as_json=as_json)
        return
    folder = commands.existing_folder(store)
    inbox = Inbox(commands.inbox_folder(folder))
    path = inbox.put(note)
    try:
        done = _deliver(inbox, store, commands.repository_folder(store, repository))
    except StoreHeld:
        _print_forgotten(note, None, taken=_gone_soon(path.exists), as_json=as_json)
    else:
        _print_forgotten(note, done, taken=True, as_json=as_json)


def _note(url: str | None, site: str | None) -> Forget:
    if (url is None) == (site is None):
        raise InputError("forget: give a URL or --site S, one of the two")
    if url is not None:
        name = canonical(url)
        return Forget(site_of(name), name)
    home = canonical(site or "")
    if home != site_of(home) + "/":
        raise InputError(f"--site {site!r}: is not a site (allowed: scheme://host[:port])")
    return Forget(site_of(home))


def _deliver(inbox: Inbox, store: str, repository: Path) -> Delivered:
    """Act on the notes here, which only the one writer of a store may."""
    from webfountain.repository import Repository  # noqa: PLC0415  only when no crawl runs

    with contextlib.closing(open_store(store, collection=None, period_s=None)) as opened:
        if not repository.is_dir():
            return inbox.deliver(opened, None, at=SystemClock().now())
        with contextlib.closing(Repository(repository)) as kept:
            return inbox.deliver(opened, kept, at=SystemClock().now())


def _forget_on_server(note: Forget, store: str, repository: str | None, *, as_json: bool) -> None:
    """The records go at once; the copies by the crawl that has the repository open, or here where nobody crawls."""
    with commands.reading(store) as opened:
        if opened.statistics().active_sites:
            key = None if note.url is None else fingerprint(note.url)
            records = opened.forget(note.site, key, at=SystemClock().now())
            taken = _leave(opened, note)
            _print_forgotten(note, Delivered(forgotten=records) if taken else None, taken=taken, as_json=as_json)
            return
        inbox = _inbox_of(opened)
        inbox.put(note)
        from webfountain.repository import Unheld  # noqa: PLC0415  only when no crawl runs

        known = repository is not None or folder_of(store) is not None
        copies = Unheld(commands.repository_folder(store, repository)) if known else None
        done = inbox.deliver(opened, copies, at=SystemClock().now())
    _print_forgotten(note, done, taken=True, as_json=as_json)


def _inbox_of(store: FrontierStore) -> FeedInbox:
    feed = store.feed()
    assert feed is not None, "a store on a server has an inbox there"
    return FeedInbox(feed)


def _leave(store: FrontierStore, note: Now | Forget) -> bool:
    """Put a note into the inbox on the server; whether a crawl has done it within some seconds."""
    inbox = _inbox_of(store)
    inbox.put(note)
    return store.statistics().active_sites > 0 and _gone_soon(lambda: not inbox.is_empty())


def _gone_soon(waits: Callable[[], bool]) -> bool:
    """Wait until the crawl has taken a note; False when it did not."""
    until = time.monotonic() + _TAKES_AT_MOST_S
    while waits():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _print_forgotten(note: Forget, done: Delivered | None, *, taken: bool, as_json: bool) -> None:
    name = note.url or note.site
    records = None if done is None else done.forgotten
    erased = None if done is None else done.erased
    if as_json:
        commands.print_json({"forgotten": name, "taken": taken, "records": records, "copies": erased})
    elif done is not None:
        print(f"{name} is forgotten: {done.forgotten:,} page records and {done.erased:,} WARC records removed")
    elif taken:
        print(f"{name} is forgotten: the running crawl removed it")
    else:
        print(f"{name}: the note waits in the inbox; the crawl that holds the store has not taken it yet")


_POLICY = Path(__file__).resolve().parents[2] / "policies" / "demo.toml"
_STORE = "rocksdb://.webfountain-demo"
_MARK = "made-by-webfountain-demo"
"""A file in the demo's folder: only a folder that has it is ever emptied."""


@click.command(epilog="Example: webfountain demo --sites 20 --seconds 30")
@click.option("--collection", metavar="FILE", default=str(_POLICY), help="Policy file.  [default: policies/demo.toml]")
@click.option(
    "--store", metavar="URL", default=_STORE, show_default=True, help="Where the frontier lives; emptied at the start."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, another web.")
@click.option("--sites", type=click.IntRange(1, 200), default=5, show_default=True, help="Sites of the web.")
@click.option(
    "--pages", type=click.IntRange(1), default=300, show_default=True, help="Live pages of all sites at the start."
)
@click.option("--seconds", type=click.FloatRange(1), default=55.0, show_default=True, help="Length of the crawl.")
@commands.as_json
def demo(*, collection: str, store: str, seed: int, sites: int, pages: int, seconds: float, as_json: bool) -> int:
    """Crawl a generated web on loopback whose pages change while you watch, and compare the copy with the truth."""
    from webfountain.demo.server import DemoServer  # noqa: PLC0415

    if sites > pages:
        raise InputError(f"--sites {sites}: more than --pages {pages}; every site has a page")
    policy = read_collection(collection)
    folder = _emptied(store)
    with _started(DemoServer, policy, seed=seed, sites=sites, pages=pages) as server:
        file = _policy_file(policy, server.urls, folder)
        if not as_json:
            print(
                f"{pages} pages on {sites} sites, {server.urls[0]} and so on; {seconds:.0f} s of crawling", flush=True
            )
        sampler = _Sampler(server, store, policy.cycle.period_s)
        chosen = {"WEBFOUNTAIN_STORE": store, "WEBFOUNTAIN_MAX_SECONDS": seconds, "WEBFOUNTAIN_PROGRESS": not as_json}
        with sampler:
            end = run(str(file), chosen)
        if end.error is not None:
            raise end.error
        sampler.measure()
    assert end.report is not None
    if as_json:
        commands.print_json({**end.report, "freshness": [sample._asdict() for sample in sampler.samples]})
        return 0
    print("\nWhat was found\n" + summary(end.report))
    print("\nHow fresh the copy is, by the server's own truth\n" + freshness_summary(sampler.samples))
    print("\nWhere the pages lie\n" + places(store=store, repository=folder / "repository", example=server.urls[0]))
    return 0


def _emptied(store: str) -> Path:
    """The folder of a demo's store, empty: the generated web begins anew, so its old copies mean nothing."""
    from webfountain.store import folder_of, is_held  # noqa: PLC0415

    folder = folder_of(store)
    if folder is None:
        raise InputError(f"--store {store!r}: the demo needs rocksdb://FOLDER")
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise InputError(f"--store {store!r}: {folder} holds something that no demo made; give another folder")
    if is_held(folder):
        raise InputError(f"--store {store!r}: another demo is running there; wait for its end, or give another folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    (folder / _MARK).touch()
    return folder


def _started(server: type[DemoServer], policy: Collection, *, seed: int, sites: int, pages: int) -> DemoServer:
    """The generated web, on the policy file's own addresses where they are free."""
    given = {"seed": seed, "sites": sites, "pages": pages, "period": policy.cycle.period_s, "latency": 0.002}
    port = next(iter(policy.seeds())).rpartition(":")[2].strip("/")
    return server(port=port, **given) if port.isdigit() and _is_free(sites, int(port)) else server(**given)


def _is_free(sites: int, port: int) -> bool:
    """Whether the generated web can have this port; else any will do, and the policy file's seeds are replaced."""
    from webfountain.demo.server import bind_sites  # noqa: PLC0415

    try:
        bound = bind_sites(sites, port=port)
    except OSError:
        return False
    for each in bound:
        each.close()
    return True


def _policy_file(policy: Collection, urls: list[str], folder: Path) -> Path:
    """The policy file itself when its seeds are the web's home pages, else a copy that names them."""
    if list(policy.seeds()) == urls:
        return policy.path
    text = policy.path.read_text(encoding="utf-8")
    begin = text.index("seeds = [")
    end = text.index("]", begin) + 1
    file = folder / "demo.toml"
    file.write_text(text[:begin] + f"seeds = {urls!r}" + text[end:], encoding="utf-8")
    return file


class _Sampler:
    """Compares the store with the server's truth at the end of every period, in a thread beside the crawl."""

    def __init__(self, server: DemoServer, store: str, period_s: float) -> None:
        self._server, self._store, self._period_s = server, store, period_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self.samples: list[Sample] = []

    def measure(self) -> None:
        """Take one sample; none when the crawl has not made its store yet, or Ctrl-C has ended the server as well."""
        from webfountain.demo.server import freshness  # noqa: PLC0415

        try:
            with commands.reading(self._store) as opened:
                digests = {record.url: record.digest for _, record in opened.pages(state="crawled")}
            truth = self._server.truth()
        except (WebfountainError, OSError, HTTPException):
            return
        period = len(self.samples) + 1
        self.samples.append(Sample(period, len(truth.pages), freshness(truth, digests)))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _measure(self) -> None:
        while not self._over.wait(self._period_s):
            self.measure()
