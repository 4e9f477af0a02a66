"""A policy file is replaced only by a valid one of the same collection, and the version before is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from webfountain.api.policy_file import BEFORE, PolicyFileEditor
from webfountain.errors import InputError, PolicyError
from webfountain.policy.collection_file import CollectionInForce

if TYPE_CHECKING:
    from pathlib import Path

TEXT = '[collection]\nname = "one"\nseeds = ["http://127.0.0.1/"]\n[network]\nallow_private = true\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "one.toml"
    file.write_text(TEXT)
    file.chmod(0o640)
    return file


def test_a_written_file_replaces_the_one_before_and_keeps_it(path: Path) -> None:
    file = PolicyFileEditor(CollectionInForce(str(path), TEXT))
    assert file.is_writable
    edited = TEXT + "[politeness]\r\nmin_delay = '2s'\r\n"
    file.write(edited, file.digest)
    assert path.read_text() == edited.replace("\r\n", "\n")
    assert path.with_name(path.name + BEFORE).read_text() == TEXT
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in path.parent.iterdir()) == ["one.toml", "one.toml" + BEFORE]


def test_an_invalid_or_foreign_text_changes_nothing(path: Path) -> None:
    file = PolicyFileEditor(CollectionInForce(str(path), TEXT))
    with pytest.raises(PolicyError, match="denny"):
        file.write(TEXT + "[policies.default]\ndenny = ['x']\n", file.digest)
    with pytest.raises(InputError, match="but this collection is"):
        file.write(TEXT.replace('"one"', '"two"'), file.digest)
    with pytest.raises(InputError, match="seeds_file") as refused:
        file.write(TEXT.replace("seeds", 'seeds_file = "/etc/passwd"\nseeds'), file.digest)
    assert "root:" not in str(refused.value)
    assert path.read_text() == TEXT
    assert [each.name for each in path.parent.iterdir()] == ["one.toml"]


def test_an_edit_of_someone_else_is_not_overwritten(path: Path) -> None:
    file = PolicyFileEditor(CollectionInForce(str(path), TEXT))
    path.write_text(TEXT + "# edited\n")
    assert not file.is_writable
    with pytest.raises(InputError, match="edited in the meantime"):
        file.write(TEXT, file.digest)
    assert path.read_text() == TEXT + "# edited\n"


def test_a_file_on_another_machine_cannot_be_written(tmp_path: Path) -> None:
    file = PolicyFileEditor(CollectionInForce(str(tmp_path / "none.toml"), TEXT))
    assert not file.is_writable
    with pytest.raises(InputError, match="not on this machine"):
        file.write(TEXT, file.digest)
