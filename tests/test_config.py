"""Settings: defaults, texts from the command line, and the line that says what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from webfountain.config import PREFIX, FountainConfig, settings
from webfountain.errors import InputError


def test_without_settings_all_have_their_default() -> None:
    config = FountainConfig.from_mapping({})
    assert config == FountainConfig()
    assert (config.store, config.active_sites, config.cache_bytes) == ("rocksdb://.webfountain", 1000, 45_000_000)
    assert (config.recrawl, config.progress, config.until_idle) == (False, False, False)


def test_other_names_are_ignored_and_none_means_the_default() -> None:
    assert FountainConfig.from_mapping({"BOT_NAME": "x", "WEBFOUNTAIN_MAX_PAGES": None}) == FountainConfig()


def test_values_may_be_texts_as_from_the_command_line() -> None:
    given = {"HAND": "4", "MAX_SECONDS": "2.5", "UNTIL_IDLE": "true", "RECRAWL": "1", "REPORT": "report.json"}
    config = FountainConfig.from_mapping({PREFIX + name: value for name, value in given.items()})
    assert (config.hand, config.max_seconds, config.until_idle, config.recrawl) == (4, 2.5, True, True)
    assert config.report == "report.json"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ACTIVE_SITE", 5, "setting WEBFOUNTAIN_ACTIVE_SITE is unknown (did you mean WEBFOUNTAIN_ACTIVE_SITES?)"),
        ("ZZZZ", 5, "setting WEBFOUNTAIN_ZZZZ is unknown (allowed: WEBFOUNTAIN_ with COLLECTION, STORE, "),
        ("HAND", 0, "setting WEBFOUNTAIN_HAND: 0 is not allowed (allowed: a whole number, 1 to 10000)"),
        ("HAND", "many", "setting WEBFOUNTAIN_HAND: 'many' is not allowed (allowed: a whole number, 1 to 10000)"),
        ("HAND", 2.5, "setting WEBFOUNTAIN_HAND: 2.5 is not allowed (allowed: a whole number, 1 to 10000)"),
        ("ACTIVE_SITES", "2000000", "ACTIVE_SITES: '2000000' is not allowed (allowed: a whole number, 1 to 1000000)"),
        ("ITEMS", "new", "setting WEBFOUNTAIN_ITEMS: 'new' is not allowed (allowed: 'all' | 'changed')"),
        ("UNTIL_IDLE", "perhaps", "setting WEBFOUNTAIN_UNTIL_IDLE: 'perhaps' is not allowed (allowed: true or false)"),
        ("REPORT", "", "setting WEBFOUNTAIN_REPORT: '' is not allowed (allowed: a text that is not empty)"),
        ("MAX_SECONDS", "nan", "setting WEBFOUNTAIN_MAX_SECONDS: 'nan' is not allowed"),
    ],
)
def test_an_unknown_mistyped_or_out_of_range_setting_is_named(name: str, value: object, expected: str) -> None:
    with pytest.raises(InputError, match=re.escape(expected)):
        FountainConfig.from_mapping({PREFIX + name: value})


def test_each_setting_has_a_unit_and_one_sentence() -> None:
    for setting in settings():
        assert re.fullmatch(r"WEBFOUNTAIN_[A-Z_]+", setting.name)
        assert setting.sentence.endswith(".")
        assert setting.unit or isinstance(setting.default, bool)


def test_copies_lie_in_the_stores_folder_unless_set() -> None:
    folder = {
        store: FountainConfig(store=store).repository_folder
        for store in ("rocksdb://.webfountain", "rocksdb:///srv/x", "rocksdb://a/b")
    }
    assert list(folder.values()) == [Path(".webfountain/repository"), Path("/srv/x/repository"), Path("a/b/repository")]
    assert FountainConfig(store="memory:", repository="copies").repository_folder == Path("copies")


def test_a_store_without_a_folder_needs_a_repository() -> None:
    with pytest.raises(InputError, match="WEBFOUNTAIN_REPOSITORY is required with the store 'redis://h'"):
        _ = FountainConfig(store="redis://h").repository_folder
