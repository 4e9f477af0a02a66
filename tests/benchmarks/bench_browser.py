"""Measure the milliseconds to the first paint in Chromium, and the CPU of ``serve`` with many viewers.

``python -m tests.benchmarks.bench_browser [--pages N] [--sites N] [--viewers N] [--seconds S]``; a viewer is a page of
the overview that is open: its event stream of the live figures, and the request every 20 s that loads its charts again.
On a busy machine the time to a paint says little, so the CPU of all processes of Chromium for a load is printed, too.
Bounds of the project: 300 ms on loopback at 10^6 pages on 10^4 sites, and 5 % of a core for 50 viewers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from urllib.parse import quote

from tests.benchmarks.bench_pages import CHANGED, filled
from tests.benchmarks.bench_streams import cpu_of
from tests.service.pages.browser import TIMEOUT_MS, browser
from tests.service.pages.test_in_chromium import started
from webfountain.service.pages.views import VIEWS

ROUNDS = 5
RELOAD_S = 20.0
PAINT = "performance.getEntriesByType('paint').find(each => each.name == 'first-contentful-paint')?.startTime"


def paints(login: str, site: str) -> None:
    """Open each page several times in one window, and print the median time to its first paint."""
    here = login.split("/login", maxsplit=1)[0] + "/collections/store"
    page_url = f"?url={quote(CHANGED)}"
    more = dict.fromkeys(("page", "compare", "links"), page_url) | {
        name: f"?site={quote(site)}" for name in ("site", "pages")
    }
    with browser() as chromium:
        context = chromium.new_context(viewport={"width": 1400, "height": 900})
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        page.goto(login)
        paths = {"home": login.split("/login", maxsplit=1)[0] + "/"}
        paths |= {each.name: f"{here}{each.path}{more.get(each.name, '')}" for each in VIEWS}
        for name, address in paths.items():
            found, times = [], []
            for _ in range(ROUNDS):
                before = cpu_of_chromium()
                page.goto(address)
                while (painted := page.evaluate(PAINT)) is None:
                    page.wait_for_timeout(20)
                found.append(float(painted))
                times.append(1000 * (cpu_of_chromium() - before))
            figures = f"{median(found):6.0f} ms (at most {max(found):.0f}), {median(times):6.0f} ms of CPU"
            print(f"{name:12} first paint {figures}", flush=True)
        context.close()


def cpu_of_chromium() -> float:
    """Return the CPU seconds of all Chromium processes of this process."""
    parents = dict(pair for each in Path("/proc").glob("[0-9]*") if (pair := process_and_parent(each)) is not None)
    tree = {pid for pid, parent in parents.items() if parent == os.getpid() and is_chromium(pid)}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(cpu_of(pid) for pid in tree)


def process_and_parent(place: Path) -> tuple[int, int] | None:
    """Return the numbers of a process and of its parent, or None for a process that has ended."""
    try:
        return int(place.name), int((place / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def is_chromium(pid: int) -> bool:
    """Return whether a process is the first process of Chromium."""
    return b"--user-data-dir=" in Path(f"/proc/{pid}/cmdline").read_bytes()


async def view(address: str, viewers: int, seconds: float) -> int:
    """Act as `viewers` viewers for a time, and return the number of reloads."""
    host, _, port = address.removeprefix("http://").partition(":")
    reloads = 0

    def request(path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept-Encoding: gzip\r\n\r\n".encode()

    async def follow() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request("/v1/collections/store/live?feed=sse"))
        while await reader.read(1 << 16):
            pass

    async def reload(number: int) -> None:
        nonlocal reloads
        await asyncio.sleep(RELOAD_S * number / viewers)
        while True:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(request("/collections/store").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            answer = await reader.read()
            assert b" 200 " in answer[:20], answer[:200]
            writer.close()
            reloads += 1
            await asyncio.sleep(RELOAD_S)

    tasks = [asyncio.create_task(each) for number in range(viewers) for each in (follow(), reload(number))]
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    assert not done, [task.exception() for task in done]
    return reloads


def service_of(folder: Path) -> int:
    """Return the number of the process that serves a store."""
    found = (each for each in Path("/proc").iterdir() if each.name.isdigit())
    wanted = f"--store=rocksdb://{folder}".encode()
    return next(int(each.name) for each in found if wanted in (each / "cmdline").read_bytes())


def main() -> None:
    """Fill a store, open its pages, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=10_000)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        site = filled(folder, pages=given.pages, sites=given.sites)
        arguments = ("serve", f"--store=rocksdb://{folder}", "--listen=127.0.0.1:0")
        with started(*arguments, errors=Path(name) / "errors") as login:
            paints(login, site)
            process = service_of(folder)
            before, at = cpu_of(process), time.monotonic()
            reloads = asyncio.run(view(login.split("/login")[0], given.viewers, given.seconds))
            share = (cpu_of(process) - before) / (time.monotonic() - at)
            print(f"{given.viewers} viewers, {reloads} reloads: {100 * share:.1f} % of a core")


if __name__ == "__main__":
    main()
