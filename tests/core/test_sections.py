"""A page belongs to its directory; numbers are stable and parents come first."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.sections import SITE, Sections


def test_a_page_belongs_to_its_directory_and_a_directory_to_the_one_above():
    sections = Sections()
    deep, shallow = sections.section_of("/docs/api/x.html"), sections.section_of("/docs/")
    assert sections.parents()[deep] == shallow
    assert sections.parents()[shallow] == SITE
    assert sections.section_of("/index.html") == sections.section_of("") == SITE
    assert sections.section_of("/docs/y?next=/other/z#/a/") == shallow


def test_directories_below_the_greatest_depth_count_as_their_ancestor():
    sections = Sections(max_depth=1)
    assert sections.section_of("/a/b/c/d") == sections.section_of("/a/x") != SITE


@given(st.lists(st.text("ab/", max_size=12), max_size=20))
def test_numbers_do_not_change_parents_come_first_and_levels_hold_all(paths: list[str]):
    sections = Sections()
    first = [sections.section_of(path) for path in paths]
    assert [sections.section_of(path) for path in paths] == first
    parents, levels = sections.parents(), sections.levels()
    assert all(parents[section] < section for section in range(1, len(sections)))
    assert sorted(section for level in levels for section in level.tolist()) == list(range(len(sections)))
    for above, level in itertools.pairwise(levels):
        assert set(parents[level].tolist()) <= set(above.tolist())
        assert parents[level].tolist() == sorted(parents[level].tolist())
