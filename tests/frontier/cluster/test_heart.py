"""Ants that crawl one store by different policy files: it is said, once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.frontier.drive import collection_of
from webfountain.frontier.cluster.ant_notes import AntNote, Colony
from webfountain.frontier.cluster.heart import PolicyFiles, digest_of

if TYPE_CHECKING:
    import pytest


def test_a_policy_file_is_distinguished_from_others_by_what_it_says() -> None:
    one, other = (collection_of(["http://a.example/"], min_delay=delay) for delay in ("1s", "2s"))
    assert digest_of(one) == digest_of(collection_of(["http://a.example/"], min_delay="1s"))
    assert digest_of(one) != digest_of(other)


def test_the_notes_of_the_ants_say_how_many_files_there_are() -> None:
    assert Colony.of([AntNote(1.0, policy="a"), AntNote(1.0, policy="a")]).policies == 1
    assert Colony.of([AntNote(1.0, policy="a"), AntNote(1.0, policy="b"), AntNote(1.0, policy="a")]).policies == 2


def test_different_files_are_said_once_and_not_while_an_edit_spreads(caplog: pytest.LogCaptureFixture) -> None:
    said = PolicyFiles()
    with caplog.at_level(logging.WARNING):
        for many in (1, 2, 1, 1):
            said.compare(many)
        assert not caplog.records
        for many in (2, 2, 2, 2):
            said.compare(many)
    [record] = caplog.records
    assert "2 different policy files" in record.message
