"""What the urgencies of a site's pages depend on."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from webfountain.frontier.planning.urgency_terms import path_of
from webfountain.urls import canonical


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
