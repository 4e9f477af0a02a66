"""Serve the recorded pages of two real sites on loopback, with their versions at each time.

Web time is Unix seconds of 2020 and 2021. ``python -m tests.servers.timeweb --archive timeweb.zip`` runs the server,
and `TimeServer` runs it beside a test. The pages are never part of this repository.

``/x/`` is served as ``/x/index.html``, and ``/x`` as ``/x.html`` or as a redirect to ``/x/``. Host names of the sites
in the bodies become the server's addresses. A page that does not exist at the time is answered with 404.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from bisect import bisect_right
from functools import lru_cache
from hashlib import sha1
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import ada_url
from selectolax.lexbor import LexborHTMLParser

from webfountain.lab.demo.answers import Answer, WebClock
from webfountain.lab.demo.process import ServerProcess, arguments_of
from webfountain.lab.demo.serving import add_serving_options, run_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["DAY", "SITES", "START", "TimeServer", "TimeWeb"]

SITES = ("flink", "kafka")
START = 1_577_836_800  # 2020-01-01, where the record begins
DAY = 86_400.0
_HOSTS = re.compile(rb"https?://(flink|kafka)\.apache\.org(?=[/\"'])")


class TimeWeb:
    """The sites of an archive, of which the README of the data describes the folder. `bases` are their URLs here."""

    def __init__(self, archive: str | Path, bases: Sequence[str]) -> None:
        self._zip = zipfile.ZipFile(archive)
        index: dict[str, dict[str, list[list[Any]]]] = json.loads(self._zip.read("index.json"))
        self.bases = list(bases)
        self.versions = [
            {path: ([when for when, _ in v], [blob for _, blob in v]) for path, v in index[site].items()}
            for site in SITES
        ]
        self._base_of = dict(zip((site.encode() for site in SITES), self.bases, strict=True))
        self.body = lru_cache(maxsize=500)(self._body)
        self.digest = lru_cache(maxsize=None)(self._digest)
        self.links = lru_cache(maxsize=None)(self._links)

    def version(self, site: int, path: str, t: float) -> tuple[str | None, float]:
        """Return the name of the body at `t`, or None without a page, and the start of this version."""
        times, blobs = self.versions[site].get(path, ([], []))
        at = bisect_right(times, t) - 1
        return (blobs[at], times[at]) if at >= 0 else (None, 0.0)

    def resolve(self, site: int, path: str, t: float) -> tuple[int, str]:
        """Return the status at `t`, with the recorded path for 200, or the location for 301."""
        path = path.partition("?")[0]
        candidates = (path + "index.html",) if path.endswith("/") else (path, path + ".html")
        for candidate in candidates:
            if self.version(site, candidate, t)[0]:
                return 200, candidate
        if not path.endswith("/") and self.version(site, path + "/index.html", t)[0]:
            return 301, path + "/"
        return 404, ""

    def respond(self, site: int, path: str, t: float) -> Answer:
        """Return the answer of a static server."""
        status, found = self.resolve(site, path, t)
        if status != 200:
            return Answer(status, b"Not Found" if status == 404 else b"", location=found)
        blob, since = self.version(site, found, t)
        assert blob is not None
        return Answer(200, self.body(blob), self.digest(blob), since)

    def _body(self, blob: str) -> bytes:
        return _HOSTS.sub(lambda match: self._base_of[match[1]].encode(), self._zip.read(f"blobs/{blob}"))

    def _digest(self, blob: str) -> str:
        return sha1(self.body(blob)).hexdigest()

    def _links(self, blob: str, url: str) -> list[str]:
        """Return the links of a, area, frame and iframe to the own sites, in canonical form."""
        tree = LexborHTMLParser(self.body(blob))
        written = [
            node.attributes.get("href" if node.tag in ("a", "area") else "src")
            for node in tree.css("a[href],area[href],frame[src],iframe[src]")
        ]
        joined = {_join(url, link) for link in written if link}
        return [link for link in joined if link.startswith(tuple(f"{base}/" for base in self.bases))]

    def truth(self, t: float) -> Iterator[tuple[str, str]]:
        """Yield the URLs that answer 200 at `t` and can be reached from the two home pages."""
        waiting = [f"{base}/" for base in self.bases]
        seen = set(waiting)
        while waiting:
            url = waiting.pop()
            split = urlsplit(url)
            site = self.bases.index(f"{split.scheme}://{split.netloc}")
            status, found = self.resolve(site, split.path, t)
            links = [self.bases[site] + found] if status == 301 else []
            if status == 200:
                blob = self.version(site, found, t)[0]
                assert blob is not None
                yield url, self.digest(blob)
                links = self.links(blob, url)
            new = [link for link in links if link not in seen]
            seen.update(new)
            waiting += new


def _join(base: str, link: str) -> str:
    """Return the absolute URL without fragment, or "" for an invalid link."""
    try:
        return str(ada_url.URL(link.strip(), base=base).href).partition("#")[0]
    except ValueError:
        return ""


class TimeServer(ServerProcess):
    """A server process. ``TimeServer(archive, rate=DAY, origin=START)`` serves one day per second, from the first
    day.
    """

    def __init__(self, archive: str | Path, **options: object) -> None:
        super().__init__("tests.servers.timeweb", f"--archive={archive}", *arguments_of(options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to end."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers.timeweb")
    parser.add_argument("--archive", required=True)
    parser.add_argument("--rate", type=float, default=DAY, help="web seconds a second; 0 stops time")
    parser.add_argument("--origin", type=float, default=START, help="Unix time at the start")
    add_serving_options(parser)
    options = parser.parse_args(arguments)
    clock = WebClock.start(options.origin, options.rate)
    run_server(options, len(SITES), lambda bases, _: TimeWeb(options.archive, bases), clock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
