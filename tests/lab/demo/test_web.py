"""The generated web is a function of seed and time, and what it states about itself is so."""

from __future__ import annotations

import gzip
import re
from itertools import pairwise
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webfountain.lab.demo.changes import MAJOR, MINOR, TRIVIAL
from webfountain.lab.demo.site import LINKS
from webfountain.lab.demo.web import GeneratedWeb, generated_web

SMALL: dict[str, Any] = {"sites": 2, "pages": 40, "body_bytes": 2000, "links": 9}
times = st.floats(0, 40, allow_nan=False)


@pytest.fixture(scope="module")
def web() -> GeneratedWeb:
    return generated_web(3, **SMALL)


@settings(max_examples=25, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.lists(times, min_size=2, max_size=5))
def test_bodies_do_not_depend_on_the_order_of_asking(seed: int, moments: list[float]) -> None:
    one, other = generated_web(seed, **SMALL), generated_web(seed, **SMALL)
    paths = [page.path for page in one.sites[1].pages]
    forth = {(p, t): one.body(1, p, t) for t in moments for p in paths}
    back = {(p, t): other.body(1, p, t) for t in reversed(moments) for p in reversed(paths)}
    assert forth == back


@settings(max_examples=60, deadline=None)
@given(st.data(), times, times)
def test_the_body_differs_exactly_when_the_version_does(
    web: GeneratedWeb, data: st.DataObject, s: float, t: float
) -> None:
    path = data.draw(st.sampled_from([page.path for page in web.sites[0].pages]))
    versions = web.version(0, path, s), web.version(0, path, t)
    bodies = web.body(0, path, s), web.body(0, path, t)
    assert (versions[0] == versions[1]) == (bodies[0] == bodies[1])
    assert [v == 0 for v in versions] == [b is None for b in bodies]
    if s <= t and 0 not in versions:
        assert versions[0] <= versions[1]


@settings(max_examples=30, deadline=None)
@given(times)
def test_following_links_finds_exactly_the_pages_of_the_truth(web: GeneratedWeb, t: float) -> None:
    truth = dict(web.truth(t))
    assert crawl(web, t) == set(truth)


def crawl(web: GeneratedWeb, t: float) -> set[str]:
    """Pages found from the home pages, kept out of /private/ and through redirects."""
    waiting = [f"{base}/" for base in web.bases]
    seen, found = set(waiting), set()
    while waiting:
        url = waiting.pop()
        base, path = url[: url.index("/", 8)], urlsplit(url).path
        if path.startswith("/private/"):
            continue
        answer = web.respond(web.bases.index(base), path, t)
        links = [answer.location] if answer.location else re.findall('<a href="([^"]+)"', answer.body.decode())
        if answer.status == 200:
            found.add(url)
        new = {urldefrag(urljoin(url, link)).url for link in links} - seen
        seen |= new
        waiting += new
    return found


def test_pages_change_as_often_as_stated() -> None:
    web = generated_web(5, sites=1, pages=600, births=0, deaths=0)
    periods = 60.0
    for share, rate in ((0.05, 1.0), (0.1, 1 / 3), (0.25, 0.0)):
        paths = [page.path for page in web.sites[0].pages if page.rate == rate]
        changes = sum(web.version(0, path, periods) - 1 for path in paths)
        expected = rate * periods * len(paths)
        assert len(paths) == pytest.approx(share * 600, rel=0.5)
        assert changes == pytest.approx(expected, abs=4 * expected**0.5)


