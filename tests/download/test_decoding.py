"""Content codings come off in any split; no more is unpacked than may be taken."""

from __future__ import annotations

import gzip
import random
import zlib
from typing import TYPE_CHECKING

import brotli
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from webfountain.download.decoding import Body
from webfountain.download.http1 import BadResponse

if TYPE_CHECKING:
    from collections.abc import Callable

CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=2),
    "zstd": zstd.compress,
}


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def decode(encoding: str, pieces: list[bytes], *, limit: int = 10_000_000, truncate: bool = False) -> bytes:
    body = Body(encoding, limit=limit, truncate=truncate)
    for piece in pieces:
        body.take(piece)
    return body.end()


def refusal(encoding: str, data: bytes, *, limit: int = 10_000_000) -> str:
    with pytest.raises(BadResponse) as caught:
        decode(encoding, [data], limit=limit)
    return caught.value.word


@given(st.sampled_from(sorted(CODERS)), st.binary(max_size=3000), st.integers(1, 700))
def test_every_coding_comes_off_however_the_bytes_are_split(name: str, data: bytes, size: int) -> None:
    packed = CODERS[name](data)
    assert decode(name, [packed[at : at + size] for at in range(0, len(packed), size)]) == data


@pytest.mark.parametrize("name", sorted(CODERS))
def test_a_large_body_in_one_piece_comes_out_whole(name: str) -> None:
    data = random.Random(1).randbytes(500_000).hex().encode() * 2
    assert decode(name, [CODERS[name](data)]) == data


def test_deflate_is_read_with_and_without_its_wrapper() -> None:
    assert decode("deflate", [raw_deflate(b"page" * 100)]) == b"page" * 100


def test_gzip_may_have_several_members_and_padding_at_its_end() -> None:
    assert decode("x-gzip", [gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0\0"]) == b"one two"


def test_codings_come_off_in_the_reverse_of_the_order_they_went_on() -> None:
    assert decode("gzip, br", [brotli.compress(gzip.compress(b"page"))]) == b"page"


def test_unknown_codings_and_identity_leave_the_bytes_as_they_are() -> None:
    assert decode("rot13, identity", [b"uryyb"]) == b"uryyb"


@pytest.mark.parametrize("name", sorted(CODERS))
def test_an_empty_body_is_empty_whatever_its_coding(name: str) -> None:
    assert decode(name, []) == b""


@pytest.mark.parametrize("name", sorted(CODERS))
def test_a_stream_that_is_cut_short_is_cut(name: str) -> None:
    assert refusal(name, CODERS[name](random.Random(1).randbytes(900))[:-20]) == "cut"


@pytest.mark.parametrize("name", ["gzip", "br", "zstd"])
def test_what_is_not_in_its_coding_is_a_bad_response(name: str) -> None:
    assert refusal(name, b"<p>not packed at all, whatever the header says</p>") == "bad-response"


@pytest.mark.parametrize("name", sorted(CODERS))
def test_a_bomb_is_not_unpacked_beyond_its_ratio(name: str) -> None:
    assert refusal(name, CODERS[name](b" " * 30_000_000)) == "bomb"


def test_more_than_three_codings_are_refused() -> None:
    assert refusal("gzip, gzip, gzip, gzip", b"") == "bad-response"


def test_a_body_above_the_limit_is_too_large() -> None:
    assert refusal("", b"x" * 101, limit=100) == "too-large"


def test_a_body_that_may_be_truncated_ends_at_the_limit() -> None:
    assert decode("", [b"x" * 60, b"y" * 60], limit=100, truncate=True) == b"x" * 60 + b"y" * 40
    assert decode("gzip", [gzip.compress(b"ab" * 100)], limit=50, truncate=True) == b"ab" * 25
