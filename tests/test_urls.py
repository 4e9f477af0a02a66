"""Canonical URLs, sites, fingerprints: properties, and the WHATWG parser as the reference."""

from __future__ import annotations

from urllib.parse import urlsplit

import ada_url
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webfountain.errors import UrlError
from webfountain.urls import canonical, fingerprint, from_header, host_of, join, path_of, registered_domain, site_of

HREFS = st.text(max_size=40) | st.text("abAB019/.:?#&=%+- @\\[]~;,'\"|^`{}<>\t\n", max_size=40)
HOSTS = st.sampled_from(
    ["a.example", "A.Example:80", "xn--nxasmq6b", "bücher.example", "127.0.0.1", "0x7f.1", "[::1]:8080"]
)
URLS = st.builds(
    lambda scheme, host, path: f"{scheme}://{host}{path}", st.sampled_from(["http", "HTTPS"]), HOSTS, HREFS
)
BASE = "https://a.example/docs/page.html?x=1"


def canonical_or_none(url: str) -> str | None:
    try:
        return canonical(url)
    except UrlError:
        return None


@given(URLS)
@example("http://a.example//b")
def test_canonical_is_idempotent(url: str) -> None:
    once = canonical_or_none(url)
    assert once is None or canonical(once) == once


@given(URLS)
def test_canonical_is_the_whatwg_form_without_the_fragment(url: str) -> None:
    once = canonical_or_none(url)
    if once is None:
        return
    parsed = ada_url.URL(url.strip())
    parsed.hash = ""
    assert once == parsed.href.removesuffix("#")
    assert "#" not in once


@given(HREFS)
def test_a_joined_href_is_canonical_or_nothing(href: str) -> None:
    url = join(BASE, href)
    assert url is None or canonical(url) == url


@given(URLS)
def test_site_and_path_make_up_the_url(url: str) -> None:
    once = canonical_or_none(url)
    if once is None:
        return
    site = site_of(once)
    assert once.startswith(site + "/")
    assert site_of(site) == site
    assert canonical(site + "/") == site + "/"
    assert host_of(once) == host_of(site)
    assert host_of(site) in site


@pytest.mark.parametrize(
    "text",
    ["", "a.example", "/path", "ftp://a.example/", "mailto:a@b.c", "javascript:void(0)", "http://", "http://[1/"],
)
def test_what_is_no_web_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(UrlError, match="is not an absolute http or https URL without credentials"):
        canonical(text)


@pytest.mark.parametrize("url", ["http://user@a.example/", "http://user:secret@a.example/x", "https://:pw@a.example/"])
def test_urls_with_credentials_are_not_crawled(url: str) -> None:
    assert join("", url) is None


def test_an_at_sign_in_the_path_is_no_credential() -> None:
    assert canonical("https://a.example/@user") == "https://a.example/@user"


@pytest.mark.parametrize(
    ("written", "canonical_form"),
    [
        ("HTTP://A.Example:80/%7euser/../b c?q=ü#top", "http://a.example/b%20c?q=%C3%BC"),
        (" https://a.example ", "https://a.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://a.example/index.html?b=2&a=1&", "https://a.example/index.html?b=2&a=1&"),
    ],
)
def test_only_what_the_standard_changes_is_changed(written: str, canonical_form: str) -> None:
    assert canonical(written) == canonical_form


@pytest.mark.parametrize(
    ("sent", "asked"),
    [
        ("/café".encode(), "http://a.example/caf%C3%A9"),
        ("/caf\u00e9".encode("latin-1"), "http://a.example/caf%E9"),
        ("http://bücher.example/ü?ü=ß".encode(), "http://xn--bcher-kva.example/%C3%BC?%C3%BC=%C3%9F"),
        ("/日本語".encode("euc-jp"), "http://a.example/%C6%FC%CB%DC%B8%EC"),
        (b"/caf%C3%A9", "http://a.example/caf%C3%A9"),
    ],
)
def test_a_url_in_a_header_is_read_as_browsers_read_it(sent: bytes, asked: str) -> None:
    assert join("http://a.example/", from_header(sent.decode("latin-1"))) == asked


def test_a_fingerprint_is_eight_bytes_that_stand_for_the_url() -> None:
    urls = [f"https://a.example/{n}" for n in range(5000)]
    assert len({fingerprint(url) for url in urls}) == 5000
    assert fingerprint(urls[0]) == fingerprint("https://a.example/0")
    assert len(fingerprint(urls[0])) == 8


def test_hosts_have_neither_port_nor_brackets() -> None:
    assert [host_of(site) for site in ("http://a.example:81", "http://[::1]:81", "https://[::1]/x")] == [
        "a.example",
        "::1",
        "::1",
    ]


def test_the_registered_domain_is_what_somebody_registered() -> None:
    assert [registered_domain(host) for host in ("flink.apache.org", "a.b.co.uk", "127.0.0.1", "localhost")] == [
        "apache.org",
        "b.co.uk",
        "127.0.0.1",
        "localhost",
    ]


@pytest.mark.parametrize(
    "given",
    [
        "http://a.example",
        "https://a.example:8443/b/c;d=1/e",
        "http://[2001:db8::1]/x/?next=/y/z",
        "https://a.example/?q=http://b.example/c",
        "https://b\u00fccher.example/\u00e4/b.html#c/d",
    ],
)
def test_the_path_of_a_canonical_url_ends_before_its_query(given: str) -> None:
    url = canonical(given)
    assert path_of(url) == urlsplit(url).path