def test_gaps_between_changes_are_those_of_a_poisson_process() -> None:
    web = generated_web(6, sites=1, pages=200, rates=((1.0, 2.0),), births=0, deaths=0)
    gaps = []
    for page in web.sites[0].pages:
        moments = [time for time, _ in web.changes(0, page.path, 20.0)]
        gaps += [b - a for a, b in pairwise(moments)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(0.5, rel=0.05)
    assert sum(gap > mean for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.02)


def shingles(body: bytes) -> set[tuple[str, ...]]:
    text = re.sub(r"<!--.*?-->|<style>.*?</style>|<title>.*?</title>|<[^>]+>", " ", body.decode(), flags=re.S)
    words = text.lower().split()
    return {tuple(words[i : i + 4]) for i in range(len(words) - 3)}


def test_trivial_changes_leave_the_text_minor_ones_most_of_it_major_ones_rewrite_it() -> None:
    web = generated_web(7, sites=1, pages=60, rates=((1.0, 1.0),), births=0, deaths=0)
    resemblances: dict[int, list[float]] = {TRIVIAL: [], MINOR: [], MAJOR: []}
    for page in web.sites[0].pages:
        for time, kind in web.changes(0, page.path, 8.0):
            bodies = web.body(0, page.path, time - 1e-9), web.body(0, page.path, time)
            before, after = (shingles(body or b"") for body in bodies)
            resemblances[kind].append(len(before & after) / len(before | after))
    assert set(resemblances[TRIVIAL]) == {1.0}
    assert 0.95 < min(resemblances[MINOR]) <= max(resemblances[MINOR]) < 1.0
    assert 0.3 < min(resemblances[MAJOR]) <= max(resemblances[MAJOR]) < 0.7


def test_only_stamped_pages_change_trivially_and_all_of_a_text_is_rewritten_in_time() -> None:
    web = generated_web(12, sites=1, pages=60, rates=((1.0, 1.0),), births=0, deaths=0)
    for page in web.sites[0].pages:
        kinds = [kind for _, kind in web.changes(0, page.path, 40.0)]
        assert (TRIVIAL in kinds) == page.stamped
        before, after = (shingles(web.body(0, page.path, t) or b"") for t in (0.0, 40.0))
        assert page.stamped or len(before & after) / len(before | after) < 0.1


def test_links_stay_on_the_site_in_85_of_100_and_prefer_few_pages() -> None:
    web = generated_web(8, sites=4, pages=800)
    site = web.sites[0]
    links = [site.links[i].split(b'"')[1].decode() for i in range(LINKS)]
    own = [link for link in links if link.startswith(("/", site.base))]
    assert len(own) / len(links) == pytest.approx(0.85, abs=0.02)
    paths = [link.removeprefix(site.base).partition("#")[0] for link in own]
    top = sum(paths.count(page.path) for page in site.pages[:14])
    assert top / len(own) == pytest.approx(0.47, abs=0.06)  # log(15) / log(201), less the odd links


def test_sizes_are_about_those_asked_for() -> None:
    web = generated_web(9, sites=2, pages=100, body_bytes=20_000, links=60)
    bodies = [web.body(0, page.path, 0.0) or b"" for page in web.sites[0].pages[:50]]
    assert sum(map(len, bodies)) / 50 == pytest.approx(20_000, rel=0.1)
    assert sum(body.count(b"<a ") for body in bodies) / 50 == pytest.approx(60, rel=0.1)
    assert sum(1 for _ in web.truth(0.0)) == 100


def test_pages_are_born_and_die_only_as_many_as_stated() -> None:
    web = generated_web(10, sites=2, pages=400, births=0.5, deaths=0.2, span=10.0)
    assert [sum(1 for _ in web.truth(t)) for t in (0.0, 100.0)] == [400, pytest.approx(520, abs=35)]
    dead = [(s.number, p) for s in web.sites for p in s.pages if p.death < 100.0]
    assert not any(p.children for _, p in dead)
    assert {web.respond(site, p.path, 100.0).status for site, p in dead} == {404, 410}
    assert all(web.respond(site, p.path, p.death - 1e-6).status == 200 for site, p in dead)


def test_redirects_lead_to_pages_and_what_was_never_there_is_404(web: GeneratedWeb) -> None:
    first = web.respond(0, "/go/1", 0.0)
    second = web.respond(0, first.location, 0.0)
    assert [first.status, second.status] == [302, 301]
    assert web.version(0, second.location, 0.0) == 1
    assert {web.respond(0, path, 0.0).status for path in ("/missing/1", "/old/x", "/old/999", "/sitemap-9.xml")} == {
        404
    }


def test_sitemaps_list_a_share_of_the_live_pages_with_the_dates_of_their_changes() -> None:
    web = generated_web(11, sites=2, pages=200, sitemap_share=0.5, utc=lambda t: 1.7e9 + t)
    plain = web.respond(0, "/sitemap.xml", 5.0).body.decode()
    index = web.respond(1, "/sitemap.xml", 5.0).body.decode()
    packed = gzip.decompress(web.respond(1, "/sitemap-1.xml.gz", 5.0).body).decode()
    assert f"{web.bases[1]}/sitemap-1.xml.gz" in index
    truth = dict(web.truth(5.0))
    listed = re.findall("<loc>(.*?)</loc><lastmod>(2023-11-1[45]T[0-9:.]*Z)</lastmod>", plain + packed)
    assert {url for url, _ in listed} <= set(truth)
    assert len(listed) / len(truth) == pytest.approx(0.5, abs=0.1)


def test_more_sites_than_pages_are_refused() -> None:
    with pytest.raises(ValueError, match="sites 5 must be from 1 to"):
        generated_web(1, sites=5, pages=4)
