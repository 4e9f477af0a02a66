"""Hostile behaviours of robots.txt and sitemaps. ``/bad`` is an ordinary page of these sites."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING

from tests.formats.markup import packed
from tests.servers.behaviours import BEHAVIOURS, LIMIT_SECONDS, Ask, Behaviour, behaviour, flood, send
from tests.servers.pages import zeros_gzipped

if TYPE_CHECKING:
    from asyncio import StreamWriter

__all__: list[str] = []

ROBOTS = "/robots.txt"
SITEMAP = "/sitemap"
STATUSES = {401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 429: "Too Many Requests"}
STATUSES |= {500: "Internal Server Error", 503: "Service Unavailable"}
XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def _enter(status: int, phrase: str) -> None:
    async def act(_: Ask, writer: StreamWriter) -> None:
        await send(writer, "User-agent: *\nDisallow: /\n", status=f"{status} {phrase}", media_type="text/plain")

    act.__doc__ = f"robots.txt answers {status}, with a body that forbids all."
    BEHAVIOURS[f"robots-{status}"] = Behaviour(f"robots-{status}", ROBOTS, frozenset(), act)


for _status, _phrase in STATUSES.items():
    _enter(_status, _phrase)


@behaviour(place=ROBOTS)
async def robots_huge(_: Ask, writer: StreamWriter) -> None:
    """2 MB of robots.txt: forbids /bad at its start and /good behind the first 500 KiB."""
    rules = "User-agent: *\nDisallow: /bad\n" + "Disallow: /x/yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n" * 43_000
    await send(writer, rules + "Disallow: /good\n", media_type="text/plain")


@behaviour(place=ROBOTS)
async def robots_endless(_: Ask, writer: StreamWriter) -> None:
    """robots.txt without end; forbids /bad at its start."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow: /bad\n")
    await flood(writer, b"Disallow: /x\n")


@behaviour(place=ROBOTS)
async def robots_redirect_loop(ask: Ask, writer: StreamWriter) -> None:
    """robots.txt redirects to itself under ever new queries."""
    await send(writer, b"", f"Location: /robots.txt?{ask.nth}", status="302 Found")


@behaviour(place=ROBOTS)
async def robots_redirected(ask: Ask, writer: StreamWriter) -> None:
    """robots.txt is one redirect away and forbids /bad."""
    if "?" in ask.path:
        await send(writer, "User-agent: *\nDisallow: /bad\n", media_type="text/plain")
    else:
        await send(writer, b"", "Location: /robots.txt?here", status="301 Moved Permanently")


@behaviour(place=ROBOTS)
async def robots_silent(_: Ask, writer: StreamWriter) -> None:
    """robots.txt is never answered."""
    await asyncio.sleep(LIMIT_SECONDS)


@behaviour(place=ROBOTS)
async def robots_reset(_: Ask, writer: StreamWriter) -> None:
    """The connection ends when robots.txt is asked."""


@behaviour(place=ROBOTS)
async def robots_binary(_: Ask, writer: StreamWriter) -> None:
    """robots.txt is 50 kB of bytes that are no text."""
    await send(writer, bytes(range(256)) * 200, media_type="text/plain")


@behaviour(place=ROBOTS)
async def robots_html(_: Ask, writer: StreamWriter) -> None:
    """robots.txt is an HTML page with status 200."""
    await send(writer, "<html><body>Not found, but 200</body></html>")


@behaviour(place=ROBOTS)
async def robots_with_mark(_: Ask, writer: StreamWriter) -> None:
    """robots.txt with a byte order mark, CR line ends and odd case; forbids /bad."""
    await send(writer, b"\xef\xbb\xbfUSER-AGENT : *\rdisALLOW : /bad\r", media_type="text/plain")


@behaviour(place=ROBOTS)
async def robots_delay_of_a_year(_: Ask, writer: StreamWriter) -> None:
    """A Crawl-delay of a year."""
    await send(writer, "User-agent: *\nCrawl-delay: 31536000\n", media_type="text/plain")


@behaviour(place=ROBOTS)
async def robots_delay_garbage(_: Ask, writer: StreamWriter) -> None:
    """Crawl-delays that are negative, infinite and no number."""
    delays = "".join(f"Crawl-delay: {delay}\n" for delay in ("-5", "inf", "nan", "soon"))
    await send(writer, f"User-agent: *\n{delays}", media_type="text/plain")


