"""An operator switches what counts as the text of a page: nothing changes, and duplicates are those of the new text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.duplicates.copied_sites import DAY, A, B, Town, text

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 8
DETECTED = '[duplicates]\ndetect = true\nrevisit = "3d"\n[changes]\nkeep = "400d"\n'
MAIN = '[content]\ntext = "main"\n'
BY_LINES = '[change]\nignore = [".clock"]\n'


def article(site: int, words: str) -> str:
    """A page with a navigation of 200 words that all pages of a site have, and a text of its own."""
    links = "".join(f"<li>{word}" for word in text(1000 + site, words=200).split())
    return f"<nav><ul>{links}</ul></nav><main><p>{words}.</p></main>"


def web() -> dict[str, str]:
    """Site A has an article for each number, and B the same ones in another navigation. Two more pages of A differ in
    three words of a hundred: less than a tenth of the whole text, and more of the main content.
    """
    home = "".join(f'<a href="/{number}">{text(number, words=9)}</a>' for number in range(PAGES + 2))
    pages = {f"{site}/": f"<p>{text(50 + i)}</p>{home}" for i, site in enumerate((A, B))}
    pages |= {f"{site}/{n}": article(i, text(n, words=120)) for i, site in enumerate((A, B)) for n in range(PAGES)}
    short = {f"{A}/{PAGES + i}": article(0, text(PAGES, words=100, changed=3 * i)) for i in range(2)}
    return pages | short


@pytest.mark.parametrize(("before", "after"), [("", MAIN), (MAIN, ""), ("", BY_LINES), (BY_LINES, MAIN)])
def test_a_switch_of_the_rules_is_no_change_and_duplicates_follow_it(tmp_path: Path, before: str, after: str) -> None:
    town = Town(tmp_path, web(), seeds=(A, B), rest=DETECTED + before)
    town.drive.run(seconds=8 * DAY)
    assert pairs(town) == expected(before)
    end, store, clock = town.drive.store.changes.end(), town.drive.store, town.drive.clock
    town.drive.frontier.close()
    town = Town(tmp_path, web(), seeds=(A, B), rest=DETECTED + after, store=store, clock=clock)
    town.drive.run(seconds=40 * DAY)
    found = Counter(entry.verdict for _, entry in store.changes.after(end, 1000))
    assert set(found) <= {"duplicate", "returned"}
    assert found.total() <= 2 * PAGES + 2, found  # each page once: none goes to and fro
    assert pairs(town) == expected(after)


def expected(rules: str) -> set[tuple[str, str]]:
    """By the main content the copies of B repeat A, by the whole text two short pages of A repeat each other."""
    if rules == MAIN:
        return {(f"/{number}", f"/{number}") for number in range(PAGES)}
    return {(f"/{PAGES + 1}", f"/{PAGES}")}


def pairs(town: Town) -> set[tuple[str, str]]:
    """Paths of duplicates and of what they repeat, in a fixed order."""
    found = set()
    for _, record in town.drive.store.pages.records():
        if record.duplicate_of is not None:
            paths = [url.removeprefix(A).removeprefix(B) for url in (record.url, record.duplicate_of)]
            found.add((max(paths), min(paths)))
    return found
