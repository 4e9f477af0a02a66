"""A crawler of one's own: aiohttp fetches, webfountain says what and when. ``python -m tests.api.own_crawler``."""

from __future__ import annotations

import asyncio
import sys

import aiohttp

import webfountain


async def fetch(client: aiohttp.ClientSession, lease: webfountain.LeasedUrl) -> None:
    """Ask one URL, and say how it was answered."""
    try:
        async with client.get(lease.url, headers=lease.conditions, allow_redirects=False) as response:
            await lease.settle(response.status, headers=list(response.headers.items()), body=await response.read())
    except TimeoutError:
        await lease.fail("timeout")
    except aiohttp.ClientError:
        await lease.fail("network")


async def crawl(store: str, policy: str, repository: str | None = None) -> None:
    """Crawl until everything was asked once."""
    tasks: set[asyncio.Task[None]] = set()
    headers = {"User-Agent": "own-crawler/1.0 (+http://example.org/bot)"}
    async with (
        aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(20)) as client,
        webfountain.open_frontier(store, policy=policy, repository=repository, until_idle=True) as frontier,
    ):
        async for lease in frontier.leases():
            task = asyncio.create_task(fetch(client, lease))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(crawl(*sys.argv[1:]))
