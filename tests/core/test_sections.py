"""A page belongs to its directory; numbers are stable and parents come first."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.sections import SITE, Sections


def test_a_page_belongs_to_its_directory_and_a_directory_to_the_one_above() -> None:
    sections = Sections()
    deep, shallow, home, empty, other = sections.sections_of(
        ["/docs/api/x.html", "/docs/", "/index.html", "", "/docs/y?next=/other/z#/a/"]
    )
    assert sections.parents()[deep] == shallow
    assert sections.parents()[shallow] == SITE
    assert home == empty == SITE
    assert other == shallow


def test_directories_below_the_greatest_depth_count_as_their_ancestor() -> None:
    sections = Sections(max_depth=1)
    deep, shallow = sections.sections_of(["/a/b/c/d", "/a/x"])
    assert deep == shallow != SITE


def test_of_too_many_directories_those_with_the_most_pages_are_sections() -> None:
    sections = Sections(most=3)
    posts = sections.sections_of([f"/posts/{name}/" for name in range(100)] + ["/docs/a", "/docs/b", "/docs/c"])
    assert len(set(posts[:100])) == 1
    assert len(set(posts)) == 2
    assert len(sections) == 3


def test_a_directory_becomes_a_section_for_the_pages_that_fill_it() -> None:
    sections = Sections(most=1)
    assert sections.sections_of(["/a/1", "/a/2", "/b/1"]) == [1, 1, SITE]
    assert sections.sections_of(["/b/2", "/b/3", "/b/4"]) == [2, 2, 2]


@given(st.lists(st.text("ab/", max_size=4), max_size=20), st.integers(1, 9))
def test_numbers_do_not_change_and_parents_come_first(paths: list[str], most: int) -> None:
    sections = Sections(most=most)
    sections.sections_of(paths)
    unbounded = Sections()
    assert unbounded.sections_of(paths) == unbounded.sections_of(paths)
    parents = sections.parents()
    assert len(parents) == len(sections)
    assert all(parents[section] < section for section in range(1, len(sections)))
    assert Sections.decode(sections.encode()).parents() == parents


def test_of_directories_without_end_those_with_the_fewest_pages_are_forgotten() -> None:
    """What is a section stays one and goes on being counted."""
    sections = Sections(most=5)
    kept = sections.sections_of(["/docs/a"] * 50 + ["/blog/a"] * 30)
    for day in range(300):
        sections.sections_of([f"/archive{day}/page"])
    assert len(msgspec.msgpack.decode(sections.encode())[0]) <= 20 * 5
    assert sections.sections_of(["/docs/b", "/blog/b"]) == [kept[0], kept[-1]]
    assert len(sections) < 12
