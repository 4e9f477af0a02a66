"""Content codings come off in any split; no more is unpacked than may be taken."""

from __future__ import annotations

import gzip
import itertools
import random
import resource
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import brotli
import pytest
from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webfountain.download.bad_response import BadResponse
from webfountain.download.content_coding import MAX_MEMBERS, Body, check_codings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def skippable(data: bytes) -> bytes:
    """A zstd frame that is to be passed over (RFC 8878 section 3.1.2)."""
    return b"\x53\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data


def outcome(encoding: str, pieces: list[bytes]) -> bytes | str:
    """The body, or the word why there is none."""
    try:
        return decode(encoding, pieces)
    except BadResponse as bad:
        return bad.word


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


_TEXTS = st.lists(st.binary(max_size=300) | st.builds(bytes, st.integers(0, 3000)), max_size=6)
_AFTER = st.sampled_from(
    [b"", b"\0", b"\0" * 9, b"\x1f", b"\x1f\x8b", b"\n", b"<!-- served -->", b"\x28\xb5", b"\0\n\0"]
)
_CUTS = st.lists(st.integers(0, 4000), max_size=8)


@given(st.sampled_from(sorted(CODERS)), _TEXTS, _AFTER, st.integers(0, 40), _CUTS)
def test_any_split_of_a_stream_gives_what_it_gives_at_once(
    name: str, texts: list[bytes], after: bytes, lost: int, cuts: list[int]
) -> None:
    """Several members or frames, empty ones, bytes that follow, a lost tail: whole, or the same word."""
    packed = b"".join(CODERS[name](text) for text in texts) + after
    packed = packed[: len(packed) - lost] if lost else packed
    assert outcome(name, split(packed, cuts)) == outcome(name, [packed])


@given(_TEXTS, st.sampled_from(["gzip", "zstd"]), _CUTS)
def test_all_members_and_frames_are_read_wherever_the_packets_end(
    texts: list[bytes], name: str, cuts: list[int]
) -> None:
    packed = b"".join(CODERS[name](text) for text in texts)
    assert decode(name, split(packed, cuts)) == b"".join(texts)
    for lost in range(1, min(len(CODERS[name](texts[-1])), 12) if texts else 0):
        assert outcome(name, split(packed[:-lost], cuts)) == "cut"


@given(_TEXTS, st.lists(st.binary(max_size=20), min_size=1, max_size=6), _CUTS)
def test_skippable_frames_are_passed_over_wherever_they_stand(
    texts: list[bytes], skipped: list[bytes], cuts: list[int]
) -> None:
    frames = [
        part for pair in itertools.zip_longest(map(skippable, skipped), map(zstd.compress, texts)) for part in pair
    ]
    assert decode("zstd", split(b"".join(filter(None, frames)), cuts)) == b"".join(texts)


def test_bytes_after_a_zstd_frame_that_begin_none_are_an_error() -> None:
    assert refusal("zstd", zstd.compress(b"page") + b"<!-- served -->") == "bad-response"


def test_many_empty_members_are_read_and_an_endless_number_is_refused() -> None:
    """Each costs its decompressor's making: 8 MB of them would hold the loop for a second, of zstd's frames for 18."""
    for name in ("gzip", "zstd"):
        empty = CODERS[name](b"")
        assert decode(name, [empty * 1_000 + CODERS[name](b"page")]) == b"page"
        assert refusal(name, empty * (MAX_MEMBERS + 1)) == "bomb"


def test_members_that_carry_a_page_may_be_many() -> None:
    member = gzip.compress(b"x" * 2_000, 1)
    assert len(decode("gzip", [member * (2 * MAX_MEMBERS)], limit=100_000_000)) == 4_000 * MAX_MEMBERS


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
    zeros = b"\0" * 600  # of tapes: the next member may come after them
    packed = gzip.compress(b"one ") + zeros + gzip.compress(b"two") + zeros
    assert decode("x-gzip", [packed]) == b"one two"


def test_codings_come_off_in_the_reverse_of_the_order_they_went_on() -> None:
    assert decode("gzip, br", [brotli.compress(gzip.compress(b"page"))]) == b"page"


def test_unknown_codings_and_identity_leave_the_bytes_as_they_are() -> None:
    assert decode("rot13, identity", [b"uryyb"]) == b"uryyb"


@pytest.mark.parametrize("encoding", ["rot13", "compress", "aes128gcm", "gzip, sdch", "br;q=1", "gzip identity"])
def test_a_page_in_a_coding_that_is_not_known_is_refused(encoding: str) -> None:
    with pytest.raises(BadResponse, match="content-coding"):
        check_codings(encoding)


@pytest.mark.parametrize("encoding", ["identity", "GZIP", " br , gzip", "none", "utf-8", "ISO-8859-1", "", ","])
def test_words_that_servers_send_for_uncoded_bodies_are_accepted(encoding: str) -> None:
    check_codings(encoding)


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


@pytest.mark.parametrize("name", sorted(CODERS))
def test_whether_a_body_is_a_bomb_does_not_hang_on_its_packets(name: str) -> None:
    """What came so far was counted packet by packet: this one was whole in one packet, and a bomb in two."""
    data = CODERS[name](b" " * 2_000_000 + random.Random(1).randbytes(20_000))
    assert {outcome(name, [data[:cut], data[cut:]]) for cut in (0, 100, 3000, 5000, len(data))} == {"bomb"}


def test_more_than_three_codings_are_refused() -> None:
    assert refusal("gzip, gzip, gzip, gzip", b"") == "bad-response"


def test_a_body_above_the_limit_is_too_large() -> None:
    assert refusal("", b"x" * 101, limit=100) == "too-large"


def test_a_body_that_may_be_truncated_ends_at_the_limit() -> None:
    assert decode("", [b"x" * 60, b"y" * 60], limit=100, truncate=True) == b"x" * 60 + b"y" * 40
    assert decode("gzip", [gzip.compress(b"ab" * 100)], limit=50, truncate=True) == b"ab" * 25


@pytest.fixture
def a_gigabyte() -> Iterator[None]:
    """No more than that beyond what this process has taken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + 1_000_000_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.soak
@settings(
    max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.lists(st.sampled_from(sorted(CODERS)), min_size=1, max_size=3),
    st.lists(st.tuples(st.binary(max_size=300), st.sampled_from([1, 100, 10_000, 5_000_000])), max_size=3),
    st.lists(st.tuples(st.integers(0, 100_000), st.binary(max_size=3)), max_size=4),
    st.lists(st.integers(0, 100_000), max_size=6),
)
def test_no_coded_body_however_damaged_and_split_takes_a_gigabyte(
    a_gigabyte: None,
    codings: list[str],
    runs: list[tuple[bytes, int]],
    damage: list[tuple[int, bytes]],
    cuts: list[int],
) -> None:
    """Whole body or a word, in one packet and in many; what is wrong with it may be seen in another order."""
    data = b"".join(part * -(-size // max(1, len(part))) for part, size in runs)
    for coding in codings:
        data = CODERS[coding](data)
    for where, mark in damage:
        at = where % (len(data) + 1)
        data = data[:at] + mark + data[at + len(mark) :]
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    pieces = [data[begin:end] for begin, end in itertools.pairwise(places)]
    split, whole = outcome(", ".join(codings), pieces), outcome(", ".join(codings), [data])
    assert split == whole or {split, whole} <= {"bomb", "bad-response", "too-large"}
