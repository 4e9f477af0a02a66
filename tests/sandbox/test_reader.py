"""Whatever a body holds, reading it ends, within bounds that the reader's processes set for themselves."""

from __future__ import annotations

import asyncio
import gzip
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.formats.markup import BOMBS, MARKUP
from webfountain.formats.document import Document, DocumentReader
from webfountain.formats.links import LinkExtractor, LinkSource
from webfountain.formats.media_type import ContentType
from webfountain.formats.sitemap import SitemapFile
from webfountain.sandbox.reader import CPU_S, FencedReader

if TYPE_CHECKING:
    from collections.abc import Iterator

HTML, XML = ContentType("text/html", "utf-8"), ContentType("text/xml", None)
URL = "http://a.example/folder/page"
ROOT = Path(__file__).resolve().parents[2]
NORMAL_MEGABYTES = 60
"""What a process that reads pages takes idle."""


@pytest.fixture(scope="module")
def reader() -> Iterator[FencedReader]:
    reader = FencedReader(LinkExtractor(robot="tester"))
    yield reader
    reader.close()


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_body_read_elsewhere_says_what_it_says_here(reader: FencedReader) -> None:
    body = b"<title>T</title><a href=x>one</a><a href=/y rel=nofollow>two</a>" + b"<p>word</p>" * 20_000
    found = reader.read(body, HTML, LinkSource(URL, anchors=True))
    assert found == DocumentReader(LinkExtractor(robot="tester")).read(body, HTML, LinkSource(URL, anchors=True))
    assert (found.links, found.anchors) == (["http://a.example/folder/x"], ["one"])
    assert reader.read_at_once(body, HTML, LinkSource(URL)) is None


def test_its_processes_find_the_package_that_the_crawl_runs_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # of a checkout that is not installed
    reader = FencedReader(LinkExtractor())
    found = reader.read(b"<title>T</title>" + b"<p>word</p>" * 20_000, HTML, LinkSource(URL))
    reader.close()
    assert (found.error, found.title) == (None, "T")


def test_an_ordinary_body_is_read_here_and_at_once(reader: FencedReader) -> None:
    found = reader.read_at_once(b"<title>T</title><a href=x>one</a>", HTML, LinkSource(URL))
    assert found == Document("T", "one", ["http://a.example/folder/x"])


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_has_a_word_and_the_next_page_is_read(name: str) -> None:
    reader = FencedReader(LinkExtractor())
    before = children_cpu_s()
    bomb = reader.read(MARKUP[name](1_000_000).encode(), HTML, LinkSource(URL))
    assert bomb.error in ("parse-time", "parse-memory")
    assert (bomb.title, bomb.text, bomb.links) == (None, "", [])
    good = reader.read(b"<p>good</p>" * 10_000, HTML, LinkSource(URL))
    assert good.text.split()[:1] == ["good"]
    reader.close()
    # Not a race with the clock: the kernel counts what the children spent, and ends them at their bound.
    assert children_cpu_s() - before < CPU_S + 3.0


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_more_memory_than_its_child_may(name: str) -> None:
    """Seen from a process of its own: until its exec a child is as large as the one that forked it."""
    script = (
        "import resource, sys\n"
        "from tests.formats.markup import MARKUP\n"
        "from webfountain.formats.media_type import ContentType\n"
        "from webfountain.formats.links import LinkExtractor, LinkSource\n"
        "from webfountain.sandbox.reader import FencedReader\n"
        "reader = FencedReader(LinkExtractor())\n"
        "body = MARKUP[sys.argv[1]](1_000_000).encode()\n"
        "assert reader.read(body, ContentType('text/html', 'utf-8'), LinkSource('http://a.example/')).error\n"
        "reader.close()\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, name], cwd=ROOT, capture_output=True, check=True, text=True)
    assert 0 < int(done.stdout) < 1024 * (256 + NORMAL_MEGABYTES)


@pytest.mark.parametrize("name", sorted(MARKUP))
def test_no_markup_of_60_kb_is_more_than_a_child_takes(reader: FencedReader, name: str) -> None:
    found = reader.read(MARKUP[name](60_000).encode(), HTML, LinkSource(URL))
    assert found.error in (None, "parse-time", "parse-memory")


def test_a_sitemap_bomb_is_a_word_or_what_could_be_read(reader: FencedReader) -> None:
    bomb = gzip.compress(b"<urlset><url><loc>http://a.example/1</loc></url>" + b"<a b='1'c>" * 400_000)
    found = reader.read_sitemap(bomb)
    assert found in ("parse-time", "parse-memory") or isinstance(found, SitemapFile)


def test_closing_ends_what_is_being_read() -> None:
    reader, found = FencedReader(LinkExtractor()), []
    slow = MARKUP["attributes with greater-than signs"](1_000_000).encode()
    thread = threading.Thread(target=lambda: found.append(reader.read(slow, HTML)))
    thread.start()
    while not reader._children:
        time.sleep(0.01)
    reader.close()
    thread.join(timeout=240)
    assert found == [Document(error="parse-crash")]
    assert reader.read(slow, HTML) == Document(error="parse-crash")


@pytest.mark.parametrize(("kills", "error"), [(1, None), (2, None), (9, "parse-crash")])
def test_a_page_whose_reader_is_killed_is_read_by_another(kills: int, error: str | None) -> None:
    """It says nothing of the page; where it happens again and again the page counts as one that readers die of."""
    reader, found = FencedReader(LinkExtractor()), []
    body = b"<p>" + b"a word and another " * 60_000
    thread = threading.Thread(target=lambda: found.append(reader.read(body, HTML)))
    thread.start()
    killed: set[object] = set()
    while thread.is_alive():
        for child in list(reader._children):
            if child not in killed and len(killed) < kills:
                killed.add(child)
                child.kill()
        time.sleep(0.001)
    thread.join()
    [document] = found
    assert document.error == error
    assert len(killed) == min(kills, 3)
    assert ("another" in document.text) is (error is None)
    reader.close()


def test_reading_apart_leaves_the_loop_to_others(reader: FencedReader) -> None:
    async def run() -> int:
        turns = 0
        body = b"<p>word</p>" * 200_000
        reading = asyncio.ensure_future(reader.run(lambda: reader.read(body, HTML), size=len(body)))
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(run()) > 10


@pytest.mark.soak
def test_no_mixture_of_markup_takes_a_gigabyte() -> None:
    reader = FencedReader(LinkExtractor())

    @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.tuples(st.sampled_from(sorted(MARKUP)), st.integers(1, 400_000)), min_size=1, max_size=4),
        st.sampled_from(["utf-8", "utf-16", "iso-2022-jp", None]),
    )
    def read(parts: list[tuple[str, int]], charset: str | None) -> None:
        body = "".join(MARKUP[name](size) for name, size in parts).encode(charset or "utf-8", "replace")
        found = reader.read(body, ContentType("text/html", charset), LinkSource(URL))
        assert found.error in (None, "parse-time", "parse-memory")

    try:
        read()
    finally:
        reader.close()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1024 * (256 + NORMAL_MEGABYTES + 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_000_000
