"""Reading responses: any split of the bytes gives the same, and nothing endless is waited for."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.download.bad_response import BadResponse
from webfountain.download.http_reader import MAX_HEAD_BYTES, MAX_HEAD_LINES, ResponseReader

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + PLAIN
BARE = CHUNKED.replace(b"\r\n", b"\n")


def read(pieces: list[bytes], *, head_only: bool = False) -> tuple[ResponseReader, bytes]:
    reader = ResponseReader(head_only=head_only)
    return reader, b"".join(reader.feed(piece) for piece in pieces)


def refusal(data: bytes) -> str:
    reader = ResponseReader()
    try:
        for at in range(0, len(data), 4096):
            reader.feed(data[at : at + 4096])
        reader.eof()
    except BadResponse as bad:
        return bad.word
    return "taken"


@given(st.sampled_from([PLAIN, CHUNKED, INTERIM, BARE]), st.lists(st.integers(0, 150), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_response(data: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    reader, body = read([data[a:b] for a, b in itertools.pairwise(edges)])
    assert (reader.status, body, reader.complete, reader.keep_alive, reader.rest) == (200, b"hello", True, True, False)


@given(st.binary(max_size=400))
def test_random_bytes_never_raise_anything_but_a_word(data: bytes) -> None:
    for start in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        assert refusal(start + data) in {"bad-response", "cut", "headers-too-large", "taken"}


def test_headers_have_lower_case_names_in_order_and_folded_lines_are_joined() -> None:
    reader, _ = read(
        [b"HTTP/1.1 200 OK\r\nB: 1\r\nA:  2 \r\n 3\r\nno colon\r\nX: a\0b\r\nB: 4\r\nContent-Length: 0\r\n\r\n"]
    )
    assert reader.headers == [("b", "1"), ("a", "2 3"), ("b", "4"), ("content-length", "0")]


def test_only_blanks_are_white_space_in_a_head() -> None:
    """Python's own `strip` takes more, and made `\\xa0chunked` chunked where others read to the end."""
    reader, _ = read(
        [b"HTTP/1.1 200 OK\r\nA: \xa0x\x85\x0b\r\nB :\t y \t\r\n C: z\r\n\xa0D: 1\r\nContent-Length: 0\r\n\r\n"]
    )
    assert reader.headers == [("a", "\xa0x\x85\x0b"), ("b", "y C: z"), ("content-length", "0")]
    assert refusal(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \xa0chunked\r\n\r\n0\r\n\r\n") == "bad-response"


@pytest.mark.parametrize(
    "line", [b"A:" + b" " * 30_000 + b"\r", b"A" * 60_000, b"A: b" + b" " * 30_000 + b"c\n ", b"A" + b" \t" * 30_000]
)
def test_a_hostile_head_costs_no_more_than_its_length(line: bytes) -> None:
    """A pattern that tries again would take minutes over each of these."""
    reader, _ = read([b"HTTP/1.1 200 OK\r\n" + line + b"\r\nContent-Length: 0\r\n\r\n"])
    assert reader.complete


@pytest.mark.parametrize(
    ("headers", "body", "kept"),
    [
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"2\r\nok\r\n0\r\n\r\n", False),
        (b"Transfer-Encoding: chunked, identity", b"ok", False),
        (b"Transfer-Encoding: identity, chunked", b"2\r\nok\r\n0\r\n\r\n", False),
        (b"Transfer-Encoding: identity\r\nContent-Length: 2", b"ok", False),
        (b"Transfer-Encoding: chunked", b"2\r\nok\r\n0\r\n\r\n", True),
        (b"Content-Length: 2\r\nConnection: close\r\nConnection: keep-alive", b"ok", False),
        (b"Content-Length: 2\r\nConnection: x-close-x", b"ok", True),
    ],
)
def test_what_is_framed_oddly_is_read_and_ends_its_connection(headers: bytes, body: bytes, kept: bool) -> None:
    reader, got = read([b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n\r\n" + body])
    reader.eof()
    assert (got, reader.keep_alive) == (b"ok", kept)


@pytest.mark.parametrize("chunks", [b"2\r\nok0\r\n\r\n", b"2\r\nok\r\n\r\n0\r\n\r\n", b" 2\r\nok\r\n0\r\n\r\n"])
def test_a_chunk_ends_with_one_line_end_and_begins_with_its_size(chunks: bytes) -> None:
    assert refusal(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks) == "bad-response"


def test_a_length_that_is_no_number_beside_chunks_says_nothing() -> None:
    reader, body = read(
        ["HTTP/1.1 200 OK\r\nContent-Length: \u00b2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode("latin-1")]
    )
    assert (reader.length, body, reader.complete) == (None, b"", True)


def test_a_carriage_return_within_a_value_cannot_forge_a_line() -> None:
    reader, _ = read([b'HTTP/1.1 200 OK\r\nETag: "x\rEvil: 1"\r\nContent-Length: 0\r\n\r\n'])
    assert "etag" not in dict(reader.headers)


def test_a_body_without_length_ends_with_the_connection_and_ends_it() -> None:
    reader, body = read([b"HTTP/1.1 200 OK\r\n\r\nabc", b"def"])
    assert not reader.complete
    reader.eof()
    assert (body, reader.complete, reader.keep_alive) == (b"abcdef", True, False)


@pytest.mark.parametrize("status", [204, 304])
def test_no_content_and_not_modified_have_no_body_whatever_they_say(status: int) -> None:
    reader, body = read([b"HTTP/1.1 %d X\r\nContent-Length: 100\r\n\r\n" % status])
    assert (reader.complete, body) == (True, b"")


def test_the_answer_to_head_has_no_body() -> None:
    reader, _ = read([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"], head_only=True)
    assert reader.complete


def test_bytes_after_the_end_are_reported_and_not_taken() -> None:
    reader, body = read([PLAIN + b"HTTP/1.1 200 OK"])
    assert (body, reader.rest) == (b"hello", True)


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [("1.1", "", True), ("1.1", "close", False), ("1.0", "", False), ("1.0", "Keep-Alive", True)],
)
def test_whether_a_connection_is_kept_follows_from_version_and_header(
    version: str, connection: str, kept: bool
) -> None:
    header = f"Connection: {connection}\r\n" if connection else ""
    reader, _ = read([f"HTTP/{version} 200 OK\r\n{header}Content-Length: 0\r\n\r\n".encode()])
    assert reader.keep_alive is kept


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "cut"),
        (b"HTTP/1.1 200 OK\r\nContent", "cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "cut"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal", "cut"),
        (b"SSH-2.0-OpenSSH\r\n", "bad-response"),
        (b"HTTP/1.1 fine\r\n\r\n", "bad-response"),
        (b"HTTP/1.1 101 Switching\r\n\r\n", "bad-response"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "bad-response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "bad-response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "bad-response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "bad-response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "bad-response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n", "bad-response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;" + b"x" * 9000, "bad-response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 40_000, "bad-response"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * MAX_HEAD_LINES, "headers-too-large"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * MAX_HEAD_BYTES, "headers-too-large"),
        (b"\r\n" * MAX_HEAD_BYTES, "headers-too-large"),
    ],
)
def test_an_unusable_response_is_refused_with_an_error_word(data: bytes, word: str) -> None:
    assert refusal(data) == word


def test_equal_lengths_said_twice_are_one() -> None:
    reader, body = read([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2, 2\r\n\r\nok"])
    assert (reader.complete, body) == (True, b"ok")


def test_a_response_with_both_lengths_is_chunked_and_its_connection_is_not_kept() -> None:
    reader, body = read(
        [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"]
    )
    assert (body, reader.complete, reader.keep_alive) == (b"ok", True, False)
