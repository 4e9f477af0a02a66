"""Signatures: what the command writes can be made again, and compares across collections."""

from __future__ import annotations

import textwrap
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from tests.duplicates.copied_sites import A, B, Town, page, text
from webfountain.commands.duplicates import export_signatures
from webfountain.errors import InputError
from webfountain.report.signatures import signature, signatures, write_signatures
from webfountain.repository.repository import Pages

if TYPE_CHECKING:
    from pathlib import Path


def crawled(folder: Path, site: str, texts: dict[str, str]) -> Town:
    """A collection of one site, whose home page links the others."""
    pages = {f"{site}/{name}": page(words) for name, words in texts.items()}
    pages[f"{site}/"] = page(text(900), *pages)
    town = Town(folder, pages, seeds=(site,))
    town.drive.run(seconds=3600)
    return town


def exported(town: Town, folder: Path, file: Path) -> int:
    """The crawl is ended first."""
    town.index.close()
    town.repository.close()
    with closing(Pages(folder / "repository")) as copies:
        return write_signatures(file, signatures(town.drive.store, copies, unreadable=lambda error: None))


def test_the_example_of_the_help_finds_the_pairs_of_two_collections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each collection has a key of its own for its sketches; signatures have none."""
    news = {"one": text(1), "two": text(2), "short": "some words", "empty": ""}
    docs = {"same": text(1), "near": text(2, changed=3), "other": text(3)}
    for name, site, texts in (("news", A, news), ("docs", B, docs)):
        town = crawled(tmp_path / name, site, texts)
        exported(town, tmp_path / name, tmp_path / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    _, _, code = (export_signatures.epilog or "").partition("datasketch:\n")
    exec(textwrap.dedent(code.replace("\b\n", "")), {})
    found = capsys.readouterr().out.splitlines()
    assert sorted(found) == sorted(
        [f"{B}/ ['{A}/']", f"{B}/same ['{A}/one']", f"{B}/near ['{A}/two']", f"{B}/other []"]
    )


def test_a_file_says_how_its_signatures_were_made_and_leaves_out_pages_without_a_word(tmp_path: Path) -> None:
    town = crawled(tmp_path, A, {"short": "some words", "empty": ""})
    assert exported(town, tmp_path, tmp_path / "pages.parquet") == 2
    table = pq.read_table(tmp_path / "pages.parquet")
    assert {name.decode() for name in table.schema.metadata} >= {"minhash", "shingle"}
    assert table.column_names == ["url", "fetched", "minhash"]
    by_url = {row["url"]: row["minhash"] for row in table.to_pylist()}
    made = MinHash()
    made.update(b"some words")
    assert by_url[f"{A}/short"] == made.hashvalues.tolist()


@given(st.text(alphabet="ab \nÄ", max_size=60))
def test_a_signature_is_that_of_datasketch_with_its_own_defaults(words: str) -> None:
    tokens = words.lower().split()
    made = MinHash()
    for first in range(max(len(tokens) - 3, min(1, len(tokens)))):
        made.update(" ".join(tokens[first : first + 4]).encode())
    assert signature(words) == made


def test_a_file_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent/pages\.parquet: cannot be written"):
        write_signatures(tmp_path / "absent" / "pages.parquet", [])
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="folder: cannot be written"):
        write_signatures(tmp_path / "folder", [])
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