@behaviour(place=ROBOTS)
async def robots_of_patterns(_: Ask, writer: StreamWriter) -> None:
    """Rules of many wildcards, which make a backtracking matcher slow."""
    rule = "Disallow: /" + "*a" * 40 + "$\n"
    await send(writer, "User-agent: *\n" + rule * 50, media_type="text/plain")


@behaviour(place=SITEMAP)
async def sitemap_index_loop(ask: Ask, writer: StreamWriter) -> None:
    """A sitemap index that names itself and two more like it."""
    locs = "".join(f"<sitemap><loc>{ask.base}/sitemap{i}.xml</loc></sitemap>" for i in ("", ask.nth, -ask.nth))
    await send(writer, f"<sitemapindex {XMLNS}>{locs}</sitemapindex>", media_type="application/xml")


@behaviour(place=SITEMAP, body=zeros_gzipped)
async def sitemap_bomb(_: Ask, writer: StreamWriter) -> None:
    """A gzipped sitemap of 100 MB."""
    await send(writer, zeros_gzipped(), media_type="application/gzip")


@behaviour(place=SITEMAP)
async def sitemap_entities(_: Ask, writer: StreamWriter) -> None:
    """Entities of entities: a billion laughs (and a look at a local file)."""
    names = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    doctype = f'<!DOCTYPE urlset [<!ENTITY e0 "ha"><!ENTITY f SYSTEM "file:///etc/passwd">{names}]>'
    body = f"<?xml version='1.0'?>{doctype}<urlset {XMLNS}><url><loc>http://x/&e9;&f;</loc></url></urlset>"
    await send(writer, body, media_type="application/xml")


@behaviour(place=SITEMAP)
async def sitemap_of_foreign_sites(ask: Ask, writer: StreamWriter) -> None:
    """A sitemap that lists pages of other sites, schemes and a page of the plain site."""
    urls = [
        "http://192.0.2.1/x",
        "file:///etc/passwd",
        "javascript:1",
        f"{ask.sites['plain']}/lured",
        "not a url",
    ]
    await _urlset(writer, [(url, "2024-01-01") for url in urls])


@behaviour(place=SITEMAP)
async def sitemap_cut_short(ask: Ask, writer: StreamWriter) -> None:
    """A sitemap that ends in the middle of an element, behind one good URL."""
    body = f"<urlset {XMLNS}><url><loc>{ask.base}/good</loc></url><url><loc>{ask.base}/ba"
    await send(writer, body, media_type="application/xml")


@behaviour(place=SITEMAP)
async def sitemap_dates(ask: Ask, writer: StreamWriter) -> None:
    """lastmod of tomorrow, of the year 9999, before the web, and no date at all, for one page."""
    dates = ("9999-12-31", "2199-01-01T00:00:00Z", "0001-01-01", "yesterday", "", "2024-13-45T99:99:99+99:99")
    await _urlset(writer, [(f"{ask.base}/good", date) for date in dates])


@behaviour(place=SITEMAP)
async def sitemap_endless(ask: Ask, writer: StreamWriter) -> None:
    """A sitemap without end."""
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n<urlset {XMLNS}>".encode())
    await flood(writer, f"<url><loc>{ask.base}/good</loc></url>".encode())


async def _urlset(writer: StreamWriter, urls: list[tuple[str, str]]) -> None:
    entries = "".join(f"<url><loc>{url}</loc><lastmod>{date}</lastmod></url>" for url, date in urls)
    await send(writer, f"<urlset {XMLNS}>{entries}</urlset>", media_type="application/xml")


@behaviour(place=SITEMAP)
async def sitemap_of_ampersands(ask: Ask, writer: StreamWriter) -> None:
    """50 MB of ampersands behind a good entry, as 50 kB of gzip."""
    start = f"<urlset {XMLNS}><url><loc>{ask.base}/good</loc></url>".encode()
    await send(writer, packed(start, b"&"), media_type="application/x-gzip")


@behaviour(place=SITEMAP)
async def sitemap_of_empty_members(ask: Ask, writer: StreamWriter) -> None:
    """A good entry, then 8 MB of empty gzip members."""
    start = gzip.compress(f"<urlset {XMLNS}><url><loc>{ask.base}/good</loc></url></urlset>".encode())
    await send(writer, start + gzip.compress(b"") * 400_000, media_type="application/x-gzip")


@behaviour(place=SITEMAP)
async def sitemap_with_an_emoji(ask: Ask, writer: StreamWriter) -> None:
    """A feed with an emoji written as two surrogates."""
    item = f"<item><title>&#55357;&#56832;</title><link>{ask.base}/good</link></item>"
    await send(writer, f"<rss><channel>{item}</channel></rss>", media_type="application/rss+xml")
