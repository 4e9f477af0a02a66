"""The command that moves a spider from scrapy-redis: it takes over what scrapy-redis left on the server."""

from __future__ import annotations

import contextlib

import click

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.report.plurals import counted
from webfountain.store.locations import DEFAULT_STORE, without_password
from webfountain.store.opening import left_by_scrapy_redis, open_store

__all__ = ["take_over"]


@click.command("take-over", epilog="Example: webfountain take-over redis://localhost:6379/0 myspider")
@click.argument("server")
@click.argument("spider")
@click.option("--project", metavar="BOT_NAME", default="scrapybot", show_default=True, help="BOT_NAME of the project.")
@click.option("--queue", metavar="KEY", help="Key of the queue.  [default: SPIDER:requests]")
@click.option("--dupefilter", metavar="KEY", help="Key of the filter.  [default: SPIDER:dupefilter]")
@click.option("--store", metavar="URL", default=DEFAULT_STORE, help="The spider's store.  [default: on the server]")
@options.as_json
def take_over(
    *, server: str, spider: str, project: str, queue: str | None, dupefilter: str | None, store: str, as_json: bool
) -> int:
    """Take over the queue and the duplicate filter that scrapy-redis left on SERVER for SPIDER.

    Requests are read as plain data, and no code in them is run. Those that contain more than data stay in the queue,
    and the exit status is 1. Stop the spider's workers first. A second call takes over what was added since.
    """
    from webfountain.crawl.scrapy_redis import take_over as take  # noqa: PLC0415  Scrapy, which other commands do without

    url = f"{server.partition('?')[0]}?prefix=webfountain.{spider}" if store == DEFAULT_STORE else store
    names = {"requests": queue or f"{spider}:requests", "dupefilter": dupefilter or f"{spider}:dupefilter"}
    at = SystemClock().now()
    with (
        left_by_scrapy_redis(server, **names) as keys,
        contextlib.closing(
            open_store(url, collection=f"{project}.{spider}", period_s=86_400.0, fastest_s=900.0, at=at)
        ) as opened,
    ):
        done = take(keys, opened, at=at)
    if as_json:
        printing.print_json({**done._asdict(), "store": without_password(url)})
    else:
        print(
            f"{counted(done.requests, 'request')} and {counted(done.fingerprints, 'fingerprint')} were moved "
            f"to {without_password(url)}"
        )
        if done.known:
            print(f"{done.known:,} requests were known there already")
        for why, many in sorted(done.left.items(), key=lambda each: -each[1])[:10]:
            print(f"{many:,} stay in the queue: {why}")
    return 1 if done.left else 0
