"""The command `demo`: crawl a generated web on loopback for about a minute."""

from __future__ import annotations

import shutil
import threading
from http.client import HTTPException
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from webfountain.commands import options, printing
from webfountain.commands.children import AUTO, service_beside
from webfountain.commands.crawl import run
from webfountain.errors import InputError, WebfountainError
from webfountain.policy.collection_file import example, read_collection
from webfountain.report.end_summary import places, summary
from webfountain.report.plurals import counted
from webfountain.report.store_reading import DEMO_STORE, reading

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webfountain.lab.demo.process import DemoServer
    from webfountain.policy.collection import Collection

__all__ = ["Sample", "demo", "freshness_summary"]

_MARK = "made-by-webfountain-demo"
"""The demo empties only folders that contain a file with this name."""
_BAR: Final = 40


class Sample(NamedTuple):
    """Measured freshness of the copies at one moment."""

    period: int
    """Number of time periods since the crawl began."""
    pages: int
    """Number of pages that existed when the sample was taken."""
    fresh: float
    """Share of the pages whose newest copy equals the page on the server."""


@click.command(epilog="Example: webfountain demo --sites 20 --seconds 30")
@click.option(
    "--collection",
    metavar="FILE",
    default=lambda: str(example("demo.toml")),
    help="Policy file.  [default: webfountain's demo.toml]",
)
@click.option("--store", metavar="URL", default=DEMO_STORE, show_default=True, help="The store, emptied at the start.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the generated web.")
@click.option("--sites", type=click.IntRange(1, 200), default=5, show_default=True, help="Number of sites.")
@click.option(
    "--pages", type=click.IntRange(1), default=300, show_default=True, help="Live pages of all sites at the start."
)
@click.option(
    "--seconds", type=options.FiniteRange(1), default=55.0, show_default=True, help="Length of the crawl in seconds."
)
@click.option("--serve", is_flag=True, help="Serve the collection beside the crawl (see `serve`).")
@options.as_json
def demo(
    *, collection: str, store: str, seed: int, sites: int, pages: int, seconds: float, serve: bool, as_json: bool
) -> int:
    """Crawl a generated web on loopback whose pages change during the crawl, and compare the copies with the true
    pages."""
    from webfountain.lab.demo.process import DemoServer  # noqa: PLC0415

    if sites > pages:
        raise InputError(f"--sites {sites}: more than --pages {pages}; every site has a page")
    policy = read_collection(collection)
    folder = _emptied(store)
    with _started(DemoServer, policy, seed=seed, sites=sites, pages=pages) as server:
        file = _policy_file(policy, server.urls, folder)
        if not as_json:
            size = f"{counted(pages, 'page')} on {counted(sites, 'site')}"
            print(f"{size}, {server.urls[0]} and so on; {seconds:.0f} s of crawling", flush=True)
        sampler = _Sampler(server, store, policy.cycle.period_s)
        chosen = {"WEBFOUNTAIN_STORE": store, "WEBFOUNTAIN_MAX_SECONDS": seconds, "WEBFOUNTAIN_PROGRESS": not as_json}
        with sampler, service_beside(store, None, AUTO if serve else None):
            end = run(str(file), chosen)
        if end.error is not None:
            raise end.error
        sampler.measure()
    assert end.report is not None
    if as_json:
        printing.print_json({**end.report, "freshness": [sample._asdict() for sample in sampler.samples]})
        return 0
    print("\nWhat was found\n" + summary(end.report))
    print("\nHow fresh the copies are, compared with the server's pages\n" + freshness_summary(sampler.samples))
    print("\nWhere the pages are\n" + places(store=store, repository=folder / "repository", example=server.urls[0]))
    return 0


def freshness_summary(samples: Sequence[Sample]) -> str:
    """Return the measured freshness as text, with a bar for each sample."""
    if not samples:
        return "  not measured: the crawl ended before the first period did"
    last = samples[-1]
    lines = [f"  {last.fresh:.1%} of the {last.pages:,} live pages have a copy that equals the server's page"]
    for sample in samples:
        full = round(sample.fresh * _BAR)
        lines.append(f"  period {sample.period:>3}  {'█' * full}{'·' * (_BAR - full)} {sample.fresh:6.1%}")
    return "\n".join(lines)


def _emptied(store: str) -> Path:
    """Empty the folder of a demo's store, and return the folder's path."""
    from webfountain.store.locations import folder_of, is_in_use  # noqa: PLC0415

    folder = folder_of(store)
    if folder is None:
        raise InputError(f"--store {store!r}: the demo needs rocksdb://FOLDER")
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise InputError(f"--store {store!r}: {folder} contains files that the demo did not make; give another folder")
    if is_in_use(folder):
        raise InputError(
            f"--store {store!r}: another demo is running there; wait until it ends, or give another folder"
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    (folder / _MARK).touch()
    return folder


def _started(server: type[DemoServer], policy: Collection, *, seed: int, sites: int, pages: int) -> DemoServer:
    """Start the generated web, if possible at the addresses in the policy file."""
    given = {"seed": seed, "sites": sites, "pages": pages, "period": policy.cycle.period_s, "latency": 0.002}
    port = next(iter(policy.seeds())).rpartition(":")[2].strip("/")
    return server(port=port, **given) if port.isdigit() and _is_free(sites, int(port)) else server(**given)


def _is_free(sites: int, port: int) -> bool:
    from webfountain.lab.demo.server import bind_sites  # noqa: PLC0415

    try:
        bound = bind_sites(sites, port=port)
    except OSError:
        return False
    for each in bound:
        each.close()
    return True


def _policy_file(policy: Collection, urls: list[str], folder: Path) -> Path:
    """Return the path of the policy file, or of a copy in which the seeds are `urls`."""
    if list(policy.seeds()) == urls:
        return policy.path
    text = policy.path.read_text(encoding="utf-8")
    begin = text.index("seeds = [")
    end = text.index("]", begin) + 1
    file = folder / "demo.toml"
    file.write_text(text[:begin] + f"seeds = {urls!r}" + text[end:], encoding="utf-8")
    return file


class _Sampler:
    """Compares the store with the true pages at the end of every period."""

    def __init__(self, server: DemoServer, store: str, period_s: float) -> None:
        self._server, self._store, self._period_s = server, store, period_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self.samples: list[Sample] = []

    def measure(self) -> None:
        """Take one sample, if the store exists and the server runs."""
        from webfountain.lab.demo.process import freshness  # noqa: PLC0415

        try:
            with reading(self._store) as opened:
                digests = {record.url: record.digest for _, record in opened.pages.records(state="crawled")}
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
