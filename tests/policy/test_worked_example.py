"""The worked example of docs/policies.md says what the crawl does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.manual import DOCS
from tests.trust_picture import PICTURE, RULES, WEB, crawled, draw

if TYPE_CHECKING:
    from pathlib import Path

TEXT = (DOCS / "policies.md").read_text(encoding="utf-8")


def test_the_policy_file_of_the_example_is_the_one_that_is_crawled() -> None:
    assert RULES in TEXT


def test_each_trust_of_the_example_is_what_the_crawl_holds() -> None:
    reported = {
        url: (policy, trust)
        for url, policy, trust in re.findall(r"^\| `([^`]+)` \| `(\w+)` \| ([\d.]+) \|", TEXT, re.M)
    }
    held = crawled()
    assert reported == {url: (page.policy, f"{page.trust:.3f}") for url, page in held.items()}
    assert {url for url in ("win.spam.biz/more", "win.spam.biz/bonus") if url in held} == set()
    assert held.keys() == WEB.keys()


def test_the_picture_is_drawn_from_the_crawl(tmp_path: Path) -> None:
    draw(crawled(), tmp_path / "trust.svg")
    drawn = (tmp_path / "trust.svg").read_text()
    assert drawn.startswith("<?xml")
    assert PICTURE.is_file()
    assert f"]({PICTURE.name})" in TEXT
